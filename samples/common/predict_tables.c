/* common/predict_tables.c - see predict_tables.h. */
#include "common/predict_tables.h"

#include <stdlib.h>
#include <string.h>

#include "common/table_data.h"

vkt_result table_reader_read(void *columns, predict_list *list, const char *path)
{
    const vkt_host *host = predict_host(list);
    const bool standard = strcmp(path, "-") == 0;
    char *text = NULL;
    size_t n = 0;
    vkt_records *records = NULL;
    vkt_dataset *rows = NULL;
    vkt_result r = standard ? predict_bytes(list, path, &text, &n) : VKT_OK;
    if (r == VKT_OK && standard && memchr(text, 0, n))
        r = predict_fail(list, VKT_E_FORMAT, "it is no text: there are zero bytes in it");
    if (r == VKT_OK) r = table_read(host, standard ? "standard input" : path, text, &records);
    if (r == VKT_OK) r = vkt_dataset_from_columns(host, columns, records, NULL, 0, false, &rows);
    for (uint32_t i = 0; r == VKT_OK && i < vkt_dataset_rows(rows); i++)
        r = predict_add(list, (const char *)vkt_dataset_features(rows) + i * vkt_dataset_row_bytes(rows), NULL);
    vkt_dataset_destroy(&rows);
    vkt_records_destroy(&records);
    free(text);
    return r;
}
