/* data/chat.c - the templates of chats (vktrain/tokenizer.h). Except for chatml, each template is a C version of a
 * Jinja template that the authors of a model publish in tokenizer_config.json: HuggingFaceTB/SmolLM2-135M-Instruct,
 * Qwen/Qwen2-0.5B-Instruct, Qwen/Qwen2.5-0.5B-Instruct, Qwen/Qwen3-0.6B and meta-llama/Meta-Llama-3-8B-Instruct. */
#include "data/tokenizer.h"

/* A chat as a text, with the marks of its bytes (VKT_MARK_* in tokenizer.h). */
typedef struct writer {
    const vkt_host *h;
    char *text;
    uint8_t *marks;
    size_t n, room;
    /* The bit that each byte of a message's content gets in its mark: VKT_MARK_CONTENT, or 0. With 0, the encoder may
     * make control tokens from the content. */
    uint8_t content;
} writer;

static const struct {
    const char *name;
    vkt_chat_template form;
    const char *system; /* the system message that is added to a chat that does not begin with one; NULL: none */
} forms[] = {
    { "chatml", VKT_CHAT_CHATML, NULL },
    { "smollm2", VKT_CHAT_SMOLLM2, "You are a helpful AI assistant named SmolLM, trained by Hugging Face" },
    { "qwen2", VKT_CHAT_QWEN2, "You are a helpful assistant." },
    { "qwen2.5", VKT_CHAT_QWEN2_5, "You are Qwen, created by Alibaba Cloud. You are a helpful assistant." },
    { "qwen3", VKT_CHAT_QWEN3, NULL },
    { "llama3", VKT_CHAT_LLAMA3, NULL },
};

vkt_chat_template vkt_chat_template_of(const char *name)
{
    for (size_t i = 0; name && i < VKT_COUNT(forms); i++)
        if (strcmp(forms[i].name, name) == 0) return forms[i].form;
    return (vkt_chat_template)0;
}

vkt_chat_template vkt_chat_template_guess(const char *jinja)
{
    /* The result is the form of the first row whose two texts are both in `jinja`. If `jinja` has neither <|im_start|>
     * nor <|start_header_id|>, the result is 0. */
    static const struct {
        const char *text, *other;
        vkt_chat_template form;
    } rows[] = {
        { "<|start_header_id|>", "<|eot_id|>", VKT_CHAT_LLAMA3 },
        { "enable_thinking", "reasoning_content", VKT_CHAT_QWEN3 },
        { "<think>", "", (vkt_chat_template)0 }, /* thoughts in a form that is not supported */
        { "named SmolLM, trained by Hugging Face<|im_end|>", "", VKT_CHAT_SMOLLM2 },
        { "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", "", VKT_CHAT_QWEN2_5 },
        { "You are a helpful assistant.<|im_end|>", "", VKT_CHAT_QWEN2 },
        { "<|im_start|>system", "", (vkt_chat_template)0 }, /* a default system message that is in no row above */
        { "<|im_start|>", "<|im_end|>", VKT_CHAT_CHATML },
    };
    const bool is_llama = jinja && strstr(jinja, "<|start_header_id|>"),
               is_chatml = jinja && strstr(jinja, "<|im_start|>");
    for (size_t i = 0; (is_llama || is_chatml) && i < VKT_COUNT(rows); i++)
        if (strstr(jinja, rows[i].text) && strstr(jinja, rows[i].other)) return rows[i].form;
    return (vkt_chat_template)0;
}

/* ---- writing ---- */

static vkt_result write_bytes(writer *w, const char *text, size_t bytes, uint8_t mark)
{
    if (bytes > w->room - w->n) {
        const size_t room = VKT_MAX(w->n + bytes, 2 * w->room);
        char *grown = vkt_realloc(w->h, w->text, room);
        if (grown) w->text = grown;
        uint8_t *marks = grown ? vkt_realloc(w->h, w->marks, room) : NULL;
        if (!marks) return vkt_fail_nomem(w->h, "a chat", room);
        w->marks = marks;
        w->room = room;
    }
    memcpy(w->text + w->n, text, bytes);
    memset(w->marks + w->n, mark, bytes);
    w->n += bytes;
    return VKT_OK;
}

static vkt_result write_text(writer *w, const char *text, uint8_t mark)
{
    return write_bytes(w, text, strlen(text), mark);
}

/* A part of a text. */
typedef struct part {
    const char *text;
    size_t n;
} part;

static part whole(const char *text)
{
    return (part){ .text = text, .n = strlen(text) };
}

/* Removes characters of `set` from a part: at its front if `front` is true, and at its end if `end` is true. */
static part strip(part p, const char *set, bool front, bool end)
{
    for (; front && p.n && strchr(set, *p.text); p.n--) p.text++;
    while (end && p.n && strchr(set, p.text[p.n - 1])) p.n--;
    return p;
}

/* Returns whether Python's str.strip(), which is Jinja's filter `trim`, removes a character. */
static bool is_blank(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* Removes whitespace at both ends. */
static part trim(part p)
{
    for (uint32_t c; p.n;) {
        const size_t bytes = vkt_utf8_decode(p.text, p.n, &c);
        if (!bytes || !is_blank(c)) break;
        p.text += bytes;
        p.n -= bytes;
    }
    for (uint32_t c; p.n;) {
        size_t bytes = 1; /* number of bytes of the last character */
        while (bytes < p.n && bytes < 4 && ((unsigned char)p.text[p.n - bytes] & 0xc0) == 0x80) bytes++;
        if (vkt_utf8_decode(p.text + p.n - bytes, bytes, &c) != bytes || !is_blank(c)) break;
        p.n -= bytes;
    }
    return p;
}

/* ---- Qwen3's thoughts ---- */

/* Returns the first occurrence of `word` in a part, or the last one if `last` is set; NULL: there is none. */
static const char *find(part p, const char *word, bool last)
{
    const size_t n = strlen(word);
    const char *found = NULL;
    for (size_t i = 0; i + n <= p.n && (last || !found); i++)
        if (memcmp(p.text + i, word, n) == 0) found = p.text + i;
    return found;
}

/* Divides an answer "<think> thoughts </think> content". Without </think> there are no thoughts. */
static void divide(part answer, part *thoughts, part *content)
{
    static const char start[] = "<think>", stop[] = "</think>";
    *thoughts = (part){ .text = answer.text };
    *content = answer;
    const char *first = find(answer, stop, false), *last = find(answer, stop, true);
    if (!first) return;
    *thoughts = strip((part){ answer.text, (size_t)(first - answer.text) }, "\n", false, true);
    const char *begin = find(*thoughts, start, true);
    if (begin) {
        begin += strlen(start);
        *thoughts = (part){ begin, (size_t)(thoughts->text + thoughts->n - begin) };
    }
    *thoughts = strip(*thoughts, "\n", true, false);
    last += strlen(stop);
    *content = strip((part){ last, (size_t)(answer.text + answer.n - last) }, "\n", true, false);
}

/* Writes an answer of Qwen3. An answer behind the last question keeps its thoughts. If such an answer is the last
 * message, it gets <think> and </think> even if it has no thoughts. */
static vkt_result write_qwen3_answer(writer *w, const char *text, bool behind_question, bool last)
{
    const uint8_t mark = VKT_MARK_ANSWER | w->content;
    part thoughts, content;
    divide(whole(text), &thoughts, &content);
    if (behind_question && (last || thoughts.n)) {
        thoughts = strip(thoughts, "\n", true, true);
        content = strip(content, "\n", true, false);
        VKT_TRY(write_text(w, "<think>\n", VKT_MARK_ANSWER));
        VKT_TRY(write_bytes(w, thoughts.text, thoughts.n, mark));
        VKT_TRY(write_text(w, "\n</think>\n\n", VKT_MARK_ANSWER));
    }
    return write_bytes(w, content.text, content.n, mark);
}

/* Returns the index of the last question of the user. A message that begins with <tool_response> and ends with
 * </tool_response> is not a question. If there is no question, returns the index of the last message. */
static size_t last_question(const vkt_chat_message *messages, size_t n)
{
    static const char start[] = "<tool_response>", stop[] = "</tool_response>";
    for (size_t i = n; i-- > 0;) {
        const part p = whole(messages[i].content);
        if (strcmp(messages[i].role, "user") != 0) continue;
        if (p.n < strlen(stop) || strncmp(p.text, start, strlen(start)) != 0 ||
            strcmp(p.text + p.n - strlen(stop), stop) != 0)
            return i;
    }
    return n - 1;
}

/* ---- the templates ---- */

static vkt_result write_chatml(writer *w, vkt_chat_template form, const vkt_chat_message *messages, size_t n,
                               uint32_t flags)
{
    const char *system = forms[form - 1].system;
    const size_t question = last_question(messages, n);
    if (system && strcmp(messages[0].role, "system") != 0) {
        VKT_TRY(write_text(w, "<|im_start|>system\n", 0));
        VKT_TRY(write_text(w, system, 0));
        VKT_TRY(write_text(w, "<|im_end|>\n", 0));
    }
    for (size_t i = 0; i < n; i++) {
        const bool answer = strcmp(messages[i].role, "assistant") == 0;
        const uint8_t mark = answer ? VKT_MARK_ANSWER : 0;
        VKT_TRY(write_text(w, "<|im_start|>", 0));
        VKT_TRY(write_text(w, messages[i].role, 0));
        VKT_TRY(write_text(w, "\n", 0));
        if (answer && form == VKT_CHAT_QWEN3)
            VKT_TRY(write_qwen3_answer(w, messages[i].content, i > question, i == n - 1));
        else
            VKT_TRY(write_text(w, messages[i].content, mark | w->content));
        VKT_TRY(write_text(w, "<|im_end|>", mark));
        VKT_TRY(write_text(w, "\n", 0));
    }
    if (!(flags & VKT_CHAT_ASK)) return VKT_OK;
    VKT_TRY(write_text(w, "<|im_start|>assistant\n", 0));
    if (form == VKT_CHAT_QWEN3 && flags & VKT_CHAT_NO_THINK) return write_text(w, "<think>\n\n</think>\n\n", 0);
    return VKT_OK;
}

static vkt_result write_llama3(writer *w, const vkt_chat_message *messages, size_t n, uint32_t flags)
{
    VKT_TRY(write_text(w, "<|begin_of_text|>", 0));
    for (size_t i = 0; i < n; i++) {
        const uint8_t mark = strcmp(messages[i].role, "assistant") == 0 ? VKT_MARK_ANSWER : 0;
        const part content = trim(whole(messages[i].content));
        VKT_TRY(write_text(w, "<|start_header_id|>", 0));
        VKT_TRY(write_text(w, messages[i].role, 0));
        VKT_TRY(write_text(w, "<|end_header_id|>\n\n", 0));
        VKT_TRY(write_bytes(w, content.text, content.n, mark | w->content));
        VKT_TRY(write_text(w, "<|eot_id|>", mark));
    }
    if (flags & VKT_CHAT_ASK) return write_text(w, "<|start_header_id|>assistant<|end_header_id|>\n\n", 0);
    return VKT_OK;
}

static vkt_result check(const vkt_host *h, vkt_chat_template form, const vkt_chat_message *messages, size_t n)
{
    static const char *const roles[] = { "system", "user", "assistant" };
    if (!form || (size_t)form > VKT_COUNT(forms) || !n)
        return vkt_fail(h, VKT_E_ARG,
                        "chat: want a template and at least one message, got template %d and %zu messages", (int)form,
                        n);
    for (size_t i = 0; i < n; i++) {
        bool known = false;
        for (size_t k = 0; messages[i].role && k < VKT_COUNT(roles); k++)
            known |= strcmp(messages[i].role, roles[k]) == 0;
        if (!known || !messages[i].content)
            return vkt_fail(h, VKT_E_ARG,
                            "chat: message %zu (from 0): want a content, and the role system, user or assistant, got "
                            "role \"%s\"%s",
                            i, messages[i].role ? messages[i].role : "", messages[i].content ? "" : " and no content");
    }
    return VKT_OK;
}

static vkt_result write_chat(writer *w, vkt_chat_template form, const vkt_chat_message *messages, size_t n,
                             uint32_t flags)
{
    VKT_TRY(check(w->h, form, messages, n));
    w->content = flags & VKT_TOKENS_SPECIAL ? 0 : VKT_MARK_CONTENT;
    return form == VKT_CHAT_LLAMA3 ? write_llama3(w, messages, n, flags) : write_chatml(w, form, messages, n, flags);
}

/* ---- public functions ---- */

vkt_result vkt_chat_text(const vkt_host *host, vkt_chat_template form, const vkt_chat_message *messages, size_t n,
                         uint32_t flags, char **text)
{
    VKT_WANT(host, text);
    *text = NULL;
    VKT_WANT(host, messages);
    const vkt_host h = vkt_host_resolve(host);
    writer w = { .h = &h };
    vkt_text out = { .h = &h };
    vkt_result r = write_chat(&w, form, messages, n, flags);
    if (r == VKT_OK && w.n > INT32_MAX)
        r = vkt_fail(&h, VKT_E_ARG, "chat: want a text below 2 GiB, got %zu bytes", w.n);
    if (r == VKT_OK) {
        vkt_text_add(&out, "%.*s", (int)w.n, w.text);
        r = vkt_text_detach(&out, text);
    }
    vkt_text_free(&out);
    vkt_free(&h, w.text);
    vkt_free(&h, w.marks);
    return r;
}

/* Checks that the vocabulary has the special tokens of a template. */
static vkt_result check_tokens(const vkt_tokenizer *t, vkt_chat_template form)
{
    static const char *const chatml[] = { "<|im_start|>", "<|im_end|>", NULL };
    static const char *const llama3[] = { "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
                                          NULL };
    for (const char *const *name = form == VKT_CHAT_LLAMA3 ? llama3 : chatml; *name; name++) {
        const uint32_t id = vkt_tokenizer_id(t, *name, strlen(*name));
        const vkt_token_kind kind = vkt_tokenizer_kind(t, id);
        if (kind != VKT_TOKEN_CONTROL && kind != VKT_TOKEN_USER_DEFINED)
            return vkt_fail(&t->host, VKT_E_NOT_FOUND, "chat: this vocabulary has no special token \"%s\"", *name);
    }
    return VKT_OK;
}

vkt_result vkt_tokenizer_chat(const vkt_tokenizer *t, vkt_chat_template form, const vkt_chat_message *messages,
                              size_t n, uint32_t flags, vkt_tokens *list)
{
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, messages);
    VKT_WANT(&t->host, list);
    writer w = { .h = &t->host };
    vkt_result r = write_chat(&w, form, messages, n, flags);
    if (r == VKT_OK) r = check_tokens(t, form);
    /* The text has bos already if the template wants it, so VKT_TOKENS_BOS is not set. VKT_TOKENS_SPECIAL is for the
     * template's own tokens. */
    if (r == VKT_OK) r = vkt_tokenizer_encode_marked(t, w.text, w.marks, w.n, VKT_TOKENS_SPECIAL, list);
    vkt_free(&t->host, w.text);
    vkt_free(&t->host, w.marks);
    return r;
}
