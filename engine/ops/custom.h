/* ops/custom.h - ops of the application (vktrain/custom.h). They are not in ops.def, because they have no formula, no
 * random cases and no reference. vkt_audit_graph checks their gradients by difference quotients. */
#ifndef VKT_OPS_CUSTOM_H
#define VKT_OPS_CUSTOM_H

#include "ops/ops.h"
#include "vktrain/custom.h"

/* One shader with its bindings and its number of work groups. */
typedef struct vkt_custom_kernel {
    vkt_shader shader; /* if the op has no gradient shader, shader.bytes is 0 in vkt_custom_op.gradient */
    uint32_t bind[VKT_CUSTOM_BINDINGS];
    uint32_t groups[3]; /* if groups[0] is 0, the number of work groups follows from `elements` */
    uint64_t elements;
    bool loops;
    uint32_t push_bytes;
    unsigned char push[VKT_EMIT_PUSH];
} vkt_custom_kernel;

/* An op as declared. The graph owns it. */
typedef struct vkt_custom_op {
    char name[32];
    uint32_t n_inputs, n_outputs;
    vkt_custom_input
        inputs[VKT_CUSTOM_INPUTS];       /* as declared, but inputs[i].tensor has the layout that the shaders read */
    vkt_value values[VKT_CUSTOM_INPUTS]; /* type, layout and shape of each input */
    vkt_custom_output outputs[VKT_CUSTOM_OUTPUTS];
    vkt_custom_kernel forward, gradient;
} vkt_custom_op;

typedef struct vkt_custom_attr {
    const vkt_custom_op *op;
    uint32_t shader; /* hash of the shaders and their declarations. A trainer stores it in checkpoints */
    uint32_t zero;
} vkt_custom_attr;

extern const vkt_op vkt_op_custom, vkt_op_custom_dx;

static inline const vkt_custom_op *vkt_custom_of(const vkt_node *n)
{
    const vkt_custom_attr *a = n->attr;
    return a->op;
}

/* A binding's kind and number: VKT_CUSTOM_X(3) is kind VKT_CUSTOM_X(0), number 3. */
static inline uint32_t vkt_custom_kind(uint32_t bind)
{
    return bind & ~0xffu;
}
static inline uint32_t vkt_custom_number(uint32_t bind)
{
    return bind & 0xffu;
}

/* Copies a shader into the graph, and compares its module with its declaration (custom_check.c). Fills in *out. The
 * caller has filled in the inputs and outputs of `op`. The message of an error begins with the op and the shader, for
 * instance "custom op 'wave', gradient shader". */
vkt_result vkt_custom_take_shader(vkt_graph *g, const vkt_custom_op *op, const vkt_custom_shader *s, bool gradient,
                                  vkt_custom_kernel *out);
/* Checks whether the device can run the shader. */
vkt_result vkt_custom_check_device(const vkt_host *h, const vkt_limits *lim, const vkt_shader *s);

#endif
