/* conv2d_pack.abi.h - see conv/pack.comp. A panel is one tile of MB rows of A. */
VKT_PUSH(vkt_conv2d_pack_push,
         VKT_U32(vec4s)      /* vec4s of one panel: taps * depth * MB / 4 */
         VKT_U32(depth)      /* how many k: source channels of a group that are read */
         VKT_U32(rows)       /* how many m: destination channels of a group that are computed */
         VKT_U32(tiles)      /* panels of a group: rows / MB, rounded up */
         VKT_U32(mb4)        /* MB / 4 */
         VKT_U32(inner)      /* how many values s has. Above 1: r is a tap's row, and s is the tap's column. 1: r is
                              * the index of a tap, and s is 0 */
         VKT_U32(w_group) VKT_U32(w_row) VKT_U32(w_depth) /* floats of w from group to group, m to m, k to k */
         VKT_U32(w_outer) VKT_U32(w_inner)                /* floats of w from r to r, and from s to s. A negative
                                                           * number is stored modulo 2^32 */
         VKT_U32(w_base))    /* index, in PACK_W, of the weight whose group, m, k, r and s are all 0 */
#define PACK_W 0 /* (O,C/G,R,S) */
#define PACK_A 1 /* [group][tile][r][k][s][MB]; with M_MAJOR [group][tile][r][MB][k] */
#define PACK_SPEC_M_MAJOR 1 /* 1: k is the fastest index of A; depth is a multiple of 4, and inner is 1 */
