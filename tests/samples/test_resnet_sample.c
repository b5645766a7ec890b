/* Tests the program vkt-resnet as its users run it: training from scratch and from weights, with frozen layers and
 * without; options; messages. */
#include "samples/program.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/file.h"

#define IMAGES VKT_TEST_DIR "/golden/images/"
enum { CLASSES = 4, ROWS = 20, TRAIN = 16, PARAMETERS = 269722 - 65 * (10 - CLASSES) };

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_RESNET_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })
#define START(r, ...) program_start(r, VKT_RESNET_PROGRAM, NULL, (const char *const[]){ __VA_ARGS__, NULL })
#define SMALL "--data", ".", "--batch", "8", "--size", "16"

/* Runs the program without VKT_DATA. Fails the test unless its status is 0 and it prints no warning. */
static run finished(const rig *r, const char *const *args)
{
    run done = program_finish(r, program_start(r, VKT_RESNET_PROGRAM, (const char *const[]){ "VKT_DATA", NULL }, args));
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    assert_null(strstr(done.err, "vktrain")); /* no warning */
    return done;
}
#define FINISHED(r, ...) finished(r, (const char *const[]){ __VA_ARGS__, NULL })

/* Writes a data set that has only a table of test images, like the data set cifar10-jpeg. */
static void write_data(const rig *r)
{
    static const char *const names[CLASSES] = { "gray.jpg", "cmyk.jpg", "turned.jpg", "noise.png" };
    char text[ROWS * 300] = "path,label\n";
    for (uint32_t i = 0; i < ROWS; i++) {
        const size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, IMAGES "%s,%s\n", names[i % CLASSES], names[i % CLASSES]);
    }
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "test.csv"), text, strlen(text)), VKT_OK);
}

static void check_report(const rig *r, size_t epochs, bool pretrained)
{
    json_t *o = program_json(r, "report"), *list = json_object_get(o, "epochs");
    assert_int_equal(json_array_size(list), epochs);
    assert_true(json_number_of(o, "parameters") == PARAMETERS);
    assert_true(json_number_of(o, "final_loss") == json_number_of(json_array_get(list, epochs - 1), "train_loss"));
    if (pretrained)
        assert_true(json_number_of(o, "pretrained_rows") == ROWS && json_number_of(o, "pretrained_loss") > 0);
    else
        assert_null(json_object_get(o, "pretrained_rows"));
    json_decref(o);
}

static void weights_from_scratch_are_trained_on(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    run done = FINISHED(r, SMALL, "--epochs", "6", "--no-augment", "--save", "w", "--json", "report");
    assert_non_null(strstr(done.out, "16 to train on, 4 to validate on, 3x16x16, 4 classes"));
    assert_non_null(strstr(done.out, "weights random numbers"));
    assert_non_null(strstr(done.out, "layer3.2.bn2 (BatchNorm)"));
    run_forget(r, &done);
    check_report(r, 6, false);

    done = FINISHED(r, SMALL, "--load", "w", "--epochs", "2", "--json", "report", "--checkpoint", "c");
    const char *before = strstr(done.out, " of 20 images are recognised"),
               *alone = strstr(done.out, "last layer alone");
    assert_true(before && alone && before < alone && strstr(done.out, "epoch 1/1") && strstr(done.out, "epoch 2/2"));
    run_forget(r, &done);
    check_report(r, 2, true);

    /* The checkpoint says that its run began with the weights of a file (--load). So the resumed run has the same
     * parameter groups as that run, but does not train the last layer alone again. */
    done = FINISHED(r, SMALL, "--resume", "c", "--epochs", "2");
    assert_null(strstr(done.out, "last layer alone"));
    run_forget(r, &done);

    done = FINISHED(r, SMALL, "--load", "w", "--evaluate", "--json", "report");
    assert_null(strstr(done.out, "epoch"));
    json_t *report = program_json(r, "report");
    const double right = json_number_of(report, "pretrained_right");
    assert_true(right >= ROWS / CLASSES && right <= ROWS); /* even a constant prediction is right for one class */
    assert_true(json_number_of(report, "peak_device_bytes") > 1e6);
    json_decref(report);
    run_forget(r, &done);
    EXPECT(r, 1, "'conv1.weight'", SMALL, "-q", "--load", "w", "--network", "resnet18");
    EXPECT(r, 1, "'layer1.3.conv1.weight'", SMALL, "-q", "--load", "w", "--network", "resnet32");
}

/* Without --load, the program finds the weights of a network for ten classes in the folder `pretrained`. This data set
 * has four classes, so the program leaves out the weights of the last layer. If --load names the same file, the program
 * fails without --new-head. */
static void weights_that_are_here_are_used(void **state)
{
    rig *r = rig_of(state);
    char path[512], folder[512];
    if (!vkt_test_find_data("pretrained/cifar10-resnet20.safetensors", path)) skip();
    write_data(r);
    snprintf(folder, sizeof folder, "VKT_DATA=%.*s", (int)(strstr(path, "/pretrained/") - path), path);
    const char *const env[] = { folder, NULL };
    const char *const args[] = { SMALL, "--epochs", "1", "--json", "report", NULL };
    run done = program_finish(r, program_start(r, VKT_RESNET_PROGRAM, env, args));
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.out, "pretrained/cifar10-resnet20.safetensors"));
    assert_null(strstr(done.out, "are recognised"));
    assert_non_null(strstr(done.out, "last layer alone"));
    run_forget(r, &done);
    check_report(r, 1, false);
    EXPECT(r, 1, "shape (4,64)", SMALL, "-q", "--load", path);
    EXPECT(r, 0, "", SMALL, "-q", "--load", path, "--new-head", "--frozen-epochs", "0", "--epochs", "1");
}

/* A signal ends the run while it trains only the last layer (--frozen-epochs). The run writes weights and report, but
 * no checkpoint. */
static void a_signal_ends_the_frozen_training_too(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    EXPECT(r, 0, "", SMALL, "-q", "--from-scratch", "--epochs", "1", "--save", "w");
    const pid_t child = START(r, SMALL, "--load", "w", "--frozen-epochs", "1000000", "--save", "s", "--json", "report",
                              "--checkpoint", "c");
    bool trains = false;
    for (int i = 0; i < 240000 && !trains; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        char *text = program_wrote(r, "out") ? program_text(r, "out") : NULL;
        trains = text && strstr(text, "epoch 2/");
        vkt_free(&r->h, text);
    }
    assert_true(trains);
    assert_int_equal(kill(child, SIGTERM), 0);
    run done = program_finish(r, child);
    assert_int_equal(done.status, 128 + SIGTERM);
    assert_non_null(strstr(done.err, "no checkpoint was written"));
    run_forget(r, &done);
    json_t *report = program_json(r, "report");
    assert_string_equal(json_string_value(json_object_get(report, "stopped_by")), "SIGTERM");
    json_decref(report);
    EXPECT(r, 0, "", SMALL, "-q", "--load", "s", "--evaluate");
}

static void the_bottleneck_form_learns_too(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    run done = FINISHED(r, "--data", ".", "--batch", "8", "--size", "32", "--network", "resnet50", "--limit", "9",
                        "--epochs", "1");
    assert_non_null(strstr(done.out, "9 to train on, 4 to validate on"));
    assert_non_null(strstr(done.out, "layer4.2.conv3 (Conv2d)"));
    assert_non_null(strstr(done.out, "epoch 1/1"));
    run_forget(r, &done);
}

static void errors_are_reported(void **state)
{
    rig *r = rig_of(state);
    write_data(r);
    EXPECT(r, 2, "--network", "--network", "resnet51");
    EXPECT(r, 2, "--size", "--size", "4");
    EXPECT(r, 2, "--frozen-epochs", "--frozen-epochs", "-1");
    EXPECT(r, 1, "--load FILE", SMALL, "-q", "--from-scratch", "--evaluate");
    EXPECT(r, 1, "none", SMALL, "-q", "--load", "none");
    EXPECT(r, 1, "cap", SMALL, "-q", "--from-scratch", "--memory-limit", "64K");
    run done = FINISHED(r, "--help");
    static const char *const options[] = { "--network",    "--size",          "--from-scratch",
                                           "--new-head",   "--frozen-epochs", "--evaluate",
                                           "--no-augment", "--load",          "--limit" };
    for (size_t i = 0; i < VKT_COUNT(options); i++)
        if (!strstr(done.out, options[i])) fail_msg("--help does not name %s", options[i]);
    run_forget(r, &done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(weights_from_scratch_are_trained_on),
        rig_test(weights_that_are_here_are_used),
        rig_test(a_signal_ends_the_frozen_training_too),
        rig_test(the_bottleneck_form_learns_too),
        rig_test(errors_are_reported),
    };
    return cmocka_run_group_tests_name("vkt-resnet", tests, NULL, NULL);
}
