/* linear_quantized.abi.h - see linear_quantized.comp. The weights are stored as in dequantize.abi.h. */
VKT_PUSH(vkt_linear_quantized_push,
         VKT_U32(rows)      /* rows of the weights in this dispatch. A row gives one number of y for each row of x */
         VKT_U32(width4)    /* vec4s in a row of the weights, and in a row of x */
         VKT_U32(chunks)    /* chunks of QUANT_CHUNK vec4s in a row; the last one may be shorter */
         VKT_U32(row_bytes) /* even */
         VKT_U32(base)      /* offset in bytes of the first row in the binding; even */
         VKT_U32(last)      /* index of the binding's last word that has bytes of the weights */
         VKT_U32(first)     /* column of y that belongs to the first row */
         VKT_U32(outputs))  /* columns of y */
#define LINEAR_QUANTIZED_WORDS 0 /* u32 */
#define LINEAR_QUANTIZED_X     1 /* (batch, 4 * width4) */
#define LINEAR_QUANTIZED_BIAS  2 /* (outputs) */
#define LINEAR_QUANTIZED_Y     3 /* (batch, outputs), f32 */
#define LINEAR_QUANTIZED_SPEC_FORMAT 1 /* vkt_quant */
#define LINEAR_QUANTIZED_SPEC_BATCH  2 /* rows of x: 1 to LINEAR_QUANTIZED_BATCH */
#define LINEAR_QUANTIZED_SPEC_ACROSS 3 /* lanes that share a row of the weights: 1, or all lanes of the subgroup */
#define LINEAR_QUANTIZED_SPEC_BIAS   4 /* 1: there is a bias */
#define LINEAR_QUANTIZED_BATCH 8u
