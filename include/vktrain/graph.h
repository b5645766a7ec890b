/* vktrain/graph.h - tensors, automatic differentiation, and programs that run on a device. The ops are in ops.h.
 *
 * A graph is built once, on the host, from ops; ops.h has the formula of each op. A program is a graph compiled for a
 * context: planned memory and recorded command buffers. A run of the program submits these command buffers. From the
 * fourth run on, vkt_program_run records nothing and allocates nothing.
 *
 * Errors while building are sticky. An op whose arguments do not fit logs what it wanted and what it got, and returns
 * the null tensor {0}. After that, every op of this graph returns the null tensor without a further message.
 * vkt_graph_status() returns the first error. vkt_program_create() refuses a graph whose status is not VKT_OK. */
#ifndef VKTRAIN_GRAPH_H
#define VKTRAIN_GRAPH_H

#include "vktrain/core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VKT_MAX_RANK 6 /* largest number of dimensions of a tensor */

/* The type of a tensor's elements. */
typedef enum vkt_dtype {
    VKT_F32 = 0,    /* the type that ops compute with */
    VKT_U32,        /* labels, ids, indices, conditions; quantized weights as words of 4 bytes */
    VKT_U8,         /* samples in a table of bytes, which vkt_gather_rows converts to f32 */
    VKT_F16,        /* IEEE 754 binary16, in arrays and inputs. vkt_to_f32 and vkt_gather_rows convert f16 to f32,
                     * vkt_write converts f32 to f16. The number of elements of an f16 tensor is a multiple of 4 */
    VKT_DTYPE_COUNT /* number of types */
} vkt_dtype;

/* A shape. rank 0 is a scalar. Dimensions are at least 1. */
typedef struct vkt_shape {
    uint32_t rank;              /* number of dimensions */
    uint32_t dim[VKT_MAX_RANK]; /* in row-major order, the slowest first; dim[rank] and later entries are ignored */
} vkt_shape;

/* The order of a tensor's elements in device memory. Reads and writes from the host always use logical row-major order;
 * only shaders see the layout.
 *   ROWS        row-major, no padding
 *   BATCH_LAST  dimension 0 (the batch) is the fastest; its pitch N' is N rounded up to a multiple of 4. The other
 *               dimensions keep their order. So (N,C,H,W) is stored as [C][H][W][N'], and neighbouring lanes compute
 *               neighbouring samples, whatever the window size or stride of a convolution. Elements past N are
 *               finite in a value and zero in a gradient. */
typedef enum vkt_layout {
    VKT_ROWS = 0,  /* row-major */
    VKT_BATCH_LAST /* dimension 0 is the fastest */
} vkt_layout;

/* The library whose defaults and formulas are used: for layers (vkt_builder_set_preset) and for optimizers
 * (vkt_optimizer_preset). */
typedef enum vkt_preset {
    VKT_PRESET_TORCH = 0, /* PyTorch: the documentation of torch.nn and torch.optim */
    VKT_PRESET_KERAS3,    /* Keras 3: keras.layers and keras.optimizers */
    VKT_PRESET_TF_KERAS   /* tf.keras before 2.11: as Keras 3, with two exceptions. Nadam's momentum_decay is 0.004, and
                           * the running variance of images (N,C,H,W) is unbiased, as in tf.nn.fused_batch_norm */
} vkt_preset;

typedef struct vkt_graph vkt_graph;     /* values, and the ops that make them; independent of a device */
typedef struct vkt_program vkt_program; /* a graph compiled for a context: memory and recorded commands */
typedef struct vkt_store vkt_store;     /* parameters and the optimizer's state, on a device */
typedef struct vkt_array vkt_array;     /* device memory that is bound to programs */

/* A value in a graph. The struct has only the id of the value, so copies are cheap. {0} is the null tensor. */
typedef struct vkt_tensor {
    uint32_t id; /* index of the value in its graph, from 1; 0: the null tensor */
} vkt_tensor;

/* Make a shape of 0 to 4 dimensions, in the order of vkt_shape.dim. */
static inline vkt_shape vkt_shape0(void)
{
    vkt_shape s = { 0, { 0 } };
    return s;
}
static inline vkt_shape vkt_shape1(uint32_t a)
{
    vkt_shape s = { 1, { a } };
    return s;
}
static inline vkt_shape vkt_shape2(uint32_t a, uint32_t b)
{
    vkt_shape s = { 2, { a, b } };
    return s;
}
static inline vkt_shape vkt_shape3(uint32_t a, uint32_t b, uint32_t c)
{
    vkt_shape s = { 3, { a, b, c } };
    return s;
}
static inline vkt_shape vkt_shape4(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    vkt_shape s = { 4, { a, b, c, d } };
    return s;
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

/* Makes an empty graph. Owner: the caller. One thread at a time per graph. Messages about ops go to the log of `host`.
 * To use the log of a context, pass the result of vkt_ctx_host. `host` may be NULL: see vkt_host. */
VKT_API vkt_result vkt_graph_create(const vkt_host *host, vkt_graph **out);
VKT_API void vkt_graph_destroy(vkt_graph **g); /* call it after the graph's programs and builders are destroyed */
/* Returns the first error of the graph. VKT_OK: there is none. */
VKT_API vkt_result vkt_graph_status(const vkt_graph *g);
VKT_API vkt_shape vkt_tensor_shape(const vkt_graph *g, vkt_tensor t);   /* rank 0 for the null tensor */
VKT_API vkt_layout vkt_tensor_layout(const vkt_graph *g, vkt_tensor t); /* VKT_ROWS for the null tensor */
VKT_API vkt_dtype vkt_tensor_dtype(const vkt_graph *g, vkt_tensor t);   /* VKT_F32 for the null tensor */
VKT_API const char *vkt_tensor_name(const vkt_graph *g, vkt_tensor t);  /* valid until a value is added to the graph */
/* Gives a value a name for prints and labels. The name is copied and cut at 47 bytes. The names of parameters and
 * states do not change. */
VKT_API void vkt_tensor_set_name(vkt_graph *g, vkt_tensor t, const char *name);

/* Makes a value that the host writes with vkt_program_write. */
VKT_API vkt_tensor vkt_input(vkt_graph *g, const char *name, vkt_dtype dtype, vkt_layout layout, vkt_shape shape);
/* Makes a value that is stored in a vkt_array. The array is bound when the program is made (vkt_program_params.arrays).
 * Layout ROWS. Either ops read the value, or vkt_write or vkt_append writes it. */
VKT_API vkt_tensor vkt_external(vkt_graph *g, const char *name, vkt_dtype dtype, vkt_shape shape);
/* Makes a vkt_external that is bound to `array` in all programs, unless vkt_program_params.arrays binds another array.
 * So a model that a trainer builds several times can use arrays of its own, for instance weights that are never
 * trained. A program of another context uses the copy of `array` in that context (vkt_array_copy). If there is no such
 * copy, vkt_program_create returns VKT_E_ARG. vkt_program_create also checks `array` as it checks vkt_binding.array.
 * `array` must outlive the programs of the graph, and must exist during calls of vkt_program_needs. A second call with
 * the same array, type and shape returns the same value. VKT_E_ARG: `array` or `name` is NULL. */
VKT_API vkt_tensor vkt_external_array(vkt_graph *g, const char *name, vkt_array *array, vkt_dtype dtype,
                                      vkt_shape shape);
/* Makes a trainable f32 parameter. The store has the parameter under this name ("conv1.weight", at most 47 bytes).
 * Layout ROWS. VKT_E_ARG: the name is used already or too long, or the graph has gradients (vkt_backward) already. */
VKT_API vkt_tensor vkt_param(vkt_graph *g, const char *name, vkt_shape shape);
/* Makes a state: f32 numbers that ops write and that have no gradient, for instance running statistics. The store has
 * the state under this name. A trainer initialises, saves and restores states together with parameters. vkt_update
 * never changes a state. The errors are those of vkt_param. */
VKT_API vkt_tensor vkt_state(vkt_graph *g, const char *name, vkt_shape shape);
/* Reserves the memory of a value for this value alone, so that vkt_program_read can read the value after a run. */
VKT_API void vkt_keep(vkt_graph *g, vkt_tensor t);

/* The nodes that are made between vkt_recompute_begin and vkt_recompute_end are a block, for instance one layer of a
 * transformer. vkt_backward and vkt_gradients append nodes that compute the block a second time, just before the
 * gradients of the block. So between the forward and the backward pass, a program need not keep all values of a block.
 * It keeps at most two kinds of values: values that nodes outside the block read (in a chain of blocks, the inputs of
 * the blocks), and results of nodes that are not computed again (see below). The second computation takes about as long
 * as the forward pass of the block. Losses, gradients and parameters have the same bits as without blocks, with one
 * exception in 16-bit precisions: the last op before a block is not fused with the first op of the block. So the value
 * between these two ops is rounded once more. (Gradient checkpointing: Chen et al., "Training Deep Nets with Sublinear
 * Memory Cost", 2016.)
 *
 * Three kinds of nodes are not computed again: nodes that no gradient needs, nodes whose outputs are all kept
 * (vkt_keep), and nodes with side effects (running statistics, vkt_write, vkt_report). A shader of an application
 * (custom.h) in a block may run twice, and must write the same numbers both times. A block has no effect in a graph
 * without gradients. vkt_program_params.recompute may be used together with blocks. It lets the library compute single
 * cheap nodes again, in blocks and outside of them.
 *
 * Blocks cannot be nested. Mark blocks before vkt_backward or vkt_gradients. These mistakes set the status of the graph
 * to VKT_E_STATE: vkt_recompute_begin while a block is open; vkt_recompute_end while no block is open; making gradients
 * or a program while a block is open; a node of a block that reads a vkt_state which a later node changes. */
VKT_API void vkt_recompute_begin(vkt_graph *g);
VKT_API void vkt_recompute_end(vkt_graph *g);

/* ---- differentiation --------------------------------------------------------------------------------------------- */

/* Appends the gradients of `loss` (a scalar, else VKT_E_SHAPE) with respect to every parameter that is not frozen
 * (vkt_freeze). Call vkt_backward once in a graph. If there are several losses, pass their sum. VKT_E_STATE: a second
 * call, or the graph has no parameters, or all parameters are frozen. VKT_E_ARG: a parameter that is not frozen does
 * not influence the loss; the message names the parameter. VKT_E_UNSUPPORTED: a gradient would pass through a value
 * that has none, for instance the target of vkt_kl_div. The loss may depend on results of vkt_gradients (a gradient
 * penalty) only if their nodes have gradients themselves: those of vkt_matmul, vkt_mul, sums, movements of elements,
 * and vkt_linear by rows do; those of activations, norms, convolutions and losses do not (VKT_E_UNSUPPORTED).
 * vkt_stop_gradient makes a constant of a value. */
VKT_API vkt_result vkt_backward(vkt_graph *g, vkt_tensor loss);
/* Appends the gradients of the scalar sum_i <outs[i], seeds[i]>, a sum of inner products. grads[j] becomes the gradient
 * with respect to the value wrt[j], or the null tensor if wrt[j] has no influence. seeds[i] is f32, and has the shape
 * and layout of outs[i]. (vkt_tensor_layout returns the layout of a value. vkt_to_layout copies a value to another
 * layout.) grads[j] has the shape and layout of wrt[j]. vkt_backward fuses some chains of ops into one node: see
 * vkt_mse and vkt_max_pool2d. After vkt_backward, a value within such a chain has no gradient, so call vkt_gradients
 * before vkt_backward. VKT_E_UNSUPPORTED as for vkt_backward. */
VKT_API vkt_result vkt_gradients(vkt_graph *g, const vkt_tensor *outs, const vkt_tensor *seeds, uint32_t n_outs,
                                 const vkt_tensor *wrt, uint32_t n_wrt, vkt_tensor *grads);

/* ---- arrays: device memory that outlives programs (data sets, orders of samples, an application's buffers) ------- */

/* The description of an array. */
typedef struct vkt_array_params {
    vkt_dtype dtype;   /* a vkt_external that is bound to the array must have the same type */
    vkt_shape shape;   /* a vkt_external that is bound to the array may be smaller */
    const void *data;  /* row-major, read before the call returns; NULL: zeros */
    bool host_visible; /* mapped for the host (vkt_array_map), for instance for threads that fill the array */
    const char *name;  /* for labels and messages; NULL: "array" */
} vkt_array_params;
/* Makes an array in device memory of the class VKT_MEM_DATA. VKT_E_ARG, VKT_E_MEMORY_CAP, VKT_E_DEVICE_MEMORY,
 * VKT_E_NOMEM. After an error *out = NULL. Owner: the caller. */
VKT_API vkt_result vkt_array_create(vkt_ctx *ctx, const vkt_array_params *params, vkt_array **out);
VKT_API void vkt_array_destroy(vkt_array **a); /* call it after the programs that use the array are destroyed */
/* Replaces `bytes` bytes at `offset` (both multiples of 4). The write comes after all work that the context has
 * submitted before this call, and before all work that it submits later. */
VKT_API vkt_result vkt_array_write(vkt_array *a, uint64_t offset, const void *data, uint64_t bytes);
/* Makes a copy of an array in another context, in device memory. If a graph names `a` or another copy of `a`
 * (vkt_external_array), programs of that context use the new copy. So a model with arrays of its own can train on
 * several devices (vkt_trainer_params.more_devices). Later writes to `a` or to a copy do not change the other arrays.
 * The bytes go through host memory, 1 MiB at a time. Waits for all submitted work of a's context. `a` and its copies
 * may be destroyed in any order. While this function or vkt_array_destroy works on `a` or on a copy, no other thread
 * may use any of these arrays, or make a program of a graph that names one of them. VKT_E_ARG: an argument is NULL, or
 * `ctx` has `a` or a copy of `a` already. VKT_E_STATE: `a` is an adopted buffer without the usage TRANSFER_SRC
 * (vulkan.h). VKT_E_MEMORY_CAP, VKT_E_DEVICE_MEMORY, VKT_E_NOMEM. After an error *out = NULL. Owner: the caller. */
VKT_API vkt_result vkt_array_copy(vkt_array *a, vkt_ctx *ctx, vkt_array **out);
/* Returns the largest size, in bytes, at which an array fits into one descriptor binding and into one allocation. */
VKT_API uint64_t vkt_array_max_bytes(const vkt_ctx *ctx);
/* Returns the mapped memory of a host_visible array, else NULL. The caller must not write to a part of this
 * memory that a submitted run still reads. */
VKT_API void *vkt_array_map(vkt_array *a);

/* ---- stores: parameters, moments and the optimizer's state, shared by programs ----------------------------------- */

/* Makes a store for the parameters and states of `g`. All numbers of all parts (vkt_store_part) are zero, except that
 * Adagrad's moment starts as vkt_optimizer.initial_accumulator. If `g` has gradients (vkt_backward), the store has
 * them, too. If `g` has an update (vkt_update), the store has the moments and the sum of gradients that the update
 * needs. If `g` has a vkt_publish, the store has VKT_PART_PUBLISHED. If `g` has an error, returns that error.
 * VKT_E_ARG: `g` has neither parameters nor states. VKT_E_MEMORY_CAP, VKT_E_DEVICE_MEMORY, VKT_E_NOMEM. After an error
 * *out = NULL. Owner: the caller. */
VKT_API vkt_result vkt_store_create(vkt_ctx *ctx, const vkt_graph *g, vkt_store **out);
VKT_API void vkt_store_destroy(vkt_store **s); /* call it after the programs that use the store are destroyed; the graph
                                                * may be destroyed earlier */
/* Returns the number of parameters and states. They are numbered in the order in which the graph declared them. */
VKT_API uint32_t vkt_store_count(const vkt_store *s);
/* Return name and shape of parameter or state i. If i is not below vkt_store_count, they return "?" and a shape of rank
 * 0. The name is valid as long as the store. */
VKT_API const char *vkt_store_name(const vkt_store *s, uint32_t i);
VKT_API vkt_shape vkt_store_shape(const vkt_store *s, uint32_t i);
/* Finds a parameter or state by its whole name, sets *i to its index and returns true. If no parameter or state has
 * this name, returns false and does not change *i. `i` may be NULL. */
VKT_API bool vkt_store_find(const vkt_store *s, const char *name, uint32_t *i);
VKT_API uint64_t vkt_store_elements(const vkt_store *s); /* number of elements of all parameters and states, without
                                                          * padding */

/* The parts that a store may have of each parameter. */
typedef enum vkt_store_part {
    VKT_PART_VALUE = 0,    /* the parameter or state itself */
    VKT_PART_GRADIENT,     /* gradient of the last run, before the loss scale is divided out and before clipping */
    VKT_PART_MOMENT1,      /* the first moment. In the formulas of optim.h it is m of Adam, AdamW and NAdam, v of
                            * RMSprop, s of Adagrad, and buf of SGD */
    VKT_PART_MOMENT2,      /* the second moment: v of Adam, AdamW and NAdam, buf of RMSprop */
    VKT_PART_MOMENT3,      /* the third moment: w of amsgrad, a of RMSprop */
    VKT_PART_GRADIENT_SUM, /* the sum of the gradients of a step's micro-batches so far. Each gradient is multiplied by
                            * the weight of its micro-batch, for instance the number of rows (see vkt_run) */
    VKT_PART_PUBLISHED     /* the values that vkt_publish wrote */
} vkt_store_part;
/* Returns whether the store has a part. */
VKT_API bool vkt_store_has(const vkt_store *s, vkt_store_part part);
/* Read and write the part of one parameter or state as a whole, in row-major order, f32. Reading waits for submitted
 * work. Writing VKT_PART_VALUE also writes VKT_PART_PUBLISHED, if the store has it. VKT_E_ARG: i is not below
 * vkt_store_count. VKT_E_STATE: the store does not have this part. */
VKT_API vkt_result vkt_store_read(vkt_store *s, uint32_t i, vkt_store_part part, float *out);
VKT_API vkt_result vkt_store_write(vkt_store *s, uint32_t i, vkt_store_part part, const float *data);
/* Set and get the optimizer's clock: the number t of completed steps, and the seed of the random numbers of ops (for
 * instance dropout). Setting t restores the bias corrections exactly. VKT_E_ARG: t is above 2^32 - 1. */
VKT_API vkt_result vkt_store_set_clock(vkt_store *s, uint64_t t, uint64_t seed);
VKT_API vkt_result vkt_store_get_clock(vkt_store *s, uint64_t *t, uint64_t *seed);

/* The scale of the loss in VKT_PRECISION_F16. It keeps small gradients from being lost in 16 bits. The backward pass
 * starts with a gradient of `scale` instead of 1, and the update divides all gradients by `scale` (VKT_PART_GRADIENT
 * has scaled gradients). If some gradient is not finite, the device skips the step, without the host: parameters,
 * moments and t stay as they are, and the scale is halved. After 2000 steps in a row without a skip the scale is
 * doubled. (torch.amp.GradScaler has the same rule and numbers by default.) The scale never leaves the range from
 * 2^-126 to 2^126. */
typedef struct vkt_loss_scale {
    float scale;         /* a power of two from 2^-126 to 2^126; 0 means 65536 */
    uint32_t good_steps; /* steps since the scale changed or a step was skipped; below 2000 */
    uint32_t skipped;    /* number of all steps that were skipped */
} vkt_loss_scale;
/* Set and get the loss scale. It is part of the training state, as the clock is. Only programs of VKT_PRECISION_F16
 * change the scale. */
VKT_API vkt_result vkt_store_set_loss_scale(vkt_store *s, const vkt_loss_scale *l);
VKT_API vkt_result vkt_store_get_loss_scale(vkt_store *s, vkt_loss_scale *l);

/* The progress within a step that consists of several micro-batches (vkt_optimizer.micro_batches). It is part of the
 * training state, together with VKT_PART_GRADIENT_SUM. vkt_store_set_clock sets both members to zero. If a store does
 * not have VKT_PART_GRADIENT_SUM, vkt_store_set_accumulation returns VKT_E_STATE for members that are not zero. */
typedef struct vkt_accumulation {
    uint32_t batches; /* number of micro-batches in the sum of gradients */
    uint32_t rows;    /* sum of the weights of these micro-batches: in most cases, the number of their rows (see
                       * vkt_run) */
} vkt_accumulation;
VKT_API vkt_result vkt_store_set_accumulation(vkt_store *s, const vkt_accumulation *a);
VKT_API vkt_result vkt_store_get_accumulation(vkt_store *s, vkt_accumulation *a);

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* The array of one external value in one program, or two arrays that alternate (vkt_run.swap). Two arrays have two
 * uses. Double buffering: a step reads one array while the application writes the data of the next step to the other
 * array. Feedback: a step reads what the step before it wrote. For feedback, the graph reads one external value and
 * writes another one. The value that it reads has `array` = X and `other` = Y. The value that it writes has `array` = Y
 * and `other` = X. */
typedef struct vkt_binding {
    vkt_tensor tensor; /* made by vkt_external or vkt_external_array */
    vkt_array *array;  /* an array of the program's context, of the tensor's type and not smaller than the tensor.
                        * vkt_program_read and vkt_program_buffer always use this array */
    vkt_array *other;  /* the array in runs with vkt_run.swap. It has the same requirements as `array`. NULL: these runs
                        * use `array`, too */
} vkt_binding;

/* The storage of activations and their gradients in a program. Parameters, their gradients, moments and losses are
 * always stored as f32. So is every value that some op cannot read or write in 16 bits. vkt_program_print shows how
 * each value is stored. All arithmetic is f32, but VKT_PRECISION_F16, VKT_PRECISION_BF16 and
 * VKT_PRECISION_F32_SPLIT have one exception each.
 *
 * The exceptions are about products on devices with cooperative matrices: the products of convolutions, linear layers,
 * vkt_matmul, and of the gradients of these three. In VKT_PRECISION_F16, the exception also applies to the products of
 * attentions, of networks in one node (vkt_mlp), and of the gradients of these two. If the library uses cooperative
 * matrices for a node, vkt_program_print prints "by coop" or "by coop2" behind this node. VKT_NO_COOP=1 and
 * VKT_NO_COOP2=1 in the environment together switch all three exceptions off.
 *
 * In VKT_PRECISION_F16, both operands are rounded to f16 before they are multiplied, even if they are stored as f32.
 * They are rounded to nearest; magnitudes from 65520 on become infinity, and magnitudes up to 2^-25 become zero. Only
 * the sums are f32, as under torch.autocast. The weights of an attention's softmax and the hidden layers of a network
 * in one node are in no tensor. They are operands, too, so they are also rounded to f16.
 *
 * In VKT_PRECISION_BF16, both operands are rounded to bf16 (to nearest) before they are multiplied. The kernels that do
 * this need VK_KHR_shader_bfloat16. They run only if the user (for instance by VKT_TRAITS=coop_bf16_pays=1)
 * or the tuning file of the device (vkt-bench --tune) chooses them. They are not the default, because no device has run
 * them yet.
 *
 * In VKT_PRECISION_F32_SPLIT, the product x y of two f32 numbers is computed by three products of f16. The error is at
 * most 2^-21 |x y| + 2^-38 (X |y| + |x| Y). (The error of a product in f32 is at most 2^-24 |x y|.) To define X and Y:
 * a kernel computes a matrix product part by part. A part adds 16 products to each sum of a tile of 32 to 128 rows and
 * columns of the result. In the part that has x y, X is the largest finite magnitude of the first operand's numbers,
 * and Y that of the second operand's numbers. (An X or Y below 2^-112 counts as 2^-112.) So an x that is 2^39 times
 * smaller than X, or a y that is 2^39 times smaller than Y, may be lost. (On a device that flushes subnormal f16 to
 * zero, 2^-27 replaces 2^-38, and 2^28 replaces 2^39.) The sums are f32. An infinity in an operand makes each result
 * that depends on it infinite or NaN. If a program has products, but none of them is computed in this way, the program
 * computes as in VKT_PRECISION_F32. In most cases a warning says so, once in a context. */
typedef enum vkt_precision {
    VKT_PRECISION_F32 = 0,  /* 4 bytes an element */
    VKT_PRECISION_F16,      /* IEEE 754 binary16, with loss scaling if the graph has an update: see vkt_loss_scale */
    VKT_PRECISION_BF16,     /* the upper 16 bits of an f32: the range of f32, 8 significant bits */
    VKT_PRECISION_F32_SPLIT /* 4 bytes an element; products use f16, and are almost as exact as in f32: see above */
} vkt_precision;

/* Values that the device computes for a run. They replace the values in the vkt_run. For instance, a shader may count
 * the samples. The struct is 12 bytes in an array of u32 (vkt_program_params.run_values). Each run of the program reads
 * the struct when the run begins, however the run is submitted or recorded. If `rows` is from 1 to the size of the
 * batch, the results have the same bits as with the same values in a vkt_run. With run_values, the members lr, rows,
 * first and terms of vkt_run are not used.
 *
 * If `rows` is larger than the batch, the run uses the whole batch.
 *
 * If `rows` is 0, no row is real: see the comment below vkt_run. (In a vkt_run, 0 means all rows.) Gradients are 0, and
 * the learning rate counts as 0. The moments and t advance, as after a gradient of 0, and a loss that is a mean is NaN.
 * Parameters stay as they are, with two exceptions. First, SGD and RMSprop with vkt_optimizer.keras and a momentum
 * still subtract the momentum of earlier steps. Second, a gradient may be computed from the value of a loss that is a
 * mean. Then the gradient is NaN, and its parameter becomes NaN. With clip_norm, all parameters that are not frozen
 * become NaN. (In VKT_PRECISION_F16, such a step is skipped: see vkt_loss_scale.) An example is the parameter s with
 * the loss vkt_mul(g, vkt_mse(g, y, t), vkt_exp(g, s)): the gradient of s is the loss itself. If this matters, keep
 * `rows` at 1 or more, or do not run the step. */
typedef struct vkt_run_values {
    float lr;       /* see vkt_run.lr */
    uint32_t rows;  /* real rows of the batch */
    uint32_t first; /* see vkt_run.first */
} vkt_run_values;

/* The options of a program. A member that is 0 or NULL selects the default. */
typedef struct vkt_program_params {
    const char *name;          /* for labels and prints; NULL: "program" */
    const vkt_binding *arrays; /* one for every vkt_external of the graph; vkt_external_array needs none */
    uint32_t n_arrays;         /* number of entries of `arrays` */
    uint64_t max_bytes;        /* largest size of the planned memory; 0: no limit. The context's cap
                                * (max_device_bytes) holds in any case */
    bool recompute; /* compute cheap activations again if this lowers the peak of memory. The results have the same
                     * bits, but a run takes longer */
    bool profile;   /* allow vkt_program_profile; VKT_E_UNSUPPORTED if the device has no timestamps */
    vkt_precision precision; /* storage of activations */
    vkt_array *run_values;   /* u32, 3 elements or more: a vkt_run_values that the device writes. The array must outlive
                              * the program. NULL: each run uses the values of its vkt_run */
    bool published; /* read parameters from VKT_PART_PUBLISHED, for a program that evaluates or infers. VKT_E_STATE: the
                     * store has no such part, or the graph writes parameters or states (updates, running statistics) */
} vkt_program_params;

/* The least device memory that a graph needs, as vkt_program_needs computes it before anything is made. The sizes are
 * those of buffers, rounded up to multiples of 256 bytes. A driver may round them up further. */
typedef struct vkt_memory_needs {
    uint64_t program_bytes; /* activations, scratch, constants, inputs, step state, metrics. Not counted: two
                             * buffers that vkt_step_budget (vulkan.h) makes when it divides a run into slices.
                             * Together these buffers have 32 bytes for each slice */
    uint64_t store_bytes;   /* a vkt_store of this graph: parameters, gradients, moments, clock; 0: the graph has
                             * neither parameters nor states */
    uint64_t staging_bytes; /* two ring buffers of the smallest size (vkt_ctx_params.staging_bytes = 65536): one for
                             * uploads and one for reading back, which the first read makes. If there is memory for
                             * only one of them, a transfer frees the other one first */
    uint64_t total_bytes;   /* sum of the three members above, counted as vkt_memory_stats.used_total_bytes is.
                             * vkt_ctx_params.max_device_bytes counts whole blocks of memory, so it must be larger than
                             * total_bytes: see cap_bytes */
    uint64_t array_bytes; /* the caller's arrays, not in total_bytes. Each array counts once. An external value without
                           * an array counts as an array of its size. An adopted buffer (vulkan.h) counts as 0 */
    uint64_t cap_bytes;   /* a max_device_bytes that is enough for total_bytes and array_bytes in a new context with
                           * block_bytes = 1048576 */
    uint64_t bytes[VKT_MEM_CLASS_COUNT]; /* total_bytes by class, counted as vkt_memory_stats.used_bytes is */
} vkt_memory_needs;
/* Computes what a program of this graph and its store need, and the size of the caller's arrays. The call only plans
 * memory, and makes nothing on the device. `params` may be NULL. params->precision and params->recompute change the
 * plan, and params->arrays changes array_bytes. `arrays` may lack the array of an external value. This call finishes
 * the graph, as vkt_program_create does. A program may use more memory than *out says, for fewer barriers, if the cap
 * allows it. The errors are those of vkt_program_create, except VKT_E_MEMORY_CAP and the errors of the store and of the
 * arrays. */
VKT_API vkt_result vkt_program_needs(vkt_ctx *ctx, vkt_graph *g, const vkt_program_params *params,
                                     vkt_memory_needs *out);

/* Builds the graph of one step: inputs, model, loss, vkt_backward and vkt_update. The batch has `batch` samples, and
 * each sample has `context` positions (tokens, for a language model). vkt_find_sizes makes the empty graph, calls this
 * function, and destroys the graph. Messages about the graph are logged only if the graph with the wanted sizes
 * (vkt_size_params.batch and context) has an error. */
typedef vkt_result (*vkt_size_fn)(void *user, uint32_t batch, uint32_t context, vkt_graph *g);

/* The parameters of vkt_find_sizes. */
typedef struct vkt_size_params {
    vkt_size_fn build;       /* called once for each pair of sizes that the search tries. If the wanted sizes have an
                              * error: once more, to log it */
    void *user;              /* passed to `build` */
    uint32_t batch, context; /* the wanted sizes, 1 or more */
    uint32_t most_batch;     /* largest batch of the search; 0: `batch` */
    uint32_t most_context;   /* largest context of the search, for instance that of the model; 0: `context` */
    uint32_t context_step;   /* the search tries `context`, most_context and multiples of this number; 0 means 1 */
    uint64_t max_bytes;      /* limit, counted as vkt_ctx_params.max_device_bytes is; 0: the cap of the context */
    uint64_t other_bytes;    /* memory that other things need during the step, for instance the data set */
    const vkt_program_params *program; /* the params of vkt_program_needs; may be NULL */
} vkt_size_params;
/* The results of vkt_find_sizes. */
typedef struct vkt_sizes {
    bool planned;           /* vkt_program_needs has succeeded for the wanted sizes. If not, `needs` is zero */
    bool fits;              /* the wanted sizes fit under the limit */
    vkt_memory_needs needs; /* what the wanted sizes need */
    uint64_t limit_bytes;   /* the limit: max_bytes, or the cap of the context */
    uint64_t need_bytes;    /* needs.cap_bytes + other_bytes; 0 if `planned` is false. If `fits`, at most limit_bytes */
    uint32_t batch;         /* the largest batch that fits with the wanted context; 0: none */
    uint32_t context;       /* the largest context that fits with the wanted batch; 0: none */
    uint32_t plans;         /* number of pairs of sizes that the search tried */
} vkt_sizes;
/* Finds two sizes of a step by bisection, under one limit of memory: the largest batch with the wanted context, and the
 * largest context with the wanted batch. The call makes nothing on the device. For each pair of sizes that it tries, it
 * calls vkt_program_needs for the graph that `build` makes. A size fits if the step, its store, the graph's arrays and
 * other_bytes fit into a context with block_bytes = 1048576 and this limit. The results are sizes that were tried and
 * fit. The next larger size of the search does not fit. (The search assumes that a larger size needs no less memory.
 * This is true apart from rounding.) A size that the device cannot run (VKT_E_UNSUPPORTED, VKT_E_DEVICE_MEMORY,
 * VKT_E_MEMORY_CAP) does not fit. Any other error of `build` or of vkt_program_needs ends the search and is returned.
 * If the wanted sizes have an error, the message is logged, even if the search goes on. VKT_E_ARG: `build` is NULL;
 * `batch` is 0 or above most_batch; or `context` is 0 or above most_context. */
VKT_API vkt_result vkt_find_sizes(vkt_ctx *ctx, const vkt_size_params *params, vkt_sizes *out);

/* Plans memory and records command buffers. `store` may be NULL for a graph that has neither parameters nor states.
 * This call finishes the graph: a later op or vkt_keep is VKT_E_STATE. Graph, store and arrays must outlive the
 * program. A graph can have several programs. Owner: the caller. After an error *out = NULL. If the graph has an error,
 * returns that error. VKT_E_MEMORY_CAP: the planned memory does not fit; the message has its sizes. VKT_E_NOT_FOUND:
 * the store lacks a parameter of the graph, or has it with another shape. VKT_E_ARG, VKT_E_UNSUPPORTED,
 * VKT_E_DEVICE_MEMORY, VKT_E_NOMEM.
 *
 * The store may have been made for another graph. A graph without gradients may declare any of the store's parameters,
 * in any order. A graph with gradients must declare all parameters of the store, in the same order, and the store must
 * have the moments that the graph's update needs; else VKT_E_STATE. If both graphs have an update, their optimizers
 * must have the same kind (Adam and AdamW count as the same), beta1, beta2 and momentum_decay; else VKT_E_STATE. */
VKT_API vkt_result vkt_program_create(vkt_ctx *ctx, vkt_graph *g, vkt_store *store, const vkt_program_params *params,
                                      vkt_program **out);
VKT_API void vkt_program_destroy(vkt_program **p); /* waits for its runs */

/* The values that change from run to run. */
typedef struct vkt_run {
    float lr;       /* learning rate, for a graph with a vkt_update */
    uint32_t rows;  /* number of real rows of this batch; 0: all rows. See below */
    uint32_t first; /* for a gather, which reads the samples that its list `order` names (ops.h): index in `order` of
                     * the batch's first row. Rows past the end of `order` are zeros, with the label 0 */
    bool swap;      /* use vkt_binding.other, if it is not NULL, instead of vkt_binding.array */
    uint32_t terms; /* the loss of this run is a mean over this number of terms. 0: the loss is a mean over the real
                     * rows. `terms` must be above 0 in all runs of a step, or in none of them. See below */
} vkt_run;
/* A row of a batch is one sample. The first `rows` rows are real. Some ops use only the real rows: losses, their
 * gradients, counts of correct rows, and the statistics of batch norms. A mean of such an op is a mean over the real
 * rows. A gather fills all other rows with zeros: elements, labels and ids are 0. All other ops compute all rows. Their
 * outputs past the real rows have no meaning, but inputs past the real rows must be finite (0 times NaN is NaN in the
 * gradient of a weight).
 *
 * The size of the batch is that of the graph's gather. Without a gather, it is the largest batch of the ops that use
 * only real rows and of the values with layout BATCH_LAST. `rows` above this size is VKT_E_ARG, in every function with
 * a vkt_run. If a graph has no gather, no op that uses only real rows, and no value with layout BATCH_LAST, the size is
 * not known, and `rows` may be any number.
 *
 * The weight of a run is `terms`. If `terms` is 0, the weight is the number of real rows. If `rows` is 0, too, and the
 * size of the batch is not known, the weight is 1. If a step consists of several runs, the gradients of each run are
 * multiplied by its weight: see vkt_update. The sum of the weights of a step must be below 2^32. */

/* Submits the recorded commands. *run_index (may be NULL) gets the index of this run among the program's runs, from 0.
 *
 * If the device has timestamps and max_submission_ns of the context is not UINT64_MAX, the first two runs are submitted
 * kernel by kernel, and the second run is measured. The third call waits for the second run, and records the commands
 * for all runs from the third on. The commands are split into submissions that take at most max_submission_ns each, by
 * the measured times. Only a submission of a single kernel may take longer. The bits of the results do not depend on
 * the split.
 *
 * Apart from this wait (and from VKT_DEBUG, see core.h), a call waits only if VKT_RUN_RING runs are pending already.
 * Then it waits for the oldest of these runs. */
#define VKT_RUN_RING 8 /* number of runs of a program that may be pending, and whose metrics are kept */
VKT_API vkt_result vkt_program_run(vkt_program *p, const vkt_run *run, uint64_t *run_index);
/* The numbers that vkt_report() copied in one run. If vkt_report was called before vkt_update, t, skipped and grad_norm
 * may be wrong: see vkt_report. */
typedef struct vkt_metrics {
    float loss;       /* `loss` of vkt_report, for instance a mean over the real rows */
    float correct;    /* `correct` of vkt_report, a count of rows; 0 if `correct` was the null tensor */
    uint32_t rows;    /* number of real rows. 0 has two meanings. With vkt_run.rows = 0 in a graph without a gather,
                       * all rows are real. With vkt_run_values.rows = 0, no row is real */
    uint32_t t;       /* number of steps that the optimizer has completed after the run */
    float loss_scale; /* scale in this run; 1: the loss is not scaled */
    uint32_t skipped; /* number of steps skipped so far, including the step of this run: see vkt_loss_scale */
    float grad_norm;  /* norm of all gradients before clipping; 0 without vkt_optimizer.clip_norm, and for runs that do
                       * not update */
    uint32_t terms;   /* weight of the run, for instance vkt_run.terms: see the comment below vkt_run */
} vkt_metrics;
/* Waits for run `run_index`, and returns its metrics. VKT_E_ARG: the run is none of the last VKT_RUN_RING runs.
 * VKT_E_STATE: the graph has no vkt_report. */
VKT_API vkt_result vkt_program_metrics(vkt_program *p, uint64_t run_index, vkt_metrics *out);
/* Returns whether a run is done. Never waits. */
VKT_API bool vkt_program_done(vkt_program *p, uint64_t run_index);
/* vkt_program_wait_run waits for run `run_index`; VKT_E_ARG if this is none of the last VKT_RUN_RING runs.
 * vkt_program_wait waits for all runs. */
VKT_API vkt_result vkt_program_wait_run(vkt_program *p, uint64_t run_index);
VKT_API vkt_result vkt_program_wait(vkt_program *p);

/* Write and read host data in logical row-major order. `bytes` must be exactly the size of the tensor. A write is
 * ordered before the next run. A read waits for the last run. VKT_E_ARG: a write to a value that is no input, a read of
 * an activation that is not kept (vkt_keep), or another size. */
VKT_API vkt_result vkt_program_write(vkt_program *p, vkt_tensor t, const void *data, uint64_t bytes);
VKT_API vkt_result vkt_program_read(vkt_program *p, vkt_tensor t, void *data, uint64_t bytes);

/* The resources that a program needs. */
typedef struct vkt_plan_info {
    uint64_t bytes[VKT_MEM_CLASS_COUNT];     /* memory of the program by class, without the store and some small
                                              * buffers */
    uint64_t total_bytes, lower_bound_bytes; /* total_bytes: memory of the activations. Activations that are not live
                                              * at the same time may share memory. lower_bound_bytes: the largest sum
                                              * of sizes of activations that are live at the same time. No plan can
                                              * have a total_bytes below lower_bound_bytes */
    uint64_t largest_buffer_bytes;           /* size of the largest buffer that holds activations */
    uint32_t dispatches, barriers;           /* per run */
    uint32_t recomputed;                     /* additional dispatches because of vkt_program_params.recompute */
    uint32_t submissions;                    /* per run; 0: not known before the third run (see vkt_program_run) */
} vkt_plan_info;
/* Fills *out. `submissions` may be 0 before the third run. All other members are known when the program is made. */
VKT_API void vkt_program_plan(const vkt_program *p, vkt_plan_info *out);
/* Prints graph, memory plan, dispatches and barriers as text; vkt_text_release frees *text. */
VKT_API vkt_result vkt_program_print(const vkt_program *p, char **text);

/* One dispatch of a profiled run. */
typedef struct vkt_kernel_time {
    const char *kernel;        /* name of the shader. `kernel` and `node` are valid as long as the program */
    const char *node;          /* name of the node's first output; if the node has no output, the name of its op */
    uint64_t start_ns, end_ns; /* times since the run's first timestamp */
} vkt_kernel_time;
/* Runs the program once, as vkt_program_run does, with timestamps around each dispatch, and waits for the run. Sets
 * *count to the number of dispatches, and writes the times of the first `capacity` dispatches to `times`. `times` may
 * be NULL if `capacity` is 0. VKT_E_STATE without vkt_program_params.profile, or if the program has no dispatches. */
VKT_API vkt_result vkt_program_profile(vkt_program *p, const vkt_run *run, vkt_kernel_time *times, uint32_t capacity,
                                       uint32_t *count);

#ifdef __cplusplus
}
#endif
#endif
