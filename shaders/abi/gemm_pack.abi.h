/* gemm_pack.abi.h - copies a block of a row-major matrix to tiles, padded with zeros. For tiles and x see
 * gemm_tile.abi.h. */
VKT_PUSH(vkt_gemm_pack_push, VKT_U32(xn) VKT_U32(kn) /* size of the block along x and k */
         VKT_U32(k4)                                   /* groups of four k to write */
         VKT_U32(src_base) VKT_U32(ld) VKT_U32(src_batch)   /* in elements */
         VKT_U32(dst_base) VKT_U32(dst_panel) VKT_U32(dst_batch) /* in vec4s */)
#define PACK_SPEC_WIDTH   1 /* size of a tile along x: a multiple of 4 */
#define PACK_SPEC_X_OUTER 2 /* 1: x is the slow dimension of the source; 0: k is the slow one */
#define PACK_SPEC_VECTORS 3 /* 1: src_base, ld and src_batch are multiples of 4 */
#define PACK_SRC4 0
#define PACK_DST  1
#define PACK_SRC  2 /* the same memory as PACK_SRC4; read instead of PACK_SRC4 if PACK_SPEC_VECTORS is 0 */
