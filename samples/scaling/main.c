/* scaling/main.c - vkt-scaling: predicts the time of a data parallel step for many ranks. docs/scaling.md explains the
 * model. */
#include <argp.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "common/options.h"
#include "common/version.h"
#include "scaling/horovod.h"
#include "scaling/profile.h"
#include "vktrain/dist.h"

enum { OPT_ALPHA = 512, OPT_BETA, OPT_RANKS, OPT_ALGORITHM, OPT_CONTENTION, OPT_COPY, OPT_FUSE, OPT_HOROVOD };
enum { MOST_COUNTS = 64 };

static const char doc[] = "Predicts the time of a data parallel step, and its efficiency, for many ranks. PROFILE is a "
                          "JSON file: forward_ms, "
                          "backward_ms, update_ms, and buckets with bytes and ready_ms."
                          "\vWith --horovod, an option that is not given keeps Horovod's value, and --algorithm and "
                          "--ranks are refused. Exit status: 0, 1 the profile cannot be read, 2 the "
                          "command line is wrong.";

static const struct argp_option table[] = {
    { "alpha", OPT_ALPHA, "US", 0, "latency of a message in microseconds (10)", 1 },
    { "beta", OPT_BETA, "GB/S", 0, "bandwidth of a rank in each direction, 10^9 bytes per second (3.125: 25 Gbit/s)",
      1 },
    { "algorithm", OPT_ALGORITHM, "NAME", 0, "halving: recursive halving and doubling (default), or ring", 1 },
    { "contention", OPT_CONTENTION, "X", 0, "so many ranks share the bandwidth (1)", 1 },
    { "copy", OPT_COPY, "GB/S", 0, "the host copies each bucket to and from the device, at this rate (no copies)", 1 },
    { "fuse", OPT_FUSE, "MIB", 0, "exchange all buckets that are ready together, up to this size (one by one)", 1 },
    { "ranks", OPT_RANKS, "LIST", 0, "numbers of ranks, for instance 2,4,8 (powers of two up to 4096)", 1 },
    { "horovod", OPT_HOROVOD, 0, 0, "compare the model with Horovod's published efficiencies; needs no PROFILE", 1 },
    VERSION_OPTIONS,
    { 0 }
};

typedef struct options {
    const char *profile;
    bool horovod, has_algorithm, has_ranks;
    double alpha, beta; /* below 0: not given */
    scaling_network net;
    uint32_t ranks[MOST_COUNTS];
    size_t n_ranks;
} options;

static void read_ranks(struct argp_state *state, const char *text, options *o)
{
    o->n_ranks = 0;
    for (const char *at = text;; at++) {
        char *end;
        const unsigned long n = strtoul(at, &end, 10);
        if (!isdigit((unsigned char)*at) || (*end && *end != ',') || n < 1 || n > VKT_MAX_SHARDS ||
            o->n_ranks == MOST_COUNTS)
            argp_error(state, "--ranks: want at most %d integers from 1 to %d with commas, got '%s'", MOST_COUNTS,
                       VKT_MAX_SHARDS, text);
        o->ranks[o->n_ranks++] = (uint32_t)n;
        if (!*end) break;
        at = end;
    }
}

static scaling_algorithm algorithm_of(struct argp_state *state, const char *text)
{
    if (strcmp(text, "ring") != 0 && strcmp(text, "halving") != 0)
        argp_error(state, "--algorithm: want halving or ring, got '%s'", text);
    return *text == 'r' ? SCALING_RING : SCALING_HALVING;
}

/* Checks whether the options fit together. */
static void finish_options(struct argp_state *state, options *o)
{
    if (!o->horovod && !o->profile) argp_error(state, "want a PROFILE or --horovod");
    if (o->horovod && o->profile) argp_error(state, "--horovod has profiles of its own: leave out '%s'", o->profile);
    if (o->horovod && (o->has_algorithm || o->has_ranks))
        argp_error(state, "--horovod has an algorithm and numbers of ranks of its own: leave out --%s",
                   o->has_algorithm ? "algorithm" : "ranks");
    for (size_t i = 0; i < o->n_ranks; i++)
        if (!o->horovod && o->net.algorithm == SCALING_HALVING && o->ranks[i] & (o->ranks[i] - 1))
            argp_error(state, "--ranks: halving wants powers of two, got %u", o->ranks[i]);
}

static error_t on_option(int key, char *text, struct argp_state *state)
{
    options *o = state->input;
    switch (key) {
    case OPT_ALPHA: o->alpha = option_number(state, "alpha", text, 0, 1e9); break;
    case OPT_BETA: o->beta = option_number(state, "beta", text, 1e-6, 1e9); break;
    case OPT_ALGORITHM:
        o->net.algorithm = algorithm_of(state, text);
        o->has_algorithm = true;
        break;
    case OPT_CONTENTION: o->net.contention = option_number(state, "contention", text, 1, 1e6); break;
    case OPT_COPY: o->net.copy_gb_per_s = option_number(state, "copy", text, 1e-6, 1e9); break;
    case OPT_FUSE: o->net.fuse_bytes = option_number(state, "fuse", text, 0, 1e9) * 1024 * 1024; break;
    case OPT_RANKS:
        read_ranks(state, text, o);
        o->has_ranks = true;
        break;
    case OPT_HOROVOD: o->horovod = true; break;
    case ARGP_KEY_ARG:
        if (o->profile) return ARGP_ERR_UNKNOWN;
        o->profile = text;
        break;
    case ARGP_KEY_END: finish_options(state, o); break;
    default: return version_option(key, state);
    }
    return 0;
}

static void print_horovod(const options *o)
{
    scaling_network net = horovod_network();
    if (o->alpha >= 0) net.latency_us = o->alpha;
    if (o->beta > 0) net.gb_per_s = o->beta;
    net.contention = o->net.contention;
    net.copy_gb_per_s = o->net.copy_gb_per_s;
    net.fuse_bytes = o->net.fuse_bytes;
    printf("ring, alpha %.1f us, beta %.2f GB/s\n", net.latency_us, net.gb_per_s);
    printf("network       parameters  GPUs  published  model   difference\n");
    for (size_t c = 0; c < HOROVOD_CLUSTERS; c++)
        for (size_t i = 0; i < HOROVOD_NETWORKS; i++) {
            const horovod_case h = horovod_compare(&net, i, c);
            printf("%-12s  %8.1f M  %4u  %7.1f %%  %4.1f %%  %+5.1f\n", h.network, h.parameters * 1e-6, h.ranks,
                   100 * h.published, 100 * h.model, 100 * (h.model - h.published));
        }
}

static int print_profile(options *o)
{
    scaling_profile p;
    const bool good = scaling_read(o->profile, &p);
    double bytes = 0;
    if (o->alpha >= 0) o->net.latency_us = o->alpha;
    if (o->beta > 0) o->net.gb_per_s = o->beta;
    for (size_t i = 0; good && i < p.n_buckets; i++) bytes += p.buckets[i].bytes;
    if (good) {
        printf("one rank: forward %.2f ms, backward %.2f ms, update %.2f ms; %zu buckets, %.1f MB\n", p.forward_ms,
               p.backward_ms, p.update_ms, p.n_buckets, bytes * 1e-6);
        printf("%s, alpha %.1f us, beta %.3f GB/s\n", o->net.algorithm == SCALING_RING ? "ring" : "halving",
               o->net.latency_us, o->net.gb_per_s);
        printf("ranks   step ms  exposed ms  exposed  efficiency\n");
    }
    for (size_t i = 0; good && i < o->n_ranks; i++) {
        const scaling_step s = scaling_predict(&p, &o->net, o->ranks[i]);
        printf("%5u  %8.2f  %10.2f  %5.1f %%     %5.1f %%\n", o->ranks[i], s.step_ms, s.exposed_ms,
               s.step_ms > 0 ? 100 * s.exposed_ms / s.step_ms : 0, 100 * s.efficiency);
    }
    free(p.buckets);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct argp parser = { .options = table, .parser = on_option, .args_doc = "PROFILE\n--horovod", .doc = doc };
    options o = { .alpha = -1, .beta = -1, .net = { .latency_us = 10, .gb_per_s = 3.125 } };
    for (uint32_t n = 2; n <= 4096; n *= 2) o.ranks[o.n_ranks++] = n;
    parse_arguments(&parser, argc, argv, &o);
    int status = 0;
    if (o.horovod)
        print_horovod(&o);
    else
        status = print_profile(&o);
    return fflush(stdout) == 0 ? status : 1;
}
