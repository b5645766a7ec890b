/* readiness - makes the programs of networks and cases for the device that VK_DRIVER_FILES gives, and prints as JSON
 * what the driver's compiler made of them. Nothing runs: see compile_only.h. tests/gpu/readiness.sh calls this program.
 *
 *     readiness f32|f16|bf16|f32-split CASE...
 *
 * CASE: a network of `vkt-bench --list`, or an op in the syntax of samples/bench/case.h, forward and backward. The
 * engine chooses variants, tiles and work groups itself, as on a real device. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "audit/verify.h"
#include "bench/case.h"
#include "bench/nets.h"
#include "check/subject.h"
#include "compile_only.h"
#include "gpu/internal.h"
#include "kernel/kernel.h"
#include "record/record.h"

typedef struct report {
    vkt_ctx *ctx;
    vkt_precision precision;
    json_t *programs;  /* array */
    json_t *pipelines; /* name -> description */
} report;

/* Writes the name of a dispatch's pipeline: its kernel (with ".texel" for the texel variant), its constants,
 * and `storage` (abi/storage.abi.h) if it is not 0. */
static void name_pipeline(const vkt_dispatch *d, const vkt_pipeline *p, char *name, size_t size)
{
    size_t n =
        (size_t)snprintf(name, size, "%s%s", vkt_kernel_get((vkt_kernel_id)d->kernel)->name, p->texels ? ".texel" : "");
    for (uint32_t i = 0; i < d->n_spec && n < size; i++)
        n += (size_t)snprintf(name + n, size - n, "%c%u", i ? ',' : ' ', d->spec[i]);
    if (d->storage && n < size) snprintf(name + n, size - n, " storage %x", d->storage);
}

static json_t *dispatches_of(report *r, const vkt_program *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->lowered.n; i++) {
        const vkt_dispatch *d = &p->lowered.list[i];
        char name[128];
        name_pipeline(d, p->pipelines[i], name, sizeof name);
        if (!json_object_get(r->pipelines, name)) {
            json_t *described = compile_only_describe(r->ctx->device, p->pipelines[i]->handle);
            json_object_set_new(r->pipelines, name, described ? described : json_null());
        }
        const double groups = (double)d->groups[0] * d->groups[1] * d->groups[2];
        json_array_append_new(list,
                              json_pack("{s:s, s:i, s:s, s:s, s:f, s:i}", "op", p->g->nodes[d->node]->op->name, "node",
                                        (int)d->node, "kernel", vkt_kernel_get((vkt_kernel_id)d->kernel)->name,
                                        "pipeline", name, "groups", groups, "lanes", (int)d->spec[0]));
    }
    return list;
}

/* Returns the cost (vkt_node_cost) of each node that has dispatches. The keys are the indices of the nodes. */
static json_t *costs_of(const vkt_program *p)
{
    json_t *costs = json_object();
    for (size_t i = 0; i < p->lowered.n; i++) {
        char key[16];
        const uint32_t node = p->lowered.list[i].node;
        const vkt_cost c = vkt_node_cost(p->g->nodes[node]);
        snprintf(key, sizeof key, "%u", node);
        json_object_set_new(costs, key, json_pack("{s:f, s:f}", "flops", c.flops, "bytes", c.bytes));
    }
    return costs;
}

static void add_program(report *r, const char *name, bool network, const vkt_program *p)
{
    json_array_append_new(r->programs,
                          json_pack("{s:s, s:b, s:i, s:o, s:o}", "name", name, "network", network, "barriers",
                                    (int)p->plan.n_barriers, "dispatches", dispatches_of(r, p), "costs", costs_of(p)));
}

static vkt_result add_network(report *r, const bench_net *net)
{
    bench_step s;
    const vkt_result result = bench_step_create(r->ctx, net, r->precision, false, &s);
    if (result == VKT_OK) add_program(r, net->name, true, s.program);
    bench_step_destroy(&s);
    return result;
}

static vkt_result add_subject(report *r, const char *line, vkt_subject *s)
{
    vkt_store *store = NULL;
    vkt_program *p = NULL;
    const vkt_program_params params = { .name = "case", .precision = r->precision };
    vkt_phase_apply(s, (vkt_phase){ .forward = true, .grads = ~0u });
    vkt_result result = s->g->n_params ? vkt_store_create(r->ctx, s->g, &store) : VKT_OK;
    if (result == VKT_OK) result = vkt_program_create(r->ctx, s->g, store, &params, &p);
    if (result == VKT_OK) add_program(r, line, false, p);
    vkt_program_destroy(&p);
    vkt_store_destroy(&store);
    return result;
}

static vkt_result add_case(report *r, const char *line)
{
    const vkt_host h = vkt_ctx_host(r->ctx);
    const vkt_op *op;
    vkt_case c;
    vkt_subject s;
    VKT_TRY(bench_case_parse(&h, line, &op, &c));
    if (!op) return VKT_OK;
    vkt_result result = vkt_subject_of_case(&h, &s, op, &c, 1);
    if (result == VKT_OK) result = add_subject(r, line, &s);
    vkt_subject_free(&s);
    return result;
}

static bool read_precision(const char *text, vkt_precision *out)
{
    static const char *const names[] = {
        [VKT_PRECISION_F32] = "f32",
        [VKT_PRECISION_F16] = "f16",
        [VKT_PRECISION_BF16] = "bf16",
        [VKT_PRECISION_F32_SPLIT] = "f32-split",
    };
    for (size_t i = 0; i < VKT_COUNT(names); i++)
        if (text && names[i] && strcmp(text, names[i]) == 0) {
            *out = (vkt_precision)i;
            return true;
        }
    return false;
}

static void print(const report *r)
{
    const vkt_device_info *d = vkt_ctx_device(r->ctx);
    json_t *all = json_pack("{s:s, s:s, s:i, s:b, s:O, s:O}", "device", d->name, "driver", d->driver, "subgroup",
                            (int)r->ctx->limits.subgroup_size, "cooperative", r->ctx->limits.coop.m != 0, "programs",
                            r->programs, "pipelines", r->pipelines);
    json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(all);
}

int main(int argc, char **argv)
{
    report r = { 0 };
    const vkt_ctx_params params = { .no_pipeline_cache = true, .max_submission_ns = UINT64_MAX };
    const vkt_loader *loader = compile_only_loader();
    if (argc < 3 || !read_precision(argv[1], &r.precision)) {
        fputs("usage: readiness f32|f16|bf16|f32-split CASE...\n", stderr);
        return 2;
    }
    if (!loader || vkt_ctx_open(&params, NULL, loader, &r.ctx) != VKT_OK) return 1;
    r.programs = json_array();
    r.pipelines = json_object();
    int status = 0;
    for (int i = 2; i < argc; i++) {
        const bench_net *net = bench_nets;
        while (net->name && strcmp(net->name, argv[i]) != 0) net++;
        if ((net->name ? add_network(&r, net) : add_case(&r, argv[i])) == VKT_OK) continue;
        fprintf(stderr, "readiness: %s: no program could be made\n", argv[i]);
        status = 1;
    }
    print(&r);
    json_decref(r.programs);
    json_decref(r.pipelines);
    vkt_ctx_destroy(&r.ctx);
    return status;
}
