/* audit/custom.h - audits an op that the application defines, on a device. The op has no reference, so its gradients
 * are compared with difference quotients of its outputs. */
#ifndef VKT_AUDIT_CUSTOM_H
#define VKT_AUDIT_CUSTOM_H

#include "record/record.h"
#include "vktrain/audit.h"

typedef struct vkt_custom_finding {
    uint32_t gradients, differences, kinks; /* as in vkt_audit_entry */
    double gradient[VKT_AUDIT_INPUTS];
    char text[160];  /* name of the op, and shapes of its inputs */
    char fault[240]; /* the first fault; "" if there is none */
} vkt_custom_finding;

/* Audits, with random numbers, a node whose op the application defines. Checks that the shaders write all elements of
 * each output and gradient, and nothing behind the end of a value. The padding of the batch must be finite in outputs
 * and zero in gradients. If all of this is right, compares `elements` random elements of each gradient with difference
 * quotients. Faults are logged. The status is an error only if the op could not be run. */
vkt_result vkt_audit_custom(vkt_ctx *ctx, const vkt_node *n, uint64_t seed, uint32_t elements, vkt_custom_finding *f);

#endif
