/* rmsprop.abi.h - see update.abi.h. Moment 1 is the mean square, moment 2 the buffer of the momentum, and moment 3
 * the mean gradient. */
#include "abi/update.abi.h"
VKT_PUSH(vkt_rmsprop_push, UPDATE_PUSH VKT_F32(alpha) VKT_F32(one_minus_alpha) VKT_F32(momentum) VKT_F32(eps)
         VKT_U32(keras)) /* 1: the formula of Keras, see rmsprop.comp */
