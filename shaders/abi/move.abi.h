/* move.abi.h - copies a box of the tensor x to a box of the tensor y:
 *   y[pc.y + sum_k c_k * y_k] = x[pc.x + sum_k c_k * x_k] for all n positions c of the box
 * x_k and y_k are the strides along dimension k. pc.x and pc.y are the indices of position 0 in the bindings. d and s: see
 * lib/positions.glsl. All members count elements, or vec4s if the kernel moves vec4s. */
VKT_PUSH(vkt_move_push,
         VKT_U32(n) VKT_U32(d1) VKT_U32(d2) VKT_U32(d3) VKT_U32(d4) VKT_U32(d5) VKT_U32(s0) VKT_U32(s1) VKT_U32(s2)
             VKT_U32(s3) VKT_U32(s4) VKT_U32(s5) VKT_U32(x0) VKT_U32(x1) VKT_U32(x2) VKT_U32(x3) VKT_U32(x4) VKT_U32(x5)
                 VKT_U32(x) VKT_U32(y0) VKT_U32(y1) VKT_U32(y2) VKT_U32(y3) VKT_U32(y4) VKT_U32(y5) VKT_U32(y))
#define MOVE_X 0
#define MOVE_Y 1
