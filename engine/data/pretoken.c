/* data/pretoken.c - see pretoken.h. The regular expressions are run by PCRE2. */
#include "data/pretoken.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "data/unicode_tables.h"

/* These character classes equal the classes of the library `tokenizers`, if PCRE2 has Unicode 14 to 16. PCRE2's \s also
 * has U+180E, so SPACES lists the spaces. The Unicode version of PCRE2 may be older than the versions that `tokenizers`
 * uses. So data/unicode_tables.h adds newer characters to \p{L} and \p{N}. */
#define SPACES "\\t-\\r\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define LETTERS "\\p{L}" VKT_LETTERS_16
#define NUMBERS "\\p{N}" VKT_NUMBERS_16
#define SINGLE_NUMBERS "\\p{N}" VKT_NUMBERS_17 /* the numbers that SmolLM's pre-tokenizer Digits finds */
#define OTHERS "[^" SPACES LETTERS NUMBERS "]"
#define ENDINGS "'s|'t|'re|'ve|'m|'ll|'d"

/* The expression of GPT-2 (openai/gpt-2, src/encoder.py). */
#define GPT2 ENDINGS "| ?[" LETTERS "]+| ?[" NUMBERS "]+| ?" OTHERS "+|[" SPACES "]+(?![^" SPACES "])|[" SPACES "]+"
/* SmolLM first applies the pre-tokenizer Digits: each character that is a number becomes a piece. Then GPT-2's
 * expression splits the texts between these pieces. The expression SMOLLM does both at once. A text between two pieces
 * ends where a number begins, so (?!..) must treat a number like the end of the text. Digits uses Unicode 17, and
 * GPT-2's expression Unicode 16. So only SINGLE_NUMBERS, not NUMBERS, has all the numbers that Digits finds. */
#define SMOLLM                                                                                           \
    "[" SINGLE_NUMBERS "]|" ENDINGS "| ?[" LETTERS "]+| ?[^" SPACES LETTERS SINGLE_NUMBERS "]+|[" SPACES \
    "]+(?![^" SPACES SINGLE_NUMBERS "])|[" SPACES "]+"
/* The expressions of Llama 3 (meta-llama/llama3, llama/tokenizer.py) and of Qwen2 (transformers,
 * models/qwen2/tokenization_qwen2.py) differ only in `numbers`, the quantifier for the numbers of a piece. */
#define WORDS(numbers)                                                                                             \
    "(?i:" ENDINGS ")|[^\\r\\n" LETTERS NUMBERS "]?[" LETTERS "]+|[" NUMBERS "]" numbers "| ?" OTHERS "+[\\r\\n]*" \
    "|[" SPACES "]*[\\r\\n]+|[" SPACES "]+(?![^" SPACES "])|[" SPACES "]+"

static const struct pre {
    const char *name, *pattern;
    vkt_pre_rules rules;
} pres[] = {
    { "gpt-2", GPT2, { .nfc = false } },
    { "smollm", SMOLLM, { .nfc = false } },
    { "llama-bpe", WORDS("{1,3}"), { .whole_pieces = true } },
    { "qwen2", WORDS(""), { .nfc = true } },
};

struct vkt_splitter {
    vkt_host host;
    const struct pre *pre;
    pcre2_general_context *general;
    pcre2_match_context *limits;
    pcre2_code *code;
};

struct vkt_split_run {
    const vkt_splitter *s;
    pcre2_match_data *match;
};

static void *take(size_t bytes, void *host)
{
    return vkt_alloc(host, bytes);
}

static void give(void *p, void *host)
{
    vkt_free(host, p);
}

static vkt_result compile(vkt_splitter *s)
{
    int error = 0;
    size_t at = 0;
    s->general = pcre2_general_context_create(take, give, &s->host);
    s->limits = s->general ? pcre2_match_context_create(s->general) : NULL;
    pcre2_compile_context *compiling = s->limits ? pcre2_compile_context_create(s->general) : NULL;
    if (compiling)
        s->code = pcre2_compile((PCRE2_SPTR)s->pre->pattern, PCRE2_ZERO_TERMINATED,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &at, compiling);
    pcre2_compile_context_free(compiling);
    if (!compiling || error == PCRE2_ERROR_HEAP_FAILED) return vkt_fail_nomem(&s->host, "a regular expression", 0);
    if (!s->code)
        return vkt_fail(&s->host, VKT_E_UNSUPPORTED, "pre-tokenizer \"%s\": PCRE2 gives error %d at character %zu",
                        s->pre->name, error, at);
    /* These expressions backtrack only within a run of characters of one class, so no limit is needed. */
    pcre2_set_match_limit(s->limits, UINT32_MAX);
    (void)pcre2_jit_compile(s->code, PCRE2_JIT_COMPLETE); /* where it fails, PCRE2 interprets the expression */
    return VKT_OK;
}

vkt_result vkt_splitter_create(const vkt_host *h, const char *name, vkt_splitter **out, vkt_pre_rules *rules)
{
    *out = NULL;
    const struct pre *pre = NULL;
    for (size_t i = 0; i < VKT_COUNT(pres); i++)
        if (strcmp(pres[i].name, name) == 0) pre = &pres[i];
    if (!pre)
        return vkt_fail(h, VKT_E_UNSUPPORTED,
                        "tokenizer: want the pre-tokenizer gpt-2, smollm, llama-bpe or qwen2, got \"%s\"", name);
    vkt_splitter *s = vkt_alloc(h, sizeof *s);
    if (!s) return vkt_fail_nomem(h, "a pre-tokenizer", sizeof *s);
    s->host = *h;
    s->pre = pre;
    *rules = pre->rules;
    const vkt_result r = compile(s);
    if (r == VKT_OK)
        *out = s;
    else
        vkt_splitter_destroy(&s);
    return r;
}

void vkt_splitter_destroy(vkt_splitter **ps)
{
    vkt_splitter *s = *ps;
    if (!s) return;
    const vkt_host h = s->host;
    pcre2_code_free(s->code);
    pcre2_match_context_free(s->limits);
    pcre2_general_context_free(s->general);
    vkt_free(&h, s);
    *ps = NULL;
}

vkt_result vkt_split_run_create(const vkt_splitter *s, vkt_split_run **out)
{
    *out = NULL;
    vkt_split_run *run = vkt_alloc(&s->host, sizeof *run);
    if (!run) return vkt_fail_nomem(&s->host, "a pre-tokenizer", sizeof *run);
    run->s = s;
    run->match = pcre2_match_data_create(1, s->general);
    if (!run->match) {
        vkt_free(&s->host, run);
        return vkt_fail_nomem(&s->host, "a pre-tokenizer", 0);
    }
    *out = run;
    return VKT_OK;
}

void vkt_split_run_destroy(vkt_split_run **prun)
{
    vkt_split_run *run = *prun;
    if (!run) return;
    pcre2_match_data_free(run->match);
    vkt_free(&run->s->host, run);
    *prun = NULL;
}

vkt_result vkt_split_next(vkt_split_run *run, const char *text, size_t n, size_t at, size_t *end)
{
    const uint32_t options = PCRE2_NO_UTF_CHECK; /* s->code is anchored; PCRE2_ANCHORED here would switch off JIT */
    const int found = pcre2_match(run->s->code, (PCRE2_SPTR)text, n, at, options, run->match, run->s->limits);
    /* For any character, one of the alternatives matches. So `found` is below 1 only after an error. For these
     * expressions, the only possible error is missing memory. */
    if (found < 1)
        return vkt_fail(&run->s->host, VKT_E_NOMEM, "pre-tokenizer \"%s\": PCRE2 gives error %d at byte %zu",
                        run->s->pre->name, found, at);
    *end = pcre2_get_ovector_pointer(run->match)[1];
    return VKT_OK;
}
