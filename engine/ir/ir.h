/* ir/ir.h - the graph as data: values, nodes, and op descriptors. This file uses no Vulkan, and names no op.
 *
 * Lowering converts nodes to dispatches (still data: kernel ids, bindings, push constants, how many work groups). The
 * plan assigns memory to values. record/ makes Vulkan calls from dispatches and plan. */
#ifndef VKT_IR_H
#define VKT_IR_H

#include "base/base.h"
#include "base/limits.h"
#include "base/philox.h"
#include "base/spirv.h"
#include "ir/field.h"
#include "vktrain/optim.h"
#include "vktrain/ops.h"

#define VKT_MAX_IN 12
#define VKT_MAX_OUT 10
#define VKT_NAME_MAX 48

typedef struct vkt_op vkt_op;
typedef struct vkt_node vkt_node;
typedef struct vkt_infer vkt_infer;
typedef struct vkt_emit vkt_emit;
typedef struct vkt_case vkt_case;
typedef struct vkt_case_input vkt_case_input;

/* The kind of memory that holds a value. */
typedef enum vkt_role {
    VKT_ROLE_ACTIVATION = 0, /* written by a node; values whose live ranges do not overlap may share memory */
    VKT_ROLE_INPUT,          /* written by the host */
    VKT_ROLE_EXTERNAL,       /* a vkt_array */
    VKT_ROLE_PARAM, /* PARAM to PUBLISHED: a whole arena of the store, or a range of an arena. These roles have the
                     * order of vkt_store_part */
    VKT_ROLE_GRAD,
    VKT_ROLE_MOMENT1,
    VKT_ROLE_MOMENT2,
    VKT_ROLE_MOMENT3,
    VKT_ROLE_GRAD_SUM,
    VKT_ROLE_PUBLISHED,
    VKT_ROLE_CLOCK,   /* the store's optimizer clock (abi/step.abi.h) */
    VKT_ROLE_STEP,    /* this program's step state (abi/step.abi.h) */
    VKT_ROLE_WORDS,   /* ring of words that the host passes to runs, one slot per run (abi/step.abi.h) */
    VKT_ROLE_METRICS, /* ring of metrics that the host reads, one slot per run (abi/step.abi.h) */
    VKT_ROLE_CONST,   /* fixed bytes, uploaded when the program is made */
    VKT_ROLE_SCRATCH  /* made by emit, for the dispatches of its node and of later nodes that recall it (vkt_recall) */
} vkt_role;

#define VKT_ARENAS 7

typedef struct vkt_value {
    char name[VKT_NAME_MAX];
    vkt_shape shape;
    vkt_dtype dtype;
    vkt_layout layout;
    vkt_role role;
    bool keep;         /* vkt_keep: no other value gets its memory before the program is destroyed */
    bool state;        /* PARAM: made by vkt_state: ops write it, and it has no gradient and no update */
    bool changes;      /* PARAM: a state that a node of the graph writes in place. In a graph of vkt_update_by_sum: a
                        * node of the graph of shards writes it */
    bool written;      /* EXTERNAL: vkt_write or vkt_append writes it; only an `appended` alias of it may be read */
    bool appended;     /* the result of vkt_append: nodes may read it, although its root (vkt_root) is `written` */
    uint32_t producer; /* index + 1 of the node whose output this value is, or whose emit made it; 0: none */
    uint32_t readers;  /* number of node inputs that refer to this value. If `again` is set, call vkt_readers instead */
    uint32_t again;    /* id of a second value: a later node computes the same numbers again (vkt_recompute_begin). The
                        * `readers` of the second value counts the readers of both values. 0: no second value */
    uint32_t alias;    /* id of the value whose memory this value uses; 0: this value is no alias. See vkt_root */
    uint64_t arena_offset_bytes; /* offset in the arena (PARAM and GRAD) or in the step state; else 0 */
    uint8_t group;               /* PARAM: index + 1 of its vkt_param_group; 0: no group */
    bool frozen;                 /* PARAM: frozen by vkt_freeze: no gradient, no update */
    vkt_array *array;            /* EXTERNAL: the array of vkt_external_array; NULL: see vkt_program_params.arrays */
    const void *data;            /* CONST: `bytes` bytes, owned by the graph or the lowering (vkt_emit) */
    uint64_t bytes;              /* physical size, including the padding of the batch */
    vkt_precision storage;       /* stored type of an f32 or f16 value in a lowering; always F32 in the graph */
} vkt_value;

struct vkt_node {
    const vkt_op *op;
    const struct vkt_graph *g;
    uint32_t index;
    uint32_t n_in, n_out;
    vkt_tensor in[VKT_MAX_IN]; /* an absent optional input is {0} */
    vkt_tensor out[VKT_MAX_OUT];
    const void *attr;    /* the op's attributes, owned by the graph; NULL: none */
    uint32_t epilogue;   /* index + 1 of the node that is fused to this one as an epilogue, on output 0; 0: none. See
                          * passes/epilogue.c */
    uint32_t companion;  /* index + 1 of a later node whose work this node's dispatches may do (passes/companion.c); 0:
                          * none */
    uint32_t slope;      /* index + 1 of a fused node, which is a relu's gradient. This node computes that gradient as
                          * it loads the input that vkt_op.slope_in names. 0: none */
    uint32_t fused_into; /* for an epilogue or `slope` of another node: index + 1 of the node whose dispatches do this
                          * node's work. 0: none. The output of an epilogue is an alias. No dispatch writes the output
                          * of a `slope` */
    uint32_t after;      /* for a node that computes a value of a block again: index + 1 of an earlier node. This node
                          * runs behind that node, but reads none of its outputs (autodiff/again.c). 0: any order */
};

/* The nodes of a block (vkt_recompute_begin): `first` .. end - 1. */
typedef struct vkt_block {
    uint32_t first, end;
} vkt_block;

struct vkt_graph {
    vkt_host host;
    vkt_result status;
    vkt_value *values; /* [0] is the null value */
    size_t n_values, cap_values;
    vkt_node **nodes;
    size_t n_nodes, cap_nodes;
    uint32_t *params; /* value ids in the order of declaration */
    size_t n_params, cap_params;
    uint32_t *names;              /* hash table of the ids in `params`, by name; 0: a free entry; at most half full */
    size_t cap_names;             /* a power of two, or 0 */
    uint64_t names_looked;        /* number of visits to entries of `names` in all lookups; a test checks this number */
    uint64_t arena_bytes;         /* size of all parameters and states, each at a multiple of VKT_ALIGN_BYTES */
    vkt_tensor arena[VKT_ARENAS]; /* whole arenas from PARAM to PUBLISHED; {0} until first used */
    vkt_tensor step, words, clock, metrics; /* {0} until first used */
    vkt_tensor run;  /* the word STEP_RUN (abi/step.abi.h). The op `report` counts runs in it. {0}: no such node */
    vkt_tensor seed; /* the gradient that vkt_backward starts from; {0} before that call */
    uint32_t batch;  /* the largest batch size of the nodes that gather samples. A run with vkt_run.rows = 0 has this
                      * many rows. 0: no node gathers samples */
    vkt_optimizer optimizer; /* set by vkt_update or vkt_update_by_sum */
    vkt_tensor groups;       /* the optimizer's table of parameter groups, abi/update.abi.h; {0}: no groups */
    bool has_optimizer, has_publish, has_advance;
    uint32_t draws; /* in a graph of shards (ops/ops.h): how many runs of all ranks together make a step; else 0 */
    bool sums;      /* the update reads the weighted sum of the gradients of all runs of a step (see vkt_run, and
                     * vkt_update_by_sum) */
    const uint64_t *bucket_ends; /* the ends of the buckets: rising byte offsets in an arena. Owned by the graph. No
                                  * dispatch of the update crosses one of these offsets */
    uint32_t n_buckets;
    vkt_block *blocks; /* the blocks of vkt_recompute_begin, in rising order; the end of an open block is UINT32_MAX */
    size_t n_blocks, cap_blocks;
    void **owned; /* memory of vkt_graph_own */
    size_t n_owned, cap_owned;
    bool no_fuse;       /* VKT_NO_FUSE=1 at creation: no nodes are fused */
    bool finished;      /* set by vkt_program_create and vkt_program_needs: values and nodes can no longer be added */
    const bool *wanted; /* [value id]: its gradient is needed; NULL except during vkt_backward and vkt_gradients */
    size_t n_wanted;
};

/* The kinds of computation that can be fused. Code such as passes/epilogue.c compares these kinds instead of ops. */
typedef enum vkt_fuse_kind {
    VKT_FUSE_NONE = 0,
    VKT_FUSE_AFFINE,  /* inputs x, w, bias (or null): x w^T + bias */
    VKT_FUSE_RELU,    /* input x: max(x, 0) */
    VKT_FUSE_NETWORK, /* inputs x, weights, biases (see vkt_mlp_attr): AFFINE layers, with a RELU between two layers */
    VKT_FUSE_SUM,     /* inputs a, b: a + b, if both have the same shape and layout */
    VKT_FUSE_SLOPE,   /* inputs v, dy: dy * f'(x) for some function f, where v is x or f(x) */
    VKT_FUSE_DROPOUT  /* inputs x, step: mask * x / (1 - p) */
} vkt_fuse_kind;

/* An op descriptor. ops/ops.def lists all of them, except those of ops/custom.c. */
struct vkt_op {
    const char *name;
    uint8_t min_in, max_in; /* inputs beyond min_in are optional */
    bool uses_step;         /* the step state is appended as the last input by vkt_apply */
    /* Returns the number of samples in the batch of n. The batch of a graph without a gather is the largest of these
     * numbers and of the batches of values in VKT_BATCH_LAST. NULL: nodes of this op do not define a batch. */
    uint32_t (*batch)(const vkt_node *n);
    bool side_effect;  /* runs even if nothing reads its outputs (updates, reports) */
    bool cheap;        /* the op takes little time, so it may be recomputed to save memory */
    uint8_t in_place;  /* a set of inputs; bit i is input i. Output 0 may overwrite one of them, if all of them have the
                        * output's type, storage, shape and layout. The kernels must allow this: only the lane that
                        * writes an element of the output reads the same element of the input, and it reads before it
                        * writes */
    bool forward_only; /* a gradient that would pass through the op is an error */
    bool prologue;     /* nodes of ops with this flag are lowered first, even if other nodes were added before them */
    bool custom;       /* an op of the application (ops/custom.h), without a reference. An audit compares its gradients
                        * with difference quotients of its outputs */
    bool early;        /* plan/early.c moves the op's dispatches to the front, as far as their dependences allow */
    vkt_fuse_kind fuse_kind;
    uint32_t epilogues;      /* bit s: emit can apply an epilogue of kind s to output 0 (vkt_fuse_epilogue) */
    uint32_t late_epilogues; /* a set of kinds like `epilogues`, for a second pass. This pass fuses nodes of these
                              * kinds that the first pass has not fused */
    uint32_t head_in;        /* index + 1 of an input: a node of this op may be the companion of the node that makes
                              * this input; 0: none */
    /* Returns whether the emit of `head`, a node of this op, can do the work of n as its companion
     * (vkt_fuse_companion). NULL: nodes of this op have no companions. */
    bool (*is_companion)(const vkt_node *head, const vkt_node *n);
    uint32_t slope_in; /* index + 1 of an input. If the node that makes this input is a relu's gradient, emit can
                        * compute the input from the inputs of that node (vkt_fuse_slope). 0: emit cannot do this for
                        * any input */
    uint32_t diff;     /* bit i: input i has a gradient */
    uint32_t refuses;  /* bit i: a gradient that would pass through input i is an error. All other inputs without a
                        * bit in `diff` stop the gradient without an error */
    /* Returns whether no gradient passes through input i of n, although bit i of `diff` is 1. NULL: the gradient always
     * passes. */
    bool (*stops)(const vkt_node *n, uint32_t i);
    size_t attr_bytes; /* size of the struct of attributes. If the op chooses variants, the struct has no padding
                        * bytes, because vkt_node_key hashes all its bytes */
    /* Checks inputs and attributes, and describes the outputs. Later code does not repeat these checks. So a node that
     * passes must be safe to emit and to compute, also if its attributes were parsed from a text (vkt_attr_parse). */
    vkt_result (*infer)(vkt_infer *f);
    /* Called after the shapes of a case have changed (check/case.c). Recomputes the attributes that depend on shapes.
     * Reduces the `bound` of inputs to what these attributes allow. NULL: no attribute follows from a shape. */
    void (*settle)(void *attr, vkt_case_input *in);
    /* Appends dispatches, which depend only on the node, its graph and `e`. Uses no Vulkan, and allocates only
     * through `e`. NULL: nothing runs on the device, because the outputs are aliases. */
    void (*emit)(const vkt_node *n, vkt_emit *e);
    /* The inputs and outputs that the kernels can read and write in 16 bits: VKT_HALF_IN(i) | VKT_HALF_OUT(k). `half`
     * is for f32 values in VKT_BATCH_LAST, `half_rows` for f32 values in VKT_ROWS with a last dimension that is a
     * multiple of 4. `half_when` (may be NULL) returns whether the kernels of this node can do this. */
    uint32_t half, half_rows;
    bool (*half_when)(const vkt_node *n);
    /* Adds nodes that compute dx[i] for the inputs in `diff`. dy[i] is {0} if output i has no gradient. NULL if diff is
     * 0. An input that needs no gradient may be skipped: vkt_wants_grad(g, n->in[i]). */
    void (*backward)(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx);
    /* Called by vkt_backward before the reverse traversal, when the needed gradients are known. May fuse n and the
     * chain of nodes before it into one node (vkt_node_become). If output 0 is the loss, `dloss` is the gradient from
     * which the traversal will start; else `dloss` is {0}. */
    void (*fuse)(vkt_graph *g, vkt_node *n, vkt_tensor dloss);
    /* Generates a legal random case. NULL: the op has no cases of its own, for instance because it is a gradient. If
     * `tested_by` is not NULL, the tests of that op test this op, too. */
    void (*sample)(vkt_rng *r, vkt_case *c);
    /* Changes the n random words of input `amended` (an index), a u32 input, to words that the op accepts. NULL: the op
     * accepts all words below the bound of the input. */
    uint32_t amended;
    void (*amend)(const void *attr, uint32_t *words, size_t n);
    const char *tested_by;
    float rel_tol,
        abs_tol; /* |got - ref| <= abs_tol * s + rel_tol * |ref|. s: the largest finite |ref|; 1 if none is above 0 */
    const char *tol_why;
    const char *formula; /* one line for the ops table in the docs */
    /* The numbers that vkt-bench divides by time. `flops`: floating-point operations of a node by its formula, whatever
     * a variant really does. An addition, multiplication, comparison, division, root or exponential counts as one,
     * integer work as none. `bytes`: the least memory traffic; NULL: every input is read once and every output written
     * once. */
    double (*flops)(const vkt_node *n);
    double (*bytes)(const vkt_node *n);
    const vkt_field
        *fields; /* attributes by name, as text; an entry without a name ends the list; NULL: no attribute has a text */
};

#define VKT_HALF_IN(i) (1u << (i))
#define VKT_HALF_OUT(k) (1u << (VKT_MAX_IN + (k)))

/* ---- values ---- */
static inline bool vkt_is_layout(vkt_layout l)
{
    return l == VKT_ROWS || l == VKT_BATCH_LAST;
}
/* Returns whether a parameter is not trained: it has neither gradient nor update. */
static inline bool vkt_is_fixed(const vkt_value *v)
{
    return v->state || v->frozen;
}
static inline const vkt_value *vkt_value_of(const vkt_graph *g, vkt_tensor t)
{
    return &g->values[t.id];
}
uint64_t vkt_shape_elements(vkt_shape s); /* logical; 1 for rank 0 */
bool vkt_shape_equal(vkt_shape a, vkt_shape b);
const char *vkt_shape_text(vkt_shape s, char buf[80]);             /* "(128,1,28,28)"; also for rank > VKT_MAX_RANK */
const char *vkt_index_text(vkt_shape s, uint64_t i, char buf[80]); /* "[1,0,3,5]" for element i in row-major order */
uint32_t vkt_dtype_bytes(vkt_dtype d);
static inline bool vkt_is_integer(vkt_dtype d)
{
    return d == VKT_U32 || d == VKT_U8;
}
const char *vkt_dtype_name(vkt_dtype d);          /* for instance "f32" */
uint32_t vkt_element_bytes(const vkt_value *v);   /* as stored */
const char *vkt_element_name(const vkt_value *v); /* as stored: "f32", "f16", "bf16", "u32" or "u8" */

/* A value as shaders see it: dimensions from slow to fast, strides in elements. BATCH_LAST (N,C,H,W) has dim {C,H,W,N}
 * and stride {H * W * N', W * N', N', 1}, where N' is `pitch`. logical[i] is the logical dimension of physical
 * dimension i. For a value of rank 0, the member `rank` is 1 and `dim` is {1}. */
typedef struct vkt_phys {
    uint32_t rank;
    uint32_t dim[VKT_MAX_RANK];
    uint64_t stride[VKT_MAX_RANK];
    uint32_t logical[VKT_MAX_RANK];
    uint32_t pitch;    /* BATCH_LAST: N rounded up to a multiple of 4; ROWS: the fastest dimension */
    uint64_t elements; /* with padding */
} vkt_phys;
vkt_phys vkt_phys_of(const vkt_value *v);
/* Computes how many bytes a value of this shape, layout and dtype has. Returns false for 2^63 bytes or more. */
bool vkt_physical_bytes(vkt_shape s, vkt_layout l, vkt_dtype d, uint64_t *bytes);
/* Returns the id of the value that owns t's memory: the end of t's chain of aliases. The role of this value is the
 * kind of this memory. */
static inline uint32_t vkt_root(const vkt_graph *g, vkt_tensor t)
{
    uint32_t id = t.id;
    while (g->values[id].alias) id = g->values[id].alias;
    return id;
}
/* Copy a value from the host's form (logical, row-major, in the value's dtype) to the stored form (physical), and back.
 * The padding of the stored form becomes zero. */
void vkt_pack_value(const vkt_value *v, const void *logical, void *physical);
void vkt_unpack_value(const vkt_value *v, const void *physical, void *logical);

/* ---- building ---- */
/* Adds a node of `op` with the n_in inputs `in` ({0} for an absent optional one). Returns its first output, {0} on
 * error. outs (may be NULL) gets all outputs. attr is copied. */
vkt_tensor vkt_apply(vkt_graph *g, const vkt_op *op, const vkt_tensor *in, uint32_t n_in, const void *attr,
                     vkt_tensor *outs);
/* Replaces the op, inputs and attributes of n. The new inputs must exist before n. The outputs of n stay the same
 * values, and must be the first outputs of the new op. The other outputs of the new op are added. On an error n does
 * not change, and the status is set. */
void vkt_node_become(vkt_graph *g, vkt_node *n, const vkt_op *op, const vkt_tensor *in, uint32_t n_in,
                     const void *attr);
/* Returns whether a builder may use t: the graph exists and has not failed, and t is one of its values. If only the
 * last condition is false, sets the graph's status to VKT_E_ARG and logs a message that begins with `op`. */
bool vkt_is_usable(vkt_graph *g, const char *op, vkt_tensor t);
/* Logs that an argument of a builder is NULL, and sets the status to VKT_E_ARG if it is still VKT_OK. Does nothing if g
 * is NULL. Returns the null tensor. */
vkt_tensor vkt_null_argument(vkt_graph *g, const char *op, const char *argument);
/* Returns the producer of t if a pass may fuse it with the reader of t: t is not kept and has one reader. Else NULL. */
const vkt_node *vkt_sole_producer(const vkt_graph *g, vkt_tensor t);
/* Returns the producer of t like vkt_sole_producer, but passes over reshapes: if the producer is a reshape, the
 * function goes on with the input of the reshape. It does not pass over stop_gradient. Returns NULL if t or one of
 * these inputs is kept, has another reader or has no producer. */
const vkt_node *vkt_sole_producer_past_views(const vkt_graph *g, vkt_tensor t);
/* Returns the number of node inputs that refer to t or to its second value (vkt_value.again). So passes that fuse
 * nodes decide as if t were computed once. */
uint32_t vkt_readers(const vkt_graph *g, vkt_tensor t);
vkt_tensor vkt_value_add(vkt_graph *g,
                         const vkt_value *proto); /* returns {0} on an error: no memory, too large, graph finished */
/* Makes a constant of the graph; bytes are copied. */
vkt_tensor vkt_graph_const(vkt_graph *g, const char *name, vkt_dtype dtype, vkt_shape shape, const void *data);
vkt_tensor vkt_graph_step(vkt_graph *g); /* the step state; the first call adds it */
vkt_tensor vkt_graph_words(vkt_graph *g);
vkt_tensor vkt_graph_clock(vkt_graph *g);
vkt_tensor vkt_graph_metrics(vkt_graph *g);
vkt_tensor vkt_graph_run(vkt_graph *g);
vkt_tensor vkt_graph_arena(vkt_graph *g, vkt_role role); /* a whole arena (PARAM to PUBLISHED) as one f32 vector */
void *vkt_graph_copy(vkt_graph *g, const void *data, size_t bytes); /* freed with the value or node that gets it */
void *vkt_graph_own(vkt_graph *g, size_t bytes);  /* zeroed memory that the graph frees when it is destroyed */
void vkt_graph_error(vkt_graph *g, vkt_result r); /* sets the status if it is still VKT_OK */
/* Logs that output k of n, which is a gradient, has no gradient of its own. Sets the status to VKT_E_UNSUPPORTED. */
void vkt_refuse_second_gradient(vkt_graph *g, const vkt_node *n, uint32_t k);
/* Returns whether a gradient with respect to t is needed. Outside of vkt_backward and vkt_gradients, it returns whether
 * t is not null. */
bool vkt_wants_grad(const vkt_graph *g, vkt_tensor t);
/* Checks that no block of the graph is open (vkt_recompute_begin). If one is open, sets the status to VKT_E_STATE, and
 * logs a message that begins with `what`. Returns the graph's status. */
vkt_result vkt_check_blocks(vkt_graph *g, const char *what);

/* ---- infer ---- */
struct vkt_infer {
    vkt_graph *g;
    vkt_node *n;
    uint32_t n_out;
    struct {
        vkt_value proto;
        int32_t alias_in; /* index of an input; -1: the output has its own memory */
    } out[VKT_MAX_OUT];
};
static inline const vkt_value *vkt_in(const vkt_infer *f, uint32_t i)
{
    return &f->g->values[f->n->in[i].id];
}
static inline bool vkt_has(const vkt_infer *f, uint32_t i)
{
    return i < f->n->n_in && f->n->in[i].id != 0;
}
/* Describes the next output. */
void vkt_out(vkt_infer *f, vkt_dtype dtype, vkt_layout layout, vkt_shape shape);
/* Describes the next output as an alias of input i with another shape and layout (same physical bytes). */
void vkt_out_alias(vkt_infer *f, uint32_t i, vkt_layout layout, vkt_shape shape);
/* If cond is false, logs a message, and the function in which the macro stands returns `result`. */
#define VKT_REQUIRE(f, cond, result, ...)                                   \
    do {                                                                    \
        if (!(cond)) return vkt_fail(&(f)->g->host, (result), __VA_ARGS__); \
    } while (0)

/* ---- emit ---- */
#define VKT_EMIT_PUSH 128 /* bytes; the minimum that Vulkan guarantees */

typedef struct vkt_bind {
    vkt_tensor t;
    uint64_t offset_bytes; /* a multiple of VKT_ALIGN_BYTES */
    uint64_t bytes;        /* 0: to the end of t */
} vkt_bind;

typedef struct vkt_dispatch {
    uint32_t node;            /* index of its node */
    uint16_t kernel;          /* vkt_kernel_id */
    const vkt_shader *shader; /* instead of a kernel: a shader of the application, owned by the graph. NULL: none */
    uint8_t n_bind, n_spec, push_bytes;
    vkt_bind bind[VKT_MAX_BINDINGS]; /* entry i is binding i; t.id 0: this variant does not use the binding */
    uint32_t spec[VKT_MAX_SPECS];    /* entry i is constant_id i; entry 0 is the work-group size in x */
    uint32_t storage;                /* two bits for each binding's vkt_precision; other bits: see abi/storage.abi.h */
    uint32_t groups[3];
    bool conditional; /* a conditional dispatch (vkt_when_begin): it may be skipped if a counter on the device is at
                       * most `above`. The last entry of `bind` of such a dispatch is no binding of the shader. This
                       * entry is the buffer that says how many work groups each conditional dispatch has. The three
                       * numbers of this dispatch begin at word `counts`: `groups`, or zeros if it does not run */
    uint32_t above, counts;
    _Alignas(8) unsigned char push[VKT_EMIT_PUSH];
} vkt_dispatch;

/* Returns the number of entries of d->bind that are bindings of the shader. */
static inline uint32_t vkt_shader_bindings(const vkt_dispatch *d)
{
    return d->n_bind - (d->conditional ? 1u : 0u);
}

/* One choice of a variant for a node. */
typedef struct vkt_picked {
    uint32_t node;
    vkt_variant variant;
    uint64_t usable;  /* the set of variants (VKT_V) that the op offered to vkt_pick */
    uint64_t unbuilt; /* those of `usable` that failed, because this build does not have a kernel that they need */
    uint32_t outer;   /* 1 + index of the choice that was open (vkt_pick_end) when this choice was made; 0: none */
    uint64_t key;     /* key in the tuning file: hash of vkt_node_key, precision, and storage of the node's values */
    vkt_tile tile;    /* the argument of vkt_pick_tile; all 0: vkt_pick_tile was not called */
} vkt_picked;

#define VKT_KEY_MAX 96

/* A remembered scratch value: see vkt_remember. */
typedef struct vkt_memory {
    unsigned char key[VKT_KEY_MAX]; /* filled up with zeros */
    vkt_tensor t;
} vkt_memory;

struct vkt_emit {
    vkt_host host;
    const vkt_limits *lim;
    const vkt_graph *g;
    vkt_value *values;       /* copies of the graph's values; copy_values (lower.c) adapts them to this lowering */
    vkt_precision precision; /* precision of the program */
    bool scaled;             /* the loss is scaled: the optimizer checks for overflow and divides by the scale */
    vkt_result status;
    vkt_dispatch *list;
    size_t n, cap;
    vkt_value *extra; /* scratch values and constants; their ids begin after the ids of the graph's values */
    size_t n_extra, cap_extra;
    vkt_picked *picked; /* choices of variants, in the order in which nodes are lowered */
    size_t n_picked, cap_picked;
    vkt_memory *memory;
    size_t n_memory, cap_memory;
    const vkt_node *node;
    const vkt_node *epilogue; /* the next epilogue to be applied to output 0 of `node`: see vkt_fuse_epilogue */
    bool *taken;        /* [node index]: the node is a companion, and the dispatches of another node do its work */
    vkt_tensor relu;    /* a dispatch that binds this value stores max(v, 0) instead of a result v; {0}: none */
    bool conditional;   /* vkt_dispatch_add adds conditional dispatches: see vkt_when_above */
    uint32_t above;     /* vkt_dispatch.above of these dispatches */
    uint32_t choice;    /* 1 + index in `picked` of the last choice that is open (vkt_pick_end); 0: none */
    uint32_t absent;    /* id of a kernel that `node` needs and that this build does not have; 0: none */
    uint32_t absent_in; /* the value of `choice` when `absent` was needed */
    size_t n_tried;     /* picked[i].unbuilt is known for i < n_tried. 0: `node` is lowered for the first time */
    bool all_open;      /* vkt_open ignores the user's switches */
};

/* Chooses among n >= 1 variants (vkt_variant_choose) for the node that is being lowered, and records the choice. Ops do
 * not read the user's switches (vkt_choices): this function applies them. An op may call it several times for a node.
 * Two calls that decide different things must not offer the same variant. The calls for several matrix products of a
 * node decide the same thing, so they may offer the same variants: a forced or tuned variant applies to every product
 * that can use it. */
vkt_variant vkt_pick(vkt_emit *e, const vkt_variant_cost *costs, uint32_t n);
/* Ends the last choice of vkt_pick that is open. Dispatches belong to all choices that are open. If this build does not
 * have the kernel of a dispatch, the node is lowered again, with another variant for one of these choices. An op whose
 * emit makes several choices calls this function after the last dispatch of each. A choice that is not ended stays open
 * until the whole node is lowered. */
void vkt_pick_end(vkt_emit *e);
/* Returns the variants of `usable` among which vkt_pick would choose by cost. Argument and result are sets of VKT_V. An
 * op calls this function before vkt_pick if it must decide first which variants vkt_pick gets. */
uint64_t vkt_open(const vkt_emit *e, uint64_t usable);
/* Returns the tile that the user or the tuning file wants for the node that is being lowered. */
vkt_tile vkt_wanted_tile(const vkt_emit *e);
/* Records the tile of the variant that vkt_pick has just returned. */
void vkt_pick_tile(vkt_emit *e, vkt_tile tile);
/* Returns a hash of a node's work: op, bytes of the attributes, shape, layout and type of inputs and outputs. Equal
 * nodes have equal keys, in any graph and any run. */
uint64_t vkt_node_key(const vkt_node *n);

/* One dispatch for vkt_dispatch_add, which copies bind, push and spec. The graph owns `shader`: no copy is made. */
typedef struct vkt_launch {
    uint16_t kernel;          /* vkt_kernel_id */
    const vkt_shader *shader; /* instead of a kernel: a shader of the application. NULL: none */
    const vkt_bind *bind;     /* entry i is binding i */
    uint32_t n_bind;
    const void *push; /* push constants; may be NULL */
    size_t push_bytes;
    const uint32_t *spec; /* entry i is specialization constant i; entry 0 is the number of lanes of a work group */
    uint32_t n_spec;
    uint64_t groups[3]; /* x, y, z: 1 or more */
} vkt_launch;
/* Initialise fields of a vkt_launch: bindings and specialization constants from arrays, push constants from a
 * struct. */
#define VKT_LAUNCH_BIND(array) .bind = (array), .n_bind = VKT_COUNT(array)
#define VKT_LAUNCH_PUSH(object) .push = &(object), .push_bytes = sizeof(object)
#define VKT_LAUNCH_SPEC(array) .spec = (array), .n_spec = VKT_COUNT(array)

/* Appends one dispatch of x * y * z work groups. If x is above limits.max_groups, the dispatch has only max_groups work
 * groups along x, so the kernel must loop over x. Kernels need not loop over y and z, so a y or z above max_groups is
 * VKT_E_UNSUPPORTED. A shader of an application need not loop over x either. Its op checks x before this call. */
void vkt_dispatch_add(vkt_emit *e, const vkt_launch *launch);
/* Reports that the node needs a kernel that this build does not have. The node is then lowered again with another
 * variant, or refused if there is no other variant. vkt_dispatch_add calls this function. */
void vkt_kernel_absent(vkt_emit *e, uint16_t kernel);
/* Makes a scratch value. Its live range is from the first dispatch that binds it to the last one. Both dispatches are
 * of this node, unless a later node recalls the value (vkt_recall). */
vkt_tensor vkt_scratch(vkt_emit *e, const char *name, uint64_t bytes);
/* Makes a scratch value of `elements` floats that are stored in this precision. */
vkt_tensor vkt_scratch_stored(vkt_emit *e, const char *name, uint64_t elements, vkt_precision stored);
/* Makes a scratch value of this shape. Type, layout and storage are those of `like`. */
vkt_tensor vkt_scratch_like(vkt_emit *e, const char *name, vkt_tensor like, vkt_shape shape);
/* Makes a constant that the program holds from its creation on; the bytes are copied. */
vkt_tensor vkt_emit_const(vkt_emit *e, const char *name, const void *data, uint64_t bytes);
/* vkt_remember records that the dispatches so far have filled the scratch value t from values of the graph. vkt_recall
 * returns the scratch value of a key, so that later nodes need not compute it; {0}: the key is unknown. The key holds
 * everything on which the content of the scratch value depends: ids of values, sizes, and the id of a kernel,
 * because different kernels use different contents. The key has at most VKT_KEY_MAX bytes and no padding bytes. A node
 * with side effects may change values in place, so the lowering forgets all scratch values after such a node. */
vkt_tensor vkt_recall(const vkt_emit *e, const void *key, size_t bytes);
void vkt_remember(vkt_emit *e, const void *key, size_t bytes, vkt_tensor t);
void vkt_emit_error(vkt_emit *e, vkt_result r);
/* Returns the next epilogue of the node that is being lowered, if this epilogue is of the kind `kind`. The caller must
 * apply the epilogue. NULL: there is no epilogue, or the next one is of another kind. An epilogue that emit does not
 * ask for gets dispatches of its own, which compute it in place. */
const vkt_node *vkt_fuse_epilogue(vkt_emit *e, vkt_fuse_kind kind);
/* Returns the companion of the node that is being lowered. The caller must then do the companion's work in the node's
 * dispatches. NULL: there is none. If emit does not call this function, the companion gets dispatches of its own, at
 * its position in the graph. */
const vkt_node *vkt_fuse_companion(vkt_emit *e);
/* Returns the node of the relu's gradient that is fused to the node being lowered; NULL: there is none. The output of
 * the returned node is the input that vkt_op.slope_in names. No dispatch writes this output. So emit's kernels load v
 * and dy, which are inputs 0 and 1 of the returned node, and compute the output: dy where v > 0, else 0. */
const vkt_node *vkt_fuse_slope(const vkt_emit *e);
static inline const vkt_value *vkt_node_in(const vkt_node *n, uint32_t i)
{
    return &n->g->values[n->in[i].id];
}
/* Returns the first dimension of input 0, for vkt_op.batch. */
static inline uint32_t vkt_batch_of_first(const vkt_node *n)
{
    return vkt_node_in(n, 0)->shape.dim[0];
}
static inline const vkt_value *vkt_node_out(const vkt_node *n, uint32_t i)
{
    return &n->g->values[n->out[i].id];
}

/* Returns whether a program of this precision stores values in 16 bits. */
static inline bool vkt_stores_16_bits(vkt_precision p)
{
    return p == VKT_PRECISION_F16 || p == VKT_PRECISION_BF16;
}

/* Says which values are stored in 16 bits, and in which type. */
typedef struct vkt_storage {
    vkt_precision precision;
    const bool *half; /* [value id]: this f32 value is stored in 16 bits. An alias has its root's entry. NULL: none */
} vkt_storage;
/* Calls emit for the nodes in order, prologue nodes first. Leaves out nodes whose work is done by another node. Also
 * leaves out node i if live[i] is false; `live` may be NULL. On VKT_OK the caller frees with vkt_lower_free. */
vkt_result vkt_lower(const vkt_graph *g, const vkt_limits *lim, const bool *live, vkt_storage s, vkt_emit *out);
void vkt_lower_free(vkt_emit *e);
static inline const vkt_value *vkt_lowered_value(const vkt_emit *e, vkt_tensor t)
{
    return t.id < e->g->n_values ? &e->values[t.id] : &e->extra[t.id - e->g->n_values];
}

/* ---- random cases for tests, fuzzing and the bench runner ---- */
struct vkt_case_input {
    vkt_dtype dtype;
    vkt_layout layout;
    vkt_shape shape;
    float lo, hi;   /* f32, f16: random values from lo to hi; uniform unless `grid` or `distinct` is set */
    float grid;     /* f32: values are multiples of this power of two, so that sums of few products are exact, and a
                     * maximum is the same element in f32 and in the reference. 0: any values */
    uint32_t bound; /* u32, u8: values are uniform in [0, bound) */
    bool absent;    /* an optional input that is left out */
    bool distinct;  /* f32: any two of the n values differ by (hi - lo) / (2 * n) or more, so maxima have no ties */
};
struct vkt_case {
    uint32_t n_in;
    vkt_case_input in[VKT_MAX_IN];
    _Alignas(8) unsigned char attr[512];
    size_t attr_bytes;
    uint32_t rows;  /* real rows of the batch; 0: all */
    uint32_t first; /* see vkt_run.first */
    bool one_sign;  /* the gradients of the outputs are in [0.5, 1), so that their sums do not cancel */
    char text[160]; /* shapes and layouts of the inputs, `rows` and `first`, in one line for messages */
};
vkt_case_input *vkt_case_f32(vkt_case *c, vkt_layout layout, vkt_shape shape, float lo, float hi);
vkt_case_input *vkt_case_u32(vkt_case *c, vkt_layout layout, vkt_shape shape, uint32_t bound);
void vkt_case_absent(vkt_case *c);
void vkt_case_attr(vkt_case *c, const void *attr, size_t bytes);

/* ---- attributes as text, for instance "stride=2,2 groups=3" ---- */
void vkt_attr_defaults(const vkt_op *op, void *attr); /* sets the members in op->fields; attr must be zeroed */
/* Appends the members that differ from their default values. */
void vkt_attr_text(const vkt_op *op, const void *attr, vkt_text *t);
/* Appends all members, with all digits. Call this function between vkt_numbers_begin and vkt_numbers_end. */
void vkt_attr_text_exact(const vkt_op *op, const void *attr, vkt_text *t);
/* Parses one member, "stride=2,2", into attr. VKT_E_FORMAT: the op has no such member (the message lists its members),
 * or the numbers are wrong. */
vkt_result vkt_attr_parse(const vkt_host *h, const vkt_op *op, const char *text, void *attr);

#endif
