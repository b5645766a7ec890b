/* common/classes.c - see classes.h. */
#include "common/classes.h"

#include "vktrain/metrics.h"

enum { NAMED = 3 };

const char *class_name(const vkt_dataset *d, uint32_t k, char room[CLASS_NAME_ROOM])
{
    const char *name = vkt_dataset_class_name(d, k);
    if (name) return vkt_printable(name, room, CLASS_NAME_ROOM);
    snprintf(room, CLASS_NAME_ROOM, "%u", k);
    return room;
}

void print_guesses(FILE *out, const vkt_dataset *d, uint32_t n, const float *logits)
{
    const uint32_t classes = vkt_dataset_classes(d);
    for (uint32_t row = 0; row < n; row++) {
        const float *z = logits + (size_t)row * classes;
        const uint32_t truth = vkt_dataset_labels(d)[row];
        uint32_t top[NAMED] = { 0 };
        double probabilities[NAMED];
        char room[CLASS_NAME_ROOM];
        const uint32_t named = vkt_likeliest(z, classes, NAMED, top, probabilities);
        fprintf(out, "%s %-18s", top[0] == truth ? "*" : " ", class_name(d, truth, room));
        for (uint32_t i = 0; i < named; i++)
            fprintf(out, "%s %s %.1f %%", i ? "," : "", class_name(d, top[i], room), 100 * probabilities[i]);
        fputc('\n', out);
    }
}
