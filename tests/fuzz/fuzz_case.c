/* Reads cases of ops as text, in the syntax of bench/case.h. Parses each of the first eight lines, unless it is longer
 * than 511 bytes. Makes a graph of the case, adds the gradients and lowers the graph for two simulated devices, unless
 * the values are too large. Each binding of a dispatch must be within the bytes of its value. If a case is small, the
 * double-precision reference also computes it with random data. */
#include "bench/case.h"
#include "check/subject.h"
#include "fuzz/fuzz.h"

#define MAX_COST 3e5            /* the reference computes only cases of at most this many arithmetic operations */
#define MAX_BYTES 1e9           /* a case whose values have more bytes in total is not lowered */
#define SMALL_BINDING_BYTES 1e8 /* a case of more bytes is not lowered for devices[1], whose bindings are small */

static const vkt_limits devices[] = {
    { .subgroup_size = 8,
      .max_workgroup_lanes = 1024,
      .max_groups = 65535,
      .max_push_bytes = 256,
      .shared_bytes = 32768,
      .max_storage_range_bytes = 128 << 20,
      .max_texel_elements = 128 << 20,
      .max_allocation_bytes = 2u << 30,
      .traits = &vkt_class_traits[VKT_CLASS_CPU] },
    { .subgroup_size = 32,
      .max_workgroup_lanes = 128,
      .max_groups = 65535,
      .max_push_bytes = 128,
      .shared_bytes = 16384,
      .max_storage_range_bytes = 1 << 20,
      .max_allocation_bytes = 1 << 30,
      .traits = &vkt_class_traits[VKT_CLASS_OTHER] },
};

static void check_bindings(const vkt_emit *e)
{
    for (size_t i = 0; i < e->n; i++)
        for (uint32_t k = 0; k < e->list[i].n_bind; k++) {
            const vkt_bind *b = &e->list[i].bind[k];
            if (!b->t.id) continue;
            const uint64_t all = vkt_lowered_value(e, b->t)->bytes;
            fuzz_require(b->offset_bytes <= all && b->bytes <= all - b->offset_bytes, "a binding behind its value");
        }
}

static void lower(const vkt_graph *g, double bytes)
{
    for (size_t i = 0; i < VKT_COUNT(devices); i++) {
        vkt_emit e;
        if (i && bytes > SMALL_BINDING_BYTES) continue;
        if (vkt_lower(g, &devices[i], NULL, (vkt_storage){ .precision = VKT_PRECISION_F32 }, &e) != VKT_OK) continue;
        check_bindings(&e);
        vkt_lower_free(&e);
    }
}

static double bytes_of(const vkt_graph *g)
{
    double sum = 0;
    for (size_t i = 0; i < g->n_values; i++) sum += (double)g->values[i].bytes;
    return sum;
}

/* Builds the graph of a case and lowers it. Then adds an input for the gradient of each f32 output, adds the nodes that
 * compute the gradients of the differentiable f32 inputs, and lowers the graph again. */
static void build(const vkt_op *op, const vkt_case *c)
{
    vkt_graph *g;
    vkt_tensor in[VKT_MAX_IN] = { { 0 } }, out[VKT_MAX_OUT], seed[VKT_MAX_OUT], grad[VKT_MAX_IN];
    uint32_t n = 0;
    if (vkt_graph_create(fuzz_host(), &g) != VKT_OK) return;
    for (uint32_t i = 0; i < c->n_in; i++)
        if (!c->in[i].absent) in[i] = vkt_input(g, "in", c->in[i].dtype, c->in[i].layout, c->in[i].shape);
    vkt_tensor all[VKT_MAX_OUT];
    vkt_apply(g, op, in, c->n_in, c->attr, all);
    if (g->status == VKT_OK) (void)vkt_node_cost(g->nodes[g->n_nodes - 1]);
    if (g->status == VKT_OK && bytes_of(g) <= MAX_BYTES) {
        lower(g, bytes_of(g));
        for (uint32_t i = 0; i < VKT_MAX_OUT; i++) {
            const vkt_value *v = vkt_value_of(g, all[i]);
            if (!all[i].id || v->dtype != VKT_F32) continue;
            out[n] = all[i];
            seed[n++] = vkt_input(g, "dy", VKT_F32, v->layout, v->shape);
        }
        uint32_t n_wrt = 0;
        for (uint32_t i = 0; i < c->n_in; i++)
            if (in[i].id && c->in[i].dtype == VKT_F32 && (op->diff >> i & 1)) in[n_wrt++] = in[i];
        if (n && n_wrt && vkt_gradients(g, out, seed, n, in, n_wrt, grad) == VKT_OK) lower(g, bytes_of(g));
    }
    vkt_graph_destroy(&g);
}

static void refer(const vkt_op *op, const vkt_case *c)
{
    vkt_subject s;
    double cost;
    if (vkt_case_cost(fuzz_host(), op, c, &cost) != VKT_OK || !(cost <= MAX_COST)) return;
    if (vkt_subject_of_case(fuzz_host(), &s, op, c, 1) == VKT_OK) {
        vkt_subject_forward(&s);
        vkt_subject_backward(&s);
    }
    vkt_subject_free(&s);
}

static void line(const char *text)
{
    const vkt_op *op;
    vkt_case c;
    const vkt_result r = bench_case_parse(fuzz_host(), text, &op, &c);
    fuzz_require(r == VKT_OK || r == VKT_E_FORMAT || r == VKT_E_NOMEM, "a status that tells nothing of the line");
    fuzz_require(r == VKT_OK || !op, "an op behind a failure");
    if (!op) return;
    char again[160];
    vkt_case_text(fuzz_host(), op, &c, again);
    build(op, &c);
    refer(op, &c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[512];
    for (size_t at = 0, lines = 0; at < size && lines < 8; lines++) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        const size_t n = end ? (size_t)(end - data) - at : size - at;
        if (n < sizeof text) {
            memcpy(text, data + at, n);
            text[n] = 0;
            line(text);
        }
        at += n + 1;
    }
    fuzz_end();
    return 0;
}
