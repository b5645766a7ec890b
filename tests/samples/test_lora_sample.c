/* Tests the program vkt-lora as its users run it. test_lora_runs.c has runs that are stopped and resumed. */
#include "samples/lora.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "bench/schema.h"
#include "vktrain/vktrain.h"

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_LORA_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })
/* The perplexity of the first 3000 bytes of wikitext-2/valid.txt, in windows of 256 tokens, as transformers 5.24
 * computed it with float32 weights. */
#define REAL_PERPLEXITY 19.873639

static void expect_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance)) fail_msg("want %g +- %g, got %g", want, tolerance, got);
}

static double perplexity_in(const run *done)
{
    const char *at = strstr(done->out, "perplexity ");
    while (at && at != done->out && at[-1] != '\n') at = strstr(at + 1, "perplexity ");
    if (!at) fail_msg("no perplexity in: %s", done->out);
    return at ? strtod(at + strlen("perplexity "), NULL) : 0;
}

static double perplexity_of(const rig *r, const char *model, const char *adapter)
{
    const char *const args[] = { "--model",  model, "--context", "48", "--perplexity",
                                 "text.txt", "-q",  "--batch",   "3",  adapter ? "--adapter" : NULL,
                                 adapter,    NULL };
    run done = program_output(r, VKT_LORA_PROGRAM, args);
    const double got = perplexity_in(&done);
    run_forget(r, &done);
    return got;
}

static void it_learns_and_writes_files_that_agree(void **state)
{
    rig *r = rig_of(state);
    lora_write_data(r);
    lora_write_text(r, "text.txt",
                    "The quick brown fox jumps over the lazy dog. It is 3, it is 4, it is 5; what is 6?");
    const char *const args[] = {
        LORA_TRAIN,     "--epochs",     "3",   "--assistant-only", "--save-adapter", "adapter", "--merge",
        "merged.gguf",  "--merge-type", "f32", "--save-gguf",      "adapter.gguf",   "--json",  "report",
        "--perplexity", "text.txt",     NULL
    };
    run done = program_output(r, VKT_LORA_PROGRAM, args);
    assert_non_null(strstr(done.out, "data    data.jsonl: chats, 40 rows of 48 tokens"));
    assert_non_null(strstr(done.out, "memory  "));
    assert_non_null(strstr(done.out, "adapters with gradients and moments"));
    assert_non_null(strstr(done.out, "before  validation loss "));
    assert_non_null(strstr(done.out, "check   validation loss "));
    assert_non_null(strstr(done.out, " tokens/s"));
    assert_non_null(strstr(done.out, "wrote   adapter.gguf"));
    const double trained = perplexity_in(&done);
    run_forget(r, &done);
    char why[256];
    if (!schema_fits("train", vkt_temp_dir_file(&r->dir, "report"), why)) fail_msg("%s", why);
    json_t *report = program_json(r, "report");
    const json_t *lora = json_object_get(report, "lora");
    assert_int_equal(json_array_size(json_object_get(report, "epochs")), 3);
    assert_true(json_number_of(lora, "validation_loss") < json_number_of(lora, "validation_loss_before") - 1);
    assert_int_equal((int)json_number_of(lora, "rows"), 40);
    assert_int_equal((int)json_number_of(lora, "rank"), 8);
    assert_true(json_number_of(lora, "tokens_per_second") > 0);
    json_decref(report);
    /* The text has nearly the same perplexity with each file of the adapter and with the merged model. Without an
     * adapter, the perplexity is different. */
    expect_near(perplexity_of(r, LORA_MODEL, "adapter"), trained, 1e-4 * trained);
    expect_near(perplexity_of(r, LORA_MODEL, "adapter.gguf"), trained, 1e-4 * trained);
    expect_near(perplexity_of(r, "merged.gguf", NULL), trained, 1e-3 * trained);
    assert_true(fabs(perplexity_of(r, LORA_MODEL, NULL) - trained) > 1);
}

/* Starts a chat whose input is the file "in". Returns its output, which the caller frees with vkt_free. */
static char *chat_of(const rig *r, const char *options)
{
    char command[1200];
    snprintf(
        command, sizeof command,
        "cd '%s' && '%s' --model '%s' --template chatml --context 64 --chat --answer 12 -q %s < in > chat 2> errors",
        r->dir.path, VKT_LORA_PROGRAM, LORA_MODEL, options);
    assert_int_equal(system(command), 0);
    return program_text(r, "chat");
}

static void it_answers_and_chats(void **state)
{
    rig *r = rig_of(state);
    lora_write_data(r);
    run done = program_output(r, VKT_LORA_PROGRAM,
                              (const char *const[]){ LORA_TINY, "--data", "data.jsonl", "--lr", "0.02", "--epochs", "4",
                                                     "--answer", "12", "--save-adapter", "adapter", NULL });
    assert_non_null(strstr(done.out, "answer before the training\n> what is 39?\n"));
    const char *after = strstr(done.out, "answer after the training\n> what is 39?\n");
    assert_non_null(after);
    assert_non_null(strstr(after, "it is "));
    run_forget(r, &done);
    lora_write_text(r, "in", "what is 3?\nwhat is 4?\n\nwhat is 5?\n");
    char *text = chat_of(r, "--adapter adapter");
    uint32_t answers = 0;
    for (const char *at = text; (at = strstr(at, " tokens/s)")); at++) answers++;
    assert_int_equal(answers, 2); /* the empty line ends the chat */
    assert_non_null(strstr(text, "it is "));
    vkt_free(&r->h, text);
    lora_write_text(r, "in", "3");
    text = chat_of(r, "--adapter adapter");
    assert_non_null(strstr(text, " tokens/s)")); /* the last line needs no line end */
    vkt_free(&r->h, text);
    lora_write_text(r, "in", "\r\nwhat is 3?\r\n");
    text = chat_of(r, "--adapter adapter");
    assert_null(strstr(text, "tokens")); /* a line with nothing but its end is empty */
    vkt_free(&r->h, text);
    done = program_output(r, VKT_LORA_PROGRAM,
                          (const char *const[]){ LORA_TINY, "--adapter", "adapter", "--prompt", "what is 7?", NULL });
    assert_non_null(strstr(done.out, "> what is 7?\nit is "));
    run_forget(r, &done);
}

/* Removes "(N tokens, X tokens/s)" at the end of answers, because X differs from run to run. */
static void cut_rates(char *text)
{
    char *to = text;
    for (const char *at = text; *at;) {
        const char *end = *at == '(' ? strstr(at, " tokens/s)") : NULL;
        if (end)
            at = end + strlen(" tokens/s)");
        else
            *to++ = *at++;
    }
    *to = '\0';
}

/* The program refuses a message that is too long, and keeps the chat before this message. */
static void a_long_message_leaves_the_chat(void **state)
{
    rig *r = rig_of(state);
    char text[1024];
    snprintf(text, sizeof text, "what is 3?\n%0300d\nwhat is 4?\n", 0);
#define DRAWN "--context 128 --temperature 2"
    lora_write_text(r, "in", "what is 3?\nwhat is 4?\n");
    char *without = chat_of(r, DRAWN);
    lora_write_text(r, "in", text);
    char *with = chat_of(r, DRAWN);
    char *errors = program_text(r, "errors");
    assert_non_null(strstr(errors, "the message is too long"));
    /* The refused message changes no answer. The chat `alone` has only the last question, and gets another answer. So
     * an answer depends on the chat before the question. */
    cut_rates(without);
    cut_rates(with);
    assert_string_equal(with, without);
    lora_write_text(r, "in", "what is 4?\n");
    char *alone = chat_of(r, DRAWN);
    cut_rates(alone);
    assert_null(strstr(with, alone));
    vkt_free(&r->h, alone);
    alone = chat_of(r, "--answer 0");
    assert_non_null(strstr(alone, "(0 tokens)"));
    vkt_free(&r->h, alone);
    vkt_free(&r->h, errors);
    vkt_free(&r->h, with);
    vkt_free(&r->h, without);
}

/* If the last question of the data fills the context, the program prints a remark instead of the sample answers. */
static void a_long_question_of_the_data_has_no_answer(void **state)
{
    rig *r = rig_of(state);
    char text[1024];
    snprintf(text, sizeof text,
             "{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"prompt\": \"%0300d\", \"completion\": \"c\"}\n", 0);
    lora_write_text(r, "data", text);
    EXPECT(r, 0, "no answer after the training: the last question of the data has ", LORA_TINY, "--data", "data",
           "--validation-examples", "0", "--epochs", "1", "--save-adapter", "a");
    assert_true(program_wrote(r, "a/adapter_config.json"));
}

/* ---- errors ---- */

static void wrong_models_are_explained(void **state)
{
    rig *r = rig_of(state);
    lora_write_data(r);
#define WITH(model) "--model", model, "--data", "data.jsonl"
    EXPECT(r, 1, "none.gguf", WITH("none.gguf"));
    lora_write_shorter_model(r, "short.gguf", 100);
    EXPECT(r, 1, "short.gguf", WITH("short.gguf"));
    lora_write_text(r, "text.gguf", "This is a text, and no model.");
    EXPECT(r, 1, "text.gguf", WITH("text.gguf"));
    EXPECT(r, 1, "tokenizer", WITH(VKT_TEST_DIR "/golden/gguf/llama.gguf")); /* a model without a tokenizer */
    EXPECT(r, 1, "--context: the model's is 128 tokens, got 129", LORA_TINY, "--context", "129", "--data",
           "data.jsonl");
}

static void a_type_that_is_not_read_is_named(void **state)
{
    rig *r = rig_of(state);
    vkt_gguf *g;
    vkt_gguf_tensor all[64];
    static uint8_t zeros[1 << 16];
    assert_int_equal(vkt_gguf_open(&r->h, LORA_MODEL, &g), VKT_OK);
    const size_t n = vkt_gguf_n_tensors(g);
    assert_true(n <= 64);
    vkt_gguf_meta *meta = test_calloc(vkt_gguf_n_meta(g), sizeof *meta);
    for (size_t i = 0; i < vkt_gguf_n_meta(g); i++) meta[i] = *vkt_gguf_meta_at(g, i);
    for (size_t i = 0; i < n; i++) {
        all[i] = *vkt_gguf_tensor_at(g, i);
        if (strcmp(all[i].name, "blk.1.ffn_up.weight") != 0) continue;
        all[i].type = (vkt_gguf_type)6; /* Q5_0 */
        all[i].data = zeros;
    }
    assert_int_equal(vkt_gguf_write(&r->h, vkt_temp_dir_file(&r->dir, "q5.gguf"), meta, vkt_gguf_n_meta(g), all, n),
                     VKT_OK);
    test_free(meta);
    vkt_gguf_destroy(&g);
    lora_write_data(r);
    EXPECT(r, 1, "Q5_0", WITH("q5.gguf"));
}

static void wrong_options_are_explained(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 2, "--context", "--context", "1");
    EXPECT(r, 2, "--rank", "--rank", "0");
    EXPECT(r, 2, "--alpha", "--alpha", "0");
    EXPECT(r, 2, "--targets", "--targets", "q_proj,,k_proj");
    EXPECT(r, 2, "--lora-dropout", "--lora-dropout", "1");
    EXPECT(r, 2, "--template: want chatml", "--template", "word");
    EXPECT(r, 2, "--merge-type: want f16, f32 or q8_0, got 'q4_0'", "--merge-type", "q4_0");
    EXPECT(r, 2, "--top-p", "--top-p", "0");
    EXPECT(r, 2, "--validation and --validation-examples", "--validation", "a", "--validation-examples", "3");
    EXPECT(r, 2, "'stray'", "stray");
    lora_write_data(r);
    EXPECT(r, 1, "z_proj", LORA_TRAIN, "--targets", "z_proj");
    EXPECT(r, 1, "none", LORA_TRAIN, "--adapter", "none");
    EXPECT(r, 1, "--adapter: want a folder of PEFT or a GGUF file; there is no none.gguf", LORA_TRAIN, "--adapter",
           "none.gguf");
    EXPECT(r, 1, "\"general.type\": want", LORA_TRAIN, "--adapter", LORA_MODEL);
    EXPECT(r, 1, "cannot be made", LORA_TRAIN, "--save-adapter", "none/deep");
    EXPECT(r, 1, "none/m.gguf", LORA_TRAIN, "--merge", "none/m.gguf");
}

static void help_names_its_options(void **state)
{
    rig *r = rig_of(state);
    run done = program_output(r, VKT_LORA_PROGRAM, (const char *const[]){ "--help", NULL });
    static const char *const options[] = { "--model",          "--data",         "--rank",         "--alpha",
                                           "--targets",        "--lora-dropout", "--context",      "--batch",
                                           "--micro-batches",  "--lr",           "--schedule",     "--epochs",
                                           "--assistant-only", "--recompute",    "--memory-limit", "--adapter",
                                           "--save-adapter",   "--save-gguf",    "--merge",        "--perplexity",
                                           "--chat",           "--checkpoint",   "--resume",       "--json",
                                           "--profile",        "--quiet" };
    for (size_t i = 0; i < VKT_COUNT(options); i++)
        if (!strstr(done.out, options[i])) fail_msg("--help does not name %s", options[i]);
    run_forget(r, &done);
}

/* Runs only if the machine has the model and the data. Takes less than a minute. */
static void the_real_model_has_its_perplexity(void **state)
{
    rig *r = rig_of(state);
    char model[512], text[512];
    if (!vkt_test_find_data("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", model) ||
        !vkt_test_find_data("wikitext-2/valid.txt", text))
        skip();
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(&r->h, text, 1 << 24, &bytes, &n), VKT_OK);
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "part.txt"), bytes, 3000), VKT_OK);
    vkt_free(&r->h, bytes);
    run done = program_output(r, VKT_LORA_PROGRAM,
                              (const char *const[]){ "--model", model, "--context", "256", "--batch", "1",
                                                     "--perplexity", "part.txt", "-q", NULL });
    expect_near(perplexity_in(&done), REAL_PERPLEXITY, 0.001 * REAL_PERPLEXITY);
    run_forget(r, &done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(it_learns_and_writes_files_that_agree),
        rig_test(it_answers_and_chats),
        rig_test(a_long_message_leaves_the_chat),
        rig_test(a_long_question_of_the_data_has_no_answer),
        rig_test(wrong_models_are_explained),
        rig_test(a_type_that_is_not_read_is_named),
        rig_test(wrong_options_are_explained),
        rig_test(help_names_its_options),
        rig_test(the_real_model_has_its_perplexity),
    };
    return cmocka_run_group_tests_name("vkt-lora", tests, NULL, NULL);
}
