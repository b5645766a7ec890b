/* audit/audit.c - see audit.h. */
#include "audit/audit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "audit/report.h"
#include "base/file.h"
#include "common/message.h"
#include "common/terminal.h"

#define REFERENCE_FLOPS_PER_S 3e8

typedef struct audit {
    const audit_options *o;
    const bench_net *nets;
    FILE *out;
    vkt_ctx *ctx;
    vkt_audit_params params;
    audit_report report;
    bool wrong;
} audit;

static const bench_net *find(const bench_net *nets, const char *name)
{
    while (nets->name && strcmp(nets->name, name) != 0) nets++;
    return nets->name ? nets : NULL;
}

static int list(const audit *a)
{
    fputs("networks\n", a->out);
    for (const bench_net *net = a->nets; net->name; net++) fprintf(a->out, "  %-16s %s\n", net->name, net->what);
    fputs("\nops (--all)\n", a->out);
    for (uint32_t i = 0; vkt_audit_op_name(i); i++) fprintf(a->out, "  %s\n", vkt_audit_op_name(i));
    return 0;
}

/* Ends the report of a network or of all ops. r is the result of this audit. If r is an error, sets a->wrong. If r is
 * VKT_E_WRONG (only numbers are wrong), returns VKT_OK, so that the audit continues. Otherwise returns r; an error ends
 * the audit. */
static vkt_result note(audit *a, const vkt_audit_totals *t, vkt_result r)
{
    audit_report_end(&a->report, t, r);
    a->wrong = a->wrong || r != VKT_OK;
    return r == VKT_E_WRONG ? VKT_OK : r;
}

static vkt_result audit_network(audit *a, const bench_net *net)
{
    bench_step step;
    vkt_audit_totals totals = { 0 };
    audit_report_begin(&a->report, net->name, net->what);
    vkt_result r = bench_step_graph(a->ctx, net, &step);
    if (r == VKT_OK) r = vkt_audit_graph(a->ctx, step.g, &a->params, &totals);
    bench_step_destroy(&step);
    return note(a, &totals, r);
}

static vkt_result audit_ops(audit *a)
{
    vkt_audit_totals totals = { 0 };
    vkt_result r = VKT_OK;
    uint32_t n = 0;
    audit_report_begin(&a->report, "ops", "random cases of each op");
    for (uint32_t i = 0; vkt_audit_op_name(i) && (r == VKT_OK || r == VKT_E_WRONG); i++) {
        const char *op = vkt_audit_op_name(i);
        if (a->o->filter && regexec(a->o->filter, op, 0, NULL, 0) != 0) continue;
        r = vkt_audit_op(a->ctx, op, a->o->seeds, &a->params, &totals);
        n++;
    }
    if (n == 0) {
        complain("--filter: want a part of an op's name, but no op matches: --list prints all names");
        return note(a, &totals, VKT_E_ARG);
    }
    return note(a, &totals, r == VKT_OK && totals.failed ? VKT_E_WRONG : r);
}

static vkt_result write_json(const audit *a)
{
    const vkt_host h = vkt_ctx_host(a->ctx);
    const vkt_device_info *device = vkt_ctx_device(a->ctx);
    json_t *arguments = json_array();
    char version[32], date[32];
    struct tm utc;
    const time_t now = time(NULL);
    for (int i = 1; i < a->o->argc; i++) json_array_append_new(arguments, json_string(a->o->argv[i]));
    snprintf(version, sizeof version, "%d.%d.%d", VKT_VERSION_MAJOR, VKT_VERSION_MINOR, VKT_VERSION_PATCH);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    json_t *root =
        json_pack("{s:s, s:s, s:s, s:o, s:{s:s, s:s, s:i}, s:b, s:O}", "schema", "vktrain-audit-1", "vktrain", version,
                  "date", date, "arguments", arguments, "device", "name", device->name, "driver", device->driver,
                  "subgroup_size", (int)device->subgroup_size, "right", !a->wrong, "runs", a->report.runs);
    char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(root);
    if (!text) return VKT_E_NOMEM;
    const vkt_result r = vkt_file_write(&h, a->o->json, text, strlen(text));
    free(text);
    return r;
}

static vkt_result run(audit *a, const vkt_host *host)
{
    VKT_TRY(vkt_ctx_create_wide(&(vkt_ctx_params){ .device = a->o->device }, host, &a->ctx));
    const vkt_device_info *device = vkt_ctx_device(a->ctx);
    if (a->o->json) VKT_TRY(vkt_try_output(host, a->o->json));
    terminal_printf(a->out, "%s, %s; errors in %% of what is allowed\n", device->name, device->driver);
    terminal_print(a->out,
                   "d0: gradient of the first input; differences: the worst of so many difference quotients\n\n");
    vkt_result r = VKT_OK;
    for (int i = 0; i < a->o->n_networks && r == VKT_OK; i++) r = audit_network(a, find(a->nets, a->o->networks[i]));
    if (a->o->all && r == VKT_OK) r = audit_ops(a);
    fflush(a->out); /* the JSON may go to the same terminal or pipe as a->out, and must come after the report */
    if (a->o->json) VKT_TRY(write_json(a));
    return r;
}

int audit_run(const audit_options *o, const bench_net *nets, const vkt_host *host, FILE *out)
{
    audit a = { .o = o, .nets = nets, .out = out, .report = { .out = out, .quiet = o->quiet } };
    if (o->list) return list(&a);
    for (int i = 0; i < o->n_networks; i++)
        if (!find(nets, o->networks[i])) {
            complain("there is no network '%s'; --list prints them", o->networks[i]);
            return 2;
        }
    a.report.runs = json_array();
    a.params = (vkt_audit_params){ .seed = o->seed,
                                   .max_cost = o->effort * REFERENCE_FLOPS_PER_S,
                                   .on_entry = audit_report_entry,
                                   .user = &a.report };
    const vkt_result r = run(&a, host);
    if (r != VKT_OK) complain_of_result(r);
    json_decref(a.report.runs);
    vkt_ctx_destroy(&a.ctx);
    return r != VKT_OK || a.wrong ? 1 : 0;
}
