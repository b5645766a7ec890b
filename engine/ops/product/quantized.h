/* ops/product/quantized.h - rows of quantized weights as floats, for the ops that read such weights. */
#ifndef VKT_QUANTIZED_H
#define VKT_QUANTIZED_H

#include "ops/product/gemm.h"

/* Returns the bytes of a row of `columns` numbers. Returns 0 if these numbers are not whole blocks, or if the format is
 * unknown. */
uint64_t vkt_quantized_row(uint32_t format, uint32_t columns);
/* Checks input i: the 32-bit words of the weights that the attributes describe. */
vkt_result vkt_quantized_check(vkt_infer *f, uint32_t i, const vkt_quantized_attr *a);
/* Emits the dispatches that write rows of the weights to y, which has rows of a->columns numbers. Without ids, y gets
 * all rows. With ids (u32), row p of y is the row ids[p], or zeros if there is no such row. */
void vkt_dequantize_emit(vkt_emit *e, const vkt_quantized_attr *a, vkt_tensor words, vkt_tensor ids, vkt_tensor y);
/* Emits the dispatches that write the rows first .. first + n - 1 of the weights to y. */
void vkt_dequantize_rows_emit(vkt_emit *e, const vkt_quantized_attr *a, vkt_tensor words, uint32_t first, uint32_t n,
                              vkt_tensor y);
/* Emits the dispatch that writes the rows first .. first + n - 1 of the weights to y, as operand B of gemm_tile. y has
 * panels (gemm.h) of `width` columns. Row k of B is the row first + k of the weights. Zeros fill y after the last row,
 * up to a multiple of 4 rows. One binding must hold y. The words of the n rows have at most half the bytes of y, so one
 * binding also holds the words. */
void vkt_dequantize_panels_emit(vkt_emit *e, const vkt_quantized_attr *a, vkt_tensor words, uint32_t first, uint32_t n,
                                uint32_t width, vkt_tensor y);
/* Returns the weights as an operand of a product. The result has a pointer to `a`, so `a` must stay valid. */
vkt_gemm_blocks vkt_quantized_blocks(const vkt_quantized_attr *a);
/* Generates the attributes of a random case. A row has up to 160 numbers, or up to 512 if a block has 256 numbers. Adds
 * the words as the next input. */
vkt_quantized_attr vkt_quantized_sample(vkt_rng *r, vkt_case *c, uint32_t rows);
/* Returns the number of whole rows in `words` words, for vkt_op.settle of ops with quantized weights. */
uint32_t vkt_quantized_rows(const vkt_quantized_attr *a, uint32_t words);
/* The function vkt_op.amend of the ops with quantized weights. The words are random. Makes the f16 numbers of each
 * block (scale and offset) finite and small. If the weights are f16 or bf16, makes each weight finite and small. */
void vkt_quantized_amend(const void *attr, uint32_t *words, size_t n);

/* Entries of vkt_op.fields for a vkt_quantized_attr. The member `transposed` has no entry here, because only
 * linear_quantized uses it. */
#define VKT_QUANTIZED_FIELDS                                                                                       \
    VKT_FIELD(vkt_quantized_attr, format, U32, 1, VKT_QUANT_Q8_0), VKT_FIELD(vkt_quantized_attr, rows, U32, 1, 0), \
        VKT_FIELD(vkt_quantized_attr, columns, U32, 1, 0)

#endif
