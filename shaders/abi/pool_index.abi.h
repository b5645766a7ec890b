/* pool_index.abi.h - how a max pooling names the winner of a window (n,c,p,q): POOL_INDEX_BIAS + h W + w, its place in the picture of
 * its channel. The bias makes it the bits of a normal float, so that it may be loaded and stored as one. 0: no element
 * gets a gradient, for relu passes none to them. */
#define POOL_INDEX_BIAS 0x40000000u
