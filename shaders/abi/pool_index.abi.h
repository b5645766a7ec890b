/* pool_index.abi.h - the index of the winner of a max pooling window (n,c,p,q): POOL_INDEX_BIAS + h W + w, its position in the
 * image of its channel. With the bias, the index has the bits of a normal float, so it may be loaded and stored as a float.
 * 0: no element gets a gradient, because the window is only padding, or because relu passes none. */
#define POOL_INDEX_BIAS 0x40000000u
