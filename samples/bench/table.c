/* bench/table.c - see table.h. */
#include "bench/table.h"

#include <stdlib.h>

#include "base/terminal.h"
#include "common/terminal.h"

enum { BAR = 10, WIDEST_SHAPE = 58, NOISY = 25 };

/* Writes x with three digits. x is in units[0], and each unit is 1000 times the previous unit. The text has the first
 * unit in which the rounded number is below 1000. If there is no such unit, the text has the last unit. */
static const char *scaled(double x, const char *const *units, size_t n, char buf[16])
{
    size_t u = 0;
    while (x >= 999.5 && u + 1 < n) {
        x /= 1000;
        u++;
    }
    snprintf(buf, 16, "%.*f %s", x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x, units[u]);
    return buf;
}

const char *bench_time_text(double ns, char buf[16])
{
    static const char *const units[] = { "ns", "us", "ms", "s" };
    return scaled(ns, units, VKT_COUNT(units), buf);
}

const char *bench_rate_text(double per_s, char buf[16])
{
    static const char *const units[] = { "", "k", "M", "G", "T", "P" };
    return scaled(per_s, units, VKT_COUNT(units), buf);
}

/* ---- columns ---- */

typedef struct layout {
    FILE *out;
    const bench_roofline *roof;
    bool unicode, color, compare;
    int shape, variant; /* widths of the columns for shape and variant, in characters */
} layout;

static void bar(const layout *l, double percent)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    const int full = (int)VKT_MIN(percent, 100) * BAR / 100;
    const int rest = (int)(VKT_MIN(percent, 100) * BAR / 100 * 8) % 8;
    for (int i = 0; i < full; i++) fputs(l->unicode ? "█" : "#", l->out);
    if (l->unicode && full < BAR) fputs(eighths[rest], l->out);
    const int used = full + (l->unicode && full < BAR && rest > 0);
    fprintf(l->out, "%*s", BAR - used, "");
}

/* Returns half the distance between the quartiles, in percent of the median. */
static double spread(const bench_stat *t)
{
    return 50 * (t->q3 - t->q1) / t->median;
}

static void print_time(const layout *l, const bench_result *r)
{
    char time[16];
    const bench_stat *t = bench_time(r);
    if (r->check == BENCH_WRONG || !t->n) {
        fprintf(l->out, "%9s      ", r->check == BENCH_WRONG ? "WRONG" : "-");
        return;
    }
    fprintf(l->out, "%9s %s%2.0f%% ", bench_time_text(t->median, time), l->unicode ? "±" : "~", spread(t));
}

static void print_rate(const layout *l, double per_s, const char *unit)
{
    char rate[16];
    if (per_s > 0)
        fprintf(l->out, "%8s%-6s", bench_rate_text(per_s, rate), unit);
    else
        fprintf(l->out, "%8s%-6s", "-", "");
}

static void print_change(const layout *l, const bench_result *r)
{
    if (!l->compare) return;
    if (r->change.ratio <= 0)
        fputs("  new", l->out);
    else if (r->change.real == 0)
        fputs("  =", l->out);
    else
        fprintf(l->out, "  %s%.2fx %s%s", l->color ? (r->change.real < 0 ? "\033[32m" : "\033[31m") : "",
                r->change.real < 0 ? 1 / r->change.ratio : r->change.ratio, r->change.real < 0 ? "faster" : "slower",
                l->color ? "\033[0m" : "");
}

static const char *check_mark(const bench_result *r)
{
    switch (r->check) {
    case BENCH_CHECKED:
    case BENCH_CHECKED_STEP: return "checked";
    case BENCH_CHECKED_REDUCED: return "checked, reduced";
    case BENCH_WRONG: return "WRONG";
    case BENCH_UNCHECKED: break;
    }
    return "";
}

/* Prints the marks, for instance "checked, noisy". Noisy: the spread is so wide that the time is not reliable. */
static void print_marks(const layout *l, const bench_result *r)
{
    const bench_stat *t = bench_time(r);
    const char *check = check_mark(r);
    const bool noisy = r->check != BENCH_WRONG && t->n && spread(t) > NOISY;
    fprintf(l->out, " %s%s%s", check, noisy && *check ? ", " : "", noisy ? "noisy" : "");
}

/* Prints the line of an op's result. `before` is the result of the previous line. Leaves out the shape if both results
 * have the same case. Leaves out the phase if both results have the same case and phase. */
static void print_op(const layout *l, const bench_result *r, const bench_result *before)
{
    const bool same_case = before && strcmp(before->op, r->op) == 0 && strcmp(before->shape, r->shape) == 0;
    const bool same_phase = same_case && strcmp(before->phase, r->phase) == 0;
    fprintf(l->out, "  %-*.*s %-8s %-*s ", l->shape, l->shape, same_case ? "" : r->shape, same_phase ? "" : r->phase,
            l->variant, r->variant);
    fputs(r->preferred && *r->variant ? "* " : "  ", l->out);
    print_time(l, r);
    print_rate(l, bench_flops_per_s(r), "FLOP/s");
    print_rate(l, bench_bytes_per_s(r), "B/s");
    const double percent = bench_roof_percent(r, l->roof);
    fprintf(l->out, "%5.0f%% ", percent);
    bar(l, percent);
    print_marks(l, r);
    print_change(l, r);
    fputc('\n', l->out);
}

static void print_step(const layout *l, const bench_result *r)
{
    char host[16];
    const int width = l->shape + l->variant - 5;
    fprintf(l->out, "  %-14s %-*.*s ", r->op, width, width, r->shape);
    print_time(l, r);
    print_rate(l, bench_flops_per_s(r), "FLOP/s");
    fprintf(l->out, "%5.0f%% %s, host %s, memory %.2fx its bound", bench_roof_percent(r, l->roof), check_mark(r),
            bench_time_text(r->host_ns, host), (double)r->packed_bytes / (double)VKT_MAX(r->lower_bound_bytes, 1));
    print_change(l, r);
    fputc('\n', l->out);
}

static void print_micro(const layout *l, const bench_result *r)
{
    fprintf(l->out, "  %-14s %-*.*s ", r->op, l->shape + l->variant - 5, l->shape + l->variant - 5, r->shape);
    print_time(l, r);
    if (r->flops > 0) print_rate(l, bench_flops_per_s(r), "FLOP/s");
    if (r->bytes > 0) print_rate(l, bench_bytes_per_s(r), "B/s");
    print_change(l, r);
    fputc('\n', l->out);
}

/* ---- order ---- */

static size_t row_of(const char *op)
{
    size_t i = 0;
    while (vkt_ops[i] && strcmp(vkt_ops[i]->name, op) != 0) i++;
    return i;
}

/* Compares two results for qsort: first by kind (micro-measurements, training steps, ops), then results of ops by the
 * order of their ops in ops.def. All else being equal, the results keep their order in bench_results.list. */
static int in_order(const void *pa, const void *pb)
{
    const bench_result *a = *(const bench_result *const *)pa, *b = *(const bench_result *const *)pb;
    static const int rank[] = { [BENCH_MICRO] = 0, [BENCH_STEP] = 1, [BENCH_OP] = 2 };
    if (a->kind != b->kind) return rank[a->kind] - rank[b->kind];
    if (a->kind == BENCH_OP) {
        const size_t ra = row_of(a->op), rb = row_of(b->op);
        if (ra != rb) return ra < rb ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

static void heading(const layout *l, const bench_result *r, const bench_result *before)
{
    static const char *const titles[] = { [BENCH_MICRO] = "the device", [BENCH_STEP] = "training steps" };
    if (before && before->kind == r->kind && (r->kind != BENCH_OP || strcmp(before->op, r->op) == 0)) return;
    const char *title = r->kind == BENCH_OP ? r->op : titles[r->kind];
    fprintf(l->out, "%s%s%s%s\n", before ? "\n" : "", l->color ? "\033[1m" : "", title, l->color ? "\033[0m" : "");
}

static void print_one(const layout *l, const bench_result *r, const bench_result *before)
{
    heading(l, r, before);
    if (r->kind == BENCH_OP)
        print_op(l, r, before);
    else if (r->kind == BENCH_STEP)
        print_step(l, r);
    else
        print_micro(l, r);
}

/* Prints a result. Before the first micro-measurement, the first training step and the first result of each op, prints
 * a heading. Wraps lines that are wider than the terminal. */
static void print_fitting(FILE *out, const layout *l, const bench_result *r, const bench_result *before)
{
    char *text = NULL;
    size_t bytes;
    layout to = *l;
    to.out = open_memstream(&text, &bytes);
    if (!to.out) return;
    print_one(&to, r, before);
    if (fclose(to.out) == 0) terminal_print(out, text);
    free(text);
}

void bench_print(FILE *out, const bench_results *all)
{
    layout l = { .roof = &all->roof,
                 .unicode = vkt_terminal_unicode(),
                 .color = vkt_terminal_rewrites(out) && !(getenv("NO_COLOR") && *getenv("NO_COLOR")),
                 .shape = 20,
                 .variant = 7 };
    const bench_result **order = calloc(all->n + 1, sizeof *order);
    if (!order) return;
    for (size_t i = 0; i < all->n; i++) {
        const bench_result *r = order[i] = &all->list[i];
        l.shape = VKT_MAX(l.shape, VKT_MIN((int)strlen(r->shape), WIDEST_SHAPE));
        l.variant = VKT_MAX(l.variant, (int)strlen(r->variant));
        l.compare |= r->change.ratio > 0;
    }
    qsort(order, all->n, sizeof *order, in_order);
    for (size_t i = 0; i < all->n; i++) print_fitting(out, &l, order[i], i ? order[i - 1] : NULL);
    free(order);
}
