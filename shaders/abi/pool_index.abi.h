/* pool_index.abi.h - the index that max pooling leaves for its gradient, a uint for each window: POOL_INDEX_BIAS + h W + w of the
 * maximum in its channel's picture. 0: no element gets a gradient, for relu passes none to them. */
#define POOL_INDEX_BIAS 0x40000000u /* makes an index the bits of a normal float, so that it may be loaded as one */
