/* Tests the model of vkt-scaling: cases with a result in closed form, monotonicity, and Horovod's published
 * efficiencies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "scaling/horovod.h"
#include "scaling/layers.h"
#include "scaling/model.h"
#include "support/host.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

/* 1 GB/s: a million bytes take 1 ms. */
static const scaling_network slow = { .latency_us = 100, .gb_per_s = 1 };

static void one_rank_waits_for_nothing(void **state)
{
    (void)state;
    scaling_bucket b = { 1e9, 30 };
    const scaling_profile p = { 10, 20, 2, &b, 1 };
    const scaling_step s = scaling_predict(&p, &slow, 1);
    NEAR(s.step_ms, 32);
    NEAR(s.exposed_ms, 0);
    NEAR(s.efficiency, 1);
    assert_int_equal(s.exchanges, 0);
    NEAR(scaling_exchange_ms(&slow, 1e9, 1), 0);
}

static void an_exchange_is_latency_and_bytes(void **state)
{
    (void)state;
    scaling_network n = slow;
    NEAR(scaling_exchange_ms(&n, 8e6, 2), 2 * 0.1 + 8);
    NEAR(scaling_exchange_ms(&n, 8e6, 8), 6 * 0.1 + 14);
    NEAR(scaling_exchange_ms(&n, 0, 4096), 24 * 0.1);
    n.algorithm = SCALING_RING;
    NEAR(scaling_exchange_ms(&n, 8e6, 2), 2 * 0.1 + 8);
    NEAR(scaling_exchange_ms(&n, 8e6, 8), 14 * 0.1 + 14);
    n.contention = 4;
    NEAR(scaling_exchange_ms(&n, 8e6, 8), 14 * 0.1 + 4 * 14);
    n.copy_gb_per_s = 2;
    NEAR(scaling_exchange_ms(&n, 8e6, 8), 14 * 0.1 + 4 * 14 + 8);
    n.gb_per_s = 0;
    NEAR(scaling_exchange_ms(&n, 8e6, 8), 14 * 0.1 + 8);
}

static void one_bucket_behind_the_backward_pass_is_exposed(void **state)
{
    (void)state;
    scaling_bucket b = { 8e6, 30 };
    const scaling_profile p = { 10, 20, 2, &b, 1 };
    const scaling_step s = scaling_predict(&p, &slow, 8);
    NEAR(s.exposed_ms, 14.6);
    NEAR(s.step_ms, 46.6);
    NEAR(s.efficiency, 32 / 46.6);
    assert_int_equal(s.exchanges, 1);
}

static void early_buckets_are_hidden(void **state)
{
    (void)state;
    scaling_bucket b[] = { { 8e6, 10 }, { 1e6, 15 } }; /* their exchanges end at 24.6 and at 24.6 + 2.35 ms */
    scaling_profile p = { 10, 20, 2, b, 2 };
    NEAR(scaling_predict(&p, &slow, 8).exposed_ms, 0);
    NEAR(scaling_predict(&p, &slow, 8).efficiency, 1);
    p.backward_ms = 16; /* the backward pass ends at 26 ms, before the exchange of the second bucket ends */
    NEAR(scaling_predict(&p, &slow, 8).exposed_ms, 24.6 + 2.35 - 26);
}

static void buckets_at_the_end_are_all_exposed(void **state)
{
    (void)state;
    scaling_bucket b[] = { { 4e6, 30 }, { 4e6, 30 }, { 8e6, 30 } };
    const scaling_profile p = { 10, 20, 0, b, 3 };
    const scaling_step s = scaling_predict(&p, &slow, 2);
    NEAR(s.exposed_ms, 3 * 0.2 + 16);
    assert_int_equal(s.exchanges, 3);
}

static void ready_buckets_share_an_exchange(void **state)
{
    (void)state;
    scaling_bucket b[] = { { 4e6, 10 }, { 1e6, 11 }, { 1e6, 12 }, { 1e6, 13 }, { 1e6, 30 } };
    const scaling_profile p = { 10, 20, 0, b, 5 };
    scaling_network n = slow;
    /* Bucket 0 is exchanged from 10 to 14.2 ms. At 14.2 ms, buckets 1, 2 and 3 are ready. Buckets 1 and 2 share an
     * exchange until 16.4 ms. The exchange of bucket 3 ends at 17.6 ms. The exchange of bucket 4 begins at 30 ms. */
    n.fuse_bytes = 2e6;
    const scaling_step s = scaling_predict(&p, &n, 2);
    assert_int_equal(s.exchanges, 4);
    NEAR(s.exposed_ms, 1.2);
    n.fuse_bytes = 4e6; /* buckets 1, 2 and 3 share an exchange */
    assert_int_equal(scaling_predict(&p, &n, 2).exchanges, 3);
    n.fuse_bytes = 0;
    assert_int_equal(scaling_predict(&p, &n, 2).exchanges, 5);
}

static void buckets_are_filled_in_order(void **state)
{
    (void)state;
    scaling_bucket b[] = { { 3, 1 }, { 5, 2 }, { 20, 3 }, { 4, 4 }, { 6, 5 } };
    scaling_profile p = { 1, 4, 0, b, 5 };
    scaling_fill(&p, 10);
    assert_int_equal(p.n_buckets, 3);
    NEAR(b[0].bytes, 8);
    NEAR(b[0].ready_ms, 2);
    NEAR(b[1].bytes, 20);
    NEAR(b[2].bytes, 10);
    NEAR(b[2].ready_ms, 5);
}

static void more_ranks_and_worse_networks_are_no_faster(void **state)
{
    (void)state;
    scaling_bucket b[] = { { 4e6, 12 }, { 4e6, 18 }, { 4e6, 24 }, { 2e6, 30 } };
    const scaling_profile p = { 10, 20, 2, b, 4 };
    for (int ring = 0; ring < 2; ring++) {
        double last = 1;
        for (uint32_t ranks = 2; ranks <= 4096; ranks *= 2) {
            scaling_network n = { ring ? SCALING_RING : SCALING_HALVING, 20, 3, 0, 0, 0 };
            const scaling_step s = scaling_predict(&p, &n, ranks);
            assert_true(s.efficiency <= last && s.efficiency > 0);
            NEAR(s.step_ms, 32 + s.exposed_ms);
            last = s.efficiency;
            n.latency_us *= 2;
            assert_true(scaling_predict(&p, &n, ranks).step_ms > s.step_ms);
            n = (scaling_network){ n.algorithm, 20, 1.5, 0, 0, 0 };
            assert_true(scaling_predict(&p, &n, ranks).step_ms > s.step_ms);
            n = (scaling_network){ SCALING_HALVING, 20, 3, 0, 0, 0 };
            assert_true(scaling_predict(&p, &n, ranks).step_ms <= s.step_ms); /* halving sends the fewest messages */
        }
    }
}

/* The numbers of parameters of vgg16 and resnet101 are those of torchvision's documentation. For inception_v3 the
 * documentation has 27.2 million, which includes the auxiliary classifier. layers_inception_v3 leaves it out. */
static void layers_are_those_of_the_networks(void **state)
{
    (void)state;
    static void (*const of[])(layers *) = { layers_vgg16, layers_resnet101, layers_inception_v3 };
    static const double parameters[] = { 138357544, 44549160, 23834568 };
    static const size_t count[] = { 16, 105, 95 };
    for (size_t i = 0; i < 3; i++) {
        layers l;
        double sum = 0;
        of[i](&l);
        for (size_t k = 0; k < l.n; k++) sum += l.at[k].parameters;
        assert_int_equal(l.n, count[i]);
        NEAR(sum, parameters[i]);
    }
}

static void horovod_is_met_within_five_points(void **state)
{
    (void)state;
    static const double published[] = { 0.90, 0.90, 0.68 };
    const scaling_network n = horovod_network();
    assert_true(n.algorithm == SCALING_RING && n.gb_per_s < 25.0 / 8);
    for (size_t i = 0; i < HOROVOD_NETWORKS; i++) {
        const horovod_case h = horovod_compare(&n, i, 0);
        assert_int_equal(h.ranks, 512);
        NEAR(h.published, published[i]);
        assert_true(fabs(h.model - h.published) < 0.05);
    }
}

/* Returns the bandwidth, in percent of 25 Gbit/s, at which the model's efficiencies for 512 ranks are closest to the
 * published efficiencies. `points` gets model minus published for each network, in percentage points. */
static int fit(scaling_network n, double points[HOROVOD_NETWORKS])
{
    double best = INFINITY;
    int at = 0;
    for (int percent = 30; percent <= 100; percent++) {
        double squares = 0, now[HOROVOD_NETWORKS];
        n.gb_per_s = percent * 0.01 * 25 / 8;
        for (size_t i = 0; i < HOROVOD_NETWORKS; i++) {
            const horovod_case h = horovod_compare(&n, i, 0);
            now[i] = 100 * (h.model - h.published);
            squares += now[i] * now[i];
        }
        if (squares >= best) continue;
        best = squares;
        at = percent;
        memcpy(points, now, sizeof now);
    }
    return at;
}

static void the_fit_is_the_best_one(void **state)
{
    (void)state;
    double points[HOROVOD_NETWORKS];
    NEAR(fit(horovod_network(), points) * 0.01 * 25 / 8, horovod_network().gb_per_s);
}

/* Fits the bandwidth for each latency of `alphas`. In all cases, the efficiencies of the model differ from the
 * published ones by less than five percentage points. A table of docs/scaling.md has the results. */
static void alpha_decides_little(void **state)
{
    (void)state;
    static const char *const alphas[] = { "0", "6", "12.7", "20", "31" };
    const vkt_host h = vkt_test_host();
    void *document;
    size_t bytes;
    assert_int_equal(vkt_file_read(&h, VKT_TEST_DIR "/../docs/scaling.md", 1 << 20, &document, &bytes), VKT_OK);
    for (size_t i = 0; i < VKT_COUNT(alphas); i++) {
        double d[HOROVOD_NETWORKS];
        char row[80];
        scaling_network n = horovod_network();
        n.latency_us = strtod(alphas[i], NULL);
        const int percent = fit(n, d);
        for (size_t k = 0; k < HOROVOD_NETWORKS; k++) assert_true(fabs(d[k]) < 5);
        snprintf(row, sizeof row, "| %s us | %.2f | %+.1f | %+.1f | %+.1f |\n", alphas[i], percent * 0.01, d[0], d[1],
                 d[2]);
        if (!strstr(document, row)) fail_msg("docs/scaling.md does not have this row: %s", row);
    }
    vkt_free(&h, document);
    vkt_test_no_messages_and_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_waits_for_nothing),
        cmocka_unit_test(an_exchange_is_latency_and_bytes),
        cmocka_unit_test(one_bucket_behind_the_backward_pass_is_exposed),
        cmocka_unit_test(early_buckets_are_hidden),
        cmocka_unit_test(buckets_at_the_end_are_all_exposed),
        cmocka_unit_test(ready_buckets_share_an_exchange),
        cmocka_unit_test(buckets_are_filled_in_order),
        cmocka_unit_test(more_ranks_and_worse_networks_are_no_faster),
        cmocka_unit_test(layers_are_those_of_the_networks),
        cmocka_unit_test(horovod_is_met_within_five_points),
        cmocka_unit_test(the_fit_is_the_best_one),
        cmocka_unit_test(alpha_decides_little),
    };
    return cmocka_run_group_tests_name("the model of vkt-scaling", tests, NULL, NULL);
}
