/* Tests what vkt-lora does if a device cannot run a training step, or if memory is lacking for a sample answer. */
#include "train/rig.h"

#include "lora/talk.h"
#include "vktrain/vktrain.h"

#define MODEL VKT_TEST_DIR "/golden/lm/llama.gguf"

static const char *const targets[] = { "q_proj" };

/* The objects that the functions of vkt-lora need. */
typedef struct objects {
    session s;
    model m;
    lora_options o;
} objects;

static objects open_objects(const rig *r, vkt_ctx *ctx)
{
    objects all = { .s = { .ctx = ctx, .host = r->h, .o = { .quiet = true, .optimizer = { .kind = VKT_ADAM } } },
                    .m = { .lora = { .targets = targets, .n_targets = 1, .rank = 2, .alpha = 2 }, .context = 128 },
                    .o = { .answer = 1, .top_p = 1 } };
    assert_int_equal(vkt_gguf_open(&r->h, MODEL, &all.m.gguf), VKT_OK);
    assert_int_equal(vkt_tokenizer_from_gguf(&r->h, all.m.gguf, &all.m.tokenizer), VKT_OK);
    assert_int_equal(vkt_lm_create(ctx, all.m.gguf, &all.m.lm), VKT_OK);
    return all;
}

static void a_step_that_no_device_runs_is_explained(void **state)
{
    rig *r = rig_of(state);
    objects all = open_objects(r, r->ctx);
    const beside with = { .checked = 10, .validators = 1 };
    vkt_test_expect_errors(true);
    all.s.o.memory_limit_bytes = 1 << 20; /* not even one row fits */
    assert_int_equal(model_plan(&all.s, &all.m, 1 << 20, &with), VKT_E_UNSUPPORTED);
    vkt_test_error_contains("2^32 ");
    all.s.o.memory_limit_bytes = 1 << 30; /* a smaller batch fits */
    assert_int_equal(model_plan(&all.s, &all.m, 1 << 20, &with), VKT_E_MEMORY_CAP);
    vkt_test_expect_errors(false);
    assert_int_equal(model_plan(&all.s, &all.m, 1, &with), VKT_OK);
    model_close(&all.m);
}

/* If there is too little memory, talk_answer fails. But if may_lack is set, as for the sample answers of a training,
 * talk_answer prints a remark instead of the answer. */
static void an_answer_needs_memory(void **state)
{
    rig *r = rig_of(state);
    const vkt_ctx_params p = { .max_device_bytes = 512 << 10, .block_bytes = 64 << 10, .staging_bytes = 64 << 10 };
    vkt_ctx *small;
    assert_int_equal(vkt_ctx_create(&p, &r->h, &small), VKT_OK);
    objects all = open_objects(r, small);
    question q = { .title = "answer", .text = "what is 3?", .is_text = true };
    vkt_test_expect_errors(true);
    assert_int_equal(talk_answer(&all.s, &all.m, &all.o, NULL, &q), VKT_E_MEMORY_CAP);
    q.may_lack = true;
    assert_int_equal(talk_answer(&all.s, &all.m, &all.o, NULL, &q), VKT_OK);
    vkt_test_expect_errors(false);
    model_close(&all.m);
    vkt_ctx_destroy(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = { rig_test(a_step_that_no_device_runs_is_explained),
                                        rig_test(an_answer_needs_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
