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
/* The perplexity of the first 3000 bytes of wikitext-2/valid.txt, in windows of 256 tokens, as transformers 5.24
 * computed it with float32 weights. */
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

/* Copies the model without its last `cut` bytes. */
static void write_shorter_model(const rig *r, const char *name, size_t cut)
{
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(&r->h, MODEL, 1 << 20, &bytes, &n), VKT_OK);
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, name), bytes, n - cut), VKT_OK);
    vkt_free(&r->h, bytes);
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
    /* The text has the same perplexity with each file of the adapter and with the merged model, but another one without
     * an adapter. */
    expect_near(perplexity_of(r, MODEL, "adapter"), trained, 1e-4 * trained);
    expect_near(perplexity_of(r, MODEL, "adapter.gguf"), trained, 1e-4 * trained);
    expect_near(perplexity_of(r, "merged.gguf", NULL), trained, 1e-3 * trained);
    assert_true(fabs(perplexity_of(r, MODEL, NULL) - trained) > 1);
}

/* Compares a folder of --save-adapter with the file of --save. */
static void expect_same_weights(const rig *r, const char *adapter, const char *weights)
{
    char path[64];
    vkt_safetensors *a, *w;
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", adapter);
    assert_int_equal(vkt_safetensors_open(&r->h, vkt_temp_dir_file(&r->dir, path), &a), VKT_OK);
    assert_int_equal(vkt_safetensors_open(&r->h, vkt_temp_dir_file(&r->dir, weights), &w), VKT_OK);
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

/* With --ema, --save-adapter and --save write the same weights: the averages. */
static void averages_are_what_is_saved(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    EXPECT(r, 0, "", TRAIN, "-q", "--epochs", "1", "--ema", "0.9", "--save-adapter", "a", "--save", "w.safetensors");
    expect_same_weights(r, "a", "w.safetensors");
    /* The memory plan counts the averages: with them, each parameter has five numbers (value, gradient, two moments,
     * average) instead of four. */
    double bytes[2];
    for (int ema = 0; ema < 2; ema++) {
        run done = output_of(
            r, (const char *const[]){ TRAIN, "--epochs", "1", "--rank", "512", ema ? "--ema" : NULL, "0.9", NULL });
        const char *at = strstr(done.out, "adapters with gradients and moments ");
        assert_non_null(at);
        bytes[ema] = strtod(at + strlen("adapters with gradients and moments "), NULL);
        run_forget(r, &done);
    }
    assert_true(bytes[0] > 10);
    expect_near(bytes[1], bytes[0] * 5 / 4, 0.2);
}

/* With --adapter, a training starts with the weights of an adapter. A run without training saves the same tensors. */
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
    assert_string_equal(vkt_peft_config_base(c), ""); /* a GGUF file does not have the model's name on Hugging Face */
    vkt_peft_config_destroy(&c);
    EXPECT(r, 0, "", "--model", MODEL, "-q", "--adapter", "first", "--perplexity", "text.txt", "--save-adapter",
           "second");
    rig_same_file(vkt_temp_dir_file(&r->dir, "first/adapter_model.safetensors"),
                  vkt_temp_dir_file(&r->dir, "second/adapter_model.safetensors"));
    /* To save an adapter, a run needs no training. This run has no data. */
    EXPECT(r, 0, "", "--model", MODEL, "-q", "--adapter", "first", "--save-adapter", "third");
    rig_same_file(vkt_temp_dir_file(&r->dir, "first/adapter_model.safetensors"),
                  vkt_temp_dir_file(&r->dir, "third/adapter_model.safetensors"));
    /* Converts the folder to a GGUF file, and back to a folder. The name of a GGUF file need not end in .gguf. */
    EXPECT(r, 0, "", "--model", MODEL, "-q", "--adapter", "first", "--save-gguf", "first.gguf");
    EXPECT(r, 0, "", "--model", MODEL, "-q", "--adapter", "first", "--save-gguf", "a.file");
    EXPECT(r, 0, "", "--model", MODEL, "-q", "--adapter", "a.file", "--save-adapter", "fourth");
    rig_same_file(vkt_temp_dir_file(&r->dir, "first/adapter_model.safetensors"),
                  vkt_temp_dir_file(&r->dir, "fourth/adapter_model.safetensors"));
    EXPECT(r, 0, "", TRAIN, "-q", "--adapter", "first.gguf", "--epochs", "1", "--json", "report");
    json_t *report = program_json(r, "report");
    const json_t *lora = json_object_get(report, "lora");
    assert_true(json_number_of(lora, "validation_loss_before") < 3); /* the random model has about 5.6 */
    json_decref(report);
    EXPECT(r, 2, "--adapter: rank, alpha and targets are those of first", TRAIN, "--adapter", "first", "--rank", "8");
    EXPECT(r, 1, "there is no adapter", "--model", MODEL, "-q", "--perplexity", "text.txt", "--merge", "m.gguf");
}

/* The program writes the adapter even if something fails after the fit: another file, the sample answer, or the text of
 * --perplexity. */
static void the_adapter_is_saved_although_something_else_fails(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    EXPECT(r, 1, "/dev/full", TRAIN, "-q", "--epochs", "1", "--history", "/dev/full", "--save-adapter", "a");
    assert_true(program_wrote(r, "a/adapter_config.json"));
    EXPECT(r, 1, "none.txt", TRAIN, "-q", "--epochs", "1", "--perplexity", "none.txt", "--save-adapter", "b");
    assert_true(program_wrote(r, "b/adapter_config.json"));
    /* A resumed run has no answer before the training, so the long prompt fails only after the training. */
#define LONG_PROMPT \
    "--prompt", "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    EXPECT(r, 0, "", TRAIN, "-q", "--epochs", "1", "--checkpoint", "c");
    EXPECT(r, 1, "the prompt is too long", TINY, "--data", "data.jsonl", "--lr", "0.02", "--epochs", "2", "--resume",
           "c", LONG_PROMPT, "--save-adapter", "d");
    assert_true(program_wrote(r, "d/adapter_config.json"));
    /* The path of a model may have bytes that are not UTF-8. The report has '?' instead of them. */
    write_shorter_model(r, "m\xff.gguf", 0);
    EXPECT(r, 0, "", "--model", "m\xff.gguf", "--template", "chatml", "--context", "48", "--data", "data.jsonl", "-q",
           "--epochs", "1", "--json", "report", "--save-adapter", "e");
    assert_true(program_wrote(r, "e/adapter_config.json"));
    json_t *report = program_json(r, "report");
    assert_string_equal(json_string_value(json_object_get(json_object_get(report, "lora"), "model")), "m?.gguf");
    json_decref(report);
}

/* After a signal, --save-adapter and --save write the same weights. */
static void a_signal_leaves_the_adapter(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    const char *const args[] = { TRAIN,
                                 "-q",
                                 "--epochs",
                                 "100000",
                                 "--checkpoint",
                                 "c",
                                 "--save-adapter",
                                 "a",
                                 "--save",
                                 "w.safetensors",
                                 "--checkpoint-every",
                                 "1",
                                 NULL };
    const pid_t child = program_start(r, VKT_LORA_PROGRAM, NULL, args);
    pid_t ended = 0;
    while (!program_wrote(r, "c") && (ended = waitpid(child, NULL, WNOHANG)) == 0)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    assert_int_equal(ended, 0);
    assert_int_equal(kill(child, SIGINT), 0);
    run done = program_finish(r, child);
    assert_int_equal(done.status, 128 + SIGINT);
    run_forget(r, &done);
    expect_same_weights(r, "a", "w.safetensors");
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
    /* This run is killed soon after its first checkpoint, which is in the middle of an epoch. Then it is resumed. */
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

/* Starts a chat whose input is the file "in". Returns its output, which the caller frees with vkt_free. */
static char *chat_of(const rig *r, const char *options)
{
    char command[1200];
    snprintf(
        command, sizeof command,
        "cd '%s' && '%s' --model '%s' --template chatml --context 64 --chat --answer 12 -q %s < in > chat 2> errors",
        r->dir.path, VKT_LORA_PROGRAM, MODEL, options);
    assert_int_equal(system(command), 0);
    return program_text(r, "chat");
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
    char *text = chat_of(r, "--adapter adapter");
    uint32_t answers = 0;
    for (const char *at = text; (at = strstr(at, " tokens/s)")); at++) answers++;
    assert_int_equal(answers, 2); /* the empty line ends the chat */
    assert_non_null(strstr(text, "it is "));
    vkt_free(&r->h, text);
    done = output_of(r, (const char *const[]){ TINY, "--adapter", "adapter", "--prompt", "what is 7?", NULL });
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
    write_text(r, "in", "what is 3?\nwhat is 4?\n");
    char *without = chat_of(r, DRAWN);
    write_text(r, "in", text);
    char *with = chat_of(r, DRAWN);
    char *errors = program_text(r, "errors");
    assert_non_null(strstr(errors, "the message is too long"));
    /* The refused message changes no answer. The chat `alone` has only the last question, and gets another answer. So
     * an answer depends on the chat before the question. */
    cut_rates(without);
    cut_rates(with);
    assert_string_equal(with, without);
    write_text(r, "in", "what is 4?\n");
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
    write_text(r, "data", text);
    EXPECT(r, 0, "no answer after the training: the last question of the data has ", TINY, "--data", "data",
           "--validation-examples", "0", "--epochs", "1", "--save-adapter", "a");
    assert_true(program_wrote(r, "a/adapter_config.json"));
}

/* ---- errors ---- */

static void wrong_models_are_explained(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
#define WITH(model) "--model", model, "--data", "data.jsonl"
    EXPECT(r, 1, "none.gguf", WITH("none.gguf"));
    write_shorter_model(r, "short.gguf", 100);
    EXPECT(r, 1, "short.gguf", WITH("short.gguf"));
    write_text(r, "text.gguf", "This is a text, and no model.");
    EXPECT(r, 1, "text.gguf", WITH("text.gguf"));
    EXPECT(r, 1, "tokenizer", WITH(VKT_TEST_DIR "/golden/gguf/llama.gguf")); /* a model without a tokenizer */
    EXPECT(r, 1, "--context: the model's is 128 tokens, got 129", TINY, "--context", "129", "--data", "data.jsonl");
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
#define SMALL TRAIN, "--memory-limit", "14MiB", "-q", "--epochs", "1"
    run done = program_finish(r, program_start(r, VKT_LORA_PROGRAM, NULL,
                                               (const char *const[]){ SMALL, "--batch", "64", "--ema", "0.9", NULL }));
    assert_int_equal(done.status, 1);
    assert_non_null(strstr(done.err, "too little memory: a step with --batch 36 --context 48 needs "));
    assert_non_null(strstr(done.err, "--recompute needs "));
    /* All sizes that the message proposes do fit. */
    const char *const fits[] = { " --context 48 fits", "--batch 36 --context ", " fits, too" };
    for (size_t i = 0; i < VKT_COUNT(fits); i++) {
        unsigned batch = 36, context = 48, parts = 1;
        char b[16], c[16], m[16];
        const char *line = strstr(done.err, fits[i]);
        if (i == 1) line = line ? strstr(line + 1, fits[i]) : NULL; /* the first match is the size that does not fit */
        if (!line) fail_msg("no '%s' in: %s", fits[i], done.err);
        while (line && line > done.err && line[-1] != '\n') line--;
        line = line ? strstr(line, "--batch ") : NULL;
        assert_non_null(line);
        if (i == 2)
            assert_int_equal(sscanf(line, "--batch %u --micro-batches %u", &batch, &parts), 2);
        else
            assert_int_equal(sscanf(line, "--batch %u --context %u", &batch, &context), 2);
        assert_true(i == 1 ? batch == 36 && context < 48 : batch < 36 && context == 48);
        if (i == 2) assert_int_equal(batch * parts, 36);
        snprintf(b, sizeof b, "%u", batch);
        snprintf(c, sizeof c, "%u", context);
        snprintf(m, sizeof m, "%u", parts);
        EXPECT(r, 0, "", SMALL, "--ema", "0.9", "--batch", b, "--context", c, "--micro-batches", m);
    }
    run_forget(r, &done);
    /* With 3 micro-batches, the message proposes a step of the same 3 * 36 rows. */
    done =
        program_finish(r, program_start(r, VKT_LORA_PROGRAM, NULL,
                                        (const char *const[]){ SMALL, "--batch", "36", "--micro-batches", "3", NULL }));
    const char *line = strstr(done.err, " fits, too");
    while (line && line > done.err && line[-1] != '\n') line--;
    line = line ? strstr(line, "--batch ") : NULL;
    unsigned batch = 0, parts = 0;
    assert_true(line && sscanf(line, "--batch %u --micro-batches %u", &batch, &parts) == 2);
    assert_int_equal(batch * parts, 3 * 36);
    run_forget(r, &done);
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
    EXPECT(r, 1, "the prompt is too long: want fewer tokens than the context of 48", TINY, LONG_PROMPT);
    write_text(r, "list.json", "\n[{\"prompt\": \"a\", \"completion\": \"b\"}]\n");
    EXPECT(r, 1, "list.json: want JSON lines: one object a line, not one list", TINY, "--data", "list.json", "-q");
    write_text(r, "text.jsonl", "a text\n");
    EXPECT(r, 1, "text.jsonl: want JSON lines: one object a line\n", TINY, "--data", "text.jsonl", "-q");
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
    EXPECT(r, 1, "--adapter: want a folder of PEFT or a GGUF file; there is no none.gguf", TRAIN, "--adapter",
           "none.gguf");
    EXPECT(r, 1, "\"general.type\": want", TRAIN, "--adapter", MODEL);
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
        rig_test(the_adapter_is_saved_although_something_else_fails),
        rig_test(a_signal_leaves_the_adapter),
        rig_test(a_resumed_run_ends_in_the_same_bytes),
        rig_test(it_answers_and_chats),
        rig_test(a_long_message_leaves_the_chat),
        rig_test(a_long_question_of_the_data_has_no_answer),
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
