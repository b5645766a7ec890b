/* fuzz/make_corpus.c - writes corpus/<reader>/ with the library's own writers:  make_corpus FOLDER
 *
 * Formats without a writer in the library are written out below. The program replaces only its own files, not the
 * inputs that libFuzzer found. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

#include <jpeglib.h>
#include <png.h>

#include "base/variant.h"
#include "check/case.h"
#include "fuzz/fuzz.h"
#include "io/checkpoint.h"
#include "kernel/tuning.h"
#include "vktrain/gguf.h"
#include "vktrain/table.h"
#include "vktrain/text.h"

static const char *root;

static const char *path_of(const char *reader, const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", root, reader);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", root, reader, name);
    return path;
}

static void need(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "make_corpus: %s\n", what);
    exit(1);
}

static void put(const char *reader, const char *name, const void *bytes, size_t n, bool gzip)
{
    const gzFile f = gzopen(path_of(reader, name), gzip ? "wb9" : "wbT");
    need(f && gzwrite(f, bytes, (unsigned)n) == (int)n && gzclose(f) == Z_OK, path_of(reader, name));
}

static void put_text(const char *reader, const char *name, const char *text)
{
    put(reader, name, text, strlen(text), false);
}

static void idx(void)
{
    static const uint8_t images[] = { 0, 0, 8, 4, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0,  0,  2,
                                      0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    static const uint8_t labels[] = { 0, 0, 8, 1, 0, 0, 0, 3, 5, 0, 199 };
    static const uint8_t vectors[] = { 0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4 };
    put("idx", "images", images, sizeof images, false);
    put("idx", "images.gz", images, sizeof images, true);
    put("idx", "labels", labels, sizeof labels, false);
    put("idx", "labels.gz", labels, sizeof labels, true);
    put("idx", "vectors", vectors, sizeof vectors, false);
}

static void tables(void)
{
    put_text("csv", "header", "\xef\xbb\xbfsize,\"price\",kind\r\n1.5,-2e3,flat\r\n\"3\",4,\"a \"\"b\"\", c\"\r\n");
    put_text("csv", "numbers", "1,2,price\n3,4,5\n\n6,7,8");
    put_text("csv", "semicolons", "kind;x;price\na;1;2\nb;3;4\n");
    put_text("csv", "lines", "a,price\n\"x\ny\",1\n");
    static const char texts[] = "tea\tGreen tea, GREEN!\nale\tpale ale\n\ntea\t\nale\tÀle don't\n";
    put_text("tsv", "texts", texts);
    put("tsv", "texts.gz", texts, sizeof texts - 1, true);
    put_text("tsv", "classes", "tea\nale\r\n\ngin");
}

/* Writes an image of 7 x 5 pixels as two kinds of JPEG and two kinds of PNG. Also writes tables of images. */
static void images(void)
{
    enum { W = 7, H = 5 };
    uint8_t rgb[H * 3 * W];
    for (int i = 0; i < H * 3 * W; i++) rgb[i] = (uint8_t)(i * 37);
    static const int formats[] = { PNG_FORMAT_RGB, PNG_FORMAT_GRAY };
    for (int i = 0; i < 2; i++) {
        png_image png = { .version = PNG_IMAGE_VERSION, .width = W, .height = H, .format = (png_uint_32)formats[i] };
        need(png_image_write_to_file(&png, path_of("image", i ? "gray.png" : "rgb.png"), 0, rgb, i ? W : 3 * W, NULL),
             "png");
    }
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    c.err = jpeg_std_error(&errors);
    for (int progressive = 0; progressive < 2; progressive++) {
        FILE *f = fopen(path_of("image", progressive ? "progressive.jpg" : "baseline.jpg"), "wb");
        need(f != NULL, "jpeg");
        jpeg_create_compress(&c);
        jpeg_stdio_dest(&c, f);
        c.image_width = W;
        c.image_height = H;
        c.input_components = 3;
        c.in_color_space = JCS_RGB;
        jpeg_set_defaults(&c);
        if (progressive) jpeg_simple_progression(&c);
        jpeg_start_compress(&c, TRUE);
        static const uint8_t exif[] = "Exif\0\0II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0";
        if (!progressive) jpeg_write_marker(&c, JPEG_APP0 + 1, exif, sizeof exif - 1);
        for (int y = 0; y < H; y++) jpeg_write_scanlines(&c, (JSAMPROW[]){ rgb + y * 3 * W }, 1);
        jpeg_finish_compress(&c);
        jpeg_destroy_compress(&c);
        need(fclose(f) == 0, "jpeg");
    }
    put_text("image_table", "names", "path,label\na.png,cat\n\"b,c.jpg\",dog\r\n");
    put_text("image_table", "numbers", "a.png,1\nb.png,0\n");
    put_text("image_table", "paths", "a.png\nb.jpg\n");
}

static void vocabulary(void)
{
    static const char *const texts[] = { "the tea of the house", "50% of \x01 the \xff tea" };
    vkt_vocab *v;
    need(vkt_vocab_create(fuzz_host(), NULL, texts, 2, &v) == VKT_OK, "vocabulary");
    need(vkt_vocab_save(v, path_of("vocab", "words")) == VKT_OK, "vocabulary");
    char *text;
    need(vkt_vocab_to_text(v, &text) == VKT_OK, "vocabulary");
    put("vocab", "words.gz", text, strlen(text), true);
    vkt_text_release(&text);
    vkt_vocab_destroy(&v);
    need(vkt_vocab_create(fuzz_host(), &(vkt_vocab_params){ .filters = "", .index_from = 4 }, NULL, 0, &v) == VKT_OK,
         "vocabulary");
    need(vkt_vocab_save(v, path_of("vocab", "empty")) == VKT_OK, "vocabulary");
    vkt_vocab_destroy(&v);
}

static void scaler(void)
{
    const float rows[] = { 0.1f, 1e-30f, 3, 0.7f, 3e30f, 3 };
    const vkt_dataset_params p = { .rows = 2, .width = 3, .type = VKT_ROW_F32 };
    vkt_dataset *d;
    vkt_scaler *s;
    char *text;
    need(vkt_dataset_from_arrays(fuzz_host(), &p, rows, &d) == VKT_OK && vkt_scaler_fit(d, &s) == VKT_OK &&
             vkt_scaler_to_text(s, &text) == VKT_OK,
         "scaler");
    put_text("scaler", "three", text);
    vkt_text_release(&text);
    vkt_scaler_destroy(&s);
    vkt_dataset_destroy(&d);
}

static void tensors(void)
{
    static const float w[6] = { 1, -2, 0.5f };
    static const double history[6] = { 1, 0.7 };
    static const uint16_t half[3] = { 0x3c00, 0x7bff, 0x8001 };
    const vkt_blob blobs[] = {
        { "history", VKT_ST_F64, 2, { 1, 6 }, history }, { "fc.weight", VKT_ST_F32, 2, { 2, 3 }, w },
        { "half", VKT_ST_F16, 1, { 3 }, half },          { "brain", VKT_ST_BF16, 1, { 3 }, half },
        { "scalar", VKT_ST_U8, 0, { 0 }, half },         { "none", VKT_ST_I64, 2, { 0, 4 }, NULL }
    };
    const vkt_meta meta[] = { { "format", "pt" }, { "note", "t\xc3\xaate \"x\"\n" } };
    need(vkt_safetensors_write(fuzz_host(), path_of("safetensors", "all"), blobs, VKT_COUNT(blobs), meta, 2) ==
                 VKT_OK &&
             vkt_safetensors_write(fuzz_host(), path_of("safetensors", "one"), blobs + 1, 1, NULL, 0) == VKT_OK &&
             vkt_safetensors_write(fuzz_host(), path_of("safetensors", "empty"), NULL, 0, NULL, 0) == VKT_OK,
         "safetensors");
    const vkt_meta state[] = { { "vktrain.run", "batch 2" }, { "vktrain.position", "7 1 1 0 0x0p+0" } };
    need(vkt_checkpoint_write(fuzz_host(), path_of("checkpoint", "state"), blobs, 2, state, 2) == VKT_OK, "checkpoint");
}

/* Writes inputs of fuzz_tokenizer.c: for each pre-tokenizer, one with VKT_TOKENS_SPECIAL and one without. */
static void tokenizer(void)
{
    static const char merges[] = "\6th\300e in\300g  \302 ", /* th, the, " i", "n\300", "g ", " \302" */
        text[] = "It's the thing:  1234 <|x|> <u>\r\n\r\n   e\xcc\x81\xcc\xa3 \xe1\x84\x92\xe1\x85\xa1 "
                 "\xf0\x9f\x98\x80 \xff\xe2\x82 x\t\t'LL \xc2\xbd";
    char bytes[sizeof merges + sizeof text];
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "mixed%d", i);
        bytes[0] = (char)i;
        memcpy(bytes + 1, merges, sizeof merges - 1);
        memcpy(bytes + sizeof merges, text, sizeof text - 1);
        put("tokenizer", name, bytes, sizeof merges + sizeof text - 1, false);
    }
}

/* Writes two GGUF files. One has metadata of each kind and tensors of four types. The other has no metadata and no
 * tensors. */
static void gguf(void)
{
    enum { KINDS = 13, ARRAY = 9 };
    static const uint64_t numbers[4] = { 0x0101010101010101u, 0x0100010001000100u, 0x3f800000bf800000u };
    static const vkt_gguf_string texts[] = { { "t\xc3\xaate", 5 }, { "a\0b", 3 }, { "", 0 } };
    static const char keys[KINDS][4] = {
        "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11", "k12"
    };
    vkt_gguf_meta meta[KINDS];
    for (uint32_t i = 0; i < KINDS; i++) {
        const vkt_gguf_kind kind = (vkt_gguf_kind)(i == ARRAY ? VKT_GGUF_KIND_TEXT : i);
        meta[i] = (vkt_gguf_meta){ keys[i], kind, i % 2, 1 + i % 3, numbers };
        if (kind == VKT_GGUF_KIND_TEXT) meta[i].values = texts;
    }
    static const uint8_t blocks[512] = { 0, 60, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    const vkt_gguf_tensor tensors[] = {
        { .name = "f32", .type = VKT_GGUF_F32, .rank = 2, .dims = { 3, 2 }, .data = blocks },
        { .name = "q4_0", .type = VKT_GGUF_Q4_0, .rank = 1, .dims = { 64 }, .data = blocks },
        { .name = "q6_k", .type = VKT_GGUF_Q6_K, .rank = 3, .dims = { 256, 1, 2 }, .data = blocks },
        { .name = "i8", .type = (vkt_gguf_type)24, .rank = 4, .dims = { 2, 1, 1, 1 }, .data = blocks },
    };
    need(vkt_gguf_write(fuzz_host(), path_of("gguf", "all"), meta, KINDS, tensors, 4) == VKT_OK &&
             vkt_gguf_write(fuzz_host(), path_of("gguf", "empty"), NULL, 0, NULL, 0) == VKT_OK,
         "gguf");
}

/* Writes a language model of one transformer block, in which all widths are 2. */
static void gguf_model(void)
{
    static const vkt_gguf_string llama = { "llama", 5 };
    static const uint32_t one = 1, two = 2;
    static const struct {
        const char *name;
        uint32_t rank;
    } list[] = { { "token_embd.weight", 2 },        { "output_norm.weight", 1 },    { "blk.0.attn_norm.weight", 1 },
                 { "blk.0.attn_q.weight", 2 },      { "blk.0.attn_k.weight", 2 },   { "blk.0.attn_v.weight", 2 },
                 { "blk.0.attn_output.weight", 2 }, { "blk.0.ffn_norm.weight", 1 }, { "blk.0.ffn_gate.weight", 2 },
                 { "blk.0.ffn_up.weight", 2 },      { "blk.0.ffn_down.weight", 2 } };
    const vkt_gguf_meta meta[] = { { "general.architecture", VKT_GGUF_KIND_TEXT, false, 1, &llama },
                                   { "llama.block_count", VKT_GGUF_KIND_U32, false, 1, &one },
                                   { "llama.context_length", VKT_GGUF_KIND_U32, false, 1, &two },
                                   { "llama.embedding_length", VKT_GGUF_KIND_U32, false, 1, &two },
                                   { "llama.feed_forward_length", VKT_GGUF_KIND_U32, false, 1, &two },
                                   { "llama.attention.head_count", VKT_GGUF_KIND_U32, false, 1, &one },
                                   { "llama.attention.layer_norm_rms_epsilon", VKT_GGUF_KIND_U32, false, 1, &one } };
    static const float values[4] = { 1, 2, 3, 4 };
    vkt_gguf_tensor tensors[VKT_COUNT(list)];
    for (size_t i = 0; i < VKT_COUNT(list); i++)
        tensors[i] = (vkt_gguf_tensor){ .name = list[i].name, .rank = list[i].rank, .dims = { 2, 2 }, .data = values };
    need(vkt_gguf_write(fuzz_host(), path_of("gguf", "model"), meta, VKT_COUNT(meta), tensors, VKT_COUNT(list)) ==
             VKT_OK,
         "gguf");
}

/* Writes adapters of two layers. */
static void lora_gguf(void)
{
    static const vkt_gguf_string texts[] = { { "llama", 5 }, { "adapter", 7 }, { "lora", 4 } };
    static const float alpha = 4, values[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    static const char *const names[] = { "blk.0.attn_q.weight.lora_a", "blk.0.attn_q.weight.lora_b",
                                         "blk.1.ffn_up.weight.lora_a", "blk.1.ffn_up.weight.lora_b" };
    const vkt_gguf_meta meta[] = { { "general.architecture", VKT_GGUF_KIND_TEXT, false, 1, &texts[0] },
                                   { "general.type", VKT_GGUF_KIND_TEXT, false, 1, &texts[1] },
                                   { "adapter.type", VKT_GGUF_KIND_TEXT, false, 1, &texts[2] },
                                   { "adapter.lora.alpha", VKT_GGUF_KIND_F32, false, 1, &alpha } };
    vkt_gguf_tensor tensors[VKT_COUNT(names)];
    for (size_t i = 0; i < VKT_COUNT(names); i++)
        tensors[i] =
            (vkt_gguf_tensor){ .name = names[i], .rank = 2, .dims = { i % 2 ? 2 : 4, i % 2 ? 4 : 2 }, .data = values };
    need(vkt_gguf_write(fuzz_host(), path_of("lora_gguf", "two"), meta, VKT_COUNT(meta), tensors, VKT_COUNT(names)) ==
             VKT_OK,
         "lora_gguf");
}

static void rows(void)
{
    put_text("rows", "chats",
             "\xef\xbb\xbf{\"question\": \"a?\", \"answer\": \"b\"}\n\n{\"messages\": [{\"role\": \"system\", "
             "\"content\": \"s\"}, {\"role\": \"user\", \"content\": \"\\u00e9\"}, {\"role\": "
             "\"assistant\", \"content\": \"x y\"}]}\n");
    put_text("rows", "texts",
             "{\"prompt\": \"one two\", \"completion\": \" three\"}\n{\"prompt\": \"a long text which has more "
             "tokens than the context\", \"completion\": \" b\"}\n");
    put_text("rows", "plain", "The cat sat on 7 mats.\n\nIt slept there until the evening came, and ate.\n");
}

static void tuning(void)
{
    const vkt_tuning_id id = { .device = "1-2-3", .shaders = 0x0123456789abcdef }; /* as in fuzz_tuning.c */
    const vkt_tuned list[] = { { 1, VKT_V(TILE) }, { UINT64_MAX, VKT_V(DIRECT) | VKT_V(PACKED_A) } };
    for (size_t n = 0; n <= 2; n += 2) {
        vkt_text t = { .h = fuzz_host() };
        vkt_tuning_encode(&id, list, n, &t);
        need(!t.failed, "tuning");
        put_text("tuning", n ? "two" : "empty", t.s);
        vkt_text_free(&t);
    }
}

/* Writes two random cases of each op that has a `sample` function, three ops per file. */
static void cases(void)
{
    enum { SEEDS = 2, OPS_A_FILE = 3 };
    vkt_text t = { .h = fuzz_host() };
    char text[160], name[48] = "";
    uint32_t ops = 0;
    for (size_t i = 0; vkt_ops[i]; i++) {
        if (!vkt_ops[i]->sample) continue;
        if (!*name) snprintf(name, sizeof name, "%s", vkt_ops[i]->name);
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
            vkt_case c = { .n_in = 0 };
            vkt_ops[i]->sample(&r, &c);
            vkt_case_text(fuzz_host(), vkt_ops[i], &c, text);
            vkt_text_add(&t, "%s %s\n", vkt_ops[i]->name, text);
        }
        if (++ops % OPS_A_FILE && vkt_ops[i + 1]) continue;
        need(t.s && !t.failed, "cases");
        put_text("case", name, t.s);
        vkt_text_free(&t);
        *name = 0;
    }
    vkt_text_free(&t);
}

int main(int argc, char **argv)
{
    need(argc == 2, "want the folder of the corpus");
    root = argv[1];
    idx();
    tables();
    images();
    vocabulary();
    scaler();
    tensors();
    tokenizer();
    gguf();
    gguf_model();
    lora_gguf();
    rows();
    tuning();
    cases();
    return 0;
}
