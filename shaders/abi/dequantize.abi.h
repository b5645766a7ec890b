/* dequantize.abi.h - see dequantize.comp. The words of quantized weights are a list of rows, each of row_bytes bytes. The
 * binding has the rows row_begin .. row_end - 1, the first one from byte `base` on. */
VKT_PUSH(vkt_dequantize_push,
         VKT_U32(rows)      /* number of rows of y */
         VKT_U32(width4)    /* vec4s of a row of y */
         VKT_U32(row_bytes) /* even */
         VKT_U32(base)      /* even */
         VKT_U32(first)     /* IDS: y gets the rows of the ids from this one on */
         VKT_U32(row_begin) VKT_U32(row_end))
/* The format of a block: a vkt_quant of vktrain/ops.h. These are also the numbers of ggml_type. */
#define DEQUANTIZE_SPEC_FORMAT 1
/* IDS: for an id outside the binding's rows, 1: y does not change, because another dispatch writes it; 0: y becomes 0. */
#define DEQUANTIZE_SPEC_KEEP 2
#define QUANT_F16  1
#define QUANT_Q4_0 2
#define QUANT_Q4_1 3
#define QUANT_Q8_0 8
#define QUANT_Q4_K 12
#define QUANT_Q5_K 13
#define QUANT_Q6_K 14
#define QUANT_BF16 30
#define DEQUANTIZE_WORDS 0 /* u32 */
#define DEQUANTIZE_Y     1 /* (rows, 4 * width4) */
#define DEQUANTIZE_IDS   2 /* IDS: u32 */
