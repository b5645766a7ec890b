/* info/text.h - what vkt-info tells, for a terminal. */
#ifndef INFO_TEXT_H
#define INFO_TEXT_H

#include <stdio.h>

#include "info/facts.h"

/* One row a device; a star marks the one that f->ctx is on. */
void info_print_devices(FILE *out, const info_facts *f);
/* All of it; f->ctx is there. */
void info_print(FILE *out, const info_facts *f);

const char *info_kind_name(vkt_device_kind kind); /* "discrete", as --json has it */
/* "1.3.230" of vkt_device_info.api_version. Returns text. */
const char *info_version_text(uint32_t version, char text[24]);

#endif
