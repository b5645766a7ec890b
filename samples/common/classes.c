/* common/classes.c - see classes.h. */
#include "common/classes.h"

#include <math.h>

enum { NAMED = 3 };

const char *class_name(const vkt_dataset *d, uint32_t k, char room[CLASS_NAME_ROOM])
{
    const char *name = vkt_dataset_class_name(d, k);
    if (name) return vkt_printable(name, room, CLASS_NAME_ROOM);
    snprintf(room, CLASS_NAME_ROOM, "%u", k);
    return room;
}

/* Finds the indices of the largest numbers of z, in falling order. Returns how many it found. */
static uint32_t largest(const float *z, uint32_t n, uint32_t top[NAMED])
{
    uint32_t found = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t rank = found;
        while (rank > 0 && z[k] > z[top[rank - 1]]) rank--;
        if (rank == NAMED) continue;
        if (found < NAMED) found++;
        for (uint32_t i = found - 1; i > rank; i--) top[i] = top[i - 1];
        top[rank] = k;
    }
    return found;
}

void print_guesses(FILE *out, const vkt_dataset *d, uint32_t n, const float *logits)
{
    const uint32_t classes = vkt_dataset_classes(d);
    for (uint32_t row = 0; row < n; row++) {
        const float *z = logits + (size_t)row * classes;
        const uint32_t truth = vkt_dataset_labels(d)[row];
        uint32_t top[NAMED] = { 0 };
        char room[CLASS_NAME_ROOM];
        const uint32_t named = largest(z, classes, top);
        double sum = 0;
        for (uint32_t k = 0; k < classes; k++) sum += exp((double)z[k] - (double)z[top[0]]);
        fprintf(out, "%s %-18s", top[0] == truth ? "*" : " ", class_name(d, truth, room));
        for (uint32_t i = 0; i < named; i++)
            fprintf(out, "%s %s %.1f %%", i ? "," : "", class_name(d, top[i], room),
                    100 * exp((double)z[top[i]] - (double)z[top[0]]) / sum);
        fputc('\n', out);
    }
}
