/* common/predict_tables.c - see predict_tables.h. */
#include "common/predict_tables.h"

#include <stdlib.h>
#include <string.h>

static vkt_result read_with(const vkt_host *h, const char *path, const char *text, char separator, vkt_records **out)
{
    return text ? vkt_records_from_text(h, "standard input", text, separator, out)
                : vkt_records_read(h, path, separator, out);
}

/* Reads with the separator that gives the most columns. If all fail, the message is the one for commas. */
static vkt_result read_records(const vkt_host *h, const char *path, const char *text, vkt_records **out)
{
    static const char separators[] = { ',', ';', '\t', '|' };
    vkt_host quiet = *h;
    quiet.log_level = VKT_LOG_NONE;
    char best = ',';
    uint32_t most = 0;
    for (size_t i = 0; i < sizeof separators; i++) {
        const vkt_result r = read_with(&quiet, path, text, separators[i], out);
        const uint32_t columns = r == VKT_OK ? vkt_records_columns(*out) : 0;
        vkt_records_destroy(out);
        if (columns > most) {
            most = columns;
            best = separators[i];
        }
        if (r != VKT_OK && r != VKT_E_FORMAT) break;
    }
    return read_with(h, path, text, best, out);
}

static vkt_result add_rows(const table_schema *s, predict_list *list, const vkt_records *records, uint32_t *map,
                           float *row)
{
    char why[SCHEMA_WHY];
    if (!schema_match(s, records, map, why))
        return predict_fail(list, VKT_E_FORMAT, "%s; want a first line with the names of the columns", why);
    vkt_result r = VKT_OK;
    for (uint32_t i = 0; r == VKT_OK && i < vkt_records_rows(records); i++)
        r = schema_encode(s, records, map, i, row, why) ? predict_add(list, row, NULL)
                                                        : predict_fail(list, VKT_E_FORMAT, "%s", why);
    return r;
}

vkt_result table_reader_read(void *user, predict_list *list, const char *path)
{
    const table_schema *s = ((const table_reader *)user)->schema;
    const bool standard = strcmp(path, "-") == 0;
    char *text = NULL;
    size_t n = 0;
    vkt_result r = standard ? predict_bytes(list, path, &text, &n) : VKT_OK;
    if (r == VKT_OK && standard && memchr(text, 0, n))
        r = predict_fail(list, VKT_E_FORMAT, "it is no text: there are zero bytes in it");
    vkt_records *records = NULL;
    if (r == VKT_OK) r = read_records(predict_host(list), path, text, &records);
    if (r == VKT_OK) {
        uint32_t *map = malloc(s->n * sizeof *map);
        float *row = malloc(schema_inputs(s) * sizeof *row);
        r = map && row ? add_rows(s, list, records, map, row)
                       : predict_fail(list, VKT_E_NOMEM, "there is no memory for its rows");
        free(map);
        free(row);
    }
    vkt_records_destroy(&records);
    free(text);
    return r;
}
