/* Tests the program vkt-lora as its users run it, on a tiny random model. */
#include "samples/program.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/file.h"
#include "bench/schema.h"
#include "io/safetensors.h"
#include "vktrain/vktrain.h"

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_LORA_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })
#define MODEL VKT_TEST_DIR "/golden/lm/llama.gguf"
#define TINY "--model", MODEL, "--template", "chatml", "--context", "48"
/* The perplexity that transformers 5.24 (float32 weights) has for the first 3000 bytes of wikitext-2/valid.txt, windows
 * of 256 tokens. */
#define REAL_PERPLEXITY 19.873639
#define TRAIN TINY, "--data", "data.jsonl", "--lr", "0.02", "--answer", "0"

static void expect_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance)) fail_msg("want %g +- %g, got %g", want, tolerance, got);
}

static void write_text(const rig *r, const char *name, const char *text)
{
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, name), text, strlen(text)), VKT_OK);
}

/* Writes 40 questions with answers. */
static void write_data(const rig *r)
{
    char text[8192];
    size_t at = 0;
    for (int i = 0; i < 40; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "{\"question\": \"what is %d?\", \"answer\": \"it is %d\"}\n", i, i % 10);
    write_text(r, "data.jsonl", text);
}

/* Returns what the program prints. The caller frees it with run_forget. */
static run output_of(const rig *r, const char *const *args)
{
    run done = program_finish(r, program_start(r, VKT_LORA_PROGRAM, NULL, args));
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    return done;
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
    run done = output_of(r, args);
    const double got = perplexity_in(&done);
    run_forget(r, &done);
    return got;
}

static void it_learns_and_writes_files_that_agree(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    write_text(r, "text.txt", "The quick brown fox jumps over the lazy dog. It is 3, it is 4, it is 5; what is 6?");
    const char *const args[] = {
        TRAIN,          "--epochs",     "3",   "--assistant-only", "--save-adapter", "adapter", "--merge",
        "merged.gguf",  "--merge-type", "f32", "--save-gguf",      "adapter.gguf",   "--json",  "report",
        "--perplexity", "text.txt",     NULL
    };
    run done = output_of(r, args);
    assert_non_null(strstr(done.out, "data    data.jsonl: 40 rows of 48 tokens"));
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
    /* The same text: with the adapter, with the merged model, and without an adapter. */
    expect_near(perplexity_of(r, MODEL, "adapter"), trained, 1e-4 * trained);
    expect_near(perplexity_of(r, "merged.gguf", NULL), trained, 1e-3 * trained);
    assert_true(fabs(perplexity_of(r, MODEL, NULL) - trained) > 1);
}

/* With --ema, the averages are validated, saved for PEFT, and saved by --save. */
static void averages_are_what_is_saved(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    EXPECT(r, 0, "", TRAIN, "-q", "--epochs", "1", "--ema", "0.9", "--save-adapter", "a", "--save", "w.safetensors");
    vkt_safetensors *a, *w;
    assert_int_equal(vkt_safetensors_open(&r->h, vkt_temp_dir_file(&r->dir, "a/adapter_model.safetensors"), &a),
                     VKT_OK);
    assert_int_equal(vkt_safetensors_open(&r->h, vkt_temp_dir_file(&r->dir, "w.safetensors"), &w), VKT_OK);
    assert_int_equal(vkt_safetensors_count(a), 28);
    for (size_t i = 0; i < vkt_safetensors_count(a); i++) {
        const vkt_st_entry *of = vkt_safetensors_entry(a, i);
        const vkt_st_entry *same = vkt_safetensors_find(w, of->name + strlen("base_model.model."));
        float x[2048], y[2048];
        assert_true(same && of->elements <= 2048 && same->elements == of->elements);
        assert_int_equal(vkt_safetensors_read_f32(a, of, x, of->elements), VKT_OK);
        assert_int_equal(vkt_safetensors_read_f32(w, same, y, of->elements), VKT_OK);
        assert_memory_equal(x, y, (size_t)of->bytes);
    }
    vkt_safetensors_close(&a);
    vkt_safetensors_close(&w);
}

/* --adapter begins with an adapter, and saving it without training gives the same tensors. */
static void an_adapter_is_the_start_of_a_training(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    write_text(r, "text.txt", "what is 3? it is 3");
    EXPECT(r, 0, "", TRAIN, "-q", "--epochs", "2", "--rank", "4", "--alpha", "6", "--targets", "q_proj,down_proj",
           "--save-adapter", "first");
    vkt_peft_config *c;
    assert_int_equal(vkt_peft_config_open(&r->h, vkt_temp_dir_file(&r->dir, "first"), &c), VKT_OK);
    assert_int_equal(vkt_peft_config_lora(c)->rank, 4);
    assert_true(vkt_peft_config_lora(c)->alpha == 6);
    assert_int_equal(vkt_peft_config_lora(c)->n_targets, 2);
    assert_string_equal(vkt_peft_config_base(c), "tiny llama");
    vkt_peft_config_destroy(&c);
    EXPECT(r, 0, "", "--model", MODEL, "-q", "--adapter", "first", "--perplexity", "text.txt", "--save-adapter",
           "second");
    rig_same_file(vkt_temp_dir_file(&r->dir, "first/adapter_model.safetensors"),
                  vkt_temp_dir_file(&r->dir, "second/adapter_model.safetensors"));
    run done =
        output_of(r, (const char *const[]){ TRAIN, "--adapter", "first", "--epochs", "1", "--json", "report", NULL });
    run_forget(r, &done);
    json_t *report = program_json(r, "report");
    const json_t *lora = json_object_get(report, "lora");
    assert_true(json_number_of(lora, "validation_loss_before") < 3); /* the random model has about 5.6 */
    json_decref(report);
    EXPECT(r, 2, "--adapter: rank, alpha and targets are those of first", TRAIN, "--adapter", "first", "--rank", "8");
    EXPECT(r, 1, "there is no adapter", "--model", MODEL, "-q", "--perplexity", "text.txt", "--merge", "m.gguf");
}

static void a_resumed_run_ends_in_the_same_bytes(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
#define RUN TRAIN, "-q", "--lora-dropout", "0.1", "--micro-batches", "2", "--epochs", "2"
    EXPECT(r, 0, "", RUN, "--checkpoint", "whole", "--save-adapter", "a");
    EXPECT(r, 0, "", RUN, "--checkpoint", "again", "--save-adapter", "b", "--recompute");
    rig_same_file(vkt_temp_dir_file(&r->dir, "whole"), vkt_temp_dir_file(&r->dir, "again"));
    rig_same_file(vkt_temp_dir_file(&r->dir, "a/adapter_model.safetensors"),
                  vkt_temp_dir_file(&r->dir, "b/adapter_model.safetensors"));
    /* Killed at once after the first checkpoint in the middle of an epoch, and resumed. */
    const char *const args[] = { RUN, "--checkpoint", "part", "--checkpoint-every", "1", NULL };
    const pid_t child = program_start(r, VKT_LORA_PROGRAM, NULL, args);
    pid_t ended = 0;
    while (!program_wrote(r, "part") && (ended = waitpid(child, NULL, WNOHANG)) == 0)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    if (ended == 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    assert_true(program_wrote(r, "part"));
    EXPECT(r, 0, "", RUN, "--checkpoint", "part", "--resume", "part", "--save-adapter", "c");
    rig_same_file(vkt_temp_dir_file(&r->dir, "whole"), vkt_temp_dir_file(&r->dir, "part"));
    rig_same_file(vkt_temp_dir_file(&r->dir, "a/adapter_model.safetensors"),
                  vkt_temp_dir_file(&r->dir, "c/adapter_model.safetensors"));
    EXPECT(r, 1, "part is of another run", TINY, "--data", "data.jsonl", "-q", "--resume", "part", "--rank", "4",
           "--answer", "0");
    EXPECT(r, 1, "model: not the same as in the checkpoint", "--model", VKT_TEST_DIR "/golden/lm/qwen3.gguf",
           "--template", "chatml", "--context", "48", "--data", "data.jsonl", "-q", "--resume", "part", "--answer",
           "0");
}

static void it_answers_and_chats(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    run done = output_of(r, (const char *const[]){ TINY, "--data", "data.jsonl", "--lr", "0.02", "--epochs", "4",
                                                   "--answer", "12", "--save-adapter", "adapter", NULL });
    assert_non_null(strstr(done.out, "answer before the training\n> what is 39?\n"));
    const char *after = strstr(done.out, "answer after the training\n> what is 39?\n");
    assert_non_null(after);
    assert_non_null(strstr(after, "it is "));
    run_forget(r, &done);
    write_text(r, "in", "what is 3?\nwhat is 4?\n\nwhat is 5?\n");
    char command[1200];
    snprintf(command, sizeof command,
             "cd %s && %s --model %s --template chatml --context 64 --adapter adapter --chat "
             "--answer 12 -q < in > chat 2> errors",
             r->dir.path, VKT_LORA_PROGRAM, MODEL);
    assert_int_equal(system(command), 0);
    char *text = program_text(r, "chat");
    uint32_t answers = 0;
    for (const char *at = text; (at = strstr(at, " tokens/s)")); at++) answers++;
    assert_int_equal(answers, 2); /* the empty line ends the chat */
    assert_non_null(strstr(text, "it is "));
    vkt_free(&r->h, text);
    done = output_of(r, (const char *const[]){ TINY, "--adapter", "adapter", "--prompt", "what is 7?", NULL });
    assert_non_null(strstr(done.out, "> what is 7?\nit is "));
    run_forget(r, &done);
}

/* ---- errors ---- */

/* Copies the model without its last `cut` bytes. */
static void write_shorter_model(const rig *r, size_t cut)
{
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(&r->h, MODEL, 1 << 20, &bytes, &n), VKT_OK);
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "short.gguf"), bytes, n - cut), VKT_OK);
    vkt_free(&r->h, bytes);
}

static void wrong_models_are_explained(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
#define WITH(model) "--model", model, "--data", "data.jsonl"
    EXPECT(r, 1, "none.gguf", WITH("none.gguf"));
    write_shorter_model(r, 100);
    EXPECT(r, 1, "short.gguf", WITH("short.gguf"));
    write_text(r, "text.gguf", "This is a text, and no model.");
    EXPECT(r, 1, "text.gguf", WITH("text.gguf"));
    EXPECT(r, 1, "tokenizer", WITH(VKT_TEST_DIR "/golden/gguf/llama.gguf")); /* a model without a tokenizer */
    EXPECT(r, 1, "--context: the model's is 128 tokens, got 129", TINY, "--context", "129", "--data", "data.jsonl");
    EXPECT(r, 1, "want one device", TRAIN, "--devices", "0,0");
}

static void a_type_that_is_not_read_is_named(void **state)
{
    rig *r = rig_of(state);
    vkt_gguf *g;
    vkt_gguf_tensor all[64];
    static uint8_t zeros[1 << 16];
    assert_int_equal(vkt_gguf_open(&r->h, MODEL, &g), VKT_OK);
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
    write_data(r);
    EXPECT(r, 1, "Q5_0", WITH("q5.gguf"));
}

static void too_little_memory_says_what_fits(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    /* A step with all 36 rows needs some 20 MiB. */
    EXPECT(r, 1, "too little memory: a step with --batch 36 --context 48 needs ", TRAIN, "--batch", "64",
           "--memory-limit", "14MiB");
    EXPECT(r, 1, " --context 48 fits; --micro-batches ", TRAIN, "--batch", "64", "--memory-limit", "14MiB");
    EXPECT(r, 1, "--batch 36 --context 16 fits", TRAIN, "--batch", "64", "--memory-limit", "14MiB");
    EXPECT(r, 1, "--recompute needs less memory", TRAIN, "--batch", "64", "--memory-limit", "14MiB");
}

static void wrong_data_are_explained(void **state)
{
    rig *r = rig_of(state);
    static const struct {
        const char *text, *reason;
    } bad[] = {
        { "", "data: the file has no data" },
        { "\n\n", "data: the file has no data" },
        { "{}\n", "data: line 1: want an object with" },
        { "{\"prompt\": \"a\", \"completion\": \"b\"}\n\n{\"prompt\": \"a\"", "data: line 3: " },
        { "{\"prompt\": \"a\"}\n", "data: line 1: want the texts \"prompt\" and \"completion\"" },
        { "{\"question\": \"a\", \"answer\": 3}\n", "data: line 1: want the texts \"question\" and \"answer\"" },
        { "{\"question\": \"a\", \"answer\": \"x\\u0000y\"}\n", "data: line 1: " },
        { "{\"messages\": []}\n", "data: line 1: \"messages\": want a list" },
        { "{\"messages\": [{\"role\": \"user\"}]}\n", "data: line 1: \"messages\": want objects" },
        { "{\"messages\": [{\"role\": \"cook\", \"content\": \"a\"}]}\n", "data: line 1: \"role\"" },
        { "{\"prompt\": \"a\", \"prompt\": \"b\", \"completion\": \"c\"}\n", "data: line 1: " },
        { "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n", "no example is left: in all 1 of them" },
    };
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        write_text(r, "data", bad[i].text);
        EXPECT(r, 1, bad[i].reason, TINY, "--data", "data", "--assistant-only", "-q");
    }
    EXPECT(r, 1, "none.jsonl: cannot be read", TINY, "--data", "none.jsonl");
    EXPECT(r, 1, "it is not a regular file", TINY, "--data", "/dev/zero");
    write_text(r, "data", "{\"question\": \"a\", \"answer\": \"b\"}\n");
    EXPECT(r, 1, "--template NAME says", "--model", VKT_TEST_DIR "/golden/lm/qwen2.gguf", "--context", "48", "--data",
           "data", "-q");
    EXPECT(r, 1, "want fewer than the 1 examples of the data, got 1", TINY, "--data", "data", "--validation-examples",
           "1", "-q");
    EXPECT(r, 1, "the prompt is too long: want fewer tokens than the context of 48", TINY, "--prompt",
           "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen");
    EXPECT(r, 1, "none.txt: cannot be read", TINY, "--perplexity", "none.txt");
    write_text(r, "one.txt", "a");
    EXPECT(r, 1, "want a text of two tokens or more, got 1", TINY, "--perplexity", "one.txt");
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
    write_data(r);
    EXPECT(r, 1, "z_proj", TRAIN, "--targets", "z_proj");
    EXPECT(r, 1, "none", TRAIN, "--adapter", "none");
    EXPECT(r, 1, "cannot be made", TRAIN, "--save-adapter", "none/deep");
    EXPECT(r, 1, "none/m.gguf", TRAIN, "--merge", "none/m.gguf");
}

static void help_names_its_options(void **state)
{
    rig *r = rig_of(state);
    run done = output_of(r, (const char *const[]){ "--help", NULL });
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

/* With the model and the data that a machine may have: fewer than a minute. */
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
    run done = output_of(r, (const char *const[]){ "--model", model, "--context", "256", "--batch", "1", "--perplexity",
                                                   "part.txt", "-q", NULL });
    expect_near(perplexity_in(&done), REAL_PERPLEXITY, 0.001 * REAL_PERPLEXITY);
    run_forget(r, &done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(it_learns_and_writes_files_that_agree),
        rig_test(averages_are_what_is_saved),
        rig_test(an_adapter_is_the_start_of_a_training),
        rig_test(a_resumed_run_ends_in_the_same_bytes),
        rig_test(it_answers_and_chats),
        rig_test(wrong_models_are_explained),
        rig_test(a_type_that_is_not_read_is_named),
        rig_test(too_little_memory_says_what_fits),
        rig_test(wrong_data_are_explained),
        rig_test(wrong_options_are_explained),
        rig_test(help_names_its_options),
        rig_test(the_real_model_has_its_perplexity),
    };
    return cmocka_run_group_tests_name("vkt-lora", tests, NULL, NULL);
}
