/* Tests adapters that are read from GGUF files: files of vkt_lora_save_gguf, files like those of other programs, and
 * files that are refused. */
#include "lm/lora_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/half.h"
#include "vktrain/vktrain.h"

#define CHECK(call) assert_int_equal(call, VKT_OK)

/* ---- adapters that are read ---- */

/* Makes a store with adapters for the first n layers of the model's block 0. Every element is 7. */
static vkt_store *sevens(const rig *r, const vkt_gguf *g, uint32_t n)
{
    vkt_store *s = make_store(r, g, n, false);
    for (uint32_t i = 0; i < 2 * n; i++) {
        float x[256];
        for (uint32_t e = 0; e < 256; e++) x[e] = 7;
        CHECK(vkt_store_write(s, i, VKT_PART_VALUE, x));
    }
    return s;
}

static void expect_sevens(vkt_store *s)
{
    for (uint32_t i = 0; i < vkt_store_count(s); i++) {
        float x[256];
        const vkt_shape shape = vkt_store_shape(s, i);
        CHECK(vkt_store_read(s, i, VKT_PART_VALUE, x));
        for (uint32_t e = 0; e < shape.dim[0] * shape.dim[1]; e++) assert_true(x[e] == 7);
    }
}

static void what_is_saved_is_loaded(void **state)
{
    rig *r = rig_of(state);
    char part[300];
    snprintf(part, sizeof part, "%s", partly_rotated(r));
    const char *const bases[] = { GOLDEN("llama.gguf"), GOLDEN("qwen2.gguf"), GOLDEN("qwen3.gguf"), part };
    for (size_t k = 0; k < VKT_COUNT(bases); k++) {
        files f = open_files(r, bases[k], false);
        const char *path = vkt_temp_dir_file(&r->dir, "adapter.gguf");
        vkt_store *s = sevens(r, f.g, N);
        vkt_peft_config *c;
        CHECK(vkt_lora_save_gguf(&r->h, f.s, VKT_PART_VALUE, &f.m, &lora, path));
        CHECK(vkt_lora_gguf_config(&r->h, &f.m, path, &c));
        CHECK(vkt_lora_load_gguf(&r->h, s, &f.m, vkt_peft_config_lora(c), path));
        for (uint32_t i = 0; i < 2 * N; i++) {
            float want[256], got[256];
            const vkt_shape shape = vkt_store_shape(s, i);
            CHECK(vkt_store_read(f.s, i, VKT_PART_VALUE, want));
            CHECK(vkt_store_read(s, i, VKT_PART_VALUE, got));
            assert_memory_equal(got, want, shape.dim[0] * shape.dim[1] * sizeof *got);
        }
        vkt_peft_config_destroy(&c);
        vkt_store_destroy(&s);
        close_files(&f);
    }
}

static void options_are_read(void **state)
{
    rig *r = rig_of(state);
    files f = open_files(r, GOLDEN("llama.gguf"), false);
    const char *path = vkt_temp_dir_file(&r->dir, "adapter.gguf");
    vkt_peft_config *c;
    CHECK(vkt_lora_save_gguf(&r->h, f.s, VKT_PART_VALUE, &f.m, &lora, path));
    for (uint32_t blocks = 1; blocks <= 2; blocks++) {
        f.m.blocks = blocks;
        CHECK(vkt_lora_gguf_config(&r->h, &f.m, path, &c));
        const vkt_lora_params *got = vkt_peft_config_lora(c);
        assert_int_equal(got->rank, RANK);
        assert_true(got->alpha == 1.5f && got->dropout == 0);
        assert_int_equal(got->n_targets, N);
        for (uint32_t k = 0; k < N; k++) {
            char want[80];
            /* If the model has one block, a target is the last part of a layer's name. If the model has two blocks,
             * only the layers of block 0 have an adapter, so a target is the full name of a layer. */
            snprintf(want, sizeof want, "model.layers.0.%s", layers[k].layer);
            assert_string_equal(got->targets[k], blocks == 1 ? strrchr(want, '.') + 1 : want);
        }
        assert_string_equal(vkt_peft_config_base(c), "");
        vkt_peft_config_destroy(&c);
        assert_null(c);
    }
    close_files(&f);
}

/* The bytes of a GGUF file that is made without vkt_gguf_write. */
typedef struct bytes {
    uint8_t at[16384];
    size_t n;
} bytes;

static void put(bytes *to, const void *from, size_t n)
{
    assert_true(to->n + n <= sizeof to->at);
    memcpy(to->at + to->n, from, n);
    to->n += n;
}

static void put_u32(bytes *to, uint32_t x)
{
    put(to, &x, sizeof x);
}

static void put_u64(bytes *to, uint64_t x)
{
    put(to, &x, sizeof x);
}

static void put_text(bytes *to, const char *text)
{
    put_u64(to, strlen(text));
    put(to, text, strlen(text));
}

/* Appends x in the given type. Q8_0 stores x as the integer 4 x, because all quantized blocks have the scale 1/4. */
static void put_number(bytes *to, vkt_gguf_type type, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t half = type == VKT_GGUF_F16 ? vkt_half_from_f32(x) : (uint16_t)(bits >> 16);
    const int8_t eight = (int8_t)(4 * x);
    if (type == VKT_GGUF_Q8_0)
        put(to, &eight, 1);
    else if (type == VKT_GGUF_F32)
        put(to, &x, sizeof x);
    else
        put(to, &half, sizeof half);
}

/* Returns element i of A (which = 0) or B (which = 1). It is a multiple of 1/4 from -7.5 to 7.5. put_number does not
 * round it. */
static float simple(uint32_t layer, uint32_t which, uint32_t i)
{
    return (float)((int)((7 * layer + 13 * which + 11 * i) % 61) - 30) / 4;
}

/* types[k] has the types of A and B of layer k. Layers 0, 1 and 2 are query, key and value. */
static const vkt_gguf_type types[3][2] = { { VKT_GGUF_F16, VKT_GGUF_BF16 },
                                           { VKT_GGUF_F32, VKT_GGUF_F16 },
                                           { VKT_GGUF_Q8_0, VKT_GGUF_F32 } };

/* Appends A or B of a layer. If `permuted`, the rows of B of query and key have the order of LlamaModel.permute in
 * llama.cpp's convert_hf_to_gguf.py: w.reshape(heads, 2, 4, in).swapaxes(1, 2).reshape(w.shape). So row 4 of a head
 * follows row 0 of this head. */
static void put_half(bytes *to, const vkt_gguf *g, uint32_t layer, uint32_t which, bool permuted)
{
    static const uint32_t order[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };
    const uint32_t rows = which ? size_of(g, layer, 1) : RANK, columns = which ? RANK : size_of(g, layer, 0);
    const vkt_gguf_type type = types[layer][which];
    for (uint32_t row = 0; row < rows; row++) {
        const uint32_t from = permuted && which && layer < 2 ? row / 8 * 8 + order[row % 8] : row;
        const uint16_t quarter = 0x3400; /* the scale of a block of Q8_0, as float16 */
        if (type == VKT_GGUF_Q8_0) put(to, &quarter, sizeof quarter);
        for (uint32_t c = 0; c < columns; c++) put_number(to, type, simple(layer, which, from * columns + c));
    }
    while (to->n % 32) put(to, "", 1);
}

/* Makes the bytes of a file with adapters of query, key and value of the model's block 0. */
static void put_adapter(bytes *to, const vkt_gguf *g, const char *architecture, bool permuted)
{
    const char *const texts[][2] = { { "general.type", "adapter" },
                                     { "general.architecture", architecture },
                                     { "adapter.type", "lora" },
                                     { "general.name", "by hand" } };
    bytes *data = test_calloc(1, sizeof *data);
    const float alpha = 1.5f;
    *to = (bytes){ .n = 0 };
    put(to, "GGUF", 4);
    put_u32(to, 3);
    put_u64(to, 6);
    put_u64(to, VKT_COUNT(texts) + 1);
    for (size_t i = 0; i < VKT_COUNT(texts); i++) {
        put_text(to, texts[i][0]);
        put_u32(to, 8);
        put_text(to, texts[i][1]);
    }
    put_text(to, "adapter.lora.alpha");
    put_u32(to, 6);
    put(to, &alpha, sizeof alpha);
    for (uint32_t which = 2; which-- > 0;)
        for (uint32_t k = 0; k < 3; k++) {
            char name[80];
            snprintf(name, sizeof name, "blk.0.%s.weight.lora_%c", layers[k].tensor, which ? 'b' : 'a');
            put_text(to, name);
            put_u32(to, 2);
            put_u64(to, which ? RANK : size_of(g, k, 0));
            put_u64(to, which ? size_of(g, k, 1) : RANK);
            put_u32(to, types[k][which]);
            put_u64(to, data->n);
            put_half(data, g, k, which, permuted);
        }
    while (to->n % 32) put(to, "", 1);
    put(to, data->at, data->n);
    test_free(data);
}

static void files_of_others_are_read(void **state)
{
    rig *r = rig_of(state);
    bytes *b = test_malloc(sizeof *b);
    for (int permuted = 0; permuted < 2; permuted++) {
        files f = open_files(r, permuted ? GOLDEN("llama.gguf") : GOLDEN("qwen3.gguf"), false);
        const char *path = vkt_temp_dir_file(&r->dir, "others.gguf");
        vkt_store *s = sevens(r, f.g, 3);
        vkt_peft_config *c;
        put_adapter(b, f.g, permuted ? "llama" : "qwen3", permuted);
        CHECK(vkt_file_write(&r->h, path, b->at, b->n));
        CHECK(vkt_lora_gguf_config(&r->h, &f.m, path, &c));
        assert_int_equal(vkt_peft_config_lora(c)->n_targets, 3);
        assert_string_equal(vkt_peft_config_lora(c)->targets[2], "v_proj");
        CHECK(vkt_lora_load_gguf(&r->h, s, &f.m, vkt_peft_config_lora(c), path));
        for (uint32_t i = 0; i < 6; i++) {
            float x[256];
            const vkt_shape shape = vkt_store_shape(s, i);
            CHECK(vkt_store_read(s, i, VKT_PART_VALUE, x));
            for (uint32_t e = 0; e < shape.dim[0] * shape.dim[1]; e++) assert_true(x[e] == simple(i / 2, i % 2, e));
        }
        vkt_peft_config_destroy(&c);
        vkt_store_destroy(&s);
        close_files(&f);
    }
    test_free(b);
}

/* ---- adapters that are refused ---- */

#define TEXT(key, text)                                             \
    {                                                               \
        key, VKT_GGUF_KIND_TEXT, false, 1, &(const vkt_gguf_string) \
        {                                                           \
            text, strlen(text)                                      \
        }                                                           \
    }
#define ALPHA(x)                                                          \
    {                                                                     \
        "adapter.lora.alpha", VKT_GGUF_KIND_F32, false, 1, &(const float) \
        {                                                                 \
            x                                                             \
        }                                                                 \
    }
#define ALPHA_WANTED "want a finite number other than 0, got "
static const float zeros[1024];
#define MATRIX(name, columns, rows)                              \
    {                                                            \
        name, VKT_GGUF_F32, 2, { columns, rows }, zeros, 0, 0, 0 \
    }

/* A change of the file that write_fault writes. Without a change, the file has adapters of query, key and value of
 * block 0. */
typedef struct fault {
    /* Index of the metadata entry that `as_meta` replaces. If as_meta has no key, the entry is left out. MORE_META:
     * as_meta is appended. -1: no entry changes. */
    int meta;
    vkt_gguf_meta as_meta;
    /* Index of the tensor that `as_tensor` replaces. If as_tensor has no name, the tensor is left out. MORE_TENSORS:
     * as_tensor is appended. -1: no tensor changes. */
    int tensor;
    vkt_gguf_tensor as_tensor;
    vkt_result status;
    const char *reason;
} fault;
enum { META = 4, TENSORS = 6, MORE_META = META, MORE_TENSORS = TENSORS };

static void write_fault(const rig *r, const fault *f, const char *path)
{
    const vkt_gguf_meta meta[META] = { TEXT("general.type", "adapter"), TEXT("adapter.type", "lora"),
                                       TEXT("general.architecture", "llama"), ALPHA(1.5f) };
    const vkt_gguf_tensor tensors[TENSORS] = {
        MATRIX("blk.0.attn_q.weight.lora_a", 32, RANK), MATRIX("blk.0.attn_q.weight.lora_b", RANK, 32),
        MATRIX("blk.0.attn_k.weight.lora_a", 32, RANK), MATRIX("blk.0.attn_k.weight.lora_b", RANK, 16),
        MATRIX("blk.0.attn_v.weight.lora_a", 32, RANK), MATRIX("blk.0.attn_v.weight.lora_b", RANK, 16)
    };
    vkt_gguf_meta m[META + 1];
    vkt_gguf_tensor t[TENSORS + 1];
    size_t n_meta = 0, n_tensors = 0;
    for (int i = 0; i <= META; i++)
        if (i == f->meta ? f->as_meta.key != NULL : i < META) m[n_meta++] = i == f->meta ? f->as_meta : meta[i];
    for (int i = 0; i <= TENSORS; i++)
        if (i == f->tensor ? f->as_tensor.name != NULL : i < TENSORS)
            t[n_tensors++] = i == f->tensor ? f->as_tensor : tensors[i];
    CHECK(vkt_gguf_write(&r->h, path, m, n_meta, t, n_tensors));
}

/* Tests faults that both vkt_lora_gguf_config and vkt_lora_load_gguf find. */
static void what_is_no_adapter_is_refused(void **state)
{
    rig *r = rig_of(state);
    const fault faults[] = {
        { 0, { 0 }, -1, { 0 }, VKT_E_FORMAT, "\"general.type\": want the text \"adapter\"" },
        { 0, TEXT("general.type", "model"), -1, { 0 }, VKT_E_UNSUPPORTED, "want \"adapter\", got \"model\"" },
        { 1, TEXT("adapter.type", "aloha"), -1, { 0 }, VKT_E_UNSUPPORTED, "want \"lora\", got \"aloha\"" },
        { 2, TEXT("general.architecture", "qwen2"), -1, { 0 }, VKT_E_UNSUPPORTED, "want \"llama\", got \"qwen2\"" },
        { 3, { 0 }, -1, { 0 }, VKT_E_FORMAT, "\"adapter.lora.alpha\" is missing" },
        { 3, ALPHA(0), -1, { 0 }, VKT_E_FORMAT, ALPHA_WANTED "0" },
        { 3, ALPHA(-(float)INFINITY), -1, { 0 }, VKT_E_FORMAT, ALPHA_WANTED "-inf" },
        { 3, ALPHA((float)NAN), -1, { 0 }, VKT_E_FORMAT, ALPHA_WANTED },
        { 3, TEXT("adapter.lora.alpha", "1"), -1, { 0 }, VKT_E_FORMAT, "adapter.lora.alpha" },
        { MORE_META,
          TEXT("adapter.alora.invocation_tokens", ""),
          -1,
          { 0 },
          VKT_E_UNSUPPORTED,
          "\"adapter.alora.invocation_tokens\"" },
#define TENSOR(i, name) -1, { 0 }, i, MATRIX(name, 32, RANK), VKT_E_UNSUPPORTED, "\"" name "\""
        { TENSOR(MORE_TENSORS, "blk.0.attn_q.weight") },
        { TENSOR(MORE_TENSORS, "blk.0.attn_q.weight.lora_c") },
        { TENSOR(MORE_TENSORS, "blk.0.attn_q.weight.lora_a ") },
        { TENSOR(MORE_TENSORS, "blk.0.attn_norm.weight.lora_a") },
        { TENSOR(MORE_TENSORS, "token_embd.weight.lora_a") },
        { TENSOR(MORE_TENSORS, "blk.1.attn_q.weight.lora_a") }, /* the model has one block */
        { TENSOR(MORE_TENSORS, "blk.00.attn_q.weight.lora_a") },
        { TENSOR(MORE_TENSORS, "blk.+0.attn_q.weight.lora_a") },
        { TENSOR(MORE_TENSORS, "blk.4294967296.attn_q.weight.lora_a") },
        { -1, { 0 }, 5, { 0 }, VKT_E_FORMAT, "there is \"blk.0.attn_v.weight.lora_a\", but no" },
        { -1, { 0 }, 4, { 0 }, VKT_E_FORMAT, "there is \"blk.0.attn_v.weight.lora_b\", but no" },
        { -1, { 0 }, 1, MATRIX("blk.0.attn_q.weight.lora_b", 2, 32), VKT_E_FORMAT, "(out,rank)" },
        { -1, { 0 }, 1, MATRIX("blk.0.attn_q.weight.lora_b", RANK, 0), VKT_E_FORMAT, "(out,rank)" },
        { -1,
          { 0 },
          1,
          { "blk.0.attn_q.weight.lora_b", 0, 3, { RANK, 1, 32 }, zeros, 0, 0, 0 },
          VKT_E_FORMAT,
          "(out,rank)" },
    };
    files f = open_files(r, GOLDEN("llama.gguf"), false);
    const char *path = vkt_temp_dir_file(&r->dir, "fault.gguf");
    vkt_store *s = sevens(r, f.g, 3);
    vkt_peft_config *c;
    write_fault(r, &(fault){ .meta = MORE_META, .as_meta = TEXT("adapter.lora.task_name", "x"), .tensor = -1 }, path);
    CHECK(vkt_lora_gguf_config(&r->h, &f.m, path, &c));
    vkt_peft_config_destroy(&c);
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(faults); i++) {
        write_fault(r, &faults[i], path);
        assert_int_equal(vkt_lora_gguf_config(&r->h, &f.m, path, &c), faults[i].status);
        assert_null(c);
        vkt_test_error_contains(faults[i].reason);
        assert_int_equal(vkt_lora_load_gguf(&r->h, s, &f.m, &lora, path), faults[i].status);
    }
    vkt_test_expect_errors(false);
    expect_sevens(s);
    vkt_store_destroy(&s);
    close_files(&f);
}

static void other_files_are_refused(void **state)
{
    rig *r = rig_of(state);
    files f = open_files(r, GOLDEN("llama.gguf"), false);
    const char *path = vkt_temp_dir_file(&r->dir, "other.gguf");
    vkt_peft_config *c;
    const vkt_gguf_meta meta[] = { TEXT("general.type", "adapter"), TEXT("adapter.type", "lora"),
                                   TEXT("general.architecture", "llama"), ALPHA(1.5f) };
    const vkt_gguf_tensor ranks[] = { MATRIX("blk.0.attn_q.weight.lora_a", 32, 3),
                                      MATRIX("blk.0.attn_q.weight.lora_b", 3, 32),
                                      MATRIX("blk.0.attn_v.weight.lora_a", 32, 2),
                                      MATRIX("blk.0.attn_v.weight.lora_b", 2, 16) };
    vkt_test_expect_errors(true);
    CHECK(vkt_gguf_write(&r->h, path, meta, 4, ranks, 4));
    assert_int_equal(vkt_lora_gguf_config(&r->h, &f.m, path, &c), VKT_E_UNSUPPORTED);
    vkt_test_error_contains("want one rank of all adapters, up to 65536: \"blk.0.attn_v.weight.lora_a\" has 2");
    CHECK(vkt_gguf_write(&r->h, path, meta, 4, NULL, 0));
    assert_int_equal(vkt_lora_gguf_config(&r->h, &f.m, path, &c), VKT_E_FORMAT);
    vkt_test_error_contains("the file has no adapters");
    CHECK(vkt_file_write(&r->h, path, "GGUF", 4));
    assert_int_equal(vkt_lora_gguf_config(&r->h, &f.m, path, &c), VKT_E_FORMAT);
    assert_int_equal(vkt_lora_gguf_config(&r->h, &f.m, "none.gguf", &c), VKT_E_NOT_FOUND);
    assert_int_equal(vkt_lora_load_gguf(&r->h, f.s, &f.m, &lora, "none.gguf"), VKT_E_NOT_FOUND);
    f.m.architecture = (vkt_gguf_architecture)0;
    assert_int_equal(vkt_lora_gguf_config(&r->h, &f.m, path, &c), VKT_E_ARG);
    assert_null(c);
    vkt_test_expect_errors(false);
    close_files(&f);
}

static void every_failed_allocation_is_reported(void **state)
{
    rig *r = rig_of(state);
    files f = open_files(r, GOLDEN("llama.gguf"), false);
    const char *path = vkt_temp_dir_file(&r->dir, "adapter.gguf");
    vkt_store *s = sevens(r, f.g, N);
    vkt_peft_config *c = NULL;
    CHECK(vkt_lora_save_gguf(&r->h, f.s, VKT_PART_VALUE, &f.m, &lora, path));
    for (int loads = 0; loads < 2; loads++) {
        unsigned n;
        for (n = 1;; n++) {
            const size_t live = vkt_test_live_blocks();
            vkt_test_fail_allocation(n);
            const vkt_result result =
                loads ? vkt_lora_load_gguf(&r->h, s, &f.m, &lora, path) : vkt_lora_gguf_config(&r->h, &f.m, path, &c);
            if (!vkt_test_allocation_failed()) break;
            assert_int_equal(result, VKT_E_NOMEM);
            assert_null(c);
            assert_int_equal(vkt_test_live_blocks(), live);
            expect_sevens(s);
        }
        vkt_test_fail_allocation(0);
        assert_true(n > 5);
        vkt_peft_config_destroy(&c);
    }
    vkt_store_destroy(&s);
    close_files(&f);
}

/* Tests faults that only vkt_lora_load_gguf finds: it reads the tensors, and compares the file with the network. */
static void what_does_not_fit_is_refused(void **state)
{
    rig *r = rig_of(state);
    static float bad[3 * 32];
    bad[95] = (float)NAN;
    const fault faults[] = {
        { -1, { 0 }, 4, MATRIX("blk.0.attn_v.weight.lora_a", 31, RANK), VKT_E_SHAPE, "shape (3,32), got (3,31)" },
        { -1, { 0 }, 5, MATRIX("blk.0.attn_v.weight.lora_b", RANK, 15), VKT_E_SHAPE, "shape (16,3), got (15,3)" },
        { -1,
          { 0 },
          4,
          { "blk.0.attn_v.weight.lora_a", 0, 2, { 32, RANK }, bad, 0, 0, 0 },
          VKT_E_FORMAT,
          "lora_a\" has a number that is not finite" },
        { -1,
          { 0 },
          4,
          { "blk.0.attn_v.weight.lora_a", 24, 2, { 32, RANK }, zeros, 0, 0, 0 },
          VKT_E_UNSUPPORTED,
          "I8" },
    };
    files f = open_files(r, GOLDEN("llama.gguf"), false);
    const char *path = vkt_temp_dir_file(&r->dir, "fault.gguf");
    const fault none = { .meta = -1, .tensor = -1 };
    vkt_store *s = sevens(r, f.g, 3), *less = sevens(r, f.g, 2), *more = sevens(r, f.g, 4);
    vkt_lora_params other = lora;
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(faults); i++) {
        write_fault(r, &faults[i], path);
        assert_int_equal(vkt_lora_load_gguf(&r->h, s, &f.m, &lora, path), faults[i].status);
        vkt_test_error_contains(faults[i].reason);
    }
    write_fault(r, &none, path);
    assert_int_equal(vkt_lora_load_gguf(&r->h, less, &f.m, &lora, path), VKT_E_UNSUPPORTED);
    vkt_test_error_contains("\"blk.0.attn_v.weight.lora_a\" is no adapter of this network");
    assert_int_equal(vkt_lora_load_gguf(&r->h, more, &f.m, &lora, path), VKT_E_NOT_FOUND);
    vkt_test_error_contains("there is no tensor \"blk.0.attn_output.weight.lora_a\"");
    other.alpha = 2;
    assert_int_equal(vkt_lora_load_gguf(&r->h, s, &f.m, &other, path), VKT_E_STATE);
    vkt_test_error_contains("built with alpha 2, the adapter has 1.5");
    other.rank = 2;
    assert_int_equal(vkt_lora_load_gguf(&r->h, s, &f.m, &other, path), VKT_E_ARG); /* the store has rank 3 */
    f.m.head_width = 16;
    assert_int_equal(vkt_lora_load_gguf(&r->h, s, &f.m, &lora, path), VKT_E_SHAPE);
    vkt_test_error_contains("32 rows are not those of 4 heads of width 16");
    vkt_test_expect_errors(false);
    expect_sevens(s);
    expect_sevens(less);
    expect_sevens(more);
    f.m.head_width = 8;
    CHECK(vkt_lora_load_gguf(&r->h, s, &f.m, &lora, path)); /* this file has no fault */
    vkt_store_destroy(&s);
    vkt_store_destroy(&less);
    vkt_store_destroy(&more);
    close_files(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(what_is_saved_is_loaded),
        rig_test(options_are_read),
        rig_test(files_of_others_are_read),
        rig_test(what_is_no_adapter_is_refused),
        rig_test(other_files_are_refused),
        rig_test(what_does_not_fit_is_refused),
        rig_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
