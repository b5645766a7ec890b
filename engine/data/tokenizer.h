/* data/tokenizer.h - the members of a tokenizer (vktrain/tokenizer.h). Files: tokenizer.c makes it, tokenizer_encode.c
 * and tokenizer_decode.c use it, chat.c applies chat templates. */
#ifndef VKT_TOKENIZER_MEMBERS_H
#define VKT_TOKENIZER_MEMBERS_H

#include "data/bpe.h"
#include "data/pretoken.h"
#include "data/words.h"
#include "vktrain/tokenizer.h"

struct vkt_tokenizer {
    vkt_host host;
    uint32_t n;                /* number of ids */
    vkt_words words;           /* the different texts of the tokens, as bytes; one such text is called a word here.
                                * Ids whose tokens have the same bytes share one word */
    uint32_t *word_of, *id_of; /* word_of (n): index of each id's word. id_of (words.n): the largest id of each word */
    uint32_t *plain_of;        /* (words.n): largest id of each word, control tokens excluded; VKT_NO_TOKEN: none */
    uint8_t *kinds;            /* (n): vkt_token_kind */
    size_t longest;            /* bytes of the longest token */
    vkt_merges merges;
    uint32_t byte_ids[256];
    /* `special` has the ids of control tokens and user-defined tokens, sorted by first byte. Tokens without bytes are
     * left out. Of the tokens with the same first byte, longer tokens come first. The tokens with the first byte b
     * have the indices special_from[b] to special_from[b + 1] - 1. */
    uint32_t *special, special_from[257];
    vkt_splitter *splitter;
    vkt_pre_rules rules;
    uint32_t bos, eos, unk, pad;
    bool add_bos;
};

/* The marks of a byte of a text. Combine them with |. A vkt_tokens uses only VKT_MARK_ANSWER. */
enum {
    VKT_MARK_ANSWER = 1,  /* a byte of an assistant's answer, or of the token that ends the answer */
    VKT_MARK_CONTENT = 2, /* a byte of the content of a chat's message. The encoder splits content as ordinary text: it
                           * makes no control token and no user-defined token <|name|> from content */
};

/* Returns the largest id of the tokens that stand for these bytes and are no control tokens; VKT_NO_TOKEN: none. */
uint32_t vkt_tokenizer_plain_id(const vkt_tokenizer *t, const char *text, size_t bytes);
/* Does the same as vkt_tokenizer_encode, for a text whose bytes have marks. marks[i] is VKT_MARK_* for byte i. `marks`
 * NULL: all marks are 0. If a token has a byte of an answer, its id gets VKT_MARK_ANSWER. */
vkt_result vkt_tokenizer_encode_marked(const vkt_tokenizer *t, const char *text, const uint8_t *marks, size_t bytes,
                                       uint32_t flags, vkt_tokens *list);

#endif
