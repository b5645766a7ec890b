/* bench/tune.c - see tune.h. */
#include "bench/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/measure.h"
#include "bench/table.h"
#include "kernel/tuning.h"
#include "ops/product/blocks.h"

/* A variant replaces the preferred variant only if its time is below this fraction of the preferred variant's time. A
 * smaller difference may be noise. */
#define WORTH 0.97

/* The nodes of a network that have the same key in the tuning file (vkt_picked.key) and can use the same variants. One
 * variant is chosen for all of them. */
typedef struct choice {
    uint64_t key, usable;
    vkt_variant preferred;
    uint32_t nodes; /* number of these nodes in one step */
    char what[160];
    double ns[VKT_V_COUNT];     /* by variant: the sum of the times of these nodes; 0: not timed */
    vkt_tile tile[VKT_V_COUNT]; /* by variant: the argument `tile` of time_step when ns[] was measured; all 0: the nodes
                                 * used the tiles that they prefer */
    double now;                 /* the sum of the times of these nodes in the step that is being measured */
    vkt_variant variant;        /* the variant that these nodes use in that step */
    vkt_tile used;              /* the tile that these nodes use in that step */
} choice;

typedef struct tuning {
    bench *b;
    bench_time_fn time;
    choice *list;
    size_t n, cap;
    uint64_t usable; /* set of the variants that at least one node can use, without those that the user switched off */
} tuning;

/* ---- timing ---- */

/* Is the bench_time_fn of bench_tune. The time of a node is the sum of the medians of its dispatches. */
static vkt_result time_nodes(bench *b, const bench_step *s, double *node_ns)
{
    enum { ROUNDS = 15 };
    vkt_program *p = s->program;
    const uint32_t n = (uint32_t)p->lowered.n;
    vkt_kernel_time *times = calloc(n, sizeof *times);
    double *samples = calloc((size_t)n * ROUNDS, sizeof *samples);
    vkt_result r = times && samples ? VKT_OK : VKT_E_NOMEM;
    const uint64_t start = vkt_now_ns();
    uint32_t rounds = 0, got;
    while (r == VKT_OK && rounds < ROUNDS && (rounds < 4 || vkt_now_ns() - start < 20 * b->o->min_ns)) {
        r = vkt_program_profile(p, &s->run, times, n, &got);
        for (uint32_t i = 0; i < n; i++) samples[i * ROUNDS + rounds] = (double)(times[i].end_ns - times[i].start_ns);
        rounds++;
    }
    for (uint32_t i = 0; i < n && r == VKT_OK; i++)
        node_ns[p->lowered.list[i].node] += bench_stat_of(samples + i * ROUNDS, rounds).median;
    free(times);
    free(samples);
    return r;
}

static void describe(const vkt_node *n, char out[160])
{
    size_t at = (size_t)snprintf(out, 160, "%s", n->op->name);
    char shape[80];
    for (uint32_t i = 0; i < n->n_in && at < 160; i++)
        if (n->in[i].id)
            at += (size_t)snprintf(out + at, 160 - at, " %s", vkt_shape_text(vkt_node_in(n, i)->shape, shape));
}

static choice *find(tuning *t, const vkt_node *n, const vkt_picked *p)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].key == p->key && t->list[i].usable == p->usable) return &t->list[i];
    if (t->n == t->cap) {
        const size_t cap = t->cap ? 2 * t->cap : 32;
        choice *list = realloc(t->list, cap * sizeof *list);
        if (!list) return NULL;
        t->list = list;
        t->cap = cap;
    }
    choice *c = &t->list[t->n++];
    *c = (choice){ .key = p->key, .usable = p->usable, .preferred = p->variant };
    describe(n, c->what);
    return c;
}

/* Returns the choice that has the key of *p and can use the variant of *p. NULL: there is no such choice. p->usable may
 * differ from choice.usable, because the `tile` of time_step may change which variants a node can use. */
static choice *find_measured(tuning *t, const vkt_picked *p)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].key == p->key && t->list[i].usable >> p->variant & 1) return &t->list[i];
    return NULL;
}

/* Copies the time of each choice in the measured step from `now` to `ns` of the variant that its nodes used, and sets
 * `now` to 0. If `tile` is all 0, copies all times. For any other tile, copies a time only if the nodes used this tile,
 * and if the variant has no time yet, or the new time is below WORTH times the old time. */
static void take_times(tuning *t, vkt_tile tile)
{
    for (size_t i = 0; i < t->n; i++) {
        choice *c = &t->list[i];
        double *ns = &c->ns[c->variant];
        const bool own = tile.m == 0, counts = c->now > 0 && (own || vkt_tile_is(c->used, tile));
        if (counts && (own || *ns == 0 || c->now < WORTH * *ns)) {
            *ns = c->now;
            c->tile[c->variant] = tile;
        }
        c->now = 0;
    }
}

/* Measures a step and adds the times of its nodes to the choices. `force` is a set of one variant, or 0. Nodes use this
 * variant if they can, and only choices that can use this variant get a time. If `force` is 0, nodes use the variants
 * that they prefer, and the nodes of each choice are counted. `tile`: nodes use this tile if they can. If `tile` is all
 * 0, nodes use the tiles that they prefer. */
static vkt_result time_step(tuning *t, const bench_net *net, uint64_t force, vkt_tile tile)
{
    bench_step s;
    vkt_ctx *ctx = t->b->ctx;
    ctx->limits.choices.force = force;
    ctx->limits.choices.tile = tile;
    vkt_result r = bench_step_create(ctx, net, t->b->o->precision, true, &s);
    ctx->limits.choices.force = 0;
    ctx->limits.choices.tile = (vkt_tile){ 0 };
    double *node_ns = r == VKT_OK ? calloc(s.g->n_nodes, sizeof *node_ns) : NULL;
    if (r == VKT_OK) r = node_ns ? t->time(t->b, &s, node_ns) : VKT_E_NOMEM;
    for (size_t i = 0; r == VKT_OK && i < s.program->lowered.n_picked; i++) {
        const vkt_picked *p = &s.program->lowered.picked[i];
        const bool counts = !force || (p->usable & force); /* a choice without the forced variant gets no time */
        choice *c = !counts ? NULL : tile.m ? find_measured(t, p) : find(t, s.g->nodes[p->node], p);
        if (counts && !c && !tile.m) r = VKT_E_NOMEM;
        if (c) {
            c->now += node_ns[p->node];
            c->variant = p->variant;
            c->used = p->tile;
        }
        if (c && !force) c->nodes++;
        if (!force) t->usable |= p->usable & ~ctx->limits.choices.off;
    }
    if (r == VKT_OK) take_times(t, tile);
    free(node_ns);
    bench_step_destroy(&s);
    return r;
}

/* ---- deciding ---- */

static vkt_variant best_of(const choice *c)
{
    vkt_variant best = c->preferred;
    for (int v = 0; v < VKT_V_COUNT; v++)
        if (c->ns[v] > 0 && c->ns[v] < WORTH * c->ns[c->preferred] && c->ns[v] < c->ns[best]) best = (vkt_variant)v;
    return best;
}

static void print_choice(const choice *c)
{
    char a[16];
    if ((c->usable & (c->usable - 1)) == 0) return; /* at most one variant is usable */
    printf("%ux %s\n   ", c->nodes, c->what);
    for (int v = 0; v < VKT_V_COUNT; v++)
        if (c->ns[v] > 0) {
            const vkt_tile t = c->tile[v];
            printf(" %s", vkt_variant_name((vkt_variant)v));
            if (t.m) printf(" %ux%u,%ux%u", t.m, t.n, t.lane_m, t.lane_n);
            printf(" %s%s", bench_time_text(c->ns[v], a), best_of(c) == (vkt_variant)v ? " <-" : "");
        }
    putchar('\n');
}

/* Prints the choices, and writes their best variants to the tuning file. Choices with the same key share one entry of
 * the file: the entry has the best variant of each of these choices. */
static vkt_result keep(tuning *t)
{
    vkt_tuned *entries = calloc(t->n + 1, sizeof *entries);
    size_t n = 0;
    if (!entries) return VKT_E_NOMEM;
    for (size_t i = 0; i < t->n; i++) {
        size_t k = 0;
        while (k < n && entries[k].key != t->list[i].key) k++;
        n += k == n;
        entries[k].key = t->list[i].key;
        entries[k].variants |= (uint64_t)1 << best_of(&t->list[i]);
        if (t->list[i].tile[best_of(&t->list[i])].m) entries[k].tile = t->list[i].tile[best_of(&t->list[i])];
        print_choice(&t->list[i]);
    }
    const vkt_result r = vkt_tuning_add(t->b->ctx, entries, n);
    free(entries);
    char *path = NULL;
    if (r == VKT_OK && vkt_tuning_path(t->b->ctx, &path) == VKT_OK) printf("\n%zu entries written to %s\n", n, path);
    vkt_free(&t->b->ctx->host, path);
    return r;
}

/* Measures all tiles of the variants that have several tiles. Does nothing on devices without the trait shared_pays
 * (CPU devices), which need seconds to compile each kernel of these variants. */
static vkt_result time_tiles(tuning *t, const bench_net *net)
{
    static const vkt_variant variants[] = { VKT_V_SHARED, VKT_V_SPLIT_K, VKT_V_COOP, VKT_V_COOP2 };
    if (!t->b->ctx->limits.traits->shared_pays) return VKT_OK;
    for (size_t v = 0; v < VKT_COUNT(variants); v++)
        for (uint32_t i = 0; t->usable >> variants[v] & 1 && vkt_blocks_tile_at(i).m; i++)
            VKT_TRY(time_step(t, net, (uint64_t)1 << variants[v], vkt_blocks_tile_at(i)));
    return VKT_OK;
}

vkt_result bench_tune_net(bench *b, const bench_net *net, bench_time_fn time)
{
    tuning t = { .b = b, .time = time };
    /* The tuning file must not be read: its choices would replace the preferred variants. */
    b->ctx->has_read_tuning = true;
    b->ctx->limits.choices.n_tuned = 0;
    printf("%s: %s\n", net->name, net->what);
    bench_progress(b, net->name);
    const vkt_tile own = { 0 };
    vkt_result r = time_step(&t, net, 0, own);
    for (int v = 0; v < VKT_V_COUNT && r == VKT_OK; v++)
        if (t.usable >> v & 1) r = time_step(&t, net, (uint64_t)1 << v, own);
    if (r == VKT_OK) r = time_tiles(&t, net);
    if (r == VKT_OK) r = keep(&t);
    free(t.list);
    return r;
}

vkt_result bench_tune(bench *b)
{
    bool found = false;
    if (b->ctx->timestamp_period_ns == 0)
        return vkt_fail(&b->ctx->host, VKT_E_UNSUPPORTED, "tune: this device has no timestamps");
    for (const bench_net *net = bench_nets; net->name; net++) {
        if (strcmp(b->o->tune, "all") == 0 ? net->large : strcmp(b->o->tune, net->name) != 0) continue;
        found = true;
        VKT_TRY(bench_tune_net(b, net, time_nodes));
    }
    return found ? VKT_OK
                 : vkt_fail(&b->ctx->host, VKT_E_NOT_FOUND, "tune: there is no network '%s' (vkt-bench --list)",
                            b->o->tune);
}
