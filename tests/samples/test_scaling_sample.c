/* Tests the program vkt-scaling as its users run it: docs/scaling.md has its output, and wrong arguments and files are
 * reported. */
#include "samples/program.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

#define EXAMPLE VKT_TEST_DIR "/../samples/scaling/example.json"
#define MEASURED VKT_TEST_DIR "/../samples/scaling/resnet20.json"
#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_SCALING_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })

static void the_document_has_its_output(void **state)
{
    rig *r = rig_of(state);
    static const char *const commands[][6] = {
        { "--horovod" },
        { "--horovod", "--fuse", "64" },
        { "--horovod", "--alpha", "31", "--beta", "2.56" },
        { EXAMPLE },
        { EXAMPLE, "--algorithm", "ring" },
        { MEASURED },
        { MEASURED, "--alpha", "50", "--beta", "0.125" },
    };
    void *document;
    size_t n;
    assert_int_equal(vkt_file_read(&r->h, VKT_TEST_DIR "/../docs/scaling.md", 1 << 20, &document, &n), VKT_OK);
    for (size_t i = 0; i < VKT_COUNT(commands); i++) {
        run done = program_finish(r, program_start(r, VKT_SCALING_PROGRAM, NULL, commands[i]));
        assert_int_equal(done.status, 0);
        if (!strstr(document, done.out)) fail_msg("docs/scaling.md does not have this output:\n%s", done.out);
        run_forget(r, &done);
    }
    vkt_free(&r->h, document);
}

static void write_text(const rig *r, const char *name, const char *text)
{
    FILE *f = fopen(vkt_temp_dir_file(&r->dir, name), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* In the first run, 2 ranks exchange both buckets together: 16 MB at 1 GB/s take 16 ms, and 2 messages with a latency
 * of 1 ms take 2 ms. So 18 ms are exposed: the step waits for them. The second run needs two exchanges, and thus 2 ms
 * more. */
static void options_reach_the_model(void **state)
{
    rig *r = rig_of(state);
    write_text(r, "p",
               "{\"forward_ms\": 10, \"backward_ms\": 20, \"update_ms\": 2, \"buckets\": "
               "[{\"bytes\": 8e6, \"ready_ms\": 30}, {\"bytes\": 8000000, \"ready_ms\": 30}]}");
    static const char *const args[][12] = {
        { "p", "--ranks", "1,2", "--alpha", "1000", "--beta", "1", "--fuse", "64" },
        { "p", "--ranks", "2", "--alpha", "1000", "--beta", "1" },
        { "p", "--ranks", "2", "--alpha", "0", "--beta", "1", "--contention", "2", "--copy", "4" },
        { "p", "--ranks", "3", "--alpha", "1000", "--beta", "1000000000", "--algorithm", "ring" },
    };
    static const char *const lines[] = {
        "    1     32.00        0.00    0.0 %     100.0 %\n    2     50.00       18.00   36.0 %      64.0 %\n",
        "    2     52.00       20.00   38.5 %      61.5 %\n",
        "    2     72.00       40.00   55.6 %      44.4 %\n",
        "    3     40.00        8.00   20.0 %      80.0 %\n",
    };
    for (size_t i = 0; i < VKT_COUNT(args); i++) {
        run done = program_finish(r, program_start(r, VKT_SCALING_PROGRAM, NULL, args[i]));
        if (done.status != 0 || !strstr(done.out, lines[i])) fail_msg("want %s in %s%s", lines[i], done.out, done.err);
        run_forget(r, &done);
    }
}

/* Returns the table of vkt-scaling with these arguments: its output without the first line. The caller frees it. */
static char *table_of(const rig *r, const char *const *args)
{
    run done = program_finish(r, program_start(r, VKT_SCALING_PROGRAM, NULL, args));
    if (done.status != 0) fail_msg("%s", done.err);
    const char *end = strchr(done.out, '\n');
    assert_non_null(end);
    char *table = strdup(end);
    assert_non_null(table);
    run_forget(r, &done);
    return table;
}

/* --contention 2 halves the bandwidth of --beta. --copy adds the time of copies to each exchange. */
static void options_reach_horovods_networks(void **state)
{
    rig *r = rig_of(state);
    static const char *const args[][6] = { { "--horovod" },
                                           { "--horovod", "--beta", "3", "--contention", "2" },
                                           { "--horovod", "--beta", "1.5" },
                                           { "--horovod", "--copy", "5" } };
    char *tables[VKT_COUNT(args)];
    for (size_t i = 0; i < VKT_COUNT(args); i++) tables[i] = table_of(r, args[i]);
    assert_string_equal(tables[1], tables[2]);
    assert_string_not_equal(tables[2], tables[0]);
    assert_string_not_equal(tables[3], tables[0]);
    for (size_t i = 0; i < VKT_COUNT(args); i++) free(tables[i]);
}

static void it_reports_what_is_wrong(void **state)
{
    rig *r = rig_of(state);
    static const char *const wrong[][2] = {
        { "{", "line 1" },
        { "{\"forward_ms\": -1}", "want \"forward_ms\"" },
        { "{\"forward_ms\": 1, \"backward_ms\": 1}", "want \"update_ms\"" },
        { "{\"forward_ms\": 1, \"backward_ms\": 1, \"update_ms\": 1, \"buckets\": []}", "want \"buckets\"" },
        { "{\"forward_ms\": 1, \"backward_ms\": 1, \"update_ms\": 1, \"buckets\": [{\"bytes\": 1}]}", "\"ready_ms\"" },
        { "{\"forward_ms\": 1, \"backward_ms\": 1, \"update_ms\": 1, \"buckets\": "
          "[{\"bytes\": 1, \"ready_ms\": 2}, {\"bytes\": 1, \"ready_ms\": 1}]}",
          "got 1 ms after 2 ms" },
    };
    for (size_t i = 0; i < VKT_COUNT(wrong); i++) {
        write_text(r, "wrong", wrong[i][0]);
        EXPECT(r, 1, wrong[i][1], "wrong");
    }
    EXPECT(r, 1, "none", "none");
    EXPECT(r, 2, "want a PROFILE", "--alpha", "1");
    EXPECT(r, 2, "leave out", "--horovod", EXAMPLE);
    EXPECT(r, 2, "leave out --algorithm", "--algorithm", "halving", "--horovod");
    EXPECT(r, 2, "leave out --ranks", "--horovod", "--ranks", "64");
    EXPECT(r, 2, "powers of two", "--ranks", "2,3", EXAMPLE);
    EXPECT(r, 2, "from 1 to 4096", "--ranks", "8192", EXAMPLE);
    EXPECT(r, 2, "from 1 to 4096", "--ranks", "2,", EXAMPLE);
    EXPECT(r, 2, "halving or ring", "--algorithm", "tree", EXAMPLE);
    EXPECT(r, 2, "--beta", "--beta", "0", EXAMPLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(the_document_has_its_output),
        rig_test(options_reach_the_model),
        rig_test(options_reach_horovods_networks),
        rig_test(it_reports_what_is_wrong),
    };
    return cmocka_run_group_tests_name("vkt-scaling", tests, NULL, NULL);
}
