/* bench/case.c - see case.h. */
#include "bench/case.h"

#include <stdio.h>
#include <stdlib.h>

const vkt_op *bench_find_op(const char *name)
{
    for (size_t i = 0; vkt_ops[i]; i++)
        if (strcmp(vkt_ops[i]->name, name) == 0) return vkt_ops[i];
    return NULL;
}

/* Reads a number from 1 to 2^32-1 at *at and moves *at behind the number. Returns 0 if there is no such number. */
static uint32_t number(const char **at)
{
    char *end;
    if (**at < '0' || **at > '9') return 0;
    const unsigned long long n = strtoull(*at, &end, 10);
    *at = end;
    return n > UINT32_MAX ? 0 : (uint32_t)n;
}

/* Reads a shape such as "(128,32)". */
static bool parse_shape(const char **at, vkt_shape *s)
{
    *s = (vkt_shape){ 0 };
    if (*(*at)++ != '(') return false;
    if (**at == ')') return (*at)++, true;
    while (s->rank < VKT_MAX_RANK) {
        if (!(s->dim[s->rank++] = number(at))) return false;
        if (**at == ')') return (*at)++, true;
        if (*(*at)++ != ',') return false;
    }
    return false;
}

static bool parse_input(const char *at, vkt_case_input *in)
{
    *in = (vkt_case_input){ .dtype = VKT_F32, .lo = -1, .hi = 1 };
    if (strcmp(at, "-") == 0) return in->absent = true;
    if (*at == 'u') {
        in->dtype = strncmp(at, "u8<", 3) == 0 ? VKT_U8 : VKT_U32;
        if (in->dtype == VKT_U32 && strncmp(at, "u32<", 4) != 0) return false;
        at = strchr(at, '<') + 1;
        if (!(in->bound = number(&at))) return false;
    } else if (strncmp(at, "f16", 3) == 0) {
        in->dtype = VKT_F16;
        at += 3;
    } else if (*at == '+') {
        in->lo = 1e-3f;
        at++;
    }
    if (!parse_shape(&at, &in->shape)) return false;
    if (*at == 'b') {
        in->layout = VKT_BATCH_LAST;
        at++;
    }
    return *at == 0;
}

vkt_result bench_case_parse(const vkt_host *h, const char *line, const vkt_op **op, vkt_case *c)
{
    char text[512], *rest = NULL;
    *op = NULL;
    *c = (vkt_case){ 0 };
    if (strlen(line) >= sizeof text)
        return vkt_fail(h, VKT_E_FORMAT, "a line of more than 511 bytes: '%.40s...'", line);
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "#\r\n"), line);
    const char *word = strtok_r(text, " \t", &rest);
    if (!word) return VKT_OK;
    const vkt_op *found = bench_find_op(word);
    if (!found) return vkt_fail(h, VKT_E_FORMAT, "'%s' is no op (vkt-bench --list prints them)", word);
    if (!found->sample || found->attr_bytes > sizeof c->attr)
        return vkt_fail(h, VKT_E_FORMAT, "%s is measured as a part of %s", word,
                        found->tested_by ? found->tested_by : "whole steps");
    c->attr_bytes = found->attr_bytes;
    vkt_attr_defaults(found, c->attr);
    while ((word = strtok_r(NULL, " \t", &rest))) {
        if (strchr(word, '=')) {
            VKT_TRY(vkt_attr_parse(h, found, word, c->attr));
        } else if (c->n_in >= VKT_MAX_IN || !parse_input(word, &c->in[c->n_in++])) {
            return vkt_fail(h, VKT_E_FORMAT, "%s: want an input such as (128,32,13,13)b, u32<10(128) or -, got '%s'",
                            found->name, word);
        }
    }
    *op = found;
    return VKT_OK;
}
