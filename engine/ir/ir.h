/* ir/ir.h - the graph as data: values, nodes, and the row that describes an op. Knows no Vulkan and no op by name.
 *
 * Lowering turns nodes into dispatches (still data: kernel numbers, bindings, push bytes, group counts); the plan gives
 * values their memory; record/ makes Vulkan calls of both. */
#ifndef VKT_IR_H
#define VKT_IR_H

#include "base/base.h"
#include "base/limits.h"
#include "base/philox.h"
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

/* Where a value lives. */
typedef enum vkt_role {
    VKT_ROLE_ACTIVATION = 0, /* made by a node, packed by liveness */
    VKT_ROLE_INPUT,          /* written by the host */
    VKT_ROLE_EXTERNAL,       /* a vkt_array */
    VKT_ROLE_PARAM,          /* the arenas of the store, in the order of vkt_store_part, and ranges of them */
    VKT_ROLE_GRAD,
    VKT_ROLE_MOMENT1,
    VKT_ROLE_MOMENT2,
    VKT_ROLE_MOMENT3,
    VKT_ROLE_GRAD_SUM,
    VKT_ROLE_PUBLISHED,
    VKT_ROLE_CLOCK,   /* the store's optimizer clock (abi/step.abi.h) */
    VKT_ROLE_STEP,    /* this program's step state (abi/step.abi.h) */
    VKT_ROLE_WORDS,   /* ring of words that the host writes, one slot a run */
    VKT_ROLE_METRICS, /* ring of metrics that the host reads, one slot a run */
    VKT_ROLE_CONST,   /* fixed bytes, uploaded when the program is made */
    VKT_ROLE_SCRATCH  /* made by emit, lives within one node's dispatches */
} vkt_role;

#define VKT_ARENAS 7

typedef struct vkt_value {
    char name[VKT_NAME_MAX];
    vkt_shape shape;
    vkt_dtype dtype;
    vkt_layout layout;
    vkt_role role;
    bool keep;                   /* lives until the end of the program */
    bool state;                  /* PARAM: no gradient, no update; ops write it */
    bool written;                /* EXTERNAL: by vkt_write; no other node may have it */
    uint32_t producer;           /* node number + 1; 0: none */
    uint32_t readers;            /* how often nodes have it as an input */
    uint32_t alias;              /* id of the value whose memory this is; 0: memory of its own. See vkt_root */
    uint64_t arena_offset_bytes; /* PARAM and GRAD: where in its arena */
    uint8_t group;               /* PARAM: number + 1 of its vkt_param_group; 0: in none */
    bool frozen;                 /* PARAM: no gradient, no update */
    const void *data;            /* CONST: `bytes` of them, owned by the graph or the lowering */
    uint64_t bytes;              /* physical size, padding of the batch included */
    vkt_precision storage;       /* of a f32 value in a lowering; always F32 in the graph */
} vkt_value;

struct vkt_node {
    const vkt_op *op;
    const struct vkt_graph *g;
    uint32_t index;
    uint32_t n_in, n_out;
    vkt_tensor in[VKT_MAX_IN]; /* an optional input that is absent is {0} */
    vkt_tensor out[VKT_MAX_OUT];
    const void *attr; /* the op's own params struct, owned by the graph; NULL: none */
    uint32_t then; /* number + 1 of the node that is lowered with this one, in output 0; 0: none. passes/epilogue.c */
    bool within;   /* is such a one: its output is an alias */
};

struct vkt_graph {
    vkt_host host;
    vkt_result status;
    vkt_value *values; /* [0] is the null value */
    size_t n_values, cap_values;
    vkt_node **nodes;
    size_t n_nodes, cap_nodes;
    uint32_t *params; /* value ids in the order of declaration */
    size_t n_params, cap_params;
    uint32_t *names;                        /* the same ids by their names' hashes, 0: empty; at most half full */
    size_t cap_names;                       /* a power of two, or 0 */
    uint64_t names_looked;                  /* at, in all: what declaring parameters costs */
    uint64_t arena_bytes;                   /* all parameters, each at a multiple of VKT_ALIGN_BYTES */
    vkt_tensor arena[VKT_ARENAS];           /* from PARAM to PUBLISHED: whole arenas; {0} until asked for */
    vkt_tensor step, words, clock, metrics; /* {0} until asked for */
    vkt_tensor seed;                        /* the gradient that vkt_backward starts from; {0}: it was not called */
    uint32_t batch;                         /* largest batch of a gather: what `rows = 0` means; 0: none */
    vkt_optimizer optimizer;                /* of vkt_update */
    vkt_tensor groups;                      /* its table of groups, abi/update.abi.h; {0}: all parameters are alike */
    bool has_optimizer, has_publish, has_advance;
    bool no_fuse;       /* VKT_NO_FUSE=1 when it was created: no node takes another one in */
    bool finished;      /* a program was made of it: its values and nodes no longer change */
    const bool *wanted; /* during backward: by value id, whether its gradient is asked for */
    size_t n_wanted;
};

/* What an op is to a row's `fuse`, which knows no other op by name. */
typedef enum vkt_stage {
    VKT_STAGE_NONE = 0,
    VKT_STAGE_AFFINE,  /* inputs x, w, bias or null: x w^T + bias */
    VKT_STAGE_RELU,    /* input x: max(x, 0) */
    VKT_STAGE_NETWORK, /* input x and those that vkt_mlp_attr tells: both by turns, the last one affine */
    VKT_STAGE_SUM,     /* inputs a, b: a + b, where they lie alike */
    VKT_STAGE_SLOPE,   /* inputs v, dy: dy f'(v), of some f */
    VKT_STAGE_DROPOUT  /* inputs x, step: mask x / (1-p) */
} vkt_stage;

/* One member of an op's attributes, for shapes files and names of benchmarks ("stride=2,2"). */
typedef enum vkt_field_kind { VKT_FIELD_BOOL, VKT_FIELD_U32, VKT_FIELD_F32, VKT_FIELD_F64 } vkt_field_kind;
typedef struct vkt_field {
    const char *name;
    vkt_field_kind kind;
    uint16_t count; /* of elements */
    uint16_t offset;
    double usual;     /* what its elements are where the text does not say */
    const char *told; /* where a message tells that it differs. NULL: by its name and number; "": not at all, for
                       * another member tells it; else the name of the fraction of 2^32 that this U32 is */
} vkt_field;
#define VKT_FIELD(type, member, kind_, count_, usual_)                                                             \
    {                                                                                                              \
        .name = #member, .kind = VKT_FIELD_##kind_, .count = (count_), .offset = (uint16_t)offsetof(type, member), \
        .usual = (usual_)                                                                                          \
    }
#define VKT_FIELD_TOLD(type, member, kind_, usual_, told_)                                                  \
    {                                                                                                       \
        .name = #member, .kind = VKT_FIELD_##kind_, .count = 1, .offset = (uint16_t)offsetof(type, member), \
        .usual = (usual_), .told = (told_)                                                                  \
    }

/* One op, one row. Every table, test, bench and document walks the list in ops/ops.def. */
struct vkt_op {
    const char *name;
    uint8_t min_in, max_in; /* inputs beyond min_in are optional */
    bool uses_step;         /* the step state is appended as the last input by vkt_apply */
    bool side_effect;       /* kept though nothing reads its outputs (updates, reports) */
    bool cheap;             /* quick beside what it reads and writes: may be run again where memory is short */
    uint8_t in_place;  /* bit i: output 0 may take the memory of input i, where all inputs named here have its type,
                        * shape and layout: whoever writes an element has read that of the input, and only he */
    bool prologue;     /* runs before every other node, whenever it was added */
    vkt_stage stage;   /* what the op is to a chain of nodes that become one */
    uint32_t takes;    /* bit s: emit can do what a node of vkt_stage s does to output 0, as it stores it: vkt_take */
    uint32_t diff;     /* bit i: input i has a gradient */
    size_t attr_bytes; /* no padding in the struct of an op that picks variants: see vkt_node_key */
    /* Checks inputs and attributes, states outputs. What it lets through may be emitted and computed: cases of text and
     * calls of builders pass no other check. */
    vkt_result (*infer)(vkt_infer *f);
    /* Works out again the attributes that follow from the shapes of the inputs. NULL: the op has none. */
    void (*settle)(void *attr, const vkt_case_input *in);
    /* Appends dispatches. Pure: node and device limits in, data out; no Vulkan, no allocation but through `e`. NULL:
     * nothing to do on the device (aliases). */
    void (*emit)(const vkt_node *n, vkt_emit *e);
    /* The inputs and outputs that the kernels can read and write in 16 bits, VKT_HALF_IN(i) | VKT_HALF_OUT(k): `half`
     * of f32 values with the batch last, `half_rows` of f32 values by rows that are whole vec4s. `half_when`, if not
     * NULL, tells whether this node's can. */
    uint32_t half, half_rows;
    bool (*half_when)(const vkt_node *n);
    /* Adds nodes that make dx[i] for the inputs in `diff`; dy[i] is {0} where output i has no gradient. NULL where diff
     * is 0. An input that needs no gradient may be skipped: vkt_wants_grad(g, n->in[i]). */
    void (*backward)(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx);
    /* Called by vkt_backward before the walk and with what is wanted known: may make n, with the chain that leads to
     * it, one node (vkt_node_become). `dloss` is what the walk will start from where output 0 is the loss, else {0}. */
    void (*fuse)(vkt_graph *g, vkt_node *n, vkt_tensor dloss);
    /* Draws a legal random case; NULL: the op is tested through the one that it is the gradient of (tested_by). */
    void (*sample)(vkt_rng *r, vkt_case *c);
    const char *tested_by;
    float rel_tol,
        abs_tol; /* |got - ref| <= abs_tol * scale + rel_tol * |ref|, scale = largest |ref| of the tensor or 1 */
    const char *tol_why;
    const char *formula; /* one line for the ops table in the docs */
    /* What vkt-bench divides by time. `flops`: floating-point operations of a node as its formula states them, whatever
     * a variant really does: an addition, multiplication, comparison, division, root or exponential is one each;
     * integer work is none. `bytes`: what must be moved at least; NULL: every input is read once and every output
     * written once. */
    double (*flops)(const vkt_node *n);
    double (*bytes)(const vkt_node *n);
    const vkt_field
        *fields; /* attributes by name, as text; an entry without a name ends them; NULL: they have no text */
};

#define VKT_HALF_IN(i) (1u << (i))
#define VKT_HALF_OUT(k) (1u << (VKT_MAX_IN + (k)))

/* ---- values ---- */
static inline bool vkt_is_layout(vkt_layout l)
{
    return l == VKT_ROWS || l == VKT_BATCH_LAST;
}
/* A parameter that is not trained: neither gradient nor update. */
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
const char *vkt_shape_text(vkt_shape s, char buf[80]);             /* "(128,1,28,28)"; of any rank */
const char *vkt_index_text(vkt_shape s, uint64_t i, char buf[80]); /* "[1,0,3,5]" for element i in row-major order */
uint32_t vkt_dtype_bytes(vkt_dtype d);
const char *vkt_dtype_name(vkt_dtype d);          /* "f32" */
uint32_t vkt_element_bytes(const vkt_value *v);   /* as stored */
const char *vkt_element_name(const vkt_value *v); /* "f32", or "f16" where it is stored so */

/* A value as its shaders see it: dimensions from slow to fast, strides in elements. BATCH_LAST (N,C,H,W) has dim
 * {C,H,W,N} and stride {H W N', W N', N', 1}; logical[i] tells which logical dimension physical dimension i is. A value
 * of rank 0 has rank 1 and dim {1}. */
typedef struct vkt_phys {
    uint32_t rank;
    uint32_t dim[VKT_MAX_RANK];
    uint64_t stride[VKT_MAX_RANK];
    uint32_t logical[VKT_MAX_RANK];
    uint32_t pitch;    /* BATCH_LAST: dim of the batch rounded up to 4; ROWS: the fastest dimension */
    uint64_t elements; /* padding included */
} vkt_phys;
vkt_phys vkt_phys_of(const vkt_value *v);
/* Byte size for a shape, layout and dtype; false when it overflows 2^63. */
bool vkt_physical_bytes(vkt_shape s, vkt_layout l, vkt_dtype d, uint64_t *bytes);
/* The value whose memory `t` is, at the end of its chain of aliases; its role is the one that counts. */
static inline uint32_t vkt_root(const vkt_graph *g, vkt_tensor t)
{
    uint32_t id = t.id;
    while (g->values[id].alias) id = g->values[id].alias;
    return id;
}
/* Copies between logical row-major host memory, of the value's dtype, and the physical layout, of its storage. Padding
 * of the physical side is zeroed. */
void vkt_pack_value(const vkt_value *v, const void *logical, void *physical);
void vkt_unpack_value(const vkt_value *v, const void *physical, void *logical);

/* ---- building ---- */
/* Adds a node of `op` over `in` (n_in of them; {0} for an absent optional one) and returns its first output, {0} on
 * error; all outputs are in outs (may be NULL). attr is copied. */
vkt_tensor vkt_apply(vkt_graph *g, const vkt_op *op, const vkt_tensor *in, uint32_t n_in, const void *attr,
                     vkt_tensor *outs);
/* Makes n a node of another op over other inputs, which must be there before n. Its outputs stay the same values, and
 * must be the first that the new op states; further ones are added. On an error n is as it was, and the status set. */
void vkt_node_become(vkt_graph *g, vkt_node *n, const vkt_op *op, const vkt_tensor *in, uint32_t n_in,
                     const void *attr);
/* Whether a builder may look at t: the graph is there and has not failed, and t is one of its values. Else false, and
 * the graph's status is set, with a message that begins with `op`. */
bool vkt_is_usable(vkt_graph *g, const char *op, vkt_tensor t);
/* Sets the status for an argument of a builder that is NULL; returns the null tensor. */
vkt_tensor vkt_null_argument(vkt_graph *g, const char *op, const char *argument);
/* The node that makes t, if t is not kept and has one reader, which may then take over that node's work; else NULL. */
const vkt_node *vkt_sole_producer(const vkt_graph *g, vkt_tensor t);
/* The same, whatever reshapes lie in between, which have one reader each. */
const vkt_node *vkt_sole_maker(const vkt_graph *g, vkt_tensor t);
/* How often nodes have t as an input. */
uint32_t vkt_readers(const vkt_graph *g, vkt_tensor t);
vkt_tensor vkt_value_add(vkt_graph *g,
                         const vkt_value *proto); /* {0}: no memory, overflow, finished; sets the status */
/* A constant of the graph; bytes are copied. */
vkt_tensor vkt_graph_const(vkt_graph *g, const char *name, vkt_dtype dtype, vkt_shape shape, const void *data);
vkt_tensor vkt_graph_step(vkt_graph *g); /* step state; the first use adds it */
vkt_tensor vkt_graph_words(vkt_graph *g);
vkt_tensor vkt_graph_clock(vkt_graph *g);
vkt_tensor vkt_graph_metrics(vkt_graph *g);
vkt_tensor vkt_graph_arena(vkt_graph *g, vkt_role role); /* an arena from PARAM to PUBLISHED as one f32 vector */
void *vkt_graph_copy(vkt_graph *g, const void *data, size_t bytes); /* the value or node that gets it frees it */
void vkt_graph_error(vkt_graph *g, vkt_result r);                   /* sets the sticky status if it is still VKT_OK */
/* Whether a gradient with respect to t is asked for (during backward; otherwise true). */
bool vkt_wants_grad(const vkt_graph *g, vkt_tensor t);

/* ---- infer ---- */
struct vkt_infer {
    vkt_graph *g;
    vkt_node *n;
    uint32_t n_out;
    struct {
        vkt_value proto;
        int32_t alias_in; /* -1: own memory */
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
/* States the next output. */
void vkt_out(vkt_infer *f, vkt_dtype dtype, vkt_layout layout, vkt_shape shape);
/* The next output is the memory of input i seen with another shape and layout (same physical bytes). */
void vkt_out_alias(vkt_infer *f, uint32_t i, vkt_layout layout, vkt_shape shape);
/* Returns VKT_E_... from infer with a message when cond is false. */
#define VKT_REQUIRE(f, cond, result, ...)                                   \
    do {                                                                    \
        if (!(cond)) return vkt_fail(&(f)->g->host, (result), __VA_ARGS__); \
    } while (0)

/* ---- emit ---- */
#define VKT_EMIT_PUSH 128 /* bytes; Vulkan's minimum */

typedef struct vkt_bind {
    vkt_tensor t;
    uint64_t offset_bytes; /* a multiple of VKT_ALIGN_BYTES */
    uint64_t bytes;        /* 0: to the end of t */
} vkt_bind;

typedef struct vkt_dispatch {
    uint32_t node;   /* number of the node that it comes from */
    uint16_t kernel; /* vkt_kernel_id */
    uint8_t n_bind, n_spec, push_bytes;
    vkt_bind bind[VKT_MAX_BINDINGS]; /* entry i is binding i; t.id 0: binding unused by this variant */
    uint32_t spec[VKT_MAX_SPECS];    /* entry i is constant_id i; entry 0 the work-group size in x */
    uint32_t storage;                /* the bindings' vkt_precision, two bits each: abi/storage.abi.h */
    uint32_t groups[3];
    _Alignas(8) unsigned char push[VKT_EMIT_PUSH];
} vkt_dispatch;

/* A choice among variants that an op made for a node. */
typedef struct vkt_picked {
    uint32_t node;
    vkt_variant variant;
    uint64_t usable; /* what it chose among */
    uint64_t key;    /* what a tuned entry is found by: vkt_node_key, the precision, how the node's values are stored */
} vkt_picked;

#define VKT_KEY_MAX 96

/* See vkt_remember. */
typedef struct vkt_memory {
    unsigned char key[VKT_KEY_MAX]; /* zeros behind it */
    vkt_tensor t;
} vkt_memory;

struct vkt_emit {
    vkt_host host;
    const vkt_limits *lim;
    const vkt_graph *g;
    vkt_value *values;       /* the graph's, as this lowering stores them */
    vkt_precision precision; /* of the program */
    bool scaled;             /* the loss is scaled: the optimizer looks for overflow and takes the scale out again */
    vkt_result status;
    vkt_dispatch *list;
    size_t n, cap;
    vkt_value *extra; /* scratch and constants: ids follow those of the graph */
    size_t n_extra, cap_extra;
    vkt_picked *picked; /* in the order of the nodes' lowering */
    size_t n_picked, cap_picked;
    vkt_memory *memory;
    size_t n_memory, cap_memory;
    const vkt_node *node;
    const vkt_node *then; /* what is left to do to its output 0: see vkt_take */
    vkt_tensor relu;      /* dispatches that bind it store max(., 0) there; {0}: none */
};

/* Chooses among n >= 1 ways (vkt_variant_choose) for the node being lowered, and records the choice. This is the
 * one place that looks at the user's switches. A node may choose several times, among sets that share no variant. */
vkt_variant vkt_pick(vkt_emit *e, const vkt_way *ways, uint32_t n);
/* What tells a node's work from another's: op, attributes as bytes, shape, layout and type of inputs and outputs. Equal
 * for equal nodes of any graph, in every run. */
uint64_t vkt_node_key(const vkt_node *n);

/* Appends one dispatch. `bind` is indexed by binding number. A gx above limits.max_groups is cut: kernels stride over
 * x. They need not stride over y and z, whose counts above it are VKT_E_UNSUPPORTED. */
void vkt_dispatch_add(vkt_emit *e, uint16_t kernel, const vkt_bind *bind, uint32_t n_bind, const void *push,
                      size_t push_bytes, const uint32_t *spec, uint32_t n_spec, uint64_t gx, uint32_t gy, uint32_t gz);
/* Device memory that lives from the first dispatch that it is bound to, to the last: within this node's unless a later
 * node recalls it. */
vkt_tensor vkt_scratch(vkt_emit *e, const char *name, uint64_t bytes);
/* The same, of the type, layout and storage of `like` and another shape. */
vkt_tensor vkt_scratch_like(vkt_emit *e, const char *name, vkt_tensor like, vkt_shape shape);
/* Bytes that the program holds from its making on; copied. */
vkt_tensor vkt_emit_const(vkt_emit *e, const char *name, const void *data, uint64_t bytes);
/* Scratch that the dispatches so far have filled from values of the graph, for later nodes that would make the same
 * again. The key says all that its content depends on: ids of values, sizes, a kernel as the family's mark; at most
 * VKT_KEY_MAX bytes, none of them padding. Whatever is remembered is forgotten behind a node with side effects, which
 * may have changed values in place. {0}: unknown. */
vkt_tensor vkt_recall(const vkt_emit *e, const void *key, size_t bytes);
void vkt_remember(vkt_emit *e, const void *key, size_t bytes, vkt_tensor t);
void vkt_emit_error(vkt_emit *e, vkt_result r);
/* The node that follows within the one being lowered, if it is such a stage: its work is the caller's now. NULL: there
 * is none. What nobody takes has dispatches of its own, in place. */
const vkt_node *vkt_take(vkt_emit *e, vkt_stage stage);
static inline const vkt_value *vkt_node_in(const vkt_node *n, uint32_t i)
{
    return &n->g->values[n->in[i].id];
}
static inline const vkt_value *vkt_node_out(const vkt_node *n, uint32_t i)
{
    return &n->g->values[n->out[i].id];
}

/* What is stored in 16 bits, and as what. */
typedef struct vkt_storage {
    vkt_precision precision;
    const bool *half; /* by value id, an alias as its root; NULL: nothing is */
} vkt_storage;
/* Runs emit over the nodes in order, prologue nodes first; `live` (by node number, NULL: all) leaves dead ones out. On
 * VKT_OK the caller frees with vkt_lower_free. */
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
    float lo, hi;   /* f32: uniform in [lo, hi) */
    float grid;     /* f32: a power of two whose multiples the values are, so that sums of few products, and ties, are
                     * exact; 0: any */
    uint32_t bound; /* u32: uniform in [0, bound) */
    bool absent;    /* an optional input left out */
    bool distinct;  /* f32: all values differ by at least (hi - lo) / (2 n): no ties for maxima */
};
struct vkt_case {
    uint32_t n_in;
    vkt_case_input in[VKT_MAX_IN];
    _Alignas(8) unsigned char attr[512];
    size_t attr_bytes;
    uint32_t rows;  /* real rows of the step; 0: all */
    uint32_t first; /* where the step's batch starts in an order of rows */
    bool one_sign;  /* the gradient that the test starts from is in [0.5, 1): no sum of it cancels */
    char text[160]; /* the case in one line, its reproduction */
};
vkt_case_input *vkt_case_f32(vkt_case *c, vkt_layout layout, vkt_shape shape, float lo, float hi);
vkt_case_input *vkt_case_u32(vkt_case *c, vkt_layout layout, vkt_shape shape, uint32_t bound);
void vkt_case_absent(vkt_case *c);
void vkt_case_attr(vkt_case *c, const void *attr, size_t bytes);

/* ---- attributes as text: members that are not as usual, "stride=2,2 groups=3" ---- */
void vkt_attr_usual(const vkt_op *op, void *attr); /* attr is zeroed */
void vkt_attr_text(const vkt_op *op, const void *attr, vkt_text *t);
/* All members, with all digits. Call it between vkt_numbers_begin and vkt_numbers_end. */
void vkt_attr_text_exact(const vkt_op *op, const void *attr, vkt_text *t);
/* One member, "stride=2,2", into attr. VKT_E_FORMAT, logged with the names that the op knows. */
vkt_result vkt_attr_parse(const vkt_host *h, const vkt_op *op, const char *text, void *attr);

#endif
