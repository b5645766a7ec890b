/* vktrain/custom.h - ops of the application: compute shaders as nodes of a graph.
 *
 * An op has inputs and outputs, a shader that computes the outputs, and perhaps a second shader that computes gradients
 * of the inputs. The op is planned, recorded and differentiated like every op of the library. A loss is an op that
 * computes one number per row, followed by vkt_mean. A sampler is an op without a gradient shader.
 *
 *     static const uint32_t code[] = {
 *     #include "wave.spv.inc"                        written by: glslangValidator -V -x -o wave.spv.inc wave.comp
 *     };
 *     vkt_custom_input x = { .tensor = t };
 *     vkt_custom_output y = { .shape = vkt_tensor_shape(g, t) };
 *     uint32_t n = 1000;                             the shader's push constant
 *     vkt_custom_params p = { .name = "wave", .inputs = &x, .n_inputs = 1, .outputs = &y, .n_outputs = 1,
 *                             .forward = { .spirv = code, .spirv_bytes = sizeof code, .elements = n, .push = &n,
 *                                          .push_bytes = sizeof n, .bind = { VKT_CUSTOM_X(0), VKT_CUSTOM_Y(0) } } };
 *     vkt_tensor wave = vkt_custom(g, &p, NULL);
 *
 * docs/custom.md explains how to write the shaders. samples/custom_loss.c is a whole program. */
#ifndef VKTRAIN_CUSTOM_H
#define VKTRAIN_CUSTOM_H

#include "vktrain/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VKT_CUSTOM_INPUTS 10      /* largest number of inputs of an op */
#define VKT_CUSTOM_OUTPUTS 8      /* largest number of outputs of an op */
#define VKT_CUSTOM_BINDINGS 12    /* largest number of bindings of a shader: 0 to 11 of descriptor set 0 */
#define VKT_CUSTOM_PUSH_BYTES 128 /* largest size of the push constants; the shader may use all of it */

/* Values of vkt_custom_shader.bind, which name the contents of a binding. 0: the shader has no such binding. The buffer
 * blocks of X, DY and STEP must be `readonly`. DX is written. The forward shader writes Y, and must have a binding for
 * every output. In the gradient shader, the buffer block of Y must be `readonly`. */
#define VKT_CUSTOM_X(i) (0x100u + (i))  /* input i */
#define VKT_CUSTOM_Y(k) (0x200u + (k))  /* output k */
#define VKT_CUSTOM_DY(k) (0x300u + (k)) /* gradient shader: gradient of output k, f32 */
#define VKT_CUSTOM_DX(i) (0x400u + (i)) /* gradient shader: gradient of input i, f32. All elements are overwritten */
#define VKT_CUSTOM_STEP 0x500u          /* the step state, which is an array of VKT_STEP_WORDS uint */

/* Indices of words of the step state. These words may change from run to run. Push constants cannot change, because
 * they are recorded once. The real rows of a batch are the rows that have a sample; the last batch of an epoch may have
 * fewer of them. If no op gathers the batch, the word VKT_STEP_ROWS may be larger than the batch size. So a shader
 * must use the smaller one of this word and the batch size. */
#define VKT_STEP_ROWS 2  /* number of real rows of the batch; 0xFFFFFFFF: all rows are real */
#define VKT_STEP_FIRST 3 /* vkt_run.first: index of the batch's first row in the order of the gather */
#define VKT_STEP_KEY0 4  /* low word of the seed of random numbers, which vkt_store_set_clock sets */
#define VKT_STEP_KEY1 5  /* high word of the seed */
/* Counter for random numbers. In a graph with an update, and in the training graph of a trainer whose steps are split
 * into shards (vkt_dist_params.shards), the runs of all steps and ranks are numbered, and the counter is the number of
 * this run. The runs of a skipped step do not count. In other graphs, the counter is the store's number of completed
 * steps. */
#define VKT_STEP_DRAW 18
#define VKT_STEP_WORDS 68

/* An input. */
typedef struct vkt_custom_input {
    vkt_tensor tensor; /* f32 or u32 */
    vkt_layout layout; /* the layout that the shaders read. A tensor of another layout is copied first */
    bool no_gradient;  /* no gradient passes through this input, even if it depends on a parameter */
    float low, high;   /* if f32: vkt_audit_graph generates numbers in [low, high). low = high: numbers in [-1, 1) */
    uint32_t bound;    /* if u32: vkt_audit_graph generates numbers below `bound`. 0: all numbers are 0 */
} vkt_custom_input;

/* An output. In every run the shader must write all elements of the output. With VKT_BATCH_LAST, the shader must also
 * write finite numbers to the padding (see vkt_layout). */
typedef struct vkt_custom_output {
    vkt_dtype dtype;   /* VKT_F32 or VKT_U32 */
    vkt_layout layout; /* the layout in which the shader writes the output */
    vkt_shape shape;   /* shape of the output */
} vkt_custom_output;

/* A shader. `spirv`, `entry` and `push` are copied; they need not outlive the call. A member that is zero selects its
 * default, if the member's comment names one. */
typedef struct vkt_custom_shader {
    const uint32_t *spirv;              /* a module of SPIR-V 1.0 to 1.6. It must be valid: see spirv-val */
    size_t spirv_bytes;                 /* size of the module */
    const char *entry;                  /* name of the module's entry point; NULL: "main" */
    uint32_t bind[VKT_CUSTOM_BINDINGS]; /* entry b: what binding b holds, VKT_CUSTOM_X(0) for instance */
    const void *push;                   /* push constants, the same in each run */
    size_t push_bytes;                  /* size of `push`, a multiple of 4 */
    uint32_t groups[3];                 /* work groups along x, y, z; { 5 } means 5 x 1 x 1. {0}: see `elements` */
    uint64_t elements; /* instead of `groups`: a number of elements. Without `loops`, each element gets one invocation
                        * along x. The last work group may have invocations beyond the last element */
    bool loops;        /* only with `elements`: the shader loops over the elements; the stride is the number of all
                        * invocations. So an invocation may compute several elements, and the library may run fewer work
                        * groups. Without `loops`, a number of work groups that the device cannot run gives
                        * VKT_E_UNSUPPORTED */
} vkt_custom_shader;

/* An op. `name`, `outputs` and the forward shader are needed. `inputs` may be NULL if n_inputs is 0. */
typedef struct vkt_custom_params {
    const char *name;                 /* for messages, prints and labels; copied, and truncated to 31 bytes */
    const vkt_custom_input *inputs;   /* array of n_inputs */
    uint32_t n_inputs;                /* 0 to VKT_CUSTOM_INPUTS */
    const vkt_custom_output *outputs; /* array of n_outputs */
    uint32_t n_outputs;               /* 1 to VKT_CUSTOM_OUTPUTS */
    vkt_custom_shader forward;        /* computes the outputs */
    vkt_custom_shader gradient;       /* spirv NULL: the op has no gradient */
} vkt_custom_params;

/* Adds the op to the graph. Returns its first output; outs (may be NULL) gets all p->n_outputs outputs. After an error,
 * returns the null tensor, outs has no valid tensors, and vkt_graph_status returns the error. The struct and what it
 * points to are copied.
 *
 * Gradients. vkt_backward and vkt_gradients append one node that runs the gradient shader. Let L be the loss. The
 * shader reads DY(k) = dL/dY(k), which is all zeros if L does not depend on output k. It writes DX(i) = dL/dX(i) with
 * the shape and layout of input i. The shader overwrites each element of DX(i) and never adds to it: if an input has
 * several readers, the library adds their gradients in a fixed order. A DX(i) that is not needed is written to scratch
 * memory. If an input needs a gradient, and the op has no gradient shader or this shader has no DX(i) for the input,
 * vkt_backward and vkt_gradients fail with VKT_E_ARG. An input with `no_gradient` needs no gradient, and u32 inputs
 * never have gradients.
 *
 * Checks. vkt_custom reads the module and compares it with the declaration, which is *p. VKT_E_FORMAT: the module is no
 * SPIR-V. VKT_E_NOT_FOUND: the module has no such entry point. VKT_E_UNSUPPORTED: the module is newer than SPIR-V 1.6.
 * VKT_E_ARG: the module and the declaration differ (bindings, `readonly`, size of the push constants), or the
 * declaration is wrong; the message says what is wanted. VKT_E_DTYPE: a type is not f32 or u32, or a u32 value has a DX
 * or DY. VKT_E_SHAPE: an output's shape or layout is illegal.
 *
 * vkt_program_create checks what depends on the device: VKT_E_UNSUPPORTED for a capability that is not enabled, or for
 * work groups, shared memory or bindings that are too large. vkt_custom and vkt_program_create do not check what a
 * shader does: an index out of bounds is undefined, as in every shader.
 *
 * The size of a binding is rounded up to a multiple of 16 bytes, so length() of a GLSL array may be too large: pass
 * numbers of elements as push constants. In programs that store activations in 16 bits (vkt_precision), inputs and
 * outputs of this op stay f32. An output never shares memory with an input of its op. */
VKT_API vkt_tensor vkt_custom(vkt_graph *g, const vkt_custom_params *p, vkt_tensor *outs);

#ifdef __cplusplus
}
#endif
#endif
