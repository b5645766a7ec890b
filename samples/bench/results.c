/* bench/results.c - see results.h. */
#include "bench/results.h"

#include <stdio.h>
#include <stdlib.h>

const char *bench_name(const bench_result *r, char buf[320])
{
    static const char *const prefix[] = { [BENCH_OP] = "", [BENCH_STEP] = "step ", [BENCH_MICRO] = "micro " };
    snprintf(buf, 320, "%s%s%s%s%s%s%s%s%s", prefix[r->kind], r->op, *r->phase ? " " : "", r->phase,
             *r->shape ? " " : "", r->shape, *r->variant ? " [" : "", r->variant, *r->variant ? "]" : "");
    return buf;
}

bool bench_add(bench_results *all, const bench_result *r)
{
    if (all->n == all->cap) {
        const size_t cap = all->cap ? 2 * all->cap : 64;
        bench_result *list = realloc(all->list, cap * sizeof *list);
        if (!list) return false;
        all->list = list;
        all->cap = cap;
    }
    all->list[all->n++] = *r;
    return true;
}

void bench_results_free(bench_results *all)
{
    free(all->list);
    *all = (bench_results){ .list = NULL };
}

bool bench_is_free(const vkt_node *n)
{
    return !n->op->side_effect && n->n_out && vkt_node_out(n, 0)->alias && !n->fused_into;
}

const bench_stat *bench_time(const bench_result *r)
{
    return r->gpu.n && r->kind != BENCH_STEP ? &r->gpu : &r->wall;
}

static double per_second(double amount, const bench_result *r)
{
    const bench_stat *t = bench_time(r);
    return t->n && t->median > 0 ? amount / t->median * 1e9 : 0;
}

double bench_flops_per_s(const bench_result *r)
{
    return per_second(r->flops, r);
}

double bench_bytes_per_s(const bench_result *r)
{
    return per_second(r->bytes, r);
}

double bench_roof_percent(const bench_result *r, const bench_roofline *roof)
{
    if (roof->flops_per_s <= 0 || roof->bytes_per_s <= 0) return 0;
    const double arithmetic = bench_flops_per_s(r) / roof->flops_per_s,
                 memory = bench_bytes_per_s(r) / roof->bytes_per_s;
    return 100 * VKT_MAX(arithmetic, memory);
}

bool bench_memory_bound(const bench_result *r, const bench_roofline *roof)
{
    return r->bytes * roof->flops_per_s > r->flops * roof->bytes_per_s;
}

const char *bench_check_text(bench_check c)
{
    static const char *const texts[] = { [BENCH_UNCHECKED] = "unchecked",
                                         [BENCH_CHECKED] = "checked",
                                         [BENCH_CHECKED_REDUCED] = "checked-cut",
                                         [BENCH_CHECKED_STEP] = "checked-step",
                                         [BENCH_WRONG] = "wrong" };
    return (unsigned)c < VKT_COUNT(texts) ? texts[c] : "?";
}
