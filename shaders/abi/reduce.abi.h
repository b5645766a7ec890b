/* reduce.abi.h - sums, maxima and minima over some dimensions. The number o of an output is converted to coordinates of
 * the kept dimensions k0..k4 (slow to fast), with strides s0..s4 in x. An output combines `rows` rows. A row number is
 * converted to coordinates of the dimensions r0..r3, with strides t0..t3. A row has `run` elements that are t4 apart. A
 * row whose coordinate along r3 is the last one has `last` elements instead. Split j of `splits` reduces a share of the
 * rows and writes y[j * outputs + o]. */
VKT_PUSH(vkt_reduce_push,
         VKT_U32(outputs) VKT_U32(rows) VKT_U32(run) VKT_U32(last) VKT_U32(splits) VKT_F32(scale)
         VKT_U32(rest) VKT_U32(total) /* WIDTH 4 without ALONG: split 0 also reads x[rest + o] if rest + o < total */
         VKT_U32(k1) VKT_U32(k2) VKT_U32(k3) VKT_U32(k4)
         VKT_U32(s0) VKT_U32(s1) VKT_U32(s2) VKT_U32(s3) VKT_U32(s4)
         VKT_U32(r1) VKT_U32(r2) VKT_U32(r3)
         VKT_U32(t0) VKT_U32(t1) VKT_U32(t2) VKT_U32(t3) VKT_U32(t4))
#define REDUCE_X 0
#define REDUCE_Y 1
#define REDUCE_SPEC_FUNCTION 1
#define REDUCE_SUM 0
#define REDUCE_MAX 1 /* maximum and minimum are NaN if any element is NaN */
#define REDUCE_MIN 2
