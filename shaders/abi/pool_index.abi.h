/* pool_index.abi.h - the index of the winner of a max pooling window (n,c,p,q): POOL_INDEX_BIAS + h * W + w, where
 * (h,w) is the winner's position in the image of its channel. With the bias, the index has the bits of a normal float,
 * so it may be loaded and stored as a float. An index of 0 means that no element of the window gets a gradient: the window
 * is only padding, or the gradient of a fused relu is 0. */
#define POOL_INDEX_BIAS 0x40000000u
