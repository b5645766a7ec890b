/* common/devices.h - a note below a list of devices. */
#ifndef SAMPLE_DEVICES_H
#define SAMPLE_DEVICES_H

#include <stdio.h>

#include "vktrain/core.h"

/* Prints a note if the list has llvmpipe: a run may use wider vectors than the list shows (vkt_ctx_create_wide). */
void devices_note(FILE *out, const vkt_device_info *list, uint32_t n);

#endif
