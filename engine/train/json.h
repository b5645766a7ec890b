/* train/json.h - functions with which the files of train/ write JSON. */
#ifndef VKT_TRAIN_JSON_H
#define VKT_TRAIN_JSON_H

#include <jansson.h>

#include "base/base.h"

json_t *vkt_json_real(double x); /* null if x is not finite: JSON has no NaN and no infinity */
/* Writes `object` to a text, and releases `object`. The caller frees the text with vkt_text_release. VKT_E_NOMEM, also
 * if `object` is NULL. `flags` are the flags of json_dumps. */
vkt_result vkt_json_give(const vkt_host *h, json_t *object, size_t flags, char **out);

#endif
