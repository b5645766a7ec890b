/* audit/report.c - see report.h. */
#include "audit/report.h"

#include <math.h>
#include <string.h>

#include "common/terminal.h"

static const char head[] = "   node  op              forward  differences  gradients, and what was audited\n";

void audit_report_begin(audit_report *r, const char *name, const char *what)
{
    r->entries = json_array();
    json_array_append_new(r->runs, json_pack("{s:s, s:s, s:o}", "name", name, "what", what, "entries", r->entries));
    fprintf(r->out, "%s: %s\n", name, what);
    if (!r->quiet) terminal_print(r->out, head);
}

/* ---- lines ---- */

/* Writes `excess`, an error divided by the allowed error, to `text`: as "NaN" if excess is NaN, as a percentage ("7%")
 * if excess is below 10, else as a factor ("x12"). Returns `text`. */
static const char *percent(double excess, char text[16])
{
    const double p = 100 * excess;
    if (isnan(excess))
        snprintf(text, 16, "NaN");
    else if (excess < 10)
        snprintf(text, 16, p < 1 && p > 0 ? "<1%%" : "%.0f%%", p);
    else
        snprintf(text, 16, "x%.3g", excess);
    return text;
}

static void gradients_text(const vkt_audit_entry *e, char *text, size_t bytes)
{
    char number[16];
    size_t n = 0;
    snprintf(text, bytes, "-");
    for (uint32_t i = 0; i < VKT_AUDIT_INPUTS && n < bytes; i++)
        if (e->gradients >> i & 1)
            n += (size_t)snprintf(text + n, bytes - n, "%sd%u %s", n ? " " : "", i, percent(e->gradient[i], number));
}

static void differences_text(const vkt_audit_entry *e, char text[48])
{
    char number[16];
    if (e->differences)
        snprintf(text, 48, "%s of %u", percent(e->difference, number), e->differences);
    else
        snprintf(text, 48, e->kinks ? "kinks" : "-");
}

static void print(audit_report *r, const vkt_audit_entry *e)
{
    char node[32], gradients[96], differences[48], forward[16], times[24];
    if (r->quiet && e->right) return;
    snprintf(node, sizeof node, strncmp(e->name, "seed ", 5) == 0 ? "%.0u%s" : "%u", e->node, e->name);
    snprintf(times, sizeof times, ", %u times", e->times);
    gradients_text(e, gradients, sizeof gradients);
    differences_text(e, differences);
    const char *reduced = e->reduced ? ", reduced" : "", *sampled = e->sampled ? ", random" : "";
    if (e->times <= 1) *times = 0;
    if (e->status == VKT_OK)
        terminal_printf(r->out, "%7s  %-15s %6s  %11s  %-22s %s%s%s%s\n", node, e->op, percent(e->forward, forward),
                        differences, gradients, e->text, times, reduced, sampled);
    else
        terminal_printf(r->out, "%7s  %-15s %-43s %s%s%s%s\n", node, e->op, "", e->text, times, reduced, sampled);
    if (!e->right) fprintf(r->out, "  WRONG: node %u, '%s': %s: %s\n", e->node, e->name, e->op, e->fault);
    fflush(r->out);
}

/* ---- JSON ---- */

/* Makes a JSON number of x, which is not negative. Infinity and NaN become 1e300, because JSON does not have them. */
static json_t *number(double x)
{
    return json_real(x <= 1e300 ? x : 1e300);
}

void audit_report_entry(void *user, const vkt_audit_entry *e)
{
    audit_report *r = user;
    char name[8];
    json_t *gradients = json_object();
    for (uint32_t i = 0; i < VKT_AUDIT_INPUTS; i++)
        if (e->gradients >> i & 1) {
            snprintf(name, sizeof name, "d%u", i);
            json_object_set_new(gradients, name, number(e->gradient[i]));
        }
    json_array_append_new(r->entries,
                          json_pack("{s:s, s:s, s:s, s:i, s:i, s:b, s:b, s:s, s:o, s:o, s:i, s:i, s:o, s:b, s:s}", "op",
                                    e->op, "name", e->name, "case", e->text, "node", (int)e->node, "times",
                                    (int)e->times, "cut", e->reduced, "sampled", e->sampled, "status",
                                    vkt_result_name(e->status), "forward", number(e->forward), "gradients", gradients,
                                    "differences", (int)e->differences, "kinks", (int)e->kinks, "difference",
                                    number(e->difference), "right", e->right, "fault", e->fault));
    print(r, e);
}

void audit_report_end(audit_report *r, const vkt_audit_totals *t, vkt_result status)
{
    json_t *run = json_array_get(r->runs, json_array_size(r->runs) - 1);
    const bool ended = status != VKT_OK && status != VKT_E_WRONG;
    json_object_set_new(run, "totals",
                        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "nodes", (int)t->nodes, "cases", (int)t->cases,
                                  "parts", (int)t->parts, "cut", (int)t->reduced, "sampled", (int)t->sampled, "failed",
                                  (int)t->failed));
    json_object_set_new(run, "status", json_string(vkt_result_name(status)));
    fprintf(r->out, "%u node%s, %u different", t->nodes, t->nodes == 1 ? "" : "s", t->cases);
    if (t->reduced) fprintf(r->out, ", %u of them reduced", t->reduced);
    if (t->sampled) fprintf(r->out, ", %u at random shapes", t->sampled);
    if (t->parts == 1)
        fprintf(r->out, "; 1 gradient or part of the step is audited with these");
    else if (t->parts)
        fprintf(r->out, "; %u gradients and parts of the step are audited with these", t->parts);
    fprintf(r->out, ": ");
    fprintf(r->out, t->failed ? "%u WRONG" : "all right", t->failed);
    if (ended) fprintf(r->out, ", but the audit ended early: %s", vkt_result_text(status));
    fprintf(r->out, "\n\n");
}
