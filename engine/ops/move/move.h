/* ops/move/move.h - copies of boxes of elements on the device, for permute, slice, concat and write. */
#ifndef VKT_OPS_MOVE_H
#define VKT_OPS_MOVE_H

#include "ops/ops.h"

/* vkt_move: a box of elements that is copied from x to y. vkt_move_dim: one of its n dimensions. The last dimension is
 * the fastest one in y. */
typedef struct vkt_move_dim {
    uint32_t size;
    int64_t x, y; /* strides in x and in y, in elements; the stride in x may be negative */
} vkt_move_dim;
typedef struct vkt_move {
    uint32_t n;
    vkt_move_dim dim[VKT_MAX_RANK];
    uint64_t x, y; /* indices of the box's first element in x and in y */
} vkt_move;

/* Sets stride[i] to the stride of v along logical dimension i, in elements. */
void vkt_logical_strides(const vkt_value *v, int64_t stride[VKT_MAX_RANK]);
/* Returns how many elements are copied along physical dimension i of a value. If the fastest dimension is the batch,
 * the padding of the batch is copied, too. */
static inline uint32_t vkt_moved_size(const vkt_phys *p, uint32_t i)
{
    return i + 1 == p->rank ? p->pitch : p->dim[i];
}
/* Sets step[0 .. n - 1] to the coordinates of the element with index `lanes` in a box of n dimensions. A kernel adds
 * these coordinates to go from an element of a lane to the lane's next element (lib/positions.glsl). The slowest
 * dimension is first. Its coordinate has no limit, so size[0] is not used. */
void vkt_position_step(uint32_t lanes, const uint32_t *size, uint32_t n, uint32_t *step);

/* Appends a dimension to m. Slower dimensions must be appended before faster ones. A dimension of size 1 is left out.
 * If the stride of the dimension before d is d.size times the stride of d, both in x and in y, the two dimensions
 * become one. */
void vkt_move_dim_add(vkt_move *m, vkt_move_dim d);
/* Copies the box m from x to y, in as many dispatches as bindings need. Both values have the same type. */
void vkt_emit_move(vkt_emit *e, vkt_tensor x, vkt_tensor y, const vkt_move *m);

/* ---- shared by the ops ---- */

/* Returns VKT_E_DTYPE unless x is f32 or u32. */
vkt_result vkt_infer_moved(vkt_infer *f, const vkt_value *x);
/* Generates an input of rank 1 to 6 with at most 16,384 elements. A quarter of the inputs are integers. In at least a
 * third of all inputs, the last dimension is a multiple of 4. */
vkt_case_input *vkt_draw_moved(vkt_rng *r, vkt_case *c);
/* Returns the slice that selects all of x. */
vkt_slice_attr vkt_slice_all(vkt_shape x);

/* ---- for builders ---- */

/* Finds a dimension of x; a negative axis counts from the end. If x has no such dimension, sets the graph's status and
 * returns false. Also returns false if the graph has an error already. */
bool vkt_find_axis(vkt_graph *g, const char *op, vkt_tensor x, int32_t axis, uint32_t *out);
bool vkt_is_batch_last(const vkt_graph *g, vkt_tensor x);

#endif
