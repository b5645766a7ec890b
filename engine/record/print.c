/* record/print.c - a program as text: graph, memory, dispatches and barriers. */
#include "record/record.h"

/* A node with several products has a choice of variant (vkt_picked) for each product. Returns whether choice i has the
 * variant and the tile of an earlier choice for the same node. */
static bool is_repeated(const vkt_program *p, size_t i)
{
    const vkt_picked *all = p->lowered.picked;
    for (size_t k = i; k-- > 0 && all[k].node == all[i].node;)
        if (all[k].variant == all[i].variant && memcmp(&all[k].tile, &all[i].tile, sizeof all[i].tile) == 0)
            return true;
    return false;
}

/* Appends the variants that were chosen for the node, with the tile if there is one: " by shared 64x64,8x4". */
static void picked_text(const vkt_program *p, uint32_t node, vkt_text *t)
{
    for (size_t i = 0; i < p->lowered.n_picked; i++) {
        const vkt_picked *picked = &p->lowered.picked[i];
        const vkt_tile tile = picked->tile;
        if (picked->node != node || is_repeated(p, i)) continue;
        vkt_text_add(t, " by %s", vkt_variant_name(picked->variant));
        if (tile.m) vkt_text_add(t, " %ux%u,%ux%u", tile.m, tile.n, tile.lane_m, tile.lane_n);
    }
}

static void graph_text(const vkt_program *p, vkt_text *t)
{
    const vkt_graph *g = p->g;
    char shape[80];
    vkt_text_add(t, "graph: %zu nodes, %zu parameters\n", g->n_nodes, g->n_params);
    for (size_t i = 0; i < g->n_params; i++) {
        const vkt_value *v = &g->values[g->params[i]];
        vkt_text_add(t, "  param %-20s %s\n", v->name, vkt_shape_text(v->shape, shape));
    }
    for (size_t i = 0; i < g->n_nodes; i++) {
        const vkt_node *n = g->nodes[i];
        vkt_text_add(t, "  %3zu %-16s", i, n->op->name);
        for (uint32_t k = 0; k < n->n_in; k++)
            vkt_text_add(t, "%s%s", k ? ", " : " ", n->in[k].id ? vkt_lowered_value(&p->lowered, n->in[k])->name : "-");
        for (uint32_t k = 0; k < n->n_out; k++) {
            const vkt_value *v = vkt_lowered_value(&p->lowered, n->out[k]);
            vkt_text_add(t, "%s%s %s %s%s%s", k ? ", " : " -> ", v->name, vkt_element_name(v),
                         vkt_shape_text(v->shape, shape), v->layout == VKT_BATCH_LAST ? " batch-last" : "",
                         v->alias ? " (alias)" : "");
        }
        picked_text(p, n->index, t);
        if (p->lowered.taken[i]) vkt_text_add(t, " as a companion");
        if (n->fused_into) vkt_text_add(t, " fused into %u", n->fused_into - 1);
        vkt_text_add(t, "\n");
    }
}

static const char *value_name(const vkt_program *p, uint32_t id)
{
    return vkt_lowered_value(&p->lowered, (vkt_tensor){ id })->name;
}

static void dispatches_text(const vkt_program *p, vkt_text *t)
{
    static const char *const hazards[] = { "reads", "overwrites what was read as", "overwrites" };
    vkt_text_add(t, "commands: %zu dispatches, %zu barriers between them (%zu in the order of the graph)\n",
                 p->lowered.n, p->plan.n_barriers, p->plan.emitted_barriers);
    if (p->again) vkt_text_add(t, "recomputed: %u of these run again instead of keeping what they made\n", p->again);
    size_t next = 0;
    uint32_t part = 0;
    for (size_t i = 0; i < p->lowered.n; i++) {
        const bool starts = part < p->parts[0].n && p->ends[part] == i; /* a submission also acts as a barrier */
        if (starts) vkt_text_add(t, "      ==== submission %u of %u\n", ++part + 1, p->parts[0].n);
        if (next < p->plan.n_barriers && p->plan.barriers[next].before == i) {
            const vkt_barrier *b = &p->plan.barriers[next++];
            if (!starts)
                vkt_text_add(t, "      ---- barrier: %zu %s %s (after %u)\n", i, hazards[b->hazard],
                             value_name(p, b->value), b->other);
        }
        const vkt_dispatch *d = &p->lowered.list[i];
        const vkt_access access = vkt_access_of(d);
        vkt_text_add(t, "  %3zu %-18s %5u x %u x %u  ", i, vkt_dispatch_name(d), d->groups[0], d->groups[1],
                     d->groups[2]);
        if (d->conditional) vkt_text_add(t, "if above %u ", d->above);
        for (uint32_t b = 0; b < d->n_bind; b++) {
            if (!d->bind[b].t.id) continue;
            const bool r = access.reads >> b & 1, w = access.writes >> b & 1;
            vkt_text_add(t, " %s:%s", r && w ? "rw" : w ? "w" : "r", value_name(p, d->bind[b].t.id));
        }
        vkt_text_add(t, "\n");
    }
}

static void program_text(const vkt_program *p, vkt_text *t)
{
    vkt_text_add(t, "program %s\n", p->name);
    graph_text(p, t);
    vkt_plan_text(&p->plan, &p->lowered, t);
    dispatches_text(p, t);
}

void vkt_program_log(const vkt_program *p)
{
    vkt_text t = { .h = &p->ctx->host };
    program_text(p, &t);
    if (!t.failed)
        for (char *line = t.s, *end; line && *line; line = end) {
            end = line + strcspn(line, "\n");
            vkt_log_line(&p->ctx->host, VKT_LOG_DEBUG, "%.*s", (int)(end - line), line);
            end += *end != 0;
        }
    vkt_text_free(&t);
}

vkt_result vkt_program_print(const vkt_program *p, char **text)
{
    VKT_WANT(NULL, text);
    *text = NULL;
    VKT_WANT(NULL, p);
    vkt_text t = { .h = &p->ctx->host };
    program_text(p, &t);
    return vkt_text_detach(&t, text);
}

void vkt_program_plan(const vkt_program *p, vkt_plan_info *out)
{
    if (!p || !out) return;
    *out = (vkt_plan_info){ .total_bytes = p->plan.packed_bytes,
                            .lower_bound_bytes = p->plan.lower_bound_bytes,
                            .dispatches = (uint32_t)p->lowered.n,
                            .barriers = (uint32_t)p->plan.n_barriers,
                            .recomputed = p->again,
                            .submissions = p->parts[0].n };
    out->bytes[VKT_MEM_ACTIVATIONS] = p->plan.packed_bytes + p->plan.input_bytes;
    out->bytes[VKT_MEM_SCRATCH] = p->plan.const_bytes;
    for (size_t i = 0; i < p->plan.n_blocks; i++)
        out->largest_buffer_bytes = VKT_MAX(out->largest_buffer_bytes, p->plan.block_bytes[i]);
}
