/* info/text.h - prints the output of vkt-info as text. */
#ifndef INFO_TEXT_H
#define INFO_TEXT_H

#include <stdio.h>

#include "info/facts.h"

/* Prints one row per device. A star marks the device of f->ctx (NULL: no star). */
void info_print_devices(FILE *out, const info_facts *f);
/* Prints all facts. f->ctx must not be NULL. */
void info_print(FILE *out, const info_facts *f);

const char *info_kind_name(vkt_device_kind kind); /* returns a name as in --json, for instance "discrete" */
/* Writes vkt_device_info.api_version as text, for instance "1.3.230". Returns `text`. */
const char *info_version_text(uint32_t version, char text[24]);

#endif
