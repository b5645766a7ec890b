/* Tests language models of GGUF files: the tensors on the device, training that resumes, errors, and SmolLM2. */
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "io/safetensors.h"
#include "lm/lm.h"
#include "lm/tiny.h"
#include "vktrain/tokenizer.h"

static const char *const architectures[] = { "llama", "qwen2", "qwen3" };

/* Trains until epoch `epochs`, and writes a checkpoint after each epoch. If `resume`, begins with the checkpoint, and
 * trains only the epochs that it lacks. Returns the adapters; free them with test_free. */
static float *train(rig *r, const char *architecture, const char *checkpoint, bool resume, uint32_t epochs, uint64_t *n)
{
    tiny t = tiny_open(r, architecture);
    t.lora.dropout = 0.25f;
    vkt_dataset *data = tiny_data(&r->h);
    vkt_trainer_params p = tiny_trainer(&t, data);
    p.validation = data;
    vkt_trainer *trainer;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &trainer), VKT_OK);
    if (resume) assert_int_equal(vkt_trainer_resume(trainer, checkpoint), VKT_OK);
    rig_fit(trainer, &(vkt_fit_params){ .epochs = epochs, .checkpoint = checkpoint, .patience = 100 });
    float *w = rig_weights(trainer, VKT_PART_VALUE, n);
    vkt_trainer_destroy(&trainer);
    vkt_lm_destroy(&t.lm);
    vkt_dataset_destroy(&data);
    return w;
}

static void the_same_bits_come_twice_and_after_a_resume(void **state)
{
    rig *r = rig_of(state);
    for (size_t i = 0; i < VKT_COUNT(architectures); i++) {
        const char *a = vkt_temp_dir_file(&r->dir, "a"), *b = vkt_temp_dir_file(&r->dir, "b");
        uint64_t n, m, k;
        float *once = train(r, architectures[i], a, false, 4, &n);
        test_free(train(r, architectures[i], b, false, 2, &m)); /* train destroys its model: only file b is left */
        float *resumed = train(r, architectures[i], b, true, 4, &m),
              *again = train(r, architectures[i], a, false, 4, &k);
        assert_true(n == m && n == k);
        assert_memory_equal(once, resumed, n * sizeof *once);
        assert_memory_equal(once, again, n * sizeof *once);
        test_free(once);
        test_free(resumed);
        test_free(again);
    }
}

static void a_checkpoint_has_the_adapters_alone(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "adapters");
    vkt_safetensors *st;
    uint64_t n;
    uint32_t adapters = 0;
    test_free(train(r, "llama", path, false, 1, &n));
    assert_int_equal(vkt_safetensors_open(&r->h, path, &st), VKT_OK);
    for (size_t i = 0; i < vkt_safetensors_count(st); i++) {
        const char *name = vkt_safetensors_entry(st, i)->name;
        if (!strstr(name, "model.")) continue;
        assert_non_null(strstr(name, ".lora_"));
        adapters++;
    }
    /* Each of the two blocks has A and B of each target. `adapters` also counts the moments of A and B. */
    assert_true(adapters >= 2 * 2 * TINY_TARGETS);
    vkt_safetensors_close(&st);
}

/* With vkt_lm_params.recompute a step needs less memory, and all bits are the same. */
static void recomputed_blocks_give_the_same_bits(void **state)
{
    rig *r = rig_of(state);
    vkt_dataset *data = tiny_data(&r->h);
    float *w[2];
    uint64_t n[2], bytes[2];
    for (int k = 0; k < 2; k++) {
        tiny t = tiny_open(r, "qwen3");
        t.params.recompute = k == 1;
        t.lora.dropout = 0.25f;
        const vkt_trainer_params p = tiny_trainer(&t, data);
        vkt_trainer *trainer;
        vkt_plan_info plan;
        assert_int_equal(vkt_trainer_create(r->ctx, &p, &trainer), VKT_OK);
        vkt_program_plan(vkt_trainer_program(trainer), &plan);
        bytes[k] = plan.lower_bound_bytes;
        rig_fit(trainer, &(vkt_fit_params){ .epochs = 3 });
        w[k] = rig_weights(trainer, VKT_PART_VALUE, &n[k]);
        vkt_trainer_destroy(&trainer);
        vkt_lm_destroy(&t.lm);
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(w[0], w[1], n[0] * sizeof *w[0]);
    assert_true(bytes[1] < bytes[0]);
    test_free(w[0]);
    test_free(w[1]);
    vkt_dataset_destroy(&data);
}

/* ---- what is on the device ---- */

/* Reads all rows of a tensor on the device as floats. */
static void read_device(rig *r, const vkt_lm_tensor *t, float *out)
{
    vkt_graph *g;
    vkt_program *p;
    uint32_t *all = test_malloc(t->rows * sizeof *all);
    for (uint32_t i = 0; i < t->rows; i++) all[i] = i;
    assert_int_equal(vkt_graph_create(&r->h, &g), VKT_OK);
    const vkt_tensor ids = vkt_input(g, "ids", VKT_U32, VKT_ROWS, vkt_shape1(t->rows));
    const uint64_t words = (vkt_quantized_bytes(t->format, t->rows, t->columns) + 3) / 4;
    const vkt_tensor w = vkt_external_array(g, "w", t->array, VKT_U32, vkt_shape1((uint32_t)words));
    const vkt_tensor y = vkt_embedding_quantized(g, ids, w, t->format, t->rows, t->columns);
    vkt_keep(g, y);
    assert_int_equal(vkt_program_create(r->ctx, g, NULL, NULL, &p), VKT_OK);
    assert_int_equal(vkt_program_write(p, ids, all, t->rows * sizeof *all), VKT_OK);
    assert_int_equal(vkt_program_run(p, NULL, NULL), VKT_OK);
    assert_int_equal(vkt_program_read(p, y, out, sizeof *out * t->rows * t->columns), VKT_OK);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    test_free(all);
}

/* Compares a tensor on the device with the tensor `name` of the file. If `heads` is not 0, the rows of each head are in
 * another order: rows 2 i and 2 i + 1 of a head in the file are rows i and i + n / 2 of this head on the device, if a
 * head has n rows. */
static void check_tensor(rig *r, const vkt_gguf *file, const char *name, const vkt_lm_tensor *t, uint32_t heads)
{
    const uint64_t n = (uint64_t)t->rows * t->columns;
    const uint32_t head = heads ? t->rows / heads : 1;
    float *want = test_malloc(n * sizeof *want), *got = test_malloc(n * sizeof *got);
    assert_int_equal(vkt_gguf_read_f32(file, name, 0, n, want), VKT_OK);
    read_device(r, t, got);
    for (uint32_t row = 0; row < t->rows; row++) {
        const uint32_t i = row % head;
        const uint32_t from = heads ? row - i + (i < head / 2 ? 2 * i : 2 * (i - head / 2) + 1) : row;
        for (uint32_t c = 0; c < t->columns; c++) {
            const float x = got[(uint64_t)row * t->columns + c], y = want[(uint64_t)from * t->columns + c];
            assert_true(fabsf(x - y) <= 2e-7f * fabsf(y));
        }
    }
    test_free(want);
    test_free(got);
}

static void training_leaves_the_weights_of_the_file(void **state)
{
    rig *r = rig_of(state);
    tiny t = tiny_open(r, "llama");
    vkt_dataset *data = tiny_data(&r->h);
    const vkt_trainer_params p = tiny_trainer(&t, data);
    vkt_trainer *trainer;
    vkt_gguf *file;
    char path[512];
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &trainer), VKT_OK);
    rig_fit(trainer, &(vkt_fit_params){ .epochs = 2 });
    assert_int_equal(vkt_gguf_open(&r->h, tiny_path("llama", path), &file), VKT_OK);
    const vkt_lm_block *b = t.lm->blocks;
    check_tensor(r, file, "token_embd.weight", &t.lm->embedding, 0);
    check_tensor(r, file, "blk.0.attn_q.weight", &b->q, 4);
    check_tensor(r, file, "blk.0.attn_k.weight", &b->k, 2);
    check_tensor(r, file, "blk.0.attn_v.weight", &b->v, 0);
    check_tensor(r, file, "blk.0.attn_output.weight", &b->o, 0);
    check_tensor(r, file, "blk.0.ffn_gate.weight", &b->gate, 0);
    check_tensor(r, file, "blk.0.ffn_up.weight", &b->up, 0);
    check_tensor(r, file, "blk.1.ffn_down.weight", &b[1].down, 0);
    vkt_gguf_destroy(&file);
    vkt_trainer_destroy(&trainer);
    vkt_lm_destroy(&t.lm);
    vkt_dataset_destroy(&data);
}

/* The bytes of a row need not be a multiple of 4. */
static void odd_bytes_are_copied_whole(void **state)
{
    rig *r = rig_of(state);
    char path[512];
    vkt_gguf *file;
    tiny t = { .lm = NULL };
    for (int k = 0; k < 3; k++) { /* these models have rows of 34 bytes */
        snprintf(path, sizeof path, VKT_TEST_DIR "/golden/gguf/%s.gguf", architectures[k]);
        assert_int_equal(vkt_gguf_open(&r->h, path, &file), VKT_OK);
        assert_int_equal(vkt_lm_create(r->ctx, file, &t.lm), VKT_OK);
        check_tensor(r, file, "blk.0.attn_k.weight", &t.lm->blocks->k, k == 0 ? 2 : 0);
        check_tensor(r, file, "blk.0.attn_v.weight", &t.lm->blocks->v, 0);
        assert_string_equal(vkt_lm_model(t.lm)->name + 5, architectures[k]);
        vkt_lm_destroy(&t.lm);
        vkt_gguf_destroy(&file);
    }
}

/* YaRN multiplies the scores of attention by a number that grows with the scaling factor. If the scaling factor is 1 or
 * less, this number is 1. */
static void yarn_does_not_shrink_the_scores(void **state)
{
    rig *r = rig_of(state);
    static const float factors[] = { 0.5f, 1, 4 };
    static const vkt_gguf_string yarn = { "yarn", 4 };
    char from[512];
    for (size_t i = 0; i < VKT_COUNT(factors); i++) {
        const vkt_gguf_meta more[] = { { "llama.rope.scaling.type", VKT_GGUF_KIND_TEXT, false, 1, &yarn },
                                       { "llama.rope.scaling.factor", VKT_GGUF_KIND_F32, false, 1, &factors[i] } };
        const char *path = tiny_rewrite(r, tiny_path("llama", from), "yarn.gguf", more, VKT_COUNT(more));
        vkt_gguf *file;
        vkt_lm *lm;
        assert_int_equal(vkt_gguf_open(&r->h, path, &file), VKT_OK);
        assert_int_equal(vkt_lm_create(r->ctx, file, &lm), VKT_OK);
        const double length = 1 + 0.1 * log(i < 2 ? 1 : 4);
        const double got = (double)lm->attention_scale * sqrt(vkt_lm_model(lm)->head_width);
        assert_true(fabs(got - length * length) < 1e-6);
        vkt_lm_destroy(&lm);
        vkt_gguf_destroy(&file);
    }
}

static void the_summary_counts_frozen_weights(void **state)
{
    rig *r = rig_of(state);
    tiny t = tiny_open(r, "qwen2");
    vkt_dataset *data = tiny_data(&r->h);
    const vkt_trainer_params p = tiny_trainer(&t, data);
    vkt_trainer *trainer;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &trainer), VKT_OK);
    const char *text = vkt_trainer_summary(trainer);
    /* There are two blocks. Each block has q (64,64), k and v (16,64), o (64,64), gate and up (256,64), down (64,256),
     * biases of q, k and v, and two norms. The other weights are embedding and output for 272 tokens, and a norm. */
    enum { BLOCK = 2 * 64 * 64 + 2 * 16 * 64 + 3 * 64 * 256 + 64 + 16 + 16 + 2 * 64 };
    enum { LORA = TINY_RANK * (2 * (64 + 64) + 2 * (64 + 16) + 3 * (64 + 256)) };
    char line[80];
    snprintf(line, sizeof line, "trainable: %u,%03u   frozen: %u,%03u\n", 2 * LORA / 1000, 2 * LORA % 1000,
             (2 * BLOCK + 2 * 272 * 64 + 64) / 1000, (2 * BLOCK + 2 * 272 * 64 + 64) % 1000);
    if (!strstr(text, line)) fail_msg("want %s, got %s", line, text);
    assert_non_null(strstr(text, "model.layers.1.self_attn.q_proj (Linear, frozen, LoRA)"));
    vkt_trainer_destroy(&trainer);
    vkt_lm_destroy(&t.lm);
    vkt_dataset_destroy(&data);
}

/* ---- errors ---- */

static void what_does_not_fit_is_refused(void **state)
{
    rig *r = rig_of(state);
    tiny t = tiny_open(r, "llama");
    vkt_test_expect_errors(true);
    for (int k = 0; k < 3; k++) {
        vkt_graph *g;
        vkt_builder *b;
        assert_int_equal(vkt_graph_create(&r->h, &g), VKT_OK);
        assert_int_equal(vkt_builder_create(g, false, &b), VKT_OK);
        const vkt_shape shape = k == 0 ? vkt_shape2(1, 129) : k == 1 ? vkt_shape1(4) : vkt_shape2(1, 128);
        const vkt_tensor ids = vkt_input(g, "ids", VKT_U32, VKT_ROWS, shape);
        const vkt_tensor y = vkt_lm_hidden(b, t.lm, ids, NULL);
        assert_int_equal(vkt_graph_status(g), k == 2 ? VKT_OK : VKT_E_SHAPE);
        assert_int_equal(y.id != 0, k == 2);
        if (k < 2) vkt_test_error_contains("the model's context of 128");
        vkt_builder_destroy(&b);
        vkt_graph_destroy(&g);
    }
    vkt_test_expect_errors(false);
    vkt_lm_destroy(&t.lm);
}

static void too_little_memory_is_reported_with_what_is_needed(void **state)
{
    rig *r = rig_of(state);
    char path[512];
    vkt_gguf *file;
    vkt_ctx *small;
    vkt_lm *lm;
    const vkt_ctx_params p = { .max_device_bytes = 192 << 10, .block_bytes = 64 << 10, .staging_bytes = 64 << 10 };
    assert_int_equal(vkt_ctx_create(&p, &r->h, &small), VKT_OK);
    assert_int_equal(vkt_gguf_open(&r->h, tiny_path("qwen3", path), &file), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_lm_create(small, file, &lm), VKT_E_MEMORY_CAP);
    vkt_test_error_contains("all weights of the model need");
    vkt_test_expect_errors(false);
    assert_null(lm);
    vkt_gguf_destroy(&file);
    vkt_ctx_destroy(&small);
}

static void each_failing_allocation_is_an_error(void **state)
{
    rig *r = rig_of(state);
    char path[512];
    vkt_gguf *file;
    assert_int_equal(vkt_gguf_open(&r->h, tiny_path("llama", path), &file), VKT_OK);
    for (unsigned n = 1;; n++) {
        vkt_lm *lm;
        vkt_test_fail_allocation(n);
        const vkt_result result = vkt_lm_create(r->ctx, file, &lm);
        const bool failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        if (!failed) {
            assert_int_equal(result, VKT_OK);
            vkt_lm_destroy(&lm);
            break;
        }
        assert_int_equal(result, VKT_E_NOMEM);
        assert_null(lm);
    }
    vkt_gguf_destroy(&file);
}

/* ---- SmolLM2 ---- */

/* Checks the mean loss of 128 tokens at the start of wikitext-2's validation text. A uniform guess has a loss of 10.8.
 * With a wrong rotary embedding, wrong heads or wrong norms, the loss would be far above the limit of 4.5. */
static void smollm2_knows_english(void **state)
{
    enum { CONTEXT = 128 };
    rig *r = rig_of(state);
    char model[512], text_path[512];
    if (!vkt_test_find_data("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", model) ||
        !vkt_test_find_data("wikitext-2/valid.txt", text_path))
        skip();
    static char text[8192];
    FILE *f = fopen(text_path, "rb");
    assert_non_null(f);
    const size_t bytes = fread(text, 1, 2048, f);
    assert_int_equal(fclose(f), 0);
    vkt_gguf *file;
    vkt_tokenizer *tokenizer;
    vkt_tokens tokens = { 0 };
    tiny t = { .lm = NULL };
    assert_int_equal(vkt_gguf_open(&r->h, model, &file), VKT_OK);
    assert_int_equal(vkt_tokenizer_from_gguf(&r->h, file, &tokenizer), VKT_OK);
    assert_int_equal(vkt_tokenizer_encode(tokenizer, text, bytes, 0, &tokens), VKT_OK);
    assert_int_equal(vkt_lm_create(r->ctx, file, &t.lm), VKT_OK);
    vkt_gguf_destroy(&file);
    assert_true(tokens.n > CONTEXT);
    vkt_graph *g;
    vkt_builder *b;
    vkt_program *p;
    assert_int_equal(vkt_graph_create(&r->h, &g), VKT_OK);
    assert_int_equal(vkt_builder_create(g, false, &b), VKT_OK);
    const vkt_tensor ids = vkt_input(g, "ids", VKT_U32, VKT_ROWS, vkt_shape2(1, CONTEXT));
    const vkt_tensor labels = vkt_input(g, "labels", VKT_U32, VKT_ROWS, vkt_shape2(1, CONTEXT));
    const vkt_tensor loss = vkt_lm_loss(b, t.lm, vkt_lm_hidden(b, t.lm, ids, NULL), labels);
    vkt_keep(g, loss);
    assert_int_equal(vkt_program_create(r->ctx, g, NULL, NULL, &p), VKT_OK);
    float got;
    assert_int_equal(vkt_program_write(p, ids, tokens.ids, CONTEXT * sizeof(uint32_t)), VKT_OK);
    assert_int_equal(vkt_program_write(p, labels, tokens.ids + 1, CONTEXT * sizeof(uint32_t)), VKT_OK);
    assert_int_equal(vkt_program_run(p, NULL, NULL), VKT_OK);
    assert_int_equal(vkt_program_read(p, loss, &got, sizeof got), VKT_OK);
    print_message("SmolLM2: loss %.4f, perplexity %.2f\n", (double)got, exp((double)got));
    assert_true(got > 1.5f && got < 4.5f);
    vkt_program_destroy(&p);
    vkt_builder_destroy(&b);
    vkt_graph_destroy(&g);
    vkt_tokens_release(&tokens);
    vkt_tokenizer_destroy(&tokenizer);
    vkt_lm_destroy(&t.lm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(the_same_bits_come_twice_and_after_a_resume),
        rig_test(a_checkpoint_has_the_adapters_alone),
        rig_test(recomputed_blocks_give_the_same_bits),
        rig_test(training_leaves_the_weights_of_the_file),
        rig_test(odd_bytes_are_copied_whole),
        rig_test(yarn_does_not_shrink_the_scores),
        rig_test(the_summary_counts_frozen_weights),
        rig_test(what_does_not_fit_is_refused),
        rig_test(too_little_memory_is_reported_with_what_is_needed),
        rig_test(each_failing_allocation_is_an_error),
        rig_test(smollm2_knows_english),
    };
    return cmocka_run_group_tests_name("language models", tests, NULL, NULL);
}
