/* data/without/pretoken.c - replaces pretoken.c in a build without PCRE2. No splitter can be created. So
 * vkt_splitter_destroy only gets a pointer to NULL, and the last three functions are never called. */
#include "data/pretoken.h"

vkt_result vkt_splitter_create(const vkt_host *h, const char *name, vkt_splitter **out, vkt_pre_rules *rules)
{
    (void)name, (void)rules;
    *out = NULL;
    return vkt_fail_without(h, "tokenizer", "PCRE2", "PCRE2");
}

void vkt_splitter_destroy(vkt_splitter **s)
{
    (void)s;
}

vkt_result vkt_split_run_create(const vkt_splitter *s, vkt_split_run **out)
{
    (void)s;
    *out = NULL;
    return VKT_E_UNSUPPORTED;
}

void vkt_split_run_destroy(vkt_split_run **run)
{
    (void)run;
}

vkt_result vkt_split_next(vkt_split_run *run, const char *text, size_t n, size_t at, size_t *end)
{
    (void)run, (void)text, (void)n, (void)at, (void)end;
    return VKT_E_UNSUPPORTED;
}
