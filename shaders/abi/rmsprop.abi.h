/* rmsprop.abi.h - see update.abi.h. The moments are the mean square, the momentum's buffer and the mean gradient. */
#include "abi/update.abi.h"
VKT_PUSH(vkt_rmsprop_push, UPDATE_PUSH VKT_F32(alpha) VKT_F32(one_minus_alpha) VKT_F32(momentum) VKT_F32(eps)
         VKT_U32(keras))
