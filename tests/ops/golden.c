/* ops/golden.c - see golden.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "ops/golden.h"
#include "support/host.h"

void golden_open(golden *g, const char *name)
{
    const vkt_host h = vkt_test_host();
    char path[1024];
    *g = (golden){ .file = NULL };
    snprintf(path, sizeof path, "%s/golden/%s", VKT_TEST_DIR, name);
    assert_int_equal(vkt_safetensors_open(&h, path, &g->file), VKT_OK);
    const char *text = vkt_safetensors_meta(g->file, "cases");
    assert_non_null(text);
    for (const char *at = text; *at;) { /* names, separated by single spaces */
        const size_t n = strcspn(at, " ");
        g->cases = realloc(g->cases, (g->n + 1) * sizeof *g->cases);
        assert_non_null(g->cases);
        g->cases[g->n] = strndup(at, n);
        assert_non_null(g->cases[g->n]);
        g->n++;
        at += n + (at[n] == ' ');
    }
    assert_true(g->n > 0);
}

void golden_close(golden *g)
{
    for (size_t i = 0; i < g->n; i++) free(g->cases[i]);
    free(g->cases);
    vkt_safetensors_close(&g->file);
}

static const vkt_st_entry *find(const golden *g, const char *name, const char *part, vkt_shape *shape)
{
    char text[200];
    snprintf(text, sizeof text, "%s%s%s", name, part ? "/" : "", part ? part : "");
    const vkt_st_entry *e = vkt_safetensors_find(g->file, text);
    if (!e) return NULL;
    assert_true(e->rank <= VKT_MAX_RANK && e->elements > 0);
    if (shape) shape->rank = e->rank;
    for (uint32_t i = 0; shape && i < e->rank; i++) shape->dim[i] = (uint32_t)e->dims[i];
    return e;
}

float *golden_f32(const golden *g, const char *name, const char *part, vkt_shape *shape)
{
    const vkt_st_entry *e = find(g, name, part, shape);
    float *f = e ? malloc(e->elements * sizeof *f) : NULL;
    if (e) assert_int_equal(vkt_safetensors_read_f32(g->file, e, f, e->elements), VKT_OK);
    return f;
}

double *golden_f64(const golden *g, const char *name, const char *part, vkt_shape *shape)
{
    const vkt_st_entry *e = find(g, name, part, shape);
    if (!e) return NULL;
    assert_int_equal(e->dtype, VKT_ST_F64);
    double *f = malloc(e->bytes);
    assert_int_equal(vkt_safetensors_read_raw(g->file, e, f, e->bytes), VKT_OK);
    return f;
}

json_t *golden_attributes(const golden *g, const char *name)
{
    const char *text = vkt_safetensors_meta(g->file, name);
    assert_non_null(text);
    json_t *attr = json_loads(text, 0, NULL);
    assert_non_null(attr);
    return attr;
}

double golden_number(const json_t *attr, const char *key, double fallback)
{
    const json_t *v = json_object_get(attr, key);
    return v ? json_number_value(v) : fallback;
}

bool golden_flag(const json_t *attr, const char *key)
{
    return json_is_true(json_object_get(attr, key));
}

bool golden_pair(const json_t *attr, const char *key, uint32_t pair[2])
{
    const json_t *v = json_object_get(attr, key);
    if (!v) return false;
    for (size_t i = 0; i < 2; i++) pair[i] = (uint32_t)json_integer_value(json_array_get(v, i));
    return true;
}

uint32_t golden_list(const json_t *attr, const char *key, uint32_t list[VKT_MAX_RANK])
{
    const json_t *v = json_object_get(attr, key);
    const size_t n = VKT_MIN(json_array_size(v), (size_t)VKT_MAX_RANK);
    for (size_t i = 0; i < n; i++) list[i] = (uint32_t)json_integer_value(json_array_get(v, i));
    return (uint32_t)n;
}
