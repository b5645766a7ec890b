/* lora/talk.c - see talk.h. */
#define _POSIX_C_SOURCE 200809L /* getline */
#include "lora/talk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/message.h"
#include "common/stop.h"
#include "vktrain/generate.h"

/* A generator, and the ids of its text. */
typedef struct talker {
    const session *s;
    const model *m;
    const lora_options *o;
    vkt_generator *g;
    uint32_t *text; /* the ids that the generator has */
    size_t n_text;
    char *answer;   /* the last answer */
    size_t n, room; /* n: bytes of `answer`, without the NUL; room: allocated bytes */
    char *piece;    /* room for one token */
    size_t piece_room;
} talker;

static vkt_result talker_open(const session *s, const model *m, const lora_options *o, vkt_store *store, talker *t)
{
    *t = (talker){ .s = s, .m = m, .o = o, .piece_room = vkt_tokenizer_longest(m->tokenizer) + 8 };
    t->piece = malloc(t->piece_room);
    t->text = malloc(m->context * sizeof *t->text);
    if (!t->piece || !t->text) return VKT_E_NOMEM;
    const vkt_generator_params p = { .store = store,
                                     .lora = store ? &m->lora : NULL,
                                     .context = m->context,
                                     .temperature = (float)o->temperature,
                                     .top_k = o->top_k,
                                     .top_p = (float)o->top_p,
                                     .seed = s->o.seed };
    return vkt_generator_create(s->ctx, m->lm, &p, &t->g);
}

static void talker_close(talker *t)
{
    vkt_generator_destroy(&t->g);
    free(t->text);
    free(t->answer);
    free(t->piece);
}

/* ---- output ---- */

/* Prints a text. The text of a model may have control characters, so vkt_printable replaces them, except line ends and
 * tabs. */
static void put(const char *text)
{
    char part[256], shown[1024];
    for (size_t n; *text; text += n) {
        n = strcspn(text, "\n\t");
        if (n == 0) {
            putchar(*text);
            n = 1;
            continue;
        }
        if (n >= sizeof part) n = sizeof part - 1;
        while (n > sizeof part - 4 && ((unsigned char)text[n] & 0xc0) == 0x80) n--; /* keeps a character whole */
        memcpy(part, text, n);
        part[n] = '\0';
        fputs(vkt_printable(part, shown, sizeof shown), stdout);
    }
    fflush(stdout);
}

static vkt_result keep(talker *t, const char *text)
{
    const size_t n = strlen(text);
    if (t->n + n + 1 > t->room) {
        const size_t room = 2 * (t->n + n + 1);
        char *answer = realloc(t->answer, room);
        if (!answer) return VKT_E_NOMEM;
        t->answer = answer;
        t->room = room;
    }
    memcpy(t->answer + t->n, text, n + 1);
    t->n += n;
    return VKT_OK;
}

/* ---- answers ---- */

/* Returns whether a token ends an answer. */
static bool ends(const talker *t, uint32_t id)
{
    static const char *const names[] = { "<|im_end|>", "<|eot_id|>", "<|endoftext|>" };
    if (id == vkt_tokenizer_eos(t->m->tokenizer)) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (id == vkt_tokenizer_id(t->m->tokenizer, names[i], strlen(names[i]))) return true;
    return false;
}

/* Feeds the text `all` to the generator, which already has the ids t->text. If `all` begins with t->text and is longer,
 * feeds only the ids after t->text. Otherwise resets the generator and feeds all ids. `all` must have fewer ids than
 * the context. */
static vkt_result feed(talker *t, const vkt_tokens *all)
{
    size_t same = 0;
    vkt_result r = VKT_OK;
    while (same < t->n_text && same < all->n && t->text[same] == all->ids[same]) same++;
    if (same < t->n_text || same == all->n) {
        r = vkt_generator_reset(t->g);
        same = 0;
    }
    if (r == VKT_OK) r = vkt_generator_feed(t->g, all->ids + same, all->n - same);
    memcpy(t->text, all->ids, all->n * sizeof *t->text);
    t->n_text = all->n;
    return r;
}

/* Generates the answer to the text `all`. Writes the answer, without special tokens, to stdout and to t->answer. */
static vkt_result answer(talker *t, const vkt_tokens *all)
{
    vkt_token_stream stream = { .skip_special = true };
    vkt_result r = feed(t, all);
    uint32_t id = 0, n = 0;
    t->n = 0;
    if (r == VKT_OK) r = keep(t, "");
    while (r == VKT_OK && n < t->o->answer && t->n_text < t->m->context && !session_interrupted()) {
        r = vkt_generator_next(t->g, &id);
        if (r != VKT_OK) break;
        n++;
        t->text[t->n_text++] = id;
        if (ends(t, id)) break;
        r = vkt_tokenizer_stream(t->m->tokenizer, &stream, id, t->piece, t->piece_room);
        if (r == VKT_OK) r = keep(t, t->piece);
        put(t->piece);
    }
    vkt_token_stream_end(&stream, t->piece);
    put(t->piece);
    const vkt_generator_stats done = vkt_generator_get_stats(t->g);
    if (r == VKT_OK && n > 0)
        printf("\n(%u tokens, %.1f tokens/s)\n", n, (double)done.made / done.make_seconds);
    else if (r == VKT_OK)
        puts("\n(0 tokens)");
    return r;
}

static vkt_result encode(const talker *t, const vkt_chat_message *messages, size_t n, bool as_text, vkt_tokens *out)
{
    if (as_text || !t->m->form)
        return vkt_tokenizer_encode(t->m->tokenizer, messages[n - 1].content, strlen(messages[n - 1].content),
                                    VKT_TOKENS_BOS, out);
    return vkt_tokenizer_chat(t->m->tokenizer, t->m->form, messages, n, VKT_CHAT_ASK | VKT_CHAT_NO_THINK, out);
}

vkt_result talk_without(const char *what, vkt_result r)
{
    if (r != VKT_E_MEMORY_CAP && r != VKT_E_DEVICE_MEMORY) return r;
    remark("no %s: there is too little memory for it now", what);
    return VKT_OK;
}

vkt_result talk_answer(const session *s, const model *m, const lora_options *o, vkt_store *store, const question *q)
{
    talker t;
    vkt_tokens ids = { 0 };
    const vkt_chat_message message = { "user", q->text };
    vkt_result r = talker_open(s, m, o, store, &t);
    if (r == VKT_OK) r = encode(&t, &message, 1, q->is_text, &ids);
    const bool fits = ids.n < m->context;
    if (r == VKT_OK && !fits && q->is_of_data) {
        remark("no %s: the last question of the data has %zu tokens, and the context %u", q->title, ids.n, m->context);
    } else if (r == VKT_OK && !fits) {
        complain("the prompt is too long: want fewer tokens than the context of %u, got %zu", m->context, ids.n);
        r = VKT_E_ARG;
    }
    if (r == VKT_OK && fits && ids.n > 0) {
        printf("\n%s\n> ", q->title);
        put(q->text);
        puts("");
        r = answer(&t, &ids);
        puts("");
    }
    vkt_tokens_release(&ids);
    talker_close(&t);
    return q->may_lack ? talk_without(q->title, r) : r;
}

/* ---- a chat ---- */

/* The messages of a chat. The chat owns the content of each message. */
typedef struct chat {
    vkt_chat_message *messages;
    size_t n, room;
} chat;

static vkt_result chat_add(chat *c, const char *role, const char *content)
{
    if (c->n == c->room) {
        const size_t room = 2 * c->room + 8;
        vkt_chat_message *all = realloc(c->messages, room * sizeof *all);
        if (!all) return VKT_E_NOMEM;
        c->messages = all;
        c->room = room;
    }
    char *copy = strdup(content);
    if (copy) c->messages[c->n++] = (vkt_chat_message){ role, copy };
    return copy ? VKT_OK : VKT_E_NOMEM;
}

static void chat_remove(chat *c, size_t i)
{
    free((char *)(size_t)c->messages[i].content);
    memmove(c->messages + i, c->messages + i + 1, (--c->n - i) * sizeof *c->messages);
}

/* Encodes the chat. While its ids fill the whole context, removes the oldest question and its answer. VKT_E_ARG: the
 * system message and the last message already fill the context. In this case, removes nothing. */
static vkt_result encode_chat(const talker *t, chat *c, vkt_tokens *out)
{
    const size_t first = strcmp(c->messages[0].role, "system") == 0;
    const vkt_chat_message alone[] = { c->messages[0], c->messages[c->n - 1] };
    vkt_result r = encode(t, first ? alone : alone + 1, first + 1, false, out);
    if (r == VKT_OK && out->n >= t->m->context) {
        complain("the message is too long: want fewer tokens than the context of %u, got %zu", t->m->context, out->n);
        return VKT_E_ARG;
    }
    while (r == VKT_OK) {
        out->n = 0;
        r = encode(t, c->messages, c->n, false, out);
        if (out->n < t->m->context || c->n - first < 3) break;
        chat_remove(c, first);
        chat_remove(c, first);
    }
    return r;
}

/* Answers the last message of a chat, and adds the answer. */
static vkt_result reply(talker *t, chat *c)
{
    vkt_tokens all = { 0 };
    vkt_result r = encode_chat(t, c, &all);
    if (r == VKT_E_ARG) { /* the message is forgotten, and the chat goes on */
        chat_remove(c, c->n - 1);
        vkt_tokens_release(&all);
        return VKT_OK;
    }
    if (r == VKT_OK) r = answer(t, &all);
    vkt_tokens_release(&all);
    return r == VKT_OK ? chat_add(c, "assistant", t->answer) : r;
}

vkt_result talk_chat(const session *s, const model *m, const lora_options *o, vkt_store *store)
{
    talker t;
    chat c = { .n = 0 };
    char *line = NULL;
    size_t room = 0;
    FILE *in = stop_open_input();
    if (!in) {
        complain("standard input cannot be read: %s", strerror(errno));
        return VKT_E_IO;
    }
    vkt_result r = talker_open(s, m, o, store, &t);
    if (r == VKT_OK && !m->form) remark("the form of the model's chats is not known (--template): it continues texts");
    if (r == VKT_OK && o->system) r = chat_add(&c, "system", o->system);
    while (r == VKT_OK && !session_interrupted()) {
        if (isatty(STDIN_FILENO)) fputs("> ", stdout);
        fflush(stdout);
        const ssize_t n = getline(&line, &room, in);
        if (n < 0 || session_interrupted()) break;
        line[strcspn(line, "\r\n")] = '\0';
        if (*line == '\0') break;
        r = chat_add(&c, "user", line);
        if (r == VKT_OK) r = reply(&t, &c);
    }
    while (c.n) chat_remove(&c, c.n - 1);
    free(c.messages);
    free(line);
    fclose(in);
    talker_close(&t);
    return r;
}
