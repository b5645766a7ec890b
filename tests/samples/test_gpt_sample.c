/* Tests the program vkt-gpt as its users run it, on small texts. */
#include "samples/program.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "io/safetensors.h"

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_GPT_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })
#define TINY "--data", "text", "--layers", "1", "--heads", "2", "--width", "16", "--context", "16", "--batch", "8"

/* Writes `part`, repeated `times` times, as the file "text". */
static void write_text(const rig *r, const char *part, uint32_t times)
{
    const size_t n = strlen(part);
    char *all = test_malloc(n * times);
    for (uint32_t i = 0; i < times; i++) memcpy(all + i * n, part, n);
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "text"), all, n * times), VKT_OK);
    test_free(all);
}

/* Returns the text that the program printed after "generated text". The caller frees the text with test_free. */
static char *written(const rig *r, const char *const *args)
{
    run done = program_finish(r, program_start(r, VKT_GPT_PROGRAM, NULL, args));
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    char *begin = strstr(done.out, "generated text\n");
    assert_non_null(begin);
    begin += strlen("generated text\n");
    char *text = test_malloc(strlen(begin) + 1);
    memcpy(text, begin, strlen(begin) + 1);
    run_forget(r, &done);
    return text;
}

static void it_learns_a_text_and_goes_on_with_it(void **state)
{
    static const char *const names[] = { "transformer.wte.weight",
                                         "transformer.wpe.weight",
                                         "transformer.h.0.ln_1.bias",
                                         "transformer.h.0.attn.c_attn.weight",
                                         "transformer.h.0.mlp.c_proj.weight",
                                         "transformer.ln_f.weight",
                                         "lm_head.weight" };
    rig *r = rig_of(state);
    /* The text repeats 15 characters. 15 and the context of 16 are coprime, so training samples begin at each
     * character. */
    write_text(r, "Fünf là, ∀x 🌍!\n", 150);
    char *text =
        written(r, (const char *const[]){ TINY, "--epochs", "20", "--lr", "0.02", "--prompt", "Fünf", "--sample", "30",
                                          "--temperature", "0", "--json", "report", "--save", "weights", NULL });
    assert_string_equal(text, "Fünf là, ∀x 🌍!\nFünf là, ∀x 🌍!\nFünf\n");
    test_free(text);
    json_t *report = program_json(r, "report");
    assert_int_equal(json_array_size(json_object_get(report, "epochs")), 20);
    assert_true(json_number_of(report, "final_loss") < 0.1);
    /* There are 13 different characters, 16 positions and a width of 16. The first term has the embedding tables of
     * characters and positions, and lm_head. The second term is the transformer block, and 32 is the last norm. */
    assert_true(json_number_of(report, "parameters") == 16 * (13 + 16 + 13) + (12 * 16 * 16 + 13 * 16) + 32);
    json_decref(report);
    vkt_safetensors *st;
    assert_int_equal(vkt_safetensors_open(&r->h, vkt_temp_dir_file(&r->dir, "weights"), &st), VKT_OK);
    for (size_t i = 0; i < VKT_COUNT(names); i++)
        if (!vkt_safetensors_find(st, names[i])) fail_msg("no weight '%s'", names[i]);
    vkt_safetensors_close(&st);
}

static void what_it_writes_follows_the_options(void **state)
{
    rig *r = rig_of(state);
    write_text(r, "the cat sat on the mat. ", 40);
    const char *const first[] = { TINY, "--epochs", "1", "--sample", "40", NULL };
    const char *const likeliest[] = { TINY, "--epochs", "1", "--sample", "40", "--top-k", "1", NULL };
    const char *const cold[] = { TINY, "--epochs", "1", "--sample", "40", "--temperature", "0", NULL };
    const char *const other[] = { TINY, "--epochs", "1", "--sample", "40", "--seed", "2", NULL };
    char *a = written(r, first), *b = written(r, first), *c = written(r, likeliest), *d = written(r, cold);
    char *e = written(r, other);
    assert_int_equal(strlen(a), 1 + 40 + 1); /* the text's first letter, what was generated, the end of the line */
    assert_int_equal(a[0], 't');
    assert_string_equal(a, b);
    assert_string_equal(c, d);
    assert_string_not_equal(a, c);
    assert_string_not_equal(a, e);
    test_free(a);
    test_free(b);
    test_free(c);
    test_free(d);
    test_free(e);
}

/* Neither checkpoints within an epoch nor --stream change a byte of the last checkpoint. The resumed run begins after
 * the last epoch, so it trains nothing. */
static void a_resumed_run_ends_in_the_same_bytes(void **state)
{
    rig *r = rig_of(state);
    write_text(r, "one two three four ", 30);
    EXPECT(r, 0, "", TINY, "-q", "--dropout", "0.1", "--epochs", "3", "--checkpoint", "whole", "--checkpoint-every",
           "2");
    EXPECT(r, 0, "", TINY, "-q", "--dropout", "0.1", "--epochs", "3", "--checkpoint", "c", "--stream");
    rig_same_file(vkt_temp_dir_file(&r->dir, "whole"), vkt_temp_dir_file(&r->dir, "c"));
    EXPECT(r, 0, "", TINY, "-q", "--dropout", "0.1", "--epochs", "3", "--resume", "c", "--checkpoint", "c");
    assert_false(program_wrote(r, "out")); /* --quiet */
    rig_same_file(vkt_temp_dir_file(&r->dir, "whole"), vkt_temp_dir_file(&r->dir, "c"));
}

/* The resumed run gets no --seed. It chooses the characters of its text with the seed of the checkpoint. */
static void a_resumed_run_writes_the_same_text(void **state)
{
    rig *r = rig_of(state);
    write_text(r, "one two three four ", 30);
    char *whole = written(r, (const char *const[]){ TINY, "--epochs", "1", "--seed", "7", "--checkpoint", "c", NULL }),
         *rest = written(r, (const char *const[]){ TINY, "--epochs", "1", "--resume", "c", NULL });
    assert_string_equal(whole, rest);
    test_free(whole);
    test_free(rest);
}

static void another_network_or_alphabet_is_refused_by_name(void **state)
{
    rig *r = rig_of(state);
    write_text(r, "one two three four ", 30);
    EXPECT(r, 0, "", TINY, "-q", "--epochs", "1", "--checkpoint", "c");
    EXPECT(r, 1, "heads: checkpoint 2, this run 1", TINY, "-q", "--epochs", "2", "--resume", "c", "--heads", "1");
    EXPECT(r, 1, "dropout: checkpoint has 0, this run ", TINY, "-q", "--epochs", "2", "--resume", "c", "--dropout",
           "0.1");
    /* More epochs make a longer cosine. The program reports this, and trains. */
    EXPECT(r, 0, "length of the schedule: checkpoint ", TINY, "--epochs", "2", "--resume", "c");
    write_text(r, "pof uxp uisff gpvs ", 30); /* each letter is replaced by the next one of the alphabet */
    EXPECT(r, 1, "c is of another run: attached text \"alphabet\": not the same as in the checkpoint", TINY, "-q",
           "--epochs", "2", "--resume", "c");
}

/* The weights file has the alphabet unchanged. The program prints other characters instead of control characters. */
static void the_attached_alphabet_has_control_characters(void **state)
{
    rig *r = rig_of(state);
    write_text(r, "ab\r\n\x1b c ", 60);
    EXPECT(r, 0, "", TINY, "-q", "--epochs", "1", "--save", "weights");
    vkt_safetensors *st;
    assert_int_equal(vkt_safetensors_open(&r->h, vkt_temp_dir_file(&r->dir, "weights"), &st), VKT_OK);
    const char *alphabet = vkt_safetensors_meta(st, "vktrain.text.alphabet");
    assert_non_null(alphabet);
    assert_int_equal(strlen(alphabet), 7);
    assert_int_equal(strspn(alphabet, "ab\r\n\x1b c"), 7);
    vkt_safetensors_close(&st);
}

/* With shards, the trainer submits all micro-batches of a step at once. Without shards (--shards 1), it submits one
 * micro-batch after the other. In both cases the rate falls to a tenth of --lr at the last step. */
static void the_schedule_ends_with_the_last_step(void **state)
{
    rig *r = rig_of(state);
    static const char *const shards[] = { "1", "2" };
    write_text(r, "the cat sat on the mat. ", 100);
    for (int i = 0; i < 2; i++) {
        EXPECT(r, 0, "", TINY, "-q", "--epochs", "8", "--lr", "0.01", "--micro-batches", "4", "--shards", shards[i],
               "--json", "report");
        json_t *report = program_json(r, "report");
        const json_t *last = json_array_get(json_object_get(report, "epochs"), 7);
        const double lr = json_number_of(last, "lr"); /* of the epoch's first step */
        if (!(lr >= 0.001 && lr < 0.002)) fail_msg("%s shards: the rate of the last epoch is %g", shards[i], lr);
        json_decref(report);
    }
}

static void errors_are_explained(void **state)
{
    rig *r = rig_of(state);
    write_text(r, "abc ", 100);
    EXPECT(r, 2, "--layers", "--layers", "0");
    EXPECT(r, 2, "--dropout", "--dropout", "1.5");
    EXPECT(r, 2, "--temperature", "--temperature", "-1");
    EXPECT(r, 2, "--top-k", "--top-k", "x");
    EXPECT(r, 2, "'stray'", "stray");
    EXPECT(r, 1, "none: cannot be read", "--data", "none");
    EXPECT(r, 1, "it is not a regular file", "--data", "/dev/zero");
    assert_int_equal(mkfifo(vkt_temp_dir_file(&r->dir, "fifo"), 0600), 0);
    EXPECT(r, 1, "it is not a regular file", "--data", "fifo");
    EXPECT(r, 2, "--heads: want a divisor of --width 16, got 3", TINY, "--heads", "3");
    EXPECT(r, 1, "--prompt", TINY, "--prompt", "xyz");
    EXPECT(r, 1, "want 650 characters or more for a context of 64, got 400", "--data", "text");
    write_text(r, "ab\xe2\x80", 1);
    EXPECT(r, 1, "text: byte 2 is not UTF-8", TINY);
    write_text(r, "ab\xc0\x80", 100); /* an overlong encoding of zero */
    EXPECT(r, 1, "text: byte 2 is not UTF-8", TINY);
}

static void help_names_its_options(void **state)
{
    rig *r = rig_of(state);
    run done = program_finish(r, program_start(r, VKT_GPT_PROGRAM, NULL, (const char *const[]){ "--help", NULL }));
    assert_int_equal(done.status, 0);
    static const char *const options[] = {
        "--data",   "--layers",      "--heads", "--width",  "--context", "--dropout",
        "--sample", "--temperature", "--top-k", "--prompt", "--json",    "--epochs"
    };
    for (size_t i = 0; i < VKT_COUNT(options); i++)
        if (!strstr(done.out, options[i])) fail_msg("--help does not name %s", options[i]);
    run_forget(r, &done);
}

/* Each heading is above its own options, and "Other" is the last one. */
static void headings_of_help_are_in_order(void **state)
{
    rig *r = rig_of(state);
    static const char *const lines[] = { "\n Device and data\n",
                                         "--data=",
                                         "\n Training\n",
                                         "--epochs=",
                                         "\n Files\n",
                                         "--save=",
                                         "\n Network\n",
                                         "--layers=",
                                         "\n Text generated at the end\n",
                                         "--prompt=",
                                         "\n Other\n",
                                         "--quiet" };
    run done = program_finish(r, program_start(r, VKT_GPT_PROGRAM, NULL, (const char *const[]){ "--help", NULL }));
    const char *at = done.out;
    for (size_t i = 0; i < VKT_COUNT(lines); i++) {
        const char *next = strstr(at, lines[i]);
        if (!next) fail_msg("--help has no '%s' where it should be", lines[i]);
        at = next;
    }
    run_forget(r, &done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(it_learns_a_text_and_goes_on_with_it),
        rig_test(what_it_writes_follows_the_options),
        rig_test(a_resumed_run_ends_in_the_same_bytes),
        rig_test(a_resumed_run_writes_the_same_text),
        rig_test(another_network_or_alphabet_is_refused_by_name),
        rig_test(the_attached_alphabet_has_control_characters),
        rig_test(the_schedule_ends_with_the_last_step),
        rig_test(errors_are_explained),
        rig_test(help_names_its_options),
        rig_test(headings_of_help_are_in_order),
    };
    return cmocka_run_group_tests_name("vkt-gpt", tests, NULL, NULL);
}
