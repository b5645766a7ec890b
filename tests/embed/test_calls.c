/* Calls every public function that calls.awk finds in the headers, with one wrong argument at a time. Wrong arguments
 * are for example NULL, numbers out of range, tensors of no graph, and shapes of illegal ranks. No call may crash.
 * With a NULL handle, a function that returns a status returns an error, and a function that returns a tensor returns
 * the null tensor. (One handle may be NULL: see may_be_null.) With a tensor of no graph, a function that returns a
 * tensor returns the null tensor and leaves a failed graph. */
#define _POSIX_C_SOURCE 200809L
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "embed/app.h"
#include "support/temp_dir.h"

enum { SCRATCH_BYTES = 1 << 16, MAX_BYTES = 64 << 20, SETS = 8, NO_TENSOR = 99999 };

/* The objects that exist for the whole test. */
static vkt_host host;
static vkt_ctx *the_ctx;
static vkt_graph *stored; /* the graph of the store and program below */
static vkt_store *the_store;
static vkt_program *the_program;
static vkt_array *the_array;
static vkt_dataset *the_dataset;
static vkt_scaler *the_scaler;
static vkt_texts *the_texts;
static vkt_records *the_records;
static vkt_events *the_events;
static vkt_vocab *the_vocab;
static vkt_trainer *the_trainer;
static vkt_predictor *the_predictor;
static vkt_progress *the_progress;
static vkt_run_dir *the_run_dir;
static vkt_scores *the_scores;
static vkt_card *the_card;
static vkt_columns *the_columns;
static vkt_alphabet *the_alphabet;
static vkt_tokenizer *the_tokenizer;
static vkt_tokens the_tokens; /* receives the tokens of a call */
static vkt_gguf *the_gguf;
static vkt_lm *the_lm;
static vkt_generator *the_generator;
static vkt_peft_config *the_peft_config;
static vkt_thread_group *the_group; /* of one rank */
static vkt_emulation *the_emulation;
static FILE *stream;
static vkt_temp_dir folder; /* the current directory: calls write their files there */

/* The objects that are made for each call, and the memory for the call's pointer arguments. */
static vkt_graph *the_graph;
static vkt_builder *the_builder;
static vkt_tensor rows, image, line, ids, scalar, weight, kernel, bias;
static _Alignas(16) unsigned char scratch[16][SCRATCH_BYTES];

/* The call under test. `at` is the index of the wrong argument (-1: none). `variant` is the index of this argument's
 * value in the list of wrong values. `set` is the index of an element of the array `sets` in typical(): this element
 * has the valid tensors for the other arguments. */
static struct {
    const char *name;
    int at, variant, set;
    bool last;      /* there is no further wrong value */
    bool no_handle; /* the wrong argument is a NULL handle */
    bool no_tensor; /* the wrong argument is a tensor of no graph */
    bool has_tensors;
} now;
static _Atomic unsigned faults;
static sigjmp_buf back;

/* ---- arguments ---- */

static bool is_wrong(int i, int variants)
{
    if (i != now.at) return false;
    now.last = now.variant + 1 >= variants;
    return true;
}

/* Returns whether argument i is the number of bytes or elements to which another argument points. The function under
 * test cannot find out that such a number is too large. */
static bool counts_memory(int i)
{
    static const struct {
        const char *name;
        int at;
    } counts[] = {
        { "vkt_order_identity", 1 },
        { "vkt_shuffle", 1 },
        { "vkt_scaler_rows", 2 },
        { "vkt_pad_sequence", 2 },
        { "vkt_vocab_create", 3 },
        { "vkt_dataset_select", 2 },
        { "vkt_gradients", 3 },
        { "vkt_gradients", 5 },
        { "vkt_split_sizes", 4 },
        { "vkt_audit_op", 2 },
        { "vkt_write_file", 3 },
        { "vkt_image_row", 4 },
        { "vkt_events_image", 4 },
        { "vkt_events_image", 5 },
        { "vkt_events_image", 6 },
        { "vkt_confusion_add", 3 },
        { "vkt_confusion_add", 4 },
        { "vkt_class_scores", 2 },
        { "vkt_class_scores_text", 2 },
        { "vkt_confusion_write", 2 },
        { "vkt_top_k", 1 },
        { "vkt_top_k_accuracy", 2 },
        { "vkt_top_k_accuracy", 3 },
        { "vkt_rates_plot", 4 },
        { "vkt_likeliest", 1 },
        { "vkt_alphabet_create", 2 },
        { "vkt_alphabet_encode", 2 },
        { "vkt_alphabet_encode", 4 },
        { "vkt_tokenizer_id", 2 },
        { "vkt_tokenizer_decode", 2 },
        { "vkt_tokenizer_decode", 5 },
        { "vkt_dataset_from_columns", 4 },
        { "vkt_gguf_dequantize", 3 },
        { "vkt_gguf_from_memory", 3 },
        { "vkt_gguf_read_f32", 3 },
        { "vkt_gguf_write", 3 },
        { "vkt_gguf_write", 5 },
    };
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        if (strcmp(counts[k].name, now.name) == 0 && counts[k].at == i) return true;
    return false;
}

static vkt_tensor typical(int i)
{
    const vkt_tensor sets[SETS][3] = { { rows, rows, rows },         { image, image, image }, { ids, ids, ids },
                                       { scalar, scalar, scalar },   { image, kernel, bias }, { rows, weight, bias },
                                       { rows, ids, { NO_TENSOR } }, { line, line, line } };
    now.has_tensors = true;
    /* In most functions, tensors begin at argument 1, behind a graph or builder. */
    const vkt_tensor t = sets[now.set][i < 2 ? 0 : i > 3 ? 2 : i - 1];
    return t.id == NO_TENSOR ? (vkt_tensor){ 0 } : t;
}

static vkt_tensor value_vkt_tensor(int i)
{
    const vkt_tensor right = typical(i);
    if (!is_wrong(i, 2)) return right;
    now.no_tensor = now.variant == 1;
    return (vkt_tensor){ now.no_tensor ? NO_TENSOR : 0 };
}

/* Defines value_TYPE(i) for a plain type. This function returns the right value, or one of the wrong values. */
#define PLAIN(type, right, ...)                                   \
    static type value_##type(int i)                               \
    {                                                             \
        static const type wrong[] = { __VA_ARGS__ };              \
        const int n = (int)(sizeof wrong / sizeof *wrong);        \
        if (!is_wrong(i, counts_memory(i) ? 1 : n)) return right; \
        return wrong[now.variant];                                \
    }
PLAIN(uint32_t, 1, 0, 7, UINT32_MAX, 0x80000000u)
PLAIN(uint64_t, 1, 0, 7, UINT64_MAX, 0x100000001u)
PLAIN(int32_t, 1, -1, 7, INT32_MIN, INT32_MAX)
PLAIN(int64_t, 1, -1, 7, INT64_MIN, INT64_MAX)
PLAIN(size_t, 1, 0, SIZE_MAX)
PLAIN(bool, false, true)
PLAIN(char, ',', 0, '"', '\n', '\r', '\xff')
PLAIN(float, 0.5f, 0, -1, NAN, INFINITY, FLT_MAX)
PLAIN(double, 0.5, 0, -1, NAN, INFINITY, DBL_MAX)
PLAIN(vkt_shape, ((vkt_shape){ .rank = 2, .dim = { 4, 6 } }), { .rank = 0 }, { .rank = 7 }, { .rank = UINT32_MAX },
      { .rank = 2, .dim = { 4, 0 } }, { .rank = 2, .dim = { UINT32_MAX, UINT32_MAX } },
      { .rank = 6, .dim = { 0x80000000u, 0x80000000u, 0x80000000u, 8, 3, 8 } })
/* A caller may pass any int as an enumeration. */
#define ENUM(type) PLAIN(type, (type)0, (type)1, (type)99, (type)INT32_MAX)
ENUM(vkt_loss_reduction)
ENUM(vkt_store_part)
ENUM(vkt_preset)
ENUM(vkt_layout)
ENUM(vkt_result)
ENUM(vkt_optimizer_kind)
ENUM(vkt_dtype)
ENUM(vkt_split)
ENUM(vkt_mem_class)
ENUM(vkt_run_file)
ENUM(vkt_row_type)
ENUM(vkt_wire)
ENUM(vkt_chat_template)
ENUM(vkt_gguf_type)
ENUM(vkt_quant)
PLAIN(vkt_init, (vkt_init){ 0 }, { .kind = (vkt_init_kind)99 }, { .kind = (vkt_init_kind)INT32_MAX })
ENUM(VkImageLayout)
PLAIN(VkCommandBuffer, NULL, NULL)
PLAIN(VkInstance, NULL, NULL)
PLAIN(VkPhysicalDevice, NULL, NULL)
PLAIN(PFN_vkGetInstanceProcAddr, NULL, NULL)
#define VALUE(i, type) value_##type(i)

static const char *text(int i)
{
    static const char *const wrong[] = { NULL, "", "\xff/no/such/\n", "%s%n*" };
    return is_wrong(i, 4) ? wrong[now.variant] : "no-such-folder/name";
}
#define TEXT(i) text(i)

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return vkt_nn_linear(b, "fc", vkt_nn_flatten(b, x), &(vkt_nn_linear_params){ .out_features = 2 });
}

/* Returns the value of pointer argument i: NULL if argument i is the wrong one, otherwise a pointer to valid data.
 * Valid structs are all zeros, except for members that must be set. */
static void *pointer(int i, const char *type)
{
    if (is_wrong(i, 1)) return NULL;
    void *p = memset(scratch[i], 0, SCRATCH_BYTES);
    if (strcmp(type, "vkt_host") == 0) return &host;
    if (strcmp(type, "FILE") == 0) return stream;
    if (strcmp(type, "vkt_tokens") == 0) {
        vkt_tokens_release(&the_tokens);
        return &the_tokens;
    }
    if (strcmp(type, "vkt_tensor") == 0)
        for (int k = 0; k < 64; k++) ((vkt_tensor *)p)[k] = typical(i);
    if (strcmp(type, "vkt_dataset_params") == 0)
        *(vkt_dataset_params *)p = (vkt_dataset_params){ .rows = 4, .width = 3 };
    if (strcmp(type, "vkt_image_params") == 0) *(vkt_image_params *)p = (vkt_image_params){ .height = 2, .width = 2 };
    if (strcmp(type, "vkt_transport") == 0) *(vkt_transport *)p = vkt_thread_group_transport(the_group, 0);
    if (strcmp(type, "vkt_emulation_params") == 0) *(vkt_emulation_params *)p = (vkt_emulation_params){ .ranks = 2 };
    if (strcmp(type, "vkt_predictor_params") == 0)
        *(vkt_predictor_params *)p = (vkt_predictor_params){ .model = { .forward = forward }, .data = the_dataset };
    if (strcmp(type, "vkt_trainer_params") == 0)
        *(vkt_trainer_params *)p = (vkt_trainer_params){ .model = { .forward = forward }, .train = the_dataset };
    return p;
}
#define POINTER(i, type) pointer(i, #type)

#define the_vkt_ctx the_ctx
#define the_vkt_graph the_graph
#define the_vkt_builder the_builder
#define the_vkt_store the_store
#define the_vkt_program the_program
#define the_vkt_array the_array
#define the_vkt_dataset the_dataset
#define the_vkt_scaler the_scaler
#define the_vkt_texts the_texts
#define the_vkt_records the_records
#define the_vkt_events the_events
#define the_vkt_vocab the_vocab
#define the_vkt_trainer the_trainer
#define the_vkt_predictor the_predictor
#define the_vkt_progress the_progress
#define the_vkt_run_dir the_run_dir
#define the_vkt_scores the_scores
#define the_vkt_card the_card
#define the_vkt_columns the_columns
#define the_vkt_alphabet the_alphabet
#define the_vkt_tokenizer the_tokenizer
#define the_vkt_gguf the_gguf
#define the_vkt_lm the_lm
#define the_vkt_generator the_generator
#define the_vkt_peft_config the_peft_config
#define the_vkt_thread_group the_group
#define the_vkt_emulation the_emulation
#define the_vkt_texture ((vkt_texture *)NULL) /* needs an application's image */

static void *handle(int i, void *right)
{
    now.no_handle = now.no_handle || i == now.at;
    return is_wrong(i, 1) ? NULL : right;
}
#define HANDLE(i, type) handle(i, the_##type)

/* slot[i] receives the object that a call returns through argument i. Before the call, slot[i] is `untouched`, so the
 * test sees whether the call has written slot[i]. For a function that destroys objects, slot[i] is NULL before the
 * call. drop[i] destroys the object after the call. */
static void *slot[16];
static char untouched[1];
static void (*drop[16])(void **p);
static void *slot_of(int i, void (*how)(void **p))
{
    const bool destroys = strstr(now.name, "_destroy") || strcmp(now.name, "vkt_text_release") == 0;
    slot[i] = destroys ? NULL : untouched;
    drop[i] = how;
    return is_wrong(i, 1) ? NULL : &slot[i];
}
#define DROP(type)                    \
    static void drop_##type(void **p) \
    {                                 \
        type *it = *p;                \
        type##_destroy(&it);          \
    }
static void drop_text(void **p)
{
    char *it = *p;
    vkt_text_release(&it);
}
#define SLOT(i, type) slot_of(i, drop_##type)

/* ---- results ---- */

static void fault(const char *what)
{
    fprintf(stderr, "%s, argument %d, wrong value %d, tensors %d: %s\n", now.name, now.at, now.variant, now.set, what);
    faults++;
}

/* Returns whether the wrong argument is a handle that may be NULL: the store of vkt_program_create. */
static bool may_be_null(void)
{
    return strcmp(now.name, "vkt_program_create") == 0 && now.at == 2;
}

static void returned_status(vkt_result r)
{
    if ((unsigned)r >= VKT_RESULT_COUNT) fault("no status");
    if (now.no_handle && r == VKT_OK && !may_be_null()) fault("VKT_OK for a NULL handle");
}

static void returned_tensor(vkt_tensor t)
{
    if (now.no_handle && t.id) fault("a tensor for a NULL handle");
    if (now.no_tensor && (t.id || vkt_graph_status(the_graph) == VKT_OK)) fault("no error for a tensor of no graph");
}

#include "calls.h"

static const struct {
    const char *name;
    int n;
    void (*call)(void);
} calls[] = { CALLS };

/* ---- calling ---- */

static void crashed(int signal_number)
{
    (void)signal_number;
    siglongjmp(back, 1);
}

static void make_graph(void)
{
    assert_int_equal(vkt_graph_create(&host, &the_graph), VKT_OK);
    rows = vkt_input(the_graph, "rows", VKT_F32, VKT_ROWS, vkt_shape2(4, 6));
    image = vkt_input(the_graph, "image", VKT_F32, VKT_BATCH_LAST, vkt_shape4(2, 4, 8, 8));
    line = vkt_input(the_graph, "line", VKT_F32, VKT_ROWS, vkt_shape3(2, 4, 8));
    ids = vkt_input(the_graph, "ids", VKT_U32, VKT_ROWS, vkt_shape1(4));
    scalar = vkt_input(the_graph, "scalar", VKT_F32, VKT_ROWS, vkt_shape0());
    weight = vkt_param(the_graph, "weight", vkt_shape2(6, 6));
    kernel = vkt_param(the_graph, "kernel", vkt_shape4(6, 4, 3, 3));
    bias = vkt_param(the_graph, "bias", vkt_shape1(6));
    assert_int_equal(vkt_builder_create(the_graph, true, &the_builder), VKT_OK);
}

static void call_once(size_t f)
{
    for (int i = 0; i < 16; i++) drop[i] = NULL;
    now.last = true;
    now.no_handle = now.no_tensor = now.has_tensors = false;
    make_graph();
    if (sigsetjmp(back, 1) == 0)
        calls[f].call();
    else
        fault("crashed"), memset(drop, 0, sizeof drop);
    for (int i = 0; i < 16; i++) {
        if (drop[i] && slot[i] == untouched && now.at != i) fault("an output that is neither made nor NULL");
        if (drop[i] && slot[i] != untouched) drop[i](&slot[i]);
    }
    vkt_builder_destroy(&the_builder);
    vkt_graph_destroy(&the_graph);
}

static void each_wrong_argument_is_an_error(void **state)
{
    (void)state;
    const char *only = getenv("VKT_TEST_CALL");
    struct sigaction on_crash = { .sa_handler = crashed, .sa_flags = SA_NODEFER };
    static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &on_crash, NULL);
    for (size_t f = 0; f < sizeof calls / sizeof *calls; f++) {
        now.name = calls[f].name;
        if (only && strcmp(only, now.name) != 0) continue;
        for (now.set = 0; now.set < SETS; now.set++) {
            for (now.at = -1; now.at < calls[f].n; now.at++) {
                now.variant = 0;
                do {
                    call_once(f);
                    now.variant++;
                } while (!now.last);
            }
            if (!now.has_tensors) break;
        }
    }
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], SIG_DFL);
    assert_int_equal(faults, 0);
}

/* Checks the messages of some errors. Some of these errors do not occur in each_wrong_argument_is_an_error. */
static void what_is_out_of_range_is_refused(void **state)
{
    const vkt_host h = vkt_test_host();
    const vkt_shape seven = { .rank = 7, .dim = { 2, 3, 1, 1, 1, 1 } };
    vkt_store *store;
    vkt_program *p;
    vkt_ctx *ctx;
    (void)state;
    vkt_test_expect_errors(true);
    for (int i = 0; i < 6; i++) {
        vkt_graph *g;
        assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(2, 3));
        if (i == 0) vkt_reshape(g, x, seven);
        if (i == 1) vkt_expand(g, x, seven, VKT_ROWS);
        if (i == 2) vkt_to_layout(g, x, (vkt_layout)99);
        if (i == 3) vkt_expand(g, x, vkt_shape2(2, 3), (vkt_layout)99);
        if (i == 4) vkt_input(g, "y", VKT_F32, (vkt_layout)99, vkt_shape2(2, 3));
        if (i == 5) vkt_param(g, "", vkt_shape1(3));
        static const char *const says[] = { "(2,3,1,1,1,1,..)", "rank of at most 6", "number 99",
                                            "number 99",        "numbers 0 and 99",  "want a name" };
        assert_int_not_equal(vkt_graph_status(g), VKT_OK);
        vkt_test_error_contains(says[i]);
        vkt_graph_destroy(&g);
    }
    vkt_graph *g;
    assert_int_equal(vkt_ctx_create(&(vkt_ctx_params){ .no_pipeline_cache = true }, &h, &ctx), VKT_OK);
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(5, 2));
    const vkt_tensor y = vkt_linear(g, x, vkt_param(g, "w", vkt_shape2(40, 2)), (vkt_tensor){ 0 });
    vkt_keep(g, vkt_mse(g, y, vkt_input(g, "t", VKT_F32, VKT_BATCH_LAST, vkt_shape2(5, 40))));
    assert_int_equal(vkt_store_create(ctx, g, &store), VKT_OK);
    assert_int_equal(vkt_program_create(ctx, g, store, NULL, &p), VKT_OK);
    assert_int_equal(vkt_program_run(p, &(vkt_run){ .rows = 5 }, NULL), VKT_OK);
    assert_int_equal(vkt_program_run(p, &(vkt_run){ .rows = 6 }, NULL), VKT_E_ARG);
    vkt_test_error_contains("the batch of 5 rows, got 6");
    assert_int_equal(vkt_store_set_accumulation(store, &(vkt_accumulation){ 0 }), VKT_OK);
    assert_int_equal(vkt_store_set_accumulation(store, &(vkt_accumulation){ 1, 5 }), VKT_E_STATE);
    vkt_test_expect_errors(false);
    vkt_program_destroy(&p);
    vkt_store_destroy(&store);
    vkt_ctx_destroy(&ctx);
    vkt_graph_destroy(&g);
}

/* Passes NULL for the data of calls whose other arguments are right. */
static void data_that_are_null_are_refused(void **state)
{
    vkt_graph *g;
    vkt_program *p;
    vkt_device_limits limits;
    uint32_t n;
    (void)state;
    vkt_ctx_limits(the_ctx, &limits);
    assert_int_equal(vkt_graph_create(&host, &g), VKT_OK);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(8)), y = vkt_relu(g, x);
    vkt_keep(g, y);
    const vkt_program_params params = { .profile = limits.timestamp_ns != 0 };
    assert_int_equal(vkt_program_create(the_ctx, g, NULL, &params, &p), VKT_OK);
    assert_int_equal(vkt_store_read(the_store, 0, VKT_PART_VALUE, NULL), VKT_E_ARG);
    assert_int_equal(vkt_store_write(the_store, 0, VKT_PART_VALUE, NULL), VKT_E_ARG);
    assert_int_equal(vkt_array_write(the_array, 0, NULL, 4), VKT_E_ARG);
    assert_int_equal(vkt_array_write(the_array, 0, NULL, 0), VKT_OK);
    assert_int_equal(vkt_program_write(p, x, NULL, 8 * sizeof(float)), VKT_E_ARG);
    assert_int_equal(vkt_program_read(p, y, NULL, 8 * sizeof(float)), VKT_E_ARG);
    assert_int_equal(vkt_program_profile(p, NULL, NULL, 1, &n), VKT_E_ARG);
    if (params.profile) assert_int_equal(vkt_program_profile(p, NULL, NULL, 0, &n), VKT_OK);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* ---- objects of the whole test ---- */

static void *resize(void *user, void *p, size_t bytes)
{
    (void)user;
    if (bytes) return bytes > MAX_BYTES ? NULL : realloc(p, bytes);
    free(p);
    return NULL;
}

/* Counts errors of the validation layer as faults. Errors of the library are no faults, because the calls provoke them.
 * One validation error is allowed: the application's half of an ownership transfer is missing, because the test does
 * not record it. */
static void log_faults(void *user, vkt_log_level level, const char *message)
{
    (void)user;
    if (level == VKT_LOG_ERROR && strncmp(message, "validation: ", 12) == 0 && !strstr(message, "no matching release"))
        fault(message);
}

/* Copies a tiny model to the device. */
static bool open_lm(void)
{
    vkt_gguf *g;
    if (vkt_gguf_open(&host, VKT_TEST_DIR "/golden/lm/llama.gguf", &g) != VKT_OK) return false;
    const vkt_result r = vkt_lm_create(the_ctx, g, &the_lm);
    vkt_gguf_destroy(&g);
    return r == VKT_OK;
}

static int setup(void **state)
{
    static const float features[12];
    static const uint32_t labels[4] = { 0, 1, 1, 0 };
    static const char *const words[] = { "green tea", "pale ale" };
    static const unsigned char empty_gguf[24] = { 'G', 'G', 'U', 'F', 3 }; /* no metadata, no tensors */
    static const char card[] = "{\"sample\": [1,1,3], \"mean\": [0], \"deviation\": [1], \"classes\": 2}";
    static const vkt_gguf_string tokens[] = { { "a", 1 }, { "<|im_start|>", 12 }, { "<|im_end|>", 10 } };
    static const int32_t kinds[] = { VKT_TOKEN_NORMAL, VKT_TOKEN_CONTROL, VKT_TOKEN_CONTROL };
    const vkt_tokenizer_params vocabulary = { .tokens = tokens, .n_tokens = 3, .kinds = kinds, .pre = "qwen2" };
    (void)state;
    host = (vkt_host){ .alloc = { .resize = resize }, .log = log_faults };
    folder = vkt_temp_dir_make();
    if (chdir(folder.path) != 0 || !(stream = tmpfile())) return -1;
    if (vkt_ctx_create(&(vkt_ctx_params){ .no_pipeline_cache = true }, &host, &the_ctx) != VKT_OK) return -1;
    const vkt_dataset_params rows_of_three = { .rows = 4, .width = 3, .type = VKT_ROW_F32, .labels = labels };
    const bool ok =
        vkt_graph_create(&host, &stored) == VKT_OK &&
        vkt_dataset_from_arrays(&host, &rows_of_three, features, &the_dataset) == VKT_OK &&
        vkt_scaler_fit(the_dataset, &the_scaler) == VKT_OK &&
        vkt_texts_from_tsv_text(&host, "texts", "tea\tgreen tea\nale\tpale ale\n", NULL, &the_texts) == VKT_OK &&
        vkt_records_from_text(&host, "records", "name,price\ngreen,2\nred,3\n", ',', &the_records) == VKT_OK &&
        vkt_alphabet_create(&host, "green tea", 9, &the_alphabet) == VKT_OK &&
        vkt_tokenizer_create(&host, &vocabulary, &the_tokenizer) == VKT_OK &&
        vkt_gguf_from_memory(&host, "empty", empty_gguf, sizeof empty_gguf, &the_gguf) == VKT_OK && open_lm() &&
        vkt_generator_create(the_ctx, the_lm, &(vkt_generator_params){ .context = 16 }, &the_generator) == VKT_OK &&
        vkt_peft_config_open(&host, VKT_TEST_DIR "/golden/peft", &the_peft_config) == VKT_OK &&
        vkt_columns_guess(&host, the_records, NULL, &the_columns) == VKT_OK &&
        vkt_events_create(&host, ".", 0, &the_events) == VKT_OK &&
        vkt_run_dir_open(&host, "run", NULL, &the_run_dir) == VKT_OK &&
        vkt_vocab_create(&host, NULL, words, 2, &the_vocab) == VKT_OK &&
        vkt_progress_create(&host, stream, &the_progress) == VKT_OK &&
        vkt_thread_group_create(&host, 1, 0, &the_group) == VKT_OK &&
        vkt_emulation_create(&host, &(vkt_emulation_params){ .ranks = 2 }, &the_emulation) == VKT_OK &&
        vkt_array_create(the_ctx, &(vkt_array_params){ .shape = vkt_shape1(8) }, &the_array) == VKT_OK &&
        vkt_trainer_create(the_ctx, &(vkt_trainer_params){ .model = { .forward = forward }, .train = the_dataset },
                           &the_trainer) == VKT_OK &&
        vkt_trainer_scores(the_trainer, the_dataset, &the_scores) == VKT_OK &&
        vkt_card_from_text(&host, "card", card, &the_card) == VKT_OK &&
        vkt_predictor_create(the_ctx, &(vkt_predictor_params){ .model = { .forward = forward }, .data = the_dataset },
                             &the_predictor) == VKT_OK;
    if (!ok) return -1;
    vkt_keep(stored, vkt_relu(stored, vkt_param(stored, "w", vkt_shape1(8))));
    return vkt_store_create(the_ctx, stored, &the_store) == VKT_OK &&
                   vkt_program_create(the_ctx, stored, the_store, NULL, &the_program) == VKT_OK
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    vkt_predictor_destroy(&the_predictor);
    vkt_trainer_destroy(&the_trainer);
    vkt_program_destroy(&the_program);
    vkt_store_destroy(&the_store);
    vkt_array_destroy(&the_array);
    vkt_progress_destroy(&the_progress);
    vkt_run_dir_destroy(&the_run_dir);
    vkt_scores_destroy(&the_scores);
    vkt_card_destroy(&the_card);
    vkt_columns_destroy(&the_columns);
    vkt_alphabet_destroy(&the_alphabet);
    vkt_tokens_release(&the_tokens);
    vkt_tokenizer_destroy(&the_tokenizer);
    vkt_peft_config_destroy(&the_peft_config);
    vkt_generator_destroy(&the_generator);
    vkt_lm_destroy(&the_lm);
    vkt_gguf_destroy(&the_gguf);
    vkt_emulation_destroy(&the_emulation);
    vkt_thread_group_destroy(&the_group);
    vkt_vocab_destroy(&the_vocab);
    vkt_texts_destroy(&the_texts);
    vkt_events_destroy(&the_events);
    vkt_records_destroy(&the_records);
    vkt_scaler_destroy(&the_scaler);
    vkt_dataset_destroy(&the_dataset);
    vkt_graph_destroy(&stored);
    vkt_ctx_destroy(&the_ctx);
    fclose(stream);
    if (chdir("/") != 0) return -1;
    vkt_temp_dir_remove(&folder);
    return faults ? -1 : 0; /* the validation layer may report faults when objects are destroyed */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_wrong_argument_is_an_error),
                                        cmocka_unit_test(what_is_out_of_range_is_refused),
                                        cmocka_unit_test(data_that_are_null_are_refused) };
    return cmocka_run_group_tests_name("every public function", tests, setup, teardown);
}
