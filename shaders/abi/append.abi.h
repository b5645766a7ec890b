/* append.abi.h - see append.comp: copies the rows of each plane of x to rows of the same plane of y, a cache. A plane
 * is a matrix: the last two dimensions of x and of y. */
VKT_PUSH(vkt_append_push,
         VKT_U32(n)    /* vec4s of x in this dispatch, which copies n / run planes */
         VKT_U32(run)  /* vec4s of a plane of x */
         VKT_U32(row)  /* vec4s of a row */
         VKT_U32(rows) /* rows of a plane of y */
         VKT_U32(x0) VKT_U32(y0)) /* index of the first vec4 of x, and of y, each in its own binding */
#define APPEND_X     0
#define APPEND_FIRST 1 /* u32 (1): row of y that gets the first row of x */
#define APPEND_Y     2
