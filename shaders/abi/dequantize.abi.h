/* dequantize.abi.h - see dequantize.comp. The words of quantized weights are a list of rows, each of row_bytes bytes. The
 * binding has the rows row_begin .. row_end - 1, the first one from byte `base` on. */
VKT_PUSH(vkt_dequantize_push,
         VKT_U32(rows)      /* number of rows of y */
         VKT_U32(width4)    /* vec4s of a row of y */
         VKT_U32(row_bytes) /* even */
         VKT_U32(base)      /* even */
         VKT_U32(last)      /* last word of the binding that has bytes of the weights */
         VKT_U32(first)     /* IDS: y gets the rows of the ids from this one on */
         VKT_U32(row_begin) VKT_U32(row_end)
         VKT_U32(panel) /* DEQUANTIZE_SPEC_PANEL: vec4s from one panel to the next */)
#define DEQUANTIZE_SPEC_FORMAT 1 /* abi/quant.abi.h */
/* IDS: for an id outside the binding's rows, 1: y does not change, because another dispatch writes it; 0: y becomes 0. */
#define DEQUANTIZE_SPEC_KEEP 2
/* Without IDS. 1: a lane writes a chunk of QUANT_CHUNK vec4s; 0: a vec4. */
#define DEQUANTIZE_SPEC_CHUNKS 3
/* With DEQUANTIZE_SPEC_CHUNKS. 0: y has rows. Else it has panels of so many columns of the weights (gemm_tile.abi.h), and
 * `rows` may be more than the weights have. */
#define DEQUANTIZE_SPEC_PANEL 4
#define DEQUANTIZE_WORDS 0 /* u32 */
#define DEQUANTIZE_Y     1 /* (rows, 4 * width4) */
#define DEQUANTIZE_IDS   2 /* IDS: u32 */
