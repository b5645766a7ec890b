/* bench/main.c - vkt-bench: measures the speed of ops, training steps and basic operations of vktrain on a device. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/terminal.h"
#include "bench/json.h"
#include "bench/micro.h"
#include "bench/nets.h"
#include "bench/plot.h"
#include "bench/steps.h"
#include "bench/table.h"
#include "bench/tune.h"
#include "common/message.h"
#include "common/outputs.h"
#include "common/terminal.h"

enum { OK = 0, FAILED = 1, SLOWER = 3 };

static int list(void)
{
    puts("ops (--sizes small, --shapes; measured as op forward, d0 = gradient of input 0, ...)");
    for (size_t i = 0; vkt_ops[i]; i++)
        printf("  %-16s %s%s%s\n", vkt_ops[i]->name, vkt_ops[i]->formula, vkt_ops[i]->sample ? "" : "; tested by ",
               vkt_ops[i]->sample      ? ""
               : vkt_ops[i]->tested_by ? vkt_ops[i]->tested_by
                                       : "steps");
    puts("\nvariants (--variant; VKT_NO_<NAME>=1 switches one off)");
    for (int v = 0; v < VKT_V_COUNT; v++)
        printf("  %-16s %s\n", vkt_variant_name((vkt_variant)v), vkt_variant_what((vkt_variant)v));
    puts("\nsteps (--sizes net, large; --tune)");
    for (const bench_net *net = bench_nets; net->name; net++) printf("  %-16s %s\n", net->name, net->what);
    puts("\nmicro\n  fma copy submit dispatch barrier upload readback pipeline first-step");
    return OK;
}

static vkt_result measure_all(bench *b)
{
    VKT_TRY(bench_run_roofline(b));
    if (!b->o->shapes && b->o->sizes == BENCH_SIZES_NET) VKT_TRY(bench_run_micro(b));
    if (!b->o->shapes && b->o->sizes != BENCH_SIZES_SMALL) VKT_TRY(bench_run_steps(b));
    return bench_run_ops(b);
}

static void print_device(const bench *b)
{
    char flops[16], bytes[16];
    terminal_printf(stdout, "%s, %s; at most %sFLOP/s and %sB/s here and now\n", b->ctx->info.name, b->ctx->info.driver,
                    bench_rate_text(b->results.roof.flops_per_s, flops),
                    bench_rate_text(b->results.roof.bytes_per_s, bytes));
    terminal_print(stdout, "shapes, (..)b with the batch last; d0: gradient of the first input; * the variant that the "
                           "engine chooses; median time and spread; % and bar: of what this device can do at most\n\n");
}

/* Writes the files and prints the table. Adds to *slower the number of results that are slower than in the file of
 * --compare by more than the noise (bench_change). */
static vkt_result write_all(bench *b, int *slower)
{
    const vkt_host *h = &b->ctx->host;
    size_t matched;
    char date[32];
    const time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    if (b->o->compare) VKT_TRY(bench_compare_with(h, b->o->compare, &b->results, &matched));
    for (size_t i = 0; i < b->results.n; i++) *slower += b->results.list[i].change.real > 0;
    const vkt_result written[] = {
        b->o->json ? bench_write_json(h, b->o->json, &b->results, b->o, &b->ctx->info, date) : VKT_OK,
        b->o->csv ? bench_write_csv(h, b->o->csv, &b->results) : VKT_OK,
        b->o->plot ? bench_plot(h, b->o->plot, &b->results, b->ctx->info.name) : VKT_OK,
    };
    print_device(b);
    bench_print(stdout, &b->results);
    if (b->o->compare)
        printf("\n%zu of %zu were in %s; %d are slower\n", matched, b->results.n, b->o->compare, *slower);
    for (size_t i = 0; i < VKT_COUNT(written); i++) VKT_TRY(written[i]);
    return VKT_OK;
}

/* Tests, before the measurements, whether the output files can be written, and whether the file of --compare can be
 * read. */
static vkt_result try_files(bench *b)
{
    size_t matched;
    const char *const paths[] = { b->o->json, b->o->csv, b->o->plot };
    for (size_t i = 0; i < VKT_COUNT(paths); i++)
        if (paths[i]) VKT_TRY(vkt_try_output(&b->ctx->host, paths[i]));
    return b->o->compare ? bench_compare_with(&b->ctx->host, b->o->compare, &b->results, &matched) : VKT_OK;
}

static vkt_result run(bench *b, int *slower)
{
    VKT_TRY(try_files(b));
    if (b->o->tune) return bench_tune(b);
    VKT_TRY(measure_all(b));
    if (vkt_terminal_rewrites(stderr)) fputs("\r\033[K", stderr);
    return write_all(b, slower);
}

int main(int argc, char **argv)
{
    bench_options o;
    int slower = 0;
    outputs_begin();
    setlocale(LC_CTYPE, "");
    bench_options_parse(&o, argc, argv);
    if (o.list) return list();
    bench b = { .o = &o };
    vkt_result r =
        vkt_ctx_create_wide(&(vkt_ctx_params){ .device = o.device }, &(vkt_host){ .log = message_log }, &b.ctx);
    if (r == VKT_OK) r = run(&b, &slower);
    if (r != VKT_OK) complain_of_result(r);
    if (b.failed) complain("%u experiments failed", b.failed);
    bench_results_free(&b.results);
    vkt_ctx_destroy(&b.ctx);
    return r != VKT_OK || b.failed ? FAILED : slower ? SLOWER : OK;
}
