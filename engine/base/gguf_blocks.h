/* base/gguf_blocks.h - the blocks of quantised tensors (vktrain/gguf.h) as float. This folder has them, and not io/,
 * because the references of ops use them too. */
#ifndef VKT_GGUF_BLOCKS_H
#define VKT_GGUF_BLOCKS_H

#include "base/base.h"
#include "vktrain/gguf.h"

/* Does what vkt_gguf_dequantize does, for a type that can be read, without checks. */
void vkt_gguf_blocks_to_f32(vkt_gguf_type type, const void *blocks, size_t n_blocks, float *out);

#endif
