/* train/ranks.c - comparisons of the ranks of a run. At the start of a fit, the ranks compare facts on which the bits
 * of the result depend (add_facts). Later they compare the weights from time to time. The file also has two small
 * exchanges: vkt_ranks_share and vkt_ranks_any. */
#include <inttypes.h>
#include <stdio.h>

#include "record/record.h"
#include "train/identity.h"

/* ---- the start of a fit ---- */

/* Continues hash `h` with a program's dispatches: their kernels, specialization constants and numbers of work
 * groups. */
static uint64_t hash_kernels(uint64_t h, const vkt_program *p)
{
    for (size_t i = 0; i < p->lowered.n; i++) {
        const vkt_dispatch *d = &p->lowered.list[i];
        h = vkt_hash(h, &d->kernel, sizeof d->kernel);
        h = vkt_hash(h, d->spec, d->n_spec * sizeof d->spec[0]);
        h = vkt_hash(h, d->groups, sizeof d->groups);
    }
    return h;
}

static vkt_result hash_weights(vkt_trainer *t, uint64_t *hash)
{
    VKT_TRY(vkt_trainer_get(t, VKT_PART_VALUE, t->weights));
    *hash = vkt_hash(VKT_HASH_START, t->weights, vkt_store_elements(t->store) * sizeof *t->weights);
    return VKT_OK;
}

/* Returns the array of value i in this rank's context if the ranks compare this array, else NULL. The ranks do not
 * compare an array that the graph writes. The array may have copies in other contexts. If the host or the application
 * may write to the memory of the array or of a copy, the ranks do not compare the array. */
static const vkt_array *compared_array(const vkt_trainer *t, uint32_t i)
{
    const vkt_value *v = &t->g->values[i];
    if (v->role != VKT_ROLE_EXTERNAL || v->alias || v->written || !v->array) return NULL;
    const vkt_array *a = v->array;
    do {
        if (a->buffer->lent || a->buffer->mapped) return NULL;
        a = a->next;
    } while (a && a != v->array);
    return vkt_array_in(v->array, t->ctx);
}

/* Computes the hash of the graph's arrays (vkt_external_array) that the ranks compare, for instance a model's frozen
 * weights. */
static vkt_result hash_arrays(const vkt_trainer *t, uint64_t *hash)
{
    *hash = VKT_HASH_START;
    for (uint32_t i = 1; i < t->g->n_values; i++) {
        const vkt_array *a = compared_array(t, i);
        uint32_t k = 1;
        while (a && k < i && compared_array(t, k) != a) k++;
        if (a && k == i) VKT_TRY(vkt_array_hash(a, hash)); /* once, even if several graph values share the array */
    }
    return VKT_OK;
}

/* Adds this rank's facts, as lines "name=value" (like the settings in identity.h). */
static vkt_result add_facts(vkt_trainer *t, const vkt_fit_params *p, vkt_text *x)
{
    const vkt_device_info *device = vkt_ctx_device(t->ctx);
    const vkt_position *at = &t->at;
    uint64_t weights, arrays, kernels = hash_kernels(VKT_HASH_START, t->program);
    VKT_TRY(vkt_identity_compute(t));
    VKT_TRY(hash_weights(t, &weights));
    VKT_TRY(hash_arrays(t, &arrays));
    kernels = hash_kernels(kernels, t->shards.update);
    vkt_text_add(x, "library=%d.%d.%d\ndevice=%s\ndriver=%s\nsubgroup size=%u\nranks=%u\nbuckets=%u\ncheck_every=%u\n",
                 VKT_VERSION_MAJOR, VKT_VERSION_MINOR, VKT_VERSION_PATCH, device->name, device->driver,
                 t->ctx->limits.subgroup_size, t->shards.ranks, t->shards.x.n, t->params.dist.check_every);
    vkt_text_add(x, "kernels=#%016" PRIx64 "\n%s%s", kernels, t->run_lines, t->rate_lines);
    vkt_text_add(x, "network=#%016" PRIx64 "\n", vkt_hash(VKT_HASH_START, t->graph_lines, strlen(t->graph_lines)));
    vkt_text_add(x, "seed=%" PRIu64 "\nstep=%" PRIu64 "\nepoch=%u\nbatch of the epoch=%u\nweights=#%016" PRIx64 "\n",
                 t->params.seed, at->t, at->epoch, at->batch, weights);
    vkt_text_add(x, "arrays of the model=#%016" PRIx64 "\n", arrays);
    vkt_text_add(x, "epochs=%u\npatience=%u\nmonitor=%d\nmin_delta=%a\ncheckpoint=%d\ncheckpoint_every=%" PRIu64 "\n",
                 p->epochs, p->patience, (int)p->monitor, p->min_delta, p->checkpoint != NULL, p->checkpoint_every);
    vkt_text_add(x, "allow_nonfinite=%d\n", p->allow_nonfinite);
    /* The attached texts (vkt_trainer_attach) are in the trainer that the caller made. In a replica (replicas.c),
     * `first` points to this trainer. */
    vkt_attachments_hash(&(t->first ? t->first : t)->attached, x);
    return x->failed ? vkt_fail_nomem(&t->host, "what ranks compare", x->len) : VKT_OK;
}

/* Returns VKT_E_STATE on all ranks. Rank 0 logs the differences between the facts of rank 0 and the facts of the first
 * rank that differs. `texts` has the facts of each rank, in `room` bytes each. Some rank must differ from rank 0. */
static vkt_result report(const vkt_trainer *t, const char *texts, size_t room)
{
    char name[24];
    uint32_t other = 1;
    while (strcmp(texts, texts + other * room) == 0) other++; /* the loop ends, because some rank differs */
    snprintf(name, sizeof name, "rank %u", other);
    vkt_differences d = { .text.h = &t->host, .was = "rank 0", .is = name };
    vkt_compare_settings(texts, texts + other * room, &d);
    if (t->shards.rank == 0)
        (void)vkt_fail(&t->host, VKT_E_STATE, "fit: the ranks are not alike, so their bits would differ: %s",
                       vkt_differences_text(&d));
    vkt_text_free(&d.text);
    return VKT_E_STATE;
}

/* The hash of a rank's facts, and their length in bytes, with the final NUL. */
typedef struct digest {
    uint64_t hash, bytes;
} digest;

static vkt_result compare(vkt_trainer *t, const vkt_text *mine, digest *all)
{
    const vkt_transport *transport = t->params.dist.transport;
    const uint32_t ranks = t->shards.ranks, rank = t->shards.rank;
    all[rank] = (digest){ vkt_hash(VKT_HASH_START, mine->s, mine->len), mine->len + 1 };
    VKT_TRY(vkt_all_gather(transport, all, sizeof *all));
    bool alike = true;
    size_t room = 0;
    for (uint32_t i = 0; i < ranks; i++) {
        alike = alike && all[i].hash == all[0].hash;
        room = VKT_MAX(room, (size_t)all[i].bytes);
    }
    if (alike) return VKT_OK;
    char *texts = vkt_alloc_array(&t->host, ranks, room);
    if (!texts) return vkt_fail_nomem(&t->host, "what ranks compare", ranks * room);
    memcpy(texts + rank * room, mine->s, mine->len + 1);
    vkt_result r = vkt_all_gather(transport, texts, room);
    if (r == VKT_OK) r = report(t, texts, room);
    vkt_free(&t->host, texts);
    return r;
}

vkt_result vkt_ranks_compare(vkt_trainer *t, const vkt_fit_params *p)
{
    if (t->shards.ranks == 1) return VKT_OK;
    vkt_text mine = { .h = &t->host };
    digest *all = vkt_alloc_array(&t->host, t->shards.ranks, sizeof *all);
    vkt_result r = all ? add_facts(t, p, &mine) : vkt_fail_nomem(&t->host, "ranks", t->shards.ranks * sizeof *all);
    if (r == VKT_OK) r = compare(t, &mine, all);
    vkt_text_free(&mine);
    vkt_free(&t->host, all);
    return r;
}

/* ---- during a fit ---- */

/* Returns the most common value. If several values are equally common, returns the first of these in `values`. */
static uint64_t most_common(const uint64_t *values, uint32_t n)
{
    uint32_t best = 0, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t equal = 0;
        for (uint32_t k = 0; k < n; k++) equal += values[k] == values[i];
        if (equal > most) {
            most = equal;
            best = i;
        }
    }
    return values[best];
}

/* Returns VKT_E_PEER on all ranks if hashes differ. Rank 0 logs the ranks whose hash is not the most common one. */
static vkt_result check_hashes(const vkt_trainer *t, uint64_t step, const uint64_t *all)
{
    const uint32_t n = t->shards.ranks;
    const uint64_t usual = most_common(all, n);
    vkt_text names = { .h = &t->host };
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < n; i++)
        if (all[i] != usual) vkt_text_add(&names, "%s%u", wrong++ ? ", " : "", i);
    if (wrong && t->shards.rank == 0)
        (void)vkt_fail(&t->host, VKT_E_PEER,
                       "fit: step %" PRIu64 ": the weights of rank %s differ from those of %s: memory or arithmetic of "
                       "a device is at fault. The run ends; resume its last checkpoint",
                       step, names.s ? names.s : "?", n == 2 ? "rank 0 (one of the two is right)" : "most ranks");
    vkt_text_free(&names);
    return wrong ? VKT_E_PEER : VKT_OK;
}

vkt_result vkt_ranks_compare_weights(vkt_trainer *t, uint64_t step)
{
    const uint32_t n = t->shards.ranks;
    uint64_t *all = vkt_alloc_array(&t->host, n, sizeof *all);
    if (!all) return vkt_fail_nomem(&t->host, "hashes", n * sizeof *all);
    vkt_result r = hash_weights(t, &all[t->shards.rank]);
    if (r == VKT_OK) r = vkt_all_gather(t->params.dist.transport, all, sizeof *all);
    if (r == VKT_OK) r = check_hashes(t, step, all);
    vkt_free(&t->host, all);
    return r;
}

vkt_result vkt_ranks_share(vkt_trainer *t, void *data, size_t bytes)
{
    const uint32_t n = t->shards.ranks;
    if (n == 1) return VKT_OK;
    char *all = vkt_alloc_array(&t->host, n, bytes);
    if (!all) return vkt_fail_nomem(&t->host, "ranks", n * bytes);
    memcpy(all + t->shards.rank * bytes, data, bytes);
    const vkt_result r = vkt_all_gather(t->params.dist.transport, all, bytes);
    if (r == VKT_OK) memcpy(data, all, bytes);
    vkt_free(&t->host, all);
    return r;
}

vkt_result vkt_ranks_any(vkt_trainer *t, bool mine, bool *any)
{
    const uint32_t n = t->shards.ranks;
    *any = mine;
    if (n == 1) return VKT_OK;
    uint32_t *all = vkt_alloc_array(&t->host, n, sizeof *all);
    if (!all) return vkt_fail_nomem(&t->host, "ranks", n * sizeof *all);
    all[t->shards.rank] = mine;
    const vkt_result r = vkt_all_gather(t->params.dist.transport, all, sizeof *all);
    for (uint32_t i = 0; i < n; i++) *any |= all[i] != 0;
    vkt_free(&t->host, all);
    return r;
}
