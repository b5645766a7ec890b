/* publish.abi.h - see publish.comp. A dispatch reads one range of the parameters and updates the same range of the
 * published parameters (vkt_publish). The other bindings and specialisation ids are in update.abi.h. */
#include "abi/update.abi.h"
VKT_PUSH(vkt_publish_push, VKT_U32(n4) VKT_U32(block) VKT_F32(decay) VKT_F32(rest) /* 1 - decay */)
#define PUBLISH_SPEC_AVERAGE 1 /* 1: the decay is not 0 */
#define PUBLISH_PARAM        0 /* vec4 */
#define PUBLISH_OLD          1 /* vec4: the published parameters, read; PUBLISH_NEW is the same memory, written */
#define PUBLISH_NEW          4
