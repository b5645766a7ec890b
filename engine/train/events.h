/* train/events.h - the checksum of event files, for the writer and its test. */
#ifndef VKT_TRAIN_EVENTS_H
#define VKT_TRAIN_EVENTS_H

#include "base/base.h"

/* Returns the CRC-32C (Castagnoli; RFC 3720, appendix B.4) of n bytes. */
uint32_t vkt_crc32c(const void *bytes, size_t n);

#endif
