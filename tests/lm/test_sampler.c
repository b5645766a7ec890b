/* Tests how the sampler chooses a token: exact cases, a comparison with a full sort, and frequencies. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/philox.h"
#include "lm/sampler.h"
#include "support/host.h"

static vkt_sampler sampler_of(uint32_t n, double temperature, uint32_t top_k, double top_p, uint64_t seed)
{
    vkt_sampler s = {
        .host = vkt_test_host(), .n = n, .temperature = temperature, .top_p = top_p, .top_k = top_k, .seed = seed
    };
    assert_int_equal(vkt_sampler_init(&s), VKT_OK);
    return s;
}

static uint32_t choose(vkt_sampler *s, const float *logits, uint32_t draw)
{
    uint32_t id = UINT32_MAX;
    assert_int_equal(vkt_sampler_choose(s, logits, draw, &id), VKT_OK);
    return id;
}

static void greedy_takes_the_first_of_the_largest(void **state)
{
    (void)state;
    static const float logits[] = { -1, 3, -INFINITY, 3, 2 };
    vkt_sampler s = sampler_of(5, 0, 2, 0.5, 1);
    for (uint32_t draw = 0; draw < 20; draw++) assert_int_equal(choose(&s, logits, draw), 1);
    vkt_sampler_release(&s);
}

/* Returns which of the tokens 0 to 4 are chosen in 200 draws: bit i is set for token i. */
static uint32_t chosen(const float *logits, double temperature, uint32_t top_k, double top_p)
{
    uint32_t seen = 0;
    vkt_sampler s = sampler_of(5, temperature, top_k, top_p, 7);
    for (uint32_t draw = 0; draw < 200; draw++) seen |= 1u << choose(&s, logits, draw);
    vkt_sampler_release(&s);
    return seen;
}

static void filters_keep_what_they_should(void **state)
{
    (void)state;
    static const float even[] = { 1, 1, 1, 1, 1 }; /* each token has the probability 1/5 */
    assert_int_equal(chosen(even, 1, 0, 0), 31);
    assert_int_equal(chosen(even, 1, 5, 1), 31);
    assert_int_equal(chosen(even, 1, 9, 1), 31);
    assert_int_equal(chosen(even, 1, 2, 0), 3); /* of equal logits, the lower ids remain */
    assert_int_equal(chosen(even, 1, 1, 0), 1);
    assert_int_equal(chosen(even, 1, 0, 0.01), 1); /* the first token always remains */
    assert_int_equal(chosen(even, 1, 0, 0.41), 7); /* tokens 0 and 1 together have only 0.4 */
    assert_int_equal(chosen(even, 1, 0, 0.39), 3);
    assert_int_equal(chosen(even, 1, 2, 0.6), 3); /* top_k leaves two tokens, each with the probability 1/2 */
    assert_int_equal(chosen(even, 1, 2, 0.5), 1);
    static const float halves[] = { 0, 0.6931471805599453f, -INFINITY, 1.3862943611198906f, 0 }; /* weights 1 2 0 4 1 */
    assert_int_equal(chosen(halves, 1, 0, 0), 27);   /* -infinity is never chosen */
    assert_int_equal(chosen(halves, 1, 0, 0.49), 8); /* token 3 has 4 of 8, more than 0.49 */
    assert_int_equal(chosen(halves, 1, 0, 0.7), 10);
    assert_int_equal(chosen(halves, 1, 3, 0), 11);   /* tokens 0 and 4 have equal logits: token 0 remains */
    assert_int_equal(chosen(halves, 1e-9, 0, 0), 8); /* temperature near 0: only the largest logits are chosen */
    assert_int_equal(chosen(even, 1e-300, 0, 0), 31);
    /* The temperature is applied before top_p. At 1 the weights are 1 2 0 4 1: token 3 has 4 of 8, less than 0.55, so
     * token 1 remains too. At 0.5 the weights are 1 4 0 16 1: token 3 has 16 of 22, more than 0.55. */
    assert_int_equal(chosen(halves, 1, 0, 0.55), 10);
    assert_int_equal(chosen(halves, 0.5, 0, 0.55), 8);
}

static void numbers_that_are_none_are_refused(void **state)
{
    (void)state;
    const struct {
        float logits[3];
        const char *message;
    } cases[] = { { { 1, NAN, 2 }, "token 1" },
                  { { 1, 2, INFINITY }, "token 2" },
                  { { -INFINITY, -INFINITY, -INFINITY }, "all logits" } };
    for (int hot = 0; hot < 2; hot++) {
        vkt_sampler s = sampler_of(3, hot, 0, 0, 1);
        for (size_t i = 0; i < VKT_COUNT(cases); i++) {
            uint32_t id;
            vkt_test_expect_errors(true);
            assert_int_equal(vkt_sampler_choose(&s, cases[i].logits, 0, &id), VKT_E_NAN);
            vkt_test_error_contains(cases[i].message);
            vkt_test_expect_errors(false);
        }
        vkt_sampler_release(&s);
    }
}

/* ---- the definition of a choice, computed with a full sort ---- */

static const float *sorted_logits;

static int by_order(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (sorted_logits[x] != sorted_logits[y]) return sorted_logits[x] > sorted_logits[y] ? -1 : 1;
    return x < y ? -1 : 1;
}

/* Sets p[id] to the probability of each token (see vktrain/generate.h). Fills `order` with the ids, by decreasing
 * logit. Returns the number of tokens that top_k and top_p keep. */
static uint32_t reference(const float *logits, uint32_t n, double temperature, uint32_t top_k, double top_p, double *p,
                          uint32_t *order)
{
    double all = 0, sum = 0;
    for (uint32_t i = 0; i < n; i++) order[i] = i, p[i] = 0;
    sorted_logits = logits;
    qsort(order, n, sizeof *order, by_order);
    const double largest = (double)logits[order[0]];
    uint32_t rest = top_k && top_k < n ? top_k : n, kept = 0;
    for (uint32_t i = 0; i < rest; i++) all += p[order[i]] = exp(((double)logits[order[i]] - largest) / temperature);
    while (kept < rest && (top_p <= 0 || top_p >= 1 || sum < top_p * all)) sum += p[order[kept++]];
    for (uint32_t i = 0; i < n; i++) p[order[i]] = i < kept ? p[order[i]] / sum : 0;
    return kept;
}

enum { WORDS = 300, DRAWS = 20000 };

static const struct {
    double temperature;
    uint32_t top_k;
    double top_p;
} settings[] = { { 1, 0, 0 }, { 0.7, 0, 0.9 }, { 1.5, 40, 0 }, { 1, 20, 0.6 }, { 3, 0, 0.99 }, { 0.3, 7, 0.95 } };

/* Generates random logits. Each third logit is rounded, so that some logits are equal. */
static void draw_logits(uint32_t seed, float *logits)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 31, 0);
    for (uint32_t i = 0; i < WORDS; i++) {
        logits[i] = 2.5f * (float)vkt_rng_normal(&r);
        if (i % 3 == 0) logits[i] = roundf(logits[i]);
    }
}

static void each_choice_is_that_of_the_definition(void **state)
{
    (void)state;
    static float logits[WORDS];
    static double p[WORDS];
    static uint32_t order[WORDS];
    for (size_t k = 0; k < VKT_COUNT(settings); k++)
        for (uint32_t c = 0; c < 50; c++) {
            const uint64_t seed = 0x123456789ull * (c + 1);
            draw_logits(c, logits);
            vkt_sampler s = sampler_of(WORDS, settings[k].temperature, settings[k].top_k, settings[k].top_p, seed);
            const uint32_t kept =
                reference(logits, WORDS, settings[k].temperature, settings[k].top_k, settings[k].top_p, p, order);
            for (uint32_t draw = 0; draw < 20; draw++) {
                const vkt_philox w = vkt_philox4x32((vkt_philox){ { draw, 0, 0, 9 } }, seed);
                const double u = (double)w.w[0] * 0x1p-32 + (double)(w.w[1] >> 11) * 0x1p-53;
                double sum = 0;
                const uint32_t got = choose(&s, logits, draw);
                uint32_t i = 0;
                while (i < kept && order[i] != got) sum += p[order[i++]];
                assert_true(i < kept);
                /* u is the random number of this draw. It must be in the interval of the chosen token, which is from
                 * `sum` to `sum` + p[got], up to rounding. */
                assert_true(u > sum - 1e-12 && u < sum + p[got] + 1e-12);
            }
            vkt_sampler_release(&s);
        }
}

/* Compares the frequencies in DRAWS draws with the probabilities. `sum` is the chi-squared sum over the tokens that are
 * expected at least 8 times; `cells` counts these tokens. The mean of the sum is about `cells`. The variance of the
 * sum is about 2 * `cells`. The seed is fixed, so all runs have the same numbers. */
static void frequencies_are_the_probabilities(void **state)
{
    (void)state;
    static float logits[WORDS];
    static double p[WORDS];
    static uint32_t order[WORDS], count[WORDS];
    for (size_t k = 0; k < VKT_COUNT(settings); k++) {
        draw_logits(1000, logits);
        vkt_sampler s = sampler_of(WORDS, settings[k].temperature, settings[k].top_k, settings[k].top_p, 99);
        reference(logits, WORDS, settings[k].temperature, settings[k].top_k, settings[k].top_p, p, order);
        memset(count, 0, sizeof count);
        for (uint32_t draw = 0; draw < DRAWS; draw++) count[choose(&s, logits, draw)]++;
        double sum = 0, cells = 0;
        for (uint32_t i = 0; i < WORDS; i++) {
            const double want = DRAWS * p[i], by = (double)count[i] - want;
            if (p[i] == 0) assert_int_equal(count[i], 0);
            if (want < 8) continue;
            sum += by * by / want;
            cells++;
        }
        assert_true(cells >= 2);
        assert_true(fabs(sum - cells) < 4.5 * sqrt(2 * cells));
        vkt_sampler_release(&s);
    }
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, vkt_test_setup, vkt_test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(greedy_takes_the_first_of_the_largest), TEST(filters_keep_what_they_should),
        TEST(numbers_that_are_none_are_refused),     TEST(each_choice_is_that_of_the_definition),
        TEST(frequencies_are_the_probabilities),
    };
    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
