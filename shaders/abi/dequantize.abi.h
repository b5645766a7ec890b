/* dequantize.abi.h - see dequantize.comp. Quantized weights are stored row by row, as 32-bit words. A row has row_bytes
 * bytes. The binding has the rows row_begin .. row_end - 1. Row row_begin starts at byte `base` of the binding. */
VKT_PUSH(vkt_dequantize_push,
         VKT_U32(rows)      /* number of rows of y */
         VKT_U32(width4)    /* vec4s of a row of y */
         VKT_U32(row_bytes) /* even */
         VKT_U32(base)      /* even */
         VKT_U32(last)      /* index of the last word that has bytes of the binding's weights */
         VKT_U32(first)     /* IDS: index of the first id. Row r of y is for the id at index first + r */
         VKT_U32(row_begin) VKT_U32(row_end)
         VKT_U32(panel) /* DEQUANTIZE_SPEC_PANEL: vec4s from one panel to the next */)
#define DEQUANTIZE_SPEC_FORMAT 1 /* one of the formats of abi/quant.abi.h */
/* IDS, for an id outside the binding's rows. 1: the row of y does not change, because an earlier dispatch wrote it. 0: the row
 * becomes 0. */
#define DEQUANTIZE_SPEC_KEEP 2
/* Without IDS. 1: a lane writes a chunk of QUANT_CHUNK vec4s. 0: a lane writes one vec4. */
#define DEQUANTIZE_SPEC_CHUNKS 3
/* With DEQUANTIZE_SPEC_CHUNKS. 0: y is stored row by row. Else y is stored in panels (gemm_tile.abi.h), and this constant is
 * the number of columns of a panel. With panels, `rows` may be larger than the number of rows of the weights. */
#define DEQUANTIZE_SPEC_PANEL 4
#define DEQUANTIZE_WORDS 0 /* u32 */
#define DEQUANTIZE_Y     1 /* (rows, 4 * width4) */
#define DEQUANTIZE_IDS   2 /* IDS: u32 */
