/* common/devices.h - what a list of devices does not tell. */
#ifndef SAMPLE_DEVICES_H
#define SAMPLE_DEVICES_H

#include <stdio.h>

#include "vktrain/core.h"

/* Below a list that has llvmpipe: a run may take wider vectors than the list shows (vkt_ctx_create_wide). */
void devices_note(FILE *out, const vkt_device_info *list, uint32_t n);

#endif
