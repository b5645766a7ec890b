/* ops/norm/norm.h - what the normalisations share. */
#ifndef VKT_NORM_H
#define VKT_NORM_H

#include "ops/ops.h"

/* Input i, if it is there, is f32 (n) by rows; name: what the message calls it. */
vkt_result vkt_norm_check_vector(const vkt_infer *f, uint32_t i, uint32_t n, const char *name);

#endif
