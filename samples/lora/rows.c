/* lora/rows.c - see rows.h. */
#define _POSIX_C_SOURCE 200809L /* getline */
#include "lora/rows.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/message.h"
#include "common/read_file.h"
#include "common/stop.h"

enum { MOST_TEXT = 1 << 30, MOST_MESSAGES = 4096, MARK = 3 };

static const char byte_order_mark[] = "\xef\xbb\xbf";

/* A file that is read. */
typedef struct reader {
    const char *path;
    uint32_t line;
    const rows_params *p;
    rows *out;
    vkt_tokens list; /* tokens of the current example */
} reader;

static bool no_memory(void)
{
    complain("no memory for the data");
    return false;
}

static bool wrong(const reader *r, const char *what)
{
    complain("%s: line %u: %s", r->path, r->line, what);
    return false;
}

/* Returns how many bytes the byte order mark of a text has: 3, or 0 without a mark. */
static size_t mark_of(const char *text, size_t n)
{
    return n >= MARK && memcmp(text, byte_order_mark, MARK) == 0 ? MARK : 0;
}

/* ---- rows ---- */

/* Appends a row for ids[0 .. n), n >= 1. Only the first T + 1 ids are used. Label t counts if token t + 1 exists and
 * marks[t + 1] is set (`marks` NULL: all are set). If no label counts, drops the row and sets *counts to false. */
static bool add_row(rows *out, const rows_params *p, const uint32_t *ids, const uint8_t *marks, size_t n,
                    uint32_t example, bool *counts)
{
    const uint32_t pad = vkt_tokenizer_pad(p->tokenizer), eos = vkt_tokenizer_eos(p->tokenizer), T = p->context;
    const uint32_t fill = pad != VKT_NO_TOKEN ? pad : eos != VKT_NO_TOKEN ? eos : 0;
    if (out->n == out->room) {
        const uint32_t room = out->room ? 2 * out->room : 64;
        uint32_t *all = out->room > UINT32_MAX / 4 ? NULL : realloc(out->ids, (size_t)room * 2 * T * sizeof *all);
        if (all) out->ids = all;
        uint32_t *examples = all ? realloc(out->examples, room * sizeof *examples) : NULL;
        if (!examples) return no_memory();
        out->examples = examples;
        out->room = room;
    }
    uint32_t *row = out->ids + (size_t)out->n * 2 * T, counted = 0;
    for (uint32_t t = 0; t < T; t++) {
        const bool label = t + 1 < n && (!marks || marks[t + 1]);
        row[t] = t < n ? ids[t] : fill;
        row[T + t] = label ? ids[t + 1] : IGNORED;
        counted += label;
    }
    *counts = counted > 0;
    if (!counted) return true;
    out->tokens += n < T ? n : T;
    out->counted += counted;
    out->examples[out->n++] = example;
    return true;
}

/* ---- one line of JSON ---- */

/* Returns the text of a member. NULL: the member is no text, or the text has a NUL, so it is no C string. */
static const char *text_of(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    const char *text = json_string_value(v);
    return text && strlen(text) == json_string_length(v) ? text : NULL;
}

static bool keep_prompt(rows *out, const char *text, bool is_text)
{
    char *copy = strdup(text);
    if (!copy) return no_memory();
    free(out->prompt);
    out->prompt = copy;
    out->prompt_is_text = is_text;
    return true;
}

static bool encode_chat(reader *r, const vkt_chat_message *messages, size_t n)
{
    if (!r->p->form)
        return wrong(r, "a chat, but the form of the model's chats is not known: --template NAME says which one it is");
    const vkt_result status = vkt_tokenizer_chat(r->p->tokenizer, r->p->form, messages, n, 0, &r->list);
    return status == VKT_OK || wrong(r, vkt_result_text(status));
}

static bool encode_messages(reader *r, const json_t *list)
{
    const size_t n = json_array_size(list);
    if (n == 0 || n > MOST_MESSAGES) return wrong(r, "\"messages\": want a list of 1 to 4096 messages");
    vkt_chat_message *all = calloc(n, sizeof *all);
    bool ok = all || no_memory();
    const char *question = NULL;
    for (size_t i = 0; ok && i < n; i++) {
        const json_t *m = json_array_get(list, i);
        all[i] = (vkt_chat_message){ text_of(m, "role"), text_of(m, "content") };
        if (!all[i].role || !all[i].content)
            ok = wrong(r, "\"messages\": want objects with the texts \"role\" and \"content\"");
        else if (strcmp(all[i].role, "user") == 0)
            question = question ? question : all[i].content;
        else if (strcmp(all[i].role, "assistant") != 0 && strcmp(all[i].role, "system") != 0)
            ok = wrong(r, "\"role\": want system, user or assistant");
    }
    ok = ok && encode_chat(r, all, n) && (!question || keep_prompt(r->out, question, false));
    free(all);
    return ok;
}

static bool encode_answer(reader *r, const json_t *object)
{
    const char *question = text_of(object, "question"), *answer = text_of(object, "answer");
    if (!question || !answer) return wrong(r, "want the texts \"question\" and \"answer\"");
    const vkt_chat_message chat[] = { { "user", question }, { "assistant", answer } };
    return encode_chat(r, chat, 2) && keep_prompt(r->out, question, false);
}

/* Encodes a prompt and its completion separately, so that no token has bytes of both. */
static bool encode_completion(reader *r, const json_t *object)
{
    const vkt_tokenizer *t = r->p->tokenizer;
    const char *prompt = text_of(object, "prompt"), *completion = text_of(object, "completion");
    const uint32_t eos = vkt_tokenizer_eos(t);
    if (!prompt || !completion) return wrong(r, "want the texts \"prompt\" and \"completion\"");
    vkt_result status = vkt_tokenizer_encode(t, prompt, strlen(prompt), VKT_TOKENS_BOS, &r->list);
    const size_t start = r->list.n;
    if (status == VKT_OK) status = vkt_tokenizer_encode(t, completion, strlen(completion), 0, &r->list);
    size_t bytes;
    const char *end = eos == VKT_NO_TOKEN ? NULL : vkt_tokenizer_token(t, eos, &bytes);
    if (status == VKT_OK && end) status = vkt_tokenizer_encode(t, end, bytes, VKT_TOKENS_SPECIAL, &r->list);
    if (status != VKT_OK) return wrong(r, vkt_result_text(status));
    for (size_t i = start; i < r->list.n; i++) r->list.marks[i] = 1;
    return keep_prompt(r->out, prompt, true);
}

static bool add_example(reader *r, const json_t *object)
{
    const rows_params *p = r->p;
    const json_t *messages = json_object_get(object, "messages");
    const bool is_chat = messages || json_object_get(object, "question");
    bool ok, counts = false;
    if (messages)
        ok = encode_messages(r, messages);
    else if (is_chat)
        ok = encode_answer(r, object);
    else if (json_object_get(object, "prompt"))
        ok = encode_completion(r, object);
    else
        return wrong(r, "want an object with \"messages\", with \"question\" and \"answer\", or with \"prompt\" and "
                        "\"completion\"");
    if (!ok) return false;
    r->out->chats += is_chat;
    r->out->texts += !is_chat;
    const vkt_tokens *t = &r->list;
    if (t->n > 0 && !add_row(r->out, p, t->ids, p->assistant_only ? t->marks : NULL, t->n, r->out->n_examples, &counts))
        return false;
    r->out->left_out += !counts;
    r->out->cut += counts && t->n > (size_t)p->context + 1;
    return true;
}

static bool read_line(reader *r, const char *text, size_t n)
{
    json_error_t why;
    const size_t mark = r->line == 1 ? mark_of(text, n) : 0;
    size_t blanks = 0;
    text += mark;
    n -= mark;
    while (blanks < n && isspace((unsigned char)text[blanks])) blanks++;
    if (blanks == n) return true;
    json_t *object = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (!object) return wrong(r, why.text);
    r->list.n = 0;
    r->out->n_examples++;
    const bool ok = json_is_object(object) ? add_example(r, object) : wrong(r, "want a JSON object");
    json_decref(object);
    return ok;
}

static bool read_lines(reader *r, FILE *f)
{
    char *text = NULL;
    size_t room = 0;
    bool ok = true;
    for (ssize_t n; ok && (n = getline(&text, &room, f)) >= 0 && !ferror(f);) {
        r->line++;
        ok = read_line(r, text, (size_t)n);
    }
    if (ok && ferror(f)) {
        complain("%s: cannot be read: %s", r->path, stop_signal() ? "a signal ended the input" : strerror(errno));
        ok = false;
    }
    free(text);
    return ok;
}

/* ---- plain text ---- */

static bool add_windows(rows *out, const rows_params *p, const uint32_t *ids, size_t n, size_t length)
{
    for (size_t at = 0; at + 1 < n; at += p->context) {
        bool counts;
        const size_t left = n - at;
        if (!add_row(out, p, ids + at, NULL, left < length ? left : length, out->n_examples + 1, &counts)) return false;
        out->n_examples += counts;
    }
    return true;
}

bool rows_windows(const uint32_t *ids, size_t n, const rows_params *p, rows *out)
{
    *out = (rows){ .n = 0 };
    return add_windows(out, p, ids, n, p->context);
}

static bool read_text(reader *r, const char *text, size_t n)
{
    const size_t mark = mark_of(text, n);
    const vkt_result status = vkt_tokenizer_encode(r->p->tokenizer, text + mark, n - mark, 0, &r->list);
    if (status != VKT_OK) {
        complain("%s: %s", r->path, vkt_result_text(status));
        return false;
    }
    return add_windows(r->out, r->p, r->list.ids, r->list.n, (size_t)r->p->context + 1);
}

/* ---- files ---- */

static bool has_ending(const char *path, const char *ending)
{
    const size_t n = strlen(path), k = strlen(ending);
    return n > k && strcmp(path + n - k, ending) == 0;
}

static bool read_plain(reader *r)
{
    size_t n;
    char why[READ_WHY];
    char *text = read_file(r->path, MOST_TEXT, &n, why);
    if (!text) {
        complain("%s: cannot be read: %s", r->path, why);
        return false;
    }
    const bool ok = read_text(r, text, n);
    free(text);
    return ok;
}

/* Returns the first character that is no blank and no byte order mark, or EOF. Goes back to the start of the file. */
static int first_character(FILE *f)
{
    char start[MARK];
    if (fread(start, 1, MARK, f) != MARK || memcmp(start, byte_order_mark, MARK) != 0) rewind(f);
    int first = getc(f);
    while (isspace(first)) first = getc(f);
    rewind(f);
    return first;
}

/* Reads a regular file, or JSON lines from standard input. A file has JSON lines if its name does not end in .txt, and
 * its first character that is no blank is '{'. */
static bool read_any(reader *r)
{
    struct stat st;
    const bool is_stdin = strcmp(r->path, "-") == 0;
    if (!is_stdin && stat(r->path, &st) == 0 && !S_ISREG(st.st_mode)) {
        complain("%s: cannot be read: it is not a regular file", r->path);
        return false;
    }
    if (has_ending(r->path, ".txt")) return read_plain(r);
    FILE *f = is_stdin ? stop_open_input() : fopen(r->path, "rb");
    if (!f) {
        complain("%s: cannot be read: %s", r->path, strerror(errno));
        return false;
    }
    const int first = is_stdin ? '{' : first_character(f);
    bool ok = first != '{' || read_lines(r, f);
    fclose(f);
    if (first == '{' || first == EOF) return ok;
    if (!has_ending(r->path, ".json") && !has_ending(r->path, ".jsonl")) return read_plain(r);
    complain("%s: want JSON lines: one object a line%s", r->path,
             first == '[' ? ", not one list of all (jq -c '.[]' FILE makes lines of it)" : "");
    return false;
}

bool rows_read(const char *path, const rows_params *p, rows *out)
{
    *out = (rows){ .n = 0 };
    reader r = { .path = path, .p = p, .out = out };
    const bool ok = read_any(&r);
    vkt_tokens_release(&r.list);
    if (!ok || out->n) return ok;
    if (out->left_out)
        complain("%s: no example is left: in all %u of them nothing counts within a context of %u tokens", path,
                 out->left_out, p->context);
    else
        complain("%s: the file has no data", path);
    return false;
}

void rows_free(rows *r)
{
    free(r->ids);
    free(r->examples);
    free(r->prompt);
    *r = (rows){ .n = 0 };
}

vkt_result rows_dataset(const vkt_host *host, const rows *r, uint32_t context, uint32_t first, uint32_t n,
                        vkt_dataset **out)
{
    const uint32_t *ids = r->ids + (size_t)first * 2 * context;
    uint32_t *terms = calloc(n, sizeof *terms); /* for each row, the number of labels that count */
    if (!terms) {
        complain("not enough memory for %u rows", n);
        return VKT_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < context; t++) terms[i] += ids[(2 * i + 1) * context + t] != IGNORED;
    const vkt_dataset_params p = { .rows = n, .width = 2 * context, .type = VKT_ROW_U32, .terms = terms };
    const vkt_result result = vkt_dataset_from_arrays(host, &p, ids, out);
    free(terms);
    return result;
}

uint32_t rows_split(const rows *r, uint32_t examples)
{
    uint32_t at = r->n;
    while (at > 0 && r->examples[at - 1] > r->n_examples - examples) at--;
    return at;
}
