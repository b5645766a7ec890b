/* ops/golden.h - reads numbers that PyTorch computed, from files of tests/golden. README.md there has their format. */
#ifndef VKT_TEST_GOLDEN_H
#define VKT_TEST_GOLDEN_H

#include <jansson.h>

#include "io/safetensors.h"
#include "vktrain/ops.h"

typedef struct golden {
    vkt_safetensors *file;
    char **cases; /* names, in the file's order */
    size_t n;
} golden;

/* Opens tests/golden/<name>. If the file cannot be read or has no cases, an assertion fails: it ends the test, or the
 * program if no test is running. */
void golden_open(golden *g, const char *name);
void golden_close(golden *g);

/* Return the numbers of the tensor "<name>/<part>", or of "<name>" if part is NULL. Return NULL if there is no such
 * tensor. Write the tensor's shape to *shape, unless `shape` is NULL. The caller frees the numbers with free().
 * golden_f32 rounds F64 tensors to f32. golden_f64 fails the test if the tensor is not F64. */
float *golden_f32(const golden *g, const char *name, const char *part, vkt_shape *shape);
double *golden_f64(const golden *g, const char *name, const char *part, vkt_shape *shape);

/* Returns the attributes of a case. The caller frees them with json_decref. */
json_t *golden_attributes(const golden *g, const char *name);
double golden_number(const json_t *attr, const char *key, double fallback);
bool golden_flag(const json_t *attr, const char *key);
/* Reads a pair of numbers for the two axes, such as a stride. If the case has no such attribute, returns false and does
 * not change `pair`. */
bool golden_pair(const json_t *attr, const char *key, uint32_t pair[2]);
/* Reads up to VKT_MAX_RANK numbers. Returns how many numbers it has read. */
uint32_t golden_list(const json_t *attr, const char *key, uint32_t list[VKT_MAX_RANK]);

#endif
