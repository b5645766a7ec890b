/* quant.abi.h - the formats of quantized weights. The enums vkt_quant (vktrain/ops.h) and ggml_type (of ggml)
 * have the same values for these formats. */
#define QUANT_CHUNK 8u /* vec4s of a chunk: see lib/quantized_chunk.glsl */
#define QUANT_F16  1
#define QUANT_Q4_0 2
#define QUANT_Q4_1 3
#define QUANT_Q8_0 8
#define QUANT_Q4_K 12
#define QUANT_Q5_K 13
#define QUANT_Q6_K 14
#define QUANT_BF16 30
