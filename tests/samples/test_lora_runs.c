/* Tests runs of vkt-lora that continue an adapter, are stopped, killed, resumed, or fail. */
#include "samples/lora.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "io/safetensors.h"
#include "vktrain/vktrain.h"

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_LORA_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })

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

/* If --ema is given, both --save-adapter and --save write the averages of the weights. */
static void averages_are_what_is_saved(void **state)
{
    rig *r = rig_of(state);
    lora_write_data(r);
    EXPECT(r, 0, "", LORA_TRAIN, "-q", "--epochs", "1", "--ema", "0.9", "--save-adapter", "a", "--save",
           "w.safetensors");
    expect_same_weights(r, "a", "w.safetensors");
    /* The memory plan counts the averages: with them, each parameter has five numbers (value, gradient, two moments,
     * average) instead of four. */
    double bytes[2];
    for (int ema = 0; ema < 2; ema++) {
        run done = program_output(
            r, VKT_LORA_PROGRAM,
            (const char *const[]){ LORA_TRAIN, "--epochs", "1", "--rank", "512", ema ? "--ema" : NULL, "0.9", NULL });
        const char *at = strstr(done.out, "adapters with gradients and moments ");
        assert_non_null(at);
        bytes[ema] = strtod(at + strlen("adapters with gradients and moments "), NULL);
        run_forget(r, &done);
    }
    assert_true(bytes[0] > 10);
    if (!(fabs(bytes[1] - bytes[0] * 5 / 4) <= 0.2)) fail_msg("%g MiB without averages, %g with", bytes[0], bytes[1]);
}

/* With --adapter, a training starts with the weights of an adapter. A run without training saves the tensors of
 * this adapter unchanged. */
static void an_adapter_is_the_start_of_a_training(void **state)
{
    rig *r = rig_of(state);
    lora_write_data(r);
    lora_write_text(r, "text.txt", "what is 3? it is 3");
    EXPECT(r, 0, "", LORA_TRAIN, "-q", "--epochs", "2", "--rank", "4", "--alpha", "6", "--targets", "q_proj,down_proj",
           "--save-adapter", "first");
    vkt_peft_config *c;
    assert_int_equal(vkt_peft_config_open(&r->h, vkt_temp_dir_file(&r->dir, "first"), &c), VKT_OK);
    assert_int_equal(vkt_peft_config_lora(c)->rank, 4);
    assert_true(vkt_peft_config_lora(c)->alpha == 6);
    assert_int_equal(vkt_peft_config_lora(c)->n_targets, 2);
    assert_string_equal(vkt_peft_config_base(c), ""); /* the program takes no name of a base model from a GGUF file */
    vkt_peft_config_destroy(&c);
    EXPECT(r, 0, "", "--model", LORA_MODEL, "-q", "--adapter", "first", "--perplexity", "text.txt", "--save-adapter",
           "second");
    rig_same_file(vkt_temp_dir_file(&r->dir, "first/adapter_model.safetensors"),
                  vkt_temp_dir_file(&r->dir, "second/adapter_model.safetensors"));
    /* To save an adapter, a run needs no training. This run has no data. */
    EXPECT(r, 0, "", "--model", LORA_MODEL, "-q", "--adapter", "first", "--save-adapter", "third");
    rig_same_file(vkt_temp_dir_file(&r->dir, "first/adapter_model.safetensors"),
                  vkt_temp_dir_file(&r->dir, "third/adapter_model.safetensors"));
    /* Converts the folder to a GGUF file, and back to a folder. The name of a GGUF file need not end in .gguf. */
    EXPECT(r, 0, "", "--model", LORA_MODEL, "-q", "--adapter", "first", "--save-gguf", "first.gguf");
    EXPECT(r, 0, "", "--model", LORA_MODEL, "-q", "--adapter", "first", "--save-gguf", "a.file");
    EXPECT(r, 0, "", "--model", LORA_MODEL, "-q", "--adapter", "a.file", "--save-adapter", "fourth");
    rig_same_file(vkt_temp_dir_file(&r->dir, "first/adapter_model.safetensors"),
                  vkt_temp_dir_file(&r->dir, "fourth/adapter_model.safetensors"));
    EXPECT(r, 0, "", LORA_TRAIN, "-q", "--adapter", "first.gguf", "--epochs", "1", "--json", "report");
    json_t *report = program_json(r, "report");
    const json_t *lora = json_object_get(report, "lora");
    assert_true(json_number_of(lora, "validation_loss_before") < 3); /* the random model's loss is about 5.6 */
    json_decref(report);
    EXPECT(r, 2, "--adapter: rank, alpha and targets are those of first", LORA_TRAIN, "--adapter", "first", "--rank",
           "8");
    EXPECT(r, 1, "there is no adapter", "--model", LORA_MODEL, "-q", "--perplexity", "text.txt", "--merge", "m.gguf");
}

/* --perplexity and --save-adapter use the weights of --load, if --data is not given. */
static void weights_of_a_training_are_used(void **state)
{
    rig *r = rig_of(state);
    lora_write_data(r);
    lora_write_text(r, "text.txt", "what is 3? it is 3");
#define SHAPE "-q", "--rank", "4", "--targets", "q_proj,down_proj"
#define SHAPED "--model", LORA_MODEL, "--template", "chatml", SHAPE
    EXPECT(r, 0, "", LORA_TRAIN, SHAPE, "--epochs", "2", "--save", "w.safetensors", "--save-adapter", "first");
    EXPECT(r, 0, "", SHAPED, "--load", "w.safetensors", "--perplexity", "text.txt", "--json", "loaded",
           "--save-adapter", "second");
    EXPECT(r, 0, "", SHAPED, "--perplexity", "text.txt", "--json", "base");
    const char *const names[] = { "loaded", "base" };
    double perplexity[2];
    for (int i = 0; i < 2; i++) {
        json_t *report = program_json(r, names[i]);
        perplexity[i] = json_number_of(report, "perplexity");
        json_decref(report);
    }
    assert_true(perplexity[0] < perplexity[1] / 2);
    rig_same_file(vkt_temp_dir_file(&r->dir, "first/adapter_model.safetensors"),
                  vkt_temp_dir_file(&r->dir, "second/adapter_model.safetensors"));
    EXPECT(r, 1, "w.safetensors", "--model", LORA_MODEL, "-q", "--load", "w.safetensors", "--prompt", "a");
    /* --json gets results without --perplexity, too. */
    EXPECT(r, 0, "", SHAPED, "--load", "w.safetensors", "--prompt", "what is 3?", "--answer", "4", "--json", "report");
    json_t *report = program_json(r, "report");
    assert_string_equal(json_string_value(json_object_get(report, "model")), LORA_MODEL);
    assert_true(json_is_null(json_object_get(report, "perplexity")));
    assert_true(json_is_null(json_object_get(report, "tokens")));
    json_decref(report);
}

/* Options that would have no effect are refused. */
static void options_without_effect_are_refused(void **state)
{
    rig *r = rig_of(state);
    lora_write_data(r);
    EXPECT(r, 0, "", LORA_TRAIN, "-q", "--epochs", "1", "--save", "w.safetensors", "--save-adapter", "a",
           "--checkpoint", "c");
    EXPECT(r, 2, "--adapter, --load: both have the weights", LORA_TRAIN, "-q", "--load", "w.safetensors", "--adapter",
           "a", "--epochs", "1");
    EXPECT(r, 2, "--adapter, --load: both have the weights", LORA_TINY, "-q", "--load", "w.safetensors", "--adapter",
           "a", "--chat");
    static const char *const options[][2] = { { "--run", "d" },        { "--resume", "c" },     { "--save", "s" },
                                              { "--checkpoint", "k" }, { "--history", "h" },    { "--plot", "p.svg" },
                                              { "--profile", "p" },    { "--find-lr", "l.svg" } };
    for (size_t i = 0; i < VKT_COUNT(options); i++) {
        char says[80];
        snprintf(says, sizeof says, "%s: is for training: want --data, or leave out %s", options[i][0], options[i][0]);
        EXPECT(r, 2, says, LORA_TINY, "-q", "--prompt", "a", options[i][0], options[i][1]);
    }
    assert_false(program_wrote(r, "d")); /* the folder of --run is not made */
    EXPECT(r, 2, "--devices, --mpi: are for training", LORA_TINY, "-q", "--prompt", "a", "--devices", "0,0");
}

/* The program writes the adapter even if something fails after the fit: another file, the sample answer, or the text of
 * --perplexity. */
static void the_adapter_is_saved_although_something_else_fails(void **state)
{
    rig *r = rig_of(state);
    lora_write_data(r);
    EXPECT(r, 1, "/dev/full", LORA_TRAIN, "-q", "--epochs", "1", "--history", "/dev/full", "--save-adapter", "a");
    assert_true(program_wrote(r, "a/adapter_config.json"));
    EXPECT(r, 1, "none.txt", LORA_TRAIN, "-q", "--epochs", "1", "--perplexity", "none.txt", "--save-adapter", "b");
    assert_true(program_wrote(r, "b/adapter_config.json"));
    /* A resumed run has no answer before the training, so the long prompt fails only after the training. */
#define LONG_PROMPT \
    "--prompt", "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    EXPECT(r, 0, "", LORA_TRAIN, "-q", "--epochs", "1", "--checkpoint", "c");
    EXPECT(r, 1, "the prompt is too long", LORA_TINY, "--data", "data.jsonl", "--lr", "0.02", "--epochs", "2",
           "--resume", "c", LONG_PROMPT, "--save-adapter", "d");
    assert_true(program_wrote(r, "d/adapter_config.json"));
    /* The path of a model may have bytes that are not UTF-8. The report has '?' instead of them. */
    lora_write_shorter_model(r, "m\xff.gguf", 0);
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
    lora_write_data(r);
    const char *const args[] = { LORA_TRAIN,
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

/* Starts vkt-lora with a pipe as its input. The pipe has `input`, and stays open until the caller closes *to. */
static pid_t start_with_pipe(const rig *r, const char *input, const char *const *args, int *to)
{
    int ends[2];
    const int old = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFD, FD_CLOEXEC), 0);
    assert_int_equal(write(ends[1], input, strlen(input)), strlen(input));
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    const pid_t child = program_start(r, VKT_LORA_PROGRAM, NULL, args);
    if (old >= 0) {
        dup2(old, STDIN_FILENO);
        close(old);
    }
    *to = ends[1];
    return child;
}

/* Waits until the program has printed `text`, and sends it SIGTERM. The signal must end the program. */
static void expect_ended_after(const rig *r, pid_t child, const char *text, const char *says)
{
    for (bool printed = false; !printed;) {
        char *out = program_wrote(r, "out") ? program_text(r, "out") : NULL;
        printed = out && strstr(out, text);
        vkt_free(&r->h, out);
        if (!printed && waitpid(child, NULL, WNOHANG) != 0) fail_msg("the program ended without '%s'", text);
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    assert_int_equal(kill(child, SIGTERM), 0);
    run done = program_finish(r, child);
    assert_int_equal(done.status, 128 + SIGTERM);
    if (!strstr(done.err, says)) fail_msg("no '%s' in: %s", says, done.err);
    run_forget(r, &done);
}

/* One signal ends a program that waits for its input: the next line, or the rest of a line. */
static void a_signal_ends_the_wait_for_input(void **state)
{
    rig *r = rig_of(state);
    int to;
    const char *const inputs[] = { "what is 3?\n", "what is 3?\nwhat" };
    for (int i = 0; i < 2; i++) {
        unlink(vkt_temp_dir_file(&r->dir, "out"));
        const char *const chat[] = { LORA_TINY, "-q", "--chat", "--answer", "2", "--json", "report", NULL };
        expect_ended_after(r, start_with_pipe(r, inputs[i], chat, &to), " tokens/s)", "");
        close(to);
        json_t *report = program_json(r, "report");
        assert_string_equal(json_string_value(json_object_get(report, "stopped_by")), "SIGTERM");
        json_decref(report);
    }
    unlink(vkt_temp_dir_file(&r->dir, "out"));
    const char *const data[] = { LORA_TINY, "--data", "-", NULL };
    expect_ended_after(r, start_with_pipe(r, "{\"prompt\": \"a\", \"completion\": \"b\"}\n{", data, &to), "model   ",
                       "-: cannot be read: a signal ended the input");
    close(to);
    unlink(vkt_temp_dir_file(&r->dir, "out"));
    const char *const text[] = { LORA_TINY, "--perplexity", "-", NULL };
    expect_ended_after(r, start_with_pipe(r, "one two", text, &to), "model   ",
                       "-: cannot be read: a signal ended the input");
    close(to);
}

static void a_resumed_run_ends_in_the_same_bytes(void **state)
{
    rig *r = rig_of(state);
    lora_write_data(r);
#define RUN LORA_TRAIN, "-q", "--lora-dropout", "0.1", "--micro-batches", "2", "--epochs", "2"
    EXPECT(r, 0, "", RUN, "--checkpoint", "whole", "--save-adapter", "a");
    EXPECT(r, 0, "", RUN, "--checkpoint", "again", "--save-adapter", "b", "--recompute");
    rig_same_file(vkt_temp_dir_file(&r->dir, "whole"), vkt_temp_dir_file(&r->dir, "again"));
    rig_same_file(vkt_temp_dir_file(&r->dir, "a/adapter_model.safetensors"),
                  vkt_temp_dir_file(&r->dir, "b/adapter_model.safetensors"));
    /* This run writes its first checkpoint in the middle of an epoch. The run is killed soon after that. (A fast run
     * may end before it is killed.) In both cases, another run resumes the checkpoint. */
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
    EXPECT(r, 1, "part is of another run", LORA_TINY, "--data", "data.jsonl", "-q", "--resume", "part", "--rank", "4",
           "--answer", "0");
    EXPECT(r, 1, "attached text \"model\": not the same as in the checkpoint; ", "--model",
           VKT_TEST_DIR "/golden/lm/qwen3.gguf", "--template", "chatml", "--context", "48", "--data", "data.jsonl",
           "-q", "--resume", "part", "--answer", "0");
}

/* ---- errors ---- */

static void too_little_memory_says_what_fits(void **state)
{
    rig *r = rig_of(state);
    lora_write_data(r);
    /* A step with all 36 rows needs some 20 MiB. */
#define SMALL LORA_TRAIN, "--memory-limit", "14MiB", "-q", "--epochs", "1"
    run done = program_finish(r, program_start(r, VKT_LORA_PROGRAM, NULL,
                                               (const char *const[]){ SMALL, "--batch", "64", "--ema", "0.9", NULL }));
    assert_int_equal(done.status, 1);
    assert_non_null(strstr(done.err, "too little memory: a step with --batch 36 --context 48 needs "));
    assert_non_null(strstr(done.err, "--recompute needs "));
    /* All combinations of --batch, --context and --micro-batches that the message proposes do fit. */
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
        lora_write_text(r, "data", bad[i].text);
        EXPECT(r, 1, bad[i].reason, LORA_TINY, "--data", "data", "--assistant-only", "-q");
    }
    EXPECT(r, 1, "none.jsonl: cannot be read", LORA_TINY, "--data", "none.jsonl");
    EXPECT(r, 1, "it is not a regular file", LORA_TINY, "--data", "/dev/zero");
    lora_write_text(r, "data", "{\"question\": \"a\", \"answer\": \"b\"}\n");
    EXPECT(r, 1, "--template NAME says", "--model", VKT_TEST_DIR "/golden/lm/qwen2.gguf", "--context", "48", "--data",
           "data", "-q");
    EXPECT(r, 1, "want fewer than the 1 examples of the data, got 1", LORA_TINY, "--data", "data",
           "--validation-examples", "1", "-q");
    EXPECT(r, 1, "the prompt is too long: want fewer tokens than the context of 48", LORA_TINY, LONG_PROMPT);
    lora_write_text(r, "list.json", "\n[{\"prompt\": \"a\", \"completion\": \"b\"}]\n");
    EXPECT(r, 1, "list.json: want JSON lines: one object a line, not one list", LORA_TINY, "--data", "list.json", "-q");
    lora_write_text(r, "text.jsonl", "a text\n");
    EXPECT(r, 1, "text.jsonl: want JSON lines: one object a line\n", LORA_TINY, "--data", "text.jsonl", "-q");
    EXPECT(r, 1, "none.txt: cannot be read", LORA_TINY, "--perplexity", "none.txt");
    lora_write_text(r, "one.txt", "a");
    EXPECT(r, 1, "want a text of two tokens or more, got 1", LORA_TINY, "--perplexity", "one.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(averages_are_what_is_saved),
        rig_test(an_adapter_is_the_start_of_a_training),
        rig_test(weights_of_a_training_are_used),
        rig_test(options_without_effect_are_refused),
        rig_test(the_adapter_is_saved_although_something_else_fails),
        rig_test(a_signal_leaves_the_adapter),
        rig_test(a_signal_ends_the_wait_for_input),
        rig_test(a_resumed_run_ends_in_the_same_bytes),
        rig_test(too_little_memory_says_what_fits),
        rig_test(wrong_data_are_explained),
    };
    return cmocka_run_group_tests_name("runs of vkt-lora", tests, NULL, NULL);
}
