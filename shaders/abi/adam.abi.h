/* adam.abi.h - see update.abi.h. The host computes one_minus_beta1 and one_minus_beta2 in float64. */
#include "abi/update.abi.h"
VKT_PUSH(vkt_adam_push, UPDATE_PUSH VKT_F32(beta1) VKT_F32(one_minus_beta1) VKT_F32(beta2) VKT_F32(one_minus_beta2)
         VKT_F32(eps) VKT_U32(keras))
#define ADAM_SPEC_NADAM 4
