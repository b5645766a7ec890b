/* transpose.abi.h - y[pc.y + outer_y + j * yb + i] = x[pc.x + outer_x + i * xa + j] for all i < a and j < b, at each of
 * `rows` outer positions. xa is the stride of i in x, and yb is the stride of j in y. Outer positions have up to four
 * dimensions, with sizes d1..d3 (d0 is not needed), strides x0..x3 in x and strides y0..y3 in y. outer_x and outer_y
 * are the sums of coordinate * stride. The kernel moves blocks of 4 x 4 elements. At a time, a lane moves up to `chunk`
 * blocks that are neighbours along j. Sizes, strides, pc.x and pc.y count elements. */
VKT_PUSH(vkt_transpose_push, VKT_U32(rows) VKT_U32(a) VKT_U32(b) VKT_U32(xa) VKT_U32(yb) VKT_U32(chunk) VKT_U32(d1)
                                 VKT_U32(d2) VKT_U32(d3) VKT_U32(x0) VKT_U32(x1) VKT_U32(x2) VKT_U32(x3) VKT_U32(x)
                                     VKT_U32(y0) VKT_U32(y1) VKT_U32(y2) VKT_U32(y3) VKT_U32(y))
#define TRANSPOSE_X 0
#define TRANSPOSE_Y 1
