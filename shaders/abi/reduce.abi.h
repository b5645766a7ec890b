/* reduce.abi.h - sums, maxima and minima over some dimensions. The index o of an output is converted to coordinates of the
 * kept dimensions. The sizes of these dimensions are k0..k4 (slow to fast), and their strides in x are s0..s4. An output
 * combines `rows` rows. A row number is converted to coordinates of reduced dimensions, with sizes r0..r3 and strides t0..t3.
 * (k0 and r0 are not needed.) The elements of a row are t4 apart. A row has `run` elements, or `last` elements if its fastest
 * coordinate is r3 - 1. Split j of `splits` reduces a share of the rows and writes y[j * outputs + o]. */
VKT_PUSH(vkt_reduce_push,
         VKT_U32(outputs) VKT_U32(rows) VKT_U32(run) VKT_U32(last) VKT_U32(splits) VKT_F32(scale)
         VKT_U32(rest) VKT_U32(total) /* WIDTH 4 without ALONG: x[rest] .. x[total - 1] are in no row. Split 0 of output
                                       * o also combines x[rest + o], if rest + o < total */
         VKT_U32(k1) VKT_U32(k2) VKT_U32(k3) VKT_U32(k4)
         VKT_U32(s0) VKT_U32(s1) VKT_U32(s2) VKT_U32(s3) VKT_U32(s4)
         VKT_U32(r1) VKT_U32(r2) VKT_U32(r3)
         VKT_U32(t0) VKT_U32(t1) VKT_U32(t2) VKT_U32(t3) VKT_U32(t4))
#define REDUCE_X 0
#define REDUCE_Y 1
#define REDUCE_SPEC_FUNCTION 1
#define REDUCE_SUM 0
#define REDUCE_MAX 1 /* REDUCE_MAX and REDUCE_MIN give NaN if any element is NaN */
#define REDUCE_MIN 2
