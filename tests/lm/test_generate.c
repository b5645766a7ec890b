/* Tests the generation of text: the logits with a cache equal those of the network without a cache, up to rounding.
 * Also tests random numbers, adapters, errors, and SmolLM2. */
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "base/philox.h"
#include "train/rig.h"
#include "vktrain/generate.h"
#include "vktrain/tokenizer.h"

#define OK(call) assert_int_equal(call, VKT_OK)

enum { WORDS = 272 }; /* the vocabulary of the models in golden/lm */

static const char *const architectures[] = { "llama", "qwen2", "qwen3" };
static const char *const targets[] = { "q_proj", "v_proj", "down_proj" };
static const vkt_lora_params lora = { .targets = targets, .n_targets = VKT_COUNT(targets), .rank = 4, .alpha = 8 };

static vkt_lm *open_lm(const rig *r, const char *path)
{
    vkt_gguf *file;
    vkt_lm *lm;
    OK(vkt_gguf_open(&r->h, path, &file));
    OK(vkt_lm_create(r->ctx, file, &lm));
    vkt_gguf_destroy(&file);
    return lm;
}

static vkt_lm *open_tiny(const rig *r, const char *architecture)
{
    char path[512];
    snprintf(path, sizeof path, VKT_TEST_DIR "/golden/lm/%s.gguf", architecture);
    return open_lm(r, path);
}

static vkt_generator *generator_of(const rig *r, const vkt_lm *lm, vkt_generator_params p)
{
    vkt_generator *g;
    OK(vkt_generator_create(r->ctx, lm, &p, &g));
    return g;
}

static void draw_ids(uint32_t *ids, uint32_t n, uint32_t words)
{
    vkt_rng r = vkt_rng_make(5, VKT_STREAM_TEST, 32, 0);
    for (uint32_t i = 0; i < n; i++) ids[i] = vkt_rng_range(&r, 0, words - 1);
}

/* The network for n tokens without a cache. */
typedef struct whole {
    vkt_graph *g;
    vkt_store *store; /* NULL without adapters */
    vkt_program *p;
    vkt_tensor ids, logits;
} whole;

/* Makes the program, and a store with random adapters if `adapters`. */
static whole whole_of(const rig *r, const vkt_lm *lm, uint32_t n, bool adapters)
{
    whole w = { .g = NULL };
    vkt_builder *b;
    OK(vkt_graph_create(&r->h, &w.g));
    OK(vkt_builder_create(w.g, false, &b));
    if (adapters) vkt_builder_set_lora(b, &lora);
    w.ids = vkt_input(w.g, "ids", VKT_U32, VKT_ROWS, vkt_shape2(1, n));
    w.logits = vkt_lm_logits(b, lm, vkt_lm_hidden(b, lm, w.ids, NULL));
    vkt_keep(w.g, w.logits);
    OK(vkt_graph_status(w.g));
    if (adapters) OK(vkt_store_create(r->ctx, w.g, &w.store));
    for (uint32_t i = 0; adapters && i < vkt_store_count(w.store); i++) {
        vkt_rng rng = vkt_rng_make(6, VKT_STREAM_TEST, 33, i);
        const size_t count = vkt_shape_elements(vkt_store_shape(w.store, i));
        float *x = test_malloc(count * sizeof *x);
        for (size_t k = 0; k < count; k++) x[k] = vkt_rng_uniform(&rng, -0.2f, 0.2f);
        OK(vkt_store_write(w.store, i, VKT_PART_VALUE, x));
        test_free(x);
    }
    OK(vkt_program_create(r->ctx, w.g, w.store, NULL, &w.p));
    vkt_builder_destroy(&b);
    return w;
}

static void run_whole(const whole *w, const uint32_t *ids, float *logits)
{
    const vkt_shape s = vkt_tensor_shape(w->g, w->logits);
    OK(vkt_program_write(w->p, w->ids, ids, 4ull * s.dim[1]));
    OK(vkt_program_run(w->p, NULL, NULL));
    OK(vkt_program_read(w->p, w->logits, logits, 4ull * s.dim[1] * s.dim[2]));
}

static void free_whole(whole *w)
{
    vkt_program_destroy(&w->p);
    vkt_store_destroy(&w->store);
    vkt_graph_destroy(&w->g);
}

/* Compares the generator's logits after token `at` with `all`, the logits of the network without a cache. The two
 * programs add float32 products in different orders: up to 256 products in each of 15 layers. The tolerance, 2e-5 of
 * the largest logit, is about 340 roundings of 2^-24. */
static void same_logits(vkt_generator *g, const float *all, uint32_t at)
{
    float got[WORDS], largest = 0;
    const float *want = all + (size_t)at * WORDS;
    OK(vkt_generator_logits(g, got, WORDS));
    for (uint32_t i = 0; i < WORDS; i++) largest = fmaxf(largest, fabsf(want[i]));
    assert_true(largest > 0);
    for (uint32_t i = 0; i < WORDS; i++)
        if (!(fabsf(got[i] - want[i]) <= 2e-5f * largest))
            fail_msg("behind token %u: logit %u is %g, want %g", at, i, (double)got[i], (double)want[i]);
}

/* ---- the cache ---- */

enum { TOKENS = 41 };

static void check_cache(const rig *r, const char *architecture, bool adapters)
{
    static float all[TOKENS * WORDS];
    uint32_t ids[TOKENS];
    vkt_lm *lm = open_tiny(r, architecture);
    whole w = whole_of(r, lm, TOKENS, adapters);
    draw_ids(ids, TOKENS, WORDS);
    run_whole(&w, ids, all);
    static const uint32_t chunks[] = { 1, 6, 16, 64 };
    for (size_t c = 0; c < VKT_COUNT(chunks); c++) {
        vkt_generator *g = generator_of(r, lm,
                                        (vkt_generator_params){ .store = w.store,
                                                                .lora = adapters ? &lora : NULL,
                                                                .context = c % 2 ? 0 : TOKENS,
                                                                .chunk = VKT_MIN(chunks[c], TOKENS) });
        for (int twice = 0; twice < 2; twice++) {   /* the second time, the cache has the rows of the first time */
            for (uint32_t i = 0; i < TOKENS; i++) { /* token by token */
                OK(vkt_generator_feed(g, ids + i, 1));
                if (i % 5 == 0 || i + 1 == TOKENS) same_logits(g, all, i);
            }
            OK(vkt_generator_reset(g));
        }
        for (uint32_t i = 0, n; i < TOKENS; i += n) { /* in pieces of 1, 2, 5, 9, 18 and 6 tokens */
            n = VKT_MIN(i + 1 + i / 2 % 4, TOKENS - i);
            OK(vkt_generator_feed(g, ids + i, n));
            same_logits(g, all, i + n - 1);
        }
        OK(vkt_generator_reset(g));
        OK(vkt_generator_feed(g, ids, TOKENS));
        same_logits(g, all, TOKENS - 1);
        assert_int_equal(vkt_generator_length(g), TOKENS);
        vkt_generator_destroy(&g);
    }
    free_whole(&w);
    vkt_lm_destroy(&lm);
}

static void logits_are_those_of_the_whole_sequence(void **state)
{
    rig *r = rig_of(state);
    for (size_t i = 0; i < VKT_COUNT(architectures); i++) check_cache(r, architectures[i], false);
}

static void adapters_are_applied(void **state)
{
    rig *r = rig_of(state);
    check_cache(r, "llama", true);
    vkt_lm *lm = open_tiny(r, "llama");
    whole w = whole_of(r, lm, 3, true);
    static const uint32_t ids[] = { 7, 200, 31 };
    float with[WORDS], without[WORDS];
    vkt_generator *a = generator_of(r, lm, (vkt_generator_params){ .store = w.store, .lora = &lora });
    vkt_generator *b = generator_of(r, lm, (vkt_generator_params){ .context = 0 });
    OK(vkt_generator_feed(a, ids, 3));
    OK(vkt_generator_feed(b, ids, 3));
    OK(vkt_generator_logits(a, with, WORDS));
    OK(vkt_generator_logits(b, without, WORDS));
    assert_memory_not_equal(with, without, sizeof with);
    vkt_generator_destroy(&a);
    vkt_generator_destroy(&b);
    free_whole(&w);
    vkt_lm_destroy(&lm);
}

/* ---- ids ---- */

enum { MADE = 40 };

static void make(vkt_generator *g, uint32_t *ids)
{
    static const uint32_t prompt[] = { 17, 250, 3, 3, 90 };
    OK(vkt_generator_feed(g, prompt, VKT_COUNT(prompt)));
    for (int i = 0; i < MADE; i++) OK(vkt_generator_next(g, &ids[i]));
}

static void the_seed_decides(void **state)
{
    rig *r = rig_of(state);
    vkt_lm *lm = open_tiny(r, "qwen2");
    uint32_t a[MADE], b[MADE], c[MADE], d[MADE], e[MADE];
    vkt_generator_params p = { .temperature = 1, .top_k = 100, .top_p = 0.95f, .seed = 11, .chunk = 4 };
    vkt_generator *one = generator_of(r, lm, p), *two = generator_of(r, lm, p);
    make(one, a);
    OK(vkt_generator_reset(one));
    assert_int_equal(vkt_generator_length(one), 0);
    static const uint32_t prompt[] = { 17, 250, 3, 3, 90 };
    OK(vkt_generator_feed(two, prompt, VKT_COUNT(prompt)));
    for (int i = 0; i < MADE; i++) { /* two generators of one model alternate */
        if (i == 0) OK(vkt_generator_feed(one, prompt, VKT_COUNT(prompt)));
        OK(vkt_generator_next(one, &b[i]));
        OK(vkt_generator_next(two, &c[i]));
    }
    assert_memory_equal(a, b, sizeof a);
    assert_memory_equal(a, c, sizeof a);
    vkt_generator_destroy(&one);
    vkt_generator_destroy(&two);
    p.seed = 12;
    one = generator_of(r, lm, p);
    make(one, d);
    assert_memory_not_equal(a, d, sizeof a);
    vkt_generator_destroy(&one);
    one = generator_of(r, lm, (vkt_generator_params){ .seed = 12, .chunk = 4 });
    make(one, d);
    vkt_generator_destroy(&one);
    one = generator_of(r, lm, (vkt_generator_params){ .seed = 13, .chunk = 4 });
    make(one, e); /* without a temperature, the seed does not matter */
    assert_memory_equal(d, e, sizeof d);
    vkt_generator_destroy(&one);
    one = generator_of(r, lm,
                       (vkt_generator_params){ .temperature = VKT_ZERO, .top_p = VKT_ZERO, .seed = 13, .chunk = 4 });
    make(one, e);
    assert_memory_equal(d, e, sizeof d);
    vkt_generator_destroy(&one);
    vkt_lm_destroy(&lm);
}

static void greedy_takes_the_largest_logit(void **state)
{
    rig *r = rig_of(state);
    vkt_lm *lm = open_tiny(r, "llama");
    vkt_generator *g = generator_of(r, lm, (vkt_generator_params){ .seed = 1 });
    static const uint32_t first = 100;
    OK(vkt_generator_feed(g, &first, 1));
    for (uint32_t i = 0; i < 10; i++) {
        float x[WORDS];
        uint32_t id, best = 0;
        OK(vkt_generator_logits(g, x, WORDS));
        for (uint32_t k = 1; k < WORDS; k++)
            if (x[k] > x[best]) best = k;
        OK(vkt_generator_next(g, &id));
        assert_int_equal(id, best);
        assert_int_equal(vkt_generator_length(g), 2 + i);
    }
    const vkt_generator_stats s = vkt_generator_get_stats(g);
    assert_true(s.fed == 1 && s.made == 10 && s.feed_seconds > 0 && s.make_seconds > 0);
    vkt_generator_destroy(&g);
    vkt_lm_destroy(&lm);
}

/* Tokens that are fed behind an answer follow all tokens of the answer. The last token of the answer is not yet in
 * the cache at this time, because vkt_generator_next returns a token without putting the token there. */
static void a_text_goes_on_behind_an_answer(void **state)
{
    rig *r = rig_of(state);
    enum { ALL = 14 };
    static float all[ALL * WORDS];
    uint32_t ids[ALL];
    vkt_lm *lm = open_tiny(r, "qwen3");
    vkt_generator *g = generator_of(r, lm, (vkt_generator_params){ .temperature = 2, .seed = 3, .chunk = 8 });
    draw_ids(ids, ALL, WORDS);
    OK(vkt_generator_feed(g, ids, 4));
    for (int i = 4; i < 8; i++) OK(vkt_generator_next(g, &ids[i]));
    OK(vkt_generator_feed(g, ids + 8, ALL - 8));
    whole w = whole_of(r, lm, ALL, false);
    run_whole(&w, ids, all);
    same_logits(g, all, ALL - 1);
    free_whole(&w);
    vkt_generator_destroy(&g);
    vkt_lm_destroy(&lm);
}

/* ---- errors ---- */

static void a_full_context_is_refused(void **state)
{
    rig *r = rig_of(state);
    uint32_t ids[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, id;
    vkt_lm *lm = open_tiny(r, "llama");
    vkt_generator *g = generator_of(r, lm, (vkt_generator_params){ .context = 8 });
    assert_int_equal(vkt_generator_context(g), 8);
    /* 2 blocks, keys and values, 8 tokens, 2 heads of 24 numbers, 4 bytes. */
    assert_int_equal(vkt_generator_bytes(g), 2 * 2 * 8 * 24 * 2 * 4);
    OK(vkt_generator_feed(g, ids, 6));
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_generator_feed(g, ids, 3), VKT_E_SHAPE);
    vkt_test_error_contains("the context has 8 tokens: 6 are used, and 3 more do not fit");
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_generator_length(g), 6);
    OK(vkt_generator_next(g, &id));
    OK(vkt_generator_next(g, &id));
    float logits[WORDS];
    OK(vkt_generator_logits(g, logits, WORDS)); /* the logits predict a ninth token, for which there is no space */
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_generator_next(g, &id), VKT_E_SHAPE);
    vkt_test_error_contains("8 are used, and 1 more");
    vkt_test_expect_errors(false);
    OK(vkt_generator_reset(g));
    OK(vkt_generator_feed(g, ids, 8));
    vkt_generator_destroy(&g);
    vkt_lm_destroy(&lm);
}

static void wrong_arguments_are_refused(void **state)
{
    rig *r = rig_of(state);
    vkt_lm *lm = open_tiny(r, "llama");
    vkt_generator *g;
    const struct {
        vkt_generator_params p;
        const char *message;
    } wrong[] = { { { .context = 129 }, "want a context of at most 128 tokens" },
                  { { .temperature = -1 }, "want a temperature of 0 or more, got -1" },
                  { { .temperature = NAN }, "want a temperature" },
                  { { .top_p = 1.5f }, "want top_p from 0 to 1, got 1.5" },
                  { { .lora = &lora }, "want a store and lora, or neither" } };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(wrong); i++) {
        assert_int_equal(vkt_generator_create(r->ctx, lm, &wrong[i].p, &g), VKT_E_ARG);
        assert_null(g);
        vkt_test_error_contains(wrong[i].message);
    }
    assert_int_equal(vkt_generator_create(r->ctx, NULL, NULL, &g), VKT_E_ARG);
    assert_int_equal(vkt_generator_create(r->ctx, lm, NULL, NULL), VKT_E_ARG);
    vkt_test_expect_errors(false);
    g = generator_of(r, lm, (vkt_generator_params){ .seed = 0 });
    uint32_t id = WORDS;
    float logits[WORDS];
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_generator_next(g, &id), VKT_E_STATE);
    vkt_test_error_contains("the text is empty");
    assert_int_equal(vkt_generator_logits(g, logits, WORDS), VKT_E_STATE);
    assert_int_equal(vkt_generator_feed(g, &id, 0), VKT_E_ARG);
    vkt_test_error_contains("want at least one token");
    assert_int_equal(vkt_generator_feed(g, &id, 1), VKT_E_ARG);
    vkt_test_error_contains("id 272 at 0 is not below 272");
    assert_int_equal(vkt_generator_feed(g, NULL, 1), VKT_E_ARG);
    assert_int_equal(vkt_generator_next(g, NULL), VKT_E_ARG);
    vkt_test_expect_errors(false);
    id = 5;
    OK(vkt_generator_feed(g, &id, 1));
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_generator_logits(g, logits, WORDS - 1), VKT_E_ARG);
    vkt_test_error_contains("want room for 272 logits, got 271");
    vkt_test_expect_errors(false);
    vkt_generator_destroy(&g);
    vkt_lm_destroy(&lm);
    assert_int_equal(vkt_generator_length(NULL) + vkt_generator_context(NULL) + vkt_generator_get_stats(NULL).made, 0);
}

static void each_failing_allocation_is_an_error(void **state)
{
    rig *r = rig_of(state);
    vkt_lm *lm = open_tiny(r, "llama");
    for (unsigned n = 1;; n += n < 40 ? 1 : 1 + n / 12) { /* allocation n fails; above 40, some n are left out */
        vkt_generator *g;
        const vkt_generator_params p = { .context = 16, .chunk = 4 };
        vkt_test_fail_allocation(n);
        const vkt_result result = vkt_generator_create(r->ctx, lm, &p, &g);
        const bool failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        if (!failed) {
            OK(result);
            vkt_generator_destroy(&g);
            break;
        }
        assert_int_equal(result, VKT_E_NOMEM);
        assert_null(g);
    }
    vkt_lm_destroy(&lm);
}

/* ---- SmolLM2 ---- */

static void smollm2_knows_a_capital(void **state)
{
    rig *r = rig_of(state);
    char path[512], answer[1024] = "";
    if (!vkt_test_find_data("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", path)) skip();
    vkt_gguf *file;
    vkt_tokenizer *t;
    vkt_tokens prompt = { 0 };
    OK(vkt_gguf_open(&r->h, path, &file));
    OK(vkt_tokenizer_from_gguf(&r->h, file, &t));
    vkt_gguf_destroy(&file);
    const vkt_chat_message question = { "user", "What is the capital of France?" };
    OK(vkt_tokenizer_chat(t, VKT_CHAT_SMOLLM2, &question, 1, VKT_CHAT_ASK, &prompt));
    vkt_lm *lm = open_lm(r, path);
    vkt_generator *g = generator_of(r, lm, (vkt_generator_params){ .context = 256 });
    OK(vkt_generator_feed(g, prompt.ids, prompt.n));
    vkt_token_stream stream = { .skip_special = true };
    for (uint32_t id, i = 0; i < 40; i++) {
        char text[256];
        OK(vkt_generator_next(g, &id));
        if (id == vkt_tokenizer_eos(t)) break;
        OK(vkt_tokenizer_stream(t, &stream, id, text, sizeof text));
        strncat(answer, text, sizeof answer - strlen(answer) - 1);
    }
    const vkt_generator_stats s = vkt_generator_get_stats(g);
    print_message("SmolLM2: %s\n%u tokens of the prompt, %.1f tokens/s; %u tokens of the answer, %.1f tokens/s\n",
                  answer, (unsigned)s.fed, (double)s.fed / s.feed_seconds, (unsigned)s.made,
                  (double)s.made / s.make_seconds);
    assert_non_null(strstr(answer, "Paris"));
    vkt_generator_destroy(&g);
    vkt_lm_destroy(&lm);
    vkt_tokens_release(&prompt);
    vkt_tokenizer_destroy(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(logits_are_those_of_the_whole_sequence),
        rig_test(adapters_are_applied),
        rig_test(the_seed_decides),
        rig_test(greedy_takes_the_largest_logit),
        rig_test(a_text_goes_on_behind_an_answer),
        rig_test(a_full_context_is_refused),
        rig_test(wrong_arguments_are_refused),
        rig_test(each_failing_allocation_is_an_error),
        rig_test(smollm2_knows_a_capital),
    };
    return cmocka_run_group_tests_name("generation", tests, NULL, NULL);
}
