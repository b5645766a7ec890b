/* Reads the input as CSV in two formats, then as a table of numbers. */
#include "data/csv.h"
#include "fuzz/fuzz.h"
#include "vktrain/table.h"

static void read_all(const uint8_t *data, size_t size, const vkt_csv_format *format)
{
    vkt_csv c;
    bool more = false;
    vkt_result r = vkt_csv_open_memory(fuzz_host(), "input", (const char *)data, size, format, &c);
    size_t line = 0, n_fields = 0;
    while (r == VKT_OK && (r = vkt_csv_next(&c, &more)) == VKT_OK && more) {
        size_t bytes = 0;
        for (size_t i = 0; i < c.n_fields; i++) bytes += strlen(c.fields[i]);
        fuzz_require(c.n_fields > 0 && bytes <= size && c.line > line, "a record that is not in the text");
        fuzz_require(n_fields == 0 || n_fields == c.n_fields, "records of different lengths");
        fuzz_require(vkt_csv_find(&c, c.fields[0]) == 0, "a field that is not found");
        line = c.line;
        n_fields = c.n_fields;
    }
    fuzz_status(r, r == VKT_OK);
    vkt_csv_close(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(data, size, NULL);
    read_all(data, size, &(vkt_csv_format){ .separator = '\t', .no_quotes = true });
    static const char *const price = "price";
    const vkt_csv_params params[] = { { .no_header = true },
                                      { .targets = &price, .n_targets = 1 },
                                      { .label = "0", .separator = ';' } };
    const char *path = fuzz_file(data, size);
    for (size_t i = 0; i < VKT_COUNT(params); i++) {
        vkt_dataset *d;
        const vkt_result r = vkt_dataset_from_csv(fuzz_host(), path, &params[i], &d);
        fuzz_status(r, d != NULL);
        vkt_dataset_destroy(&d);
    }
    fuzz_end();
    return 0;
}
