/* without.c FOLDER - tests a build without libjpeg, libpng, cairo, zlib, jansson and PCRE2. Training works. The
 * values and moments of a store can be read and written, and weights can be exported. Each call that needs one of these
 * libraries must return VKT_E_UNSUPPORTED, with a message that names the library and the option. The program writes its
 * files to FOLDER. */
#include <stdio.h>
#include <string.h>

#include <vktrain/vktrain.h>

static char last[512]; /* the last error */

static void keep_error(void *user, vkt_log_level level, const char *line)
{
    (void)user;
    if (level == VKT_LOG_ERROR) snprintf(last, sizeof last, "%s", line);
}

static const vkt_host host = { .log = keep_error };
static int faults;

static void is_ok(const char *what, vkt_result r)
{
    if (r == VKT_OK) return;
    printf("%s: want VKT_OK, got %s: %s\n", what, vkt_result_name(r), last);
    faults++;
}

static void needs(const char *what, vkt_result r, const char *library, const char *option)
{
    char want[128];
    snprintf(want, sizeof want, "vktrain was built without %s (VKT_WITH_%s=OFF)", library, option);
    printf("%s: %s, \"%s\"\n", what, vkt_result_name(r), last);
    faults += r != VKT_E_UNSUPPORTED || !strstr(last, want);
    last[0] = 0;
}

static const char *file(const char *folder, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void refused(const char *folder)
{
    static const unsigned char png[16] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' },
                               jpeg[16] = { 0xff, 0xd8, 0xff }, gz[16] = { 0x1f, 0x8b, 8 };
    static const double rates[] = { 0.1, 0.2 };
    static const uint64_t counts[4];
    vkt_dataset *d = NULL;
    vkt_card *card = NULL;
    vkt_columns *columns = NULL;
    vkt_records *records = NULL;
    vkt_tokenizer *tokenizer = NULL;
    const vkt_tokenizer_params vocabulary = { .tokens = &(vkt_gguf_string){ "a", 1 }, .n_tokens = 1, .pre = "gpt-2" };
    is_ok("write", vkt_write_file(&host, file(folder, "a"), png, sizeof png));
    needs("PNG", vkt_image_read(&host, file(folder, "a"), 0, 0, &d), "libpng", "PNG");
    is_ok("write", vkt_write_file(&host, file(folder, "a"), jpeg, sizeof jpeg));
    needs("JPEG", vkt_image_read(&host, file(folder, "a"), 0, 0, &d), "libjpeg", "JPEG");
    is_ok("write", vkt_write_file(&host, file(folder, "a"), gz, sizeof gz));
    needs("gzip", vkt_records_read(&host, file(folder, "a"), 0, &records), "zlib", "ZLIB");
    is_ok("write", vkt_write_file(&host, file(folder, "a"), "x,y\n1,2\n", 8));
    is_ok("a plain table", vkt_records_read(&host, file(folder, "a"), 0, &records));
    vkt_records_destroy(&records);
    needs("rates", vkt_rates_plot(&host, rates, rates, rates, 2, 0.1, "a.svg"), "cairo", "CAIRO");
    needs("matrix", vkt_confusion_write(&host, counts, 2, NULL, NULL, "a.png"), "cairo", "CAIRO");
    is_ok("matrix as CSV", vkt_confusion_write(&host, counts, 2, NULL, NULL, file(folder, "a.csv")));
    needs("card", vkt_card_from_text(&host, "a", "{}", &card), "jansson", "JANSSON");
    needs("columns", vkt_columns_from_text(&host, "a", "{}", &columns), "jansson", "JANSSON");
    needs("tokenizer", vkt_tokenizer_create(&host, &vocabulary, &tokenizer), "PCRE2", "PCRE2");
    faults += d || card || columns || tokenizer;
}

/* Trains y = x w^T + b for 400 steps. Then restores the store as it was after 200 steps, and makes the last 200 steps
 * again: the loss must be the same. Exports the weights. */
static void train(const char *folder)
{
    static const float x[4] = { -1, 0, 1, 2 }, want[4] = { -1, 1, 3, 5 };
    float losses[2] = { 0 };
    vkt_ctx *ctx;
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
    is_ok("context", vkt_ctx_create(NULL, &host, &ctx));
    is_ok("graph", vkt_graph_create(&host, &g));
    const vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(4, 1));
    const vkt_tensor target = vkt_input(g, "target", VKT_F32, VKT_ROWS, vkt_shape2(4, 1));
    const vkt_tensor y = vkt_linear(g, in, vkt_param(g, "w", vkt_shape2(1, 1)), vkt_param(g, "b", vkt_shape1(1)));
    const vkt_tensor loss = vkt_mse(g, y, target);
    vkt_keep(g, loss);
    is_ok("backward", vkt_backward(g, loss));
    is_ok("update", vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM }));
    is_ok("store", vkt_store_create(ctx, g, &store));
    is_ok("program", vkt_program_create(ctx, g, store, NULL, &p));
    if (faults) return;
    is_ok("x", vkt_program_write(p, in, x, sizeof x));
    is_ok("target", vkt_program_write(p, target, want, sizeof want));
    static const vkt_store_part parts[] = { VKT_PART_VALUE, VKT_PART_MOMENT1, VKT_PART_MOMENT2 };
    float kept[2][3];
    uint64_t t = 0, seed = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 200; i++) is_ok("step", vkt_program_run(p, &(vkt_run){ .lr = 0.05f }, NULL));
        is_ok("loss", vkt_program_read(p, loss, &losses[pass], sizeof *losses));
        if (pass > 0) continue;
        is_ok("clock", vkt_store_get_clock(store, &t, &seed));
        for (uint32_t i = 0; i < 2; i++)
            for (uint32_t k = 0; k < 3; k++) is_ok("read", vkt_store_read(store, i, parts[k], &kept[i][k]));
    }
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t k = 0; k < 3; k++) is_ok("write", vkt_store_write(store, i, parts[k], &kept[i][k]));
    is_ok("clock", vkt_store_set_clock(store, t, seed));
    for (int i = 0; i < 200; i++) is_ok("step", vkt_program_run(p, &(vkt_run){ .lr = 0.05f }, NULL));
    float again;
    char header[512];
    is_ok("loss", vkt_program_read(p, loss, &again, sizeof again));
    printf("loss %g, then %g, and once more from the same parts: %g\n", (double)losses[0], (double)losses[1],
           (double)again);
    faults += !(losses[1] < losses[0]) || again != losses[1] || !(losses[1] < 1e-3f);
    needs("state", vkt_store_save_state(&host, store, file(folder, "state")), "zlib", "ZLIB");
    needs("weights", vkt_store_save(&host, store, VKT_PART_VALUE, file(folder, "weights")), "jansson", "JANSSON");
    snprintf(header, sizeof header, "%s/weights.h", folder);
    is_ok("export", vkt_store_export(&host, store, &(vkt_export_params){ .prefix = "LINE" },
                                     file(folder, "weights.bin"), header));
    vkt_program_destroy(&p);
    vkt_store_destroy(&store);
    vkt_graph_destroy(&g);
    vkt_ctx_destroy(&ctx);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    refused(argv[1]);
    train(argv[1]);
    return faults != 0;
}
