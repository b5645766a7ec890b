/* ops/step/when.c - dispatches that need to run only if a counter on the device is large enough: vkt_when_begin in
 * ops.h. */
#include "ops/ops.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/dispatch_counts.abi.h"

vkt_when vkt_when_begin(vkt_emit *e, vkt_tensor counter)
{
    return (vkt_when){ .counter = counter, .first = e->n };
}

void vkt_when_above(vkt_emit *e, uint32_t above)
{
    e->conditional = true;
    e->above = above;
}

/* Moves the last dispatch to position `to`. */
static void move_last(vkt_emit *e, size_t to)
{
    const vkt_dispatch last = e->list[e->n - 1];
    memmove(&e->list[to + 1], &e->list[to], (e->n - 1 - to) * sizeof *e->list);
    e->list[to] = last;
}

/* Adds the dispatch that writes `counts`: for each of the n conditional dispatches, its numbers of work groups in x, y
 * and z, or three zeros if the dispatch need not run. Moves the new dispatch in front of the conditional dispatches. */
static void add_counts(vkt_emit *e, const vkt_when *w, vkt_tensor table, vkt_tensor counts, uint32_t n)
{
    const vkt_dispatch_counts_push pc = { .n = n };
    const uint32_t spec[] = { vkt_lanes(e->lim, e->lim->traits->lanes_gather) };
    const vkt_bind bind[] = {
        [COUNTS_TABLE] = VKT_WHOLE(table), [COUNTS_COUNTER] = VKT_WHOLE(w->counter), [COUNTS_OUT] = VKT_WHOLE(counts)
    };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_DISPATCH_COUNTS,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(pc),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { vkt_groups(n, spec[0], 1), 1, 1 } });
    if (e->status == VKT_OK) move_last(e, w->first);
}

void vkt_when_end(vkt_emit *e, const vkt_when *w)
{
    e->conditional = false;
    const size_t last = e->n;
    size_t n = 0;
    for (size_t i = w->first; i < last; i++) n += e->list[i].conditional;
    if (e->status != VKT_OK || n == 0) return;
    uint32_t *rows = vkt_alloc_array(&e->host, n, 4 * sizeof *rows);
    if (!rows) {
        vkt_emit_error(e, vkt_fail_nomem(&e->host, "conditional dispatches", n * 4 * sizeof *rows));
        return;
    }
    const vkt_tensor counts = vkt_scratch(e, "counts", 12 * (uint64_t)n);
    size_t row = 0;
    for (size_t i = w->first; i < last && e->status == VKT_OK; i++) {
        vkt_dispatch *d = &e->list[i];
        if (!d->conditional) continue;
        memcpy(rows + 4 * row, d->groups, sizeof d->groups);
        rows[4 * row + 3] = d->above;
        d->counts = (uint32_t)(3 * row++);
        d->bind[d->n_bind++] = (vkt_bind){ .t = counts, .bytes = vkt_lowered_value(e, counts)->bytes };
    }
    const vkt_tensor table = vkt_emit_const(e, "table", rows, n * 4 * sizeof *rows);
    vkt_free(&e->host, rows);
    add_counts(e, w, table, counts, (uint32_t)n);
}
