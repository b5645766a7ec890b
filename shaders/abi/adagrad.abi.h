/* adagrad.abi.h - see update.abi.h. */
#include "abi/update.abi.h"
VKT_PUSH(vkt_adagrad_push, UPDATE_PUSH VKT_F32(lr_decay) VKT_F32(eps) VKT_U32(keras))
