/* scaling/profile.c - see profile.h. */
#include "scaling/profile.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "common/message.h"

/* Reads member `key`. If it is not a number or is negative, prints a message and returns false. */
static bool number(const json_t *o, const char *path, const char *key, double *x)
{
    const json_t *member = json_object_get(o, key);
    *x = json_number_value(member);
    if (json_is_number(member) && isfinite(*x) && *x >= 0) return true;
    complain("%s: want \"%s\" of the profile or of each bucket, a number that is not negative", path, key);
    return false;
}

static bool read_buckets(const json_t *list, const char *path, scaling_profile *p)
{
    const size_t n = json_array_size(list);
    if (n == 0) {
        complain("%s: want \"buckets\", a list of at least one { \"bytes\", \"ready_ms\" }", path);
        return false;
    }
    p->buckets = calloc(n, sizeof *p->buckets);
    if (!p->buckets) {
        complain("no memory for %zu buckets", n);
        return false;
    }
    for (; p->n_buckets < n; p->n_buckets++) {
        scaling_bucket *b = p->buckets + p->n_buckets;
        const json_t *at = json_array_get(list, p->n_buckets);
        if (!number(at, path, "bytes", &b->bytes) || !number(at, path, "ready_ms", &b->ready_ms)) return false;
        if (p->n_buckets == 0 || b->ready_ms >= b[-1].ready_ms) continue;
        complain("%s: want buckets in the order in which they are ready, got %g ms after %g ms", path, b->ready_ms,
                 b[-1].ready_ms);
        return false;
    }
    return true;
}

bool scaling_read(const char *path, scaling_profile *p)
{
    json_error_t e;
    *p = (scaling_profile){ 0 };
    json_t *o = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
    if (!o) {
        complain("%s: line %d: %s", path, e.line, e.text);
        return false;
    }
    const bool good = number(o, path, "forward_ms", &p->forward_ms) &&
                      number(o, path, "backward_ms", &p->backward_ms) && number(o, path, "update_ms", &p->update_ms) &&
                      read_buckets(json_object_get(o, "buckets"), path, p);
    json_decref(o);
    return good;
}
