/* sgd.abi.h - see update.abi.h. */
#include "abi/update.abi.h"
VKT_PUSH(vkt_sgd_push, UPDATE_PUSH VKT_F32(momentum) VKT_F32(keep) /* 1 - dampening */ VKT_U32(nesterov) VKT_U32(keras))
