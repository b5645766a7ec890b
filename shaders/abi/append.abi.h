/* append.abi.h - see append.comp. */
VKT_PUSH(vkt_append_push,
         VKT_U32(n)    /* vec4s of x: `run` times the number of planes of x */
         VKT_U32(run)  /* vec4s of a plane of x */
         VKT_U32(row)  /* vec4s of a row */
         VKT_U32(rows) /* rows of a plane of y */
         VKT_U32(x0) VKT_U32(y0)) /* index of the first vec4 of x, and of y, each in its own binding */
#define APPEND_X     0
#define APPEND_FIRST 1 /* u32 (1): row of y that gets the first row of x */
#define APPEND_Y     2
