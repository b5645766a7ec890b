/* ops/norm/norm.h - code that the normalisations share. */
#ifndef VKT_NORM_H
#define VKT_NORM_H

#include "ops/ops.h"

/* Checks that input i, if present, is f32 (n). `name` is its name in the message. */
vkt_result vkt_norm_check_vector(const vkt_infer *f, uint32_t i, uint32_t n, const char *name);

#endif
