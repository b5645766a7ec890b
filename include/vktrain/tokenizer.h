/* vktrain/tokenizer.h - the tokenizer of a language model: byte-level BPE, special tokens, chats.
 *
 *     vkt_tokenizer *t;
 *     vkt_tokens ids = { 0 };
 *     vkt_tokenizer_from_gguf(NULL, gguf, &t);
 *     vkt_tokenizer_encode(t, "Hello world", 11, VKT_TOKENS_SPECIAL, &ids);
 *     vkt_tokens_release(&ids);
 *     vkt_tokenizer_destroy(&t);
 *
 * The parameters are the values that a GGUF file has under tokenizer.ggml.*, if its tokenizer.ggml.model is "gpt2". The
 * ids are those of the model's own tokenizer in Hugging Face's `tokenizers`; docs/tokenizer.md says how this is
 * checked, and what differs in other programs.
 *
 * How a text becomes ids: (1) special tokens are cut out; (2) the rest is normalized, if the model wants this; (3) a
 * regular expression splits it into pieces, for instance words; (4) each byte of a piece is a token, and the merge of
 * the lowest rank joins two neighbours, the leftmost ones first, until no merge applies.
 * Sources: Sennrich, Haddow and Birch, Neural Machine Translation of Rare Words with Subword Units (2016); Radford et
 * al., Language Models are Unsupervised Multitask Learners (2019), section 2.2.
 *
 * A text is bytes with a length, and may contain NULs. Bytes that are not UTF-8 are kept: a piece may contain them, and
 * they are split as U+FFFD is. (Programs in Python replace such bytes by U+FFFD before they encode.)
 *
 * Threads: a tokenizer never changes, so any number of threads may use it. A vkt_tokens and a vkt_token_stream belong
 * to one thread at a time. */
#ifndef VKTRAIN_TOKENIZER_H
#define VKTRAIN_TOKENIZER_H

#include "vktrain/gguf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VKT_NO_TOKEN UINT32_MAX /* stands for "no token" where a function returns an id */

/* The kind of a token. The values are those of GGUF's tokenizer.ggml.token_type. */
typedef enum vkt_token_kind {
    VKT_TOKEN_NORMAL = 1,       /* a part of texts */
    VKT_TOKEN_UNKNOWN = 2,      /* as normal */
    VKT_TOKEN_CONTROL = 3,      /* a special token: in a text only where VKT_TOKENS_SPECIAL allows it */
    VKT_TOKEN_USER_DEFINED = 4, /* always found in a text as a whole, before the text is split */
    VKT_TOKEN_UNUSED = 5,       /* as normal */
    VKT_TOKEN_BYTE = 6          /* as normal */
} vkt_token_kind;

/* The parts of a tokenizer. Everything is copied. */
typedef struct vkt_tokenizer_params {
    const vkt_gguf_string
        *tokens;                   /* (n_tokens): the token of each id. Each byte of a normal token is written as one
                                    * character, as GPT-2 does it: "Ġthe" is " the". Control tokens and user-defined
                                    * tokens, and texts with characters outside of this alphabet, stand for themselves */
    uint32_t n_tokens;             /* number of ids */
    const int32_t *kinds;          /* (n_tokens): vkt_token_kind; NULL: all normal */
    const vkt_gguf_string *merges; /* (n_merges): two tokens and a blank between them, by rising rank */
    uint32_t n_merges;             /* number of merges */
    const char *pre;               /* which regular expression splits texts:
                                    *   "gpt-2"      GPT-2
                                    *   "smollm"     SmolLM: digits one by one, then as GPT-2
                                    *   "llama-bpe"  Llama 3: up to three digits together; a piece that is a token needs no merges
                                    *   "qwen2"      Qwen 2 to 3: digits one by one; texts are normalized to NFC before */
    const uint32_t *bos, *eos, *unk, *pad; /* ids of these tokens; NULL: the model has none */
    bool add_bos;                          /* texts begin with bos: see VKT_TOKENS_BOS */
} vkt_tokenizer_params;

/* A tokenizer. */
typedef struct vkt_tokenizer vkt_tokenizer;

/* Makes a tokenizer. If two ids have the same token, encoding uses the larger id; if two merges are the same, the later
 * one counts. VKT_E_ARG: a NULL, or an id that is too large. VKT_E_FORMAT: a merge is not two tokens, or their
 * concatenation is no token. VKT_E_UNSUPPORTED: `pre` is none of the names above, or the library was built without
 * PCRE2. VKT_E_NOMEM. `host` may be NULL. */
VKT_API vkt_result vkt_tokenizer_create(const vkt_host *host, const vkt_tokenizer_params *params, vkt_tokenizer **out);
/* Makes the tokenizer of a GGUF file, which may be closed afterwards. Without a key tokenizer.ggml.add_bos_token, a
 * model of Llama 3 (pre "llama-bpe") has add_bos, and others do not. VKT_E_NOT_FOUND: a key is missing. VKT_E_FORMAT: a
 * key has a value of another kind, or lists have different lengths. VKT_E_UNSUPPORTED: tokenizer.ggml.model is not
 * "gpt2". Other errors as above. */
VKT_API vkt_result vkt_tokenizer_from_gguf(const vkt_host *host, const vkt_gguf *g, vkt_tokenizer **out);
VKT_API void vkt_tokenizer_destroy(vkt_tokenizer **t);
/* Return the number of ids, and the largest number of bytes that one token stands for. */
VKT_API uint32_t vkt_tokenizer_size(const vkt_tokenizer *t);
VKT_API size_t vkt_tokenizer_longest(const vkt_tokenizer *t);
/* Return the ids that vkt_tokenizer_params names; VKT_NO_TOKEN if the model has none. */
VKT_API uint32_t vkt_tokenizer_bos(const vkt_tokenizer *t);
VKT_API uint32_t vkt_tokenizer_eos(const vkt_tokenizer *t);
VKT_API uint32_t vkt_tokenizer_unk(const vkt_tokenizer *t);
VKT_API uint32_t vkt_tokenizer_pad(const vkt_tokenizer *t);
/* Returns the bytes that an id stands for, and their number in *bytes (may be NULL). They are valid as long as the
 * tokenizer, and a NUL follows them. NULL: no token has this id. */
VKT_API const char *vkt_tokenizer_token(const vkt_tokenizer *t, uint32_t id, size_t *bytes);
/* Returns the kind of an id; 0: no token has this id. */
VKT_API vkt_token_kind vkt_tokenizer_kind(const vkt_tokenizer *t, uint32_t id);
/* Returns the id of the token that stands for these bytes, for instance of "<|im_end|>"; VKT_NO_TOKEN: there is none.
 */
VKT_API uint32_t vkt_tokenizer_id(const vkt_tokenizer *t, const char *text, size_t bytes);

/* ---- texts to ids ---- */

/* A growing list of ids. A zeroed list is empty. Functions append to it. After an error the list is as before. */
typedef struct vkt_tokens {
    uint32_t *ids;       /* (n) */
    uint8_t *marks;      /* (n): 1: the id belongs to an assistant's answer in a chat; else 0 */
    size_t n;            /* number of ids */
    size_t room;         /* ids for which there is memory */
    vkt_allocator alloc; /* of the tokenizer that appended first; it must outlive the list */
} vkt_tokens;
VKT_API void vkt_tokens_release(vkt_tokens *list); /* frees the memory, and empties the list */

/* How a text is encoded. Combine them with |. */
enum {
    VKT_TOKENS_SPECIAL = 1, /* control tokens that are written in the text become their ids. Else they are text. Do not
                             * set it for texts of strangers */
    VKT_TOKENS_BOS = 2      /* the ids begin with bos, if the tokenizer has add_bos */
};
/* Appends the ids of a text of `bytes` bytes, fewer than 2^31. Of special tokens that begin at the same byte, the
 * longest one is taken. A byte for which the vocabulary has no token is left out; vkt_tokenizer_covers says whether
 * there is such a byte. Time O(n log n), whatever the text. VKT_E_ARG: a NULL, or 2^31 bytes or more. VKT_E_NOMEM. */
VKT_API vkt_result vkt_tokenizer_encode(const vkt_tokenizer *t, const char *text, size_t bytes, uint32_t flags,
                                        vkt_tokens *list);
/* Returns whether the vocabulary has a token for each of the 256 bytes. If it does, decoding the ids of a text gives
 * the same bytes again (with "qwen2": the bytes of the normalized text). */
VKT_API bool vkt_tokenizer_covers(const vkt_tokenizer *t);

/* ---- ids to texts ---- */

/* Writes the first `capacity` bytes of the text of n ids to `out`, and the number of all its bytes to *bytes. No NUL is
 * added. With `skip_special`, control tokens are left out. VKT_E_ARG: a NULL, or an id is too large. */
VKT_API vkt_result vkt_tokenizer_decode(const vkt_tokenizer *t, const uint32_t *ids, size_t n, bool skip_special,
                                        char *out, size_t capacity, size_t *bytes);

/* Decodes ids one by one, for printing while a model generates: a character whose bytes are spread over several tokens
 * is held back until it is complete. A zeroed stream is at its start. */
typedef struct vkt_token_stream {
    char held[4];      /* the bytes that are held back */
    uint32_t n_held;   /* their number */
    bool skip_special; /* control tokens are left out. Set by the caller, as it likes */
} vkt_token_stream;
/* Writes the bytes that can be printed now, and a NUL. Bytes that can no longer become UTF-8 are written as they are.
 * `room` is the size of `out`, at least vkt_tokenizer_longest(t) + 4. VKT_E_ARG: a NULL, a small room, or the id is too
 * large. */
VKT_API vkt_result vkt_tokenizer_stream(const vkt_tokenizer *t, vkt_token_stream *stream, uint32_t id, char *out,
                                        size_t room);
/* Writes the bytes that are held back and a NUL to `out` (at least 4 bytes). The stream is then at its start. */
VKT_API void vkt_token_stream_end(vkt_token_stream *stream, char *out);

/* ---- chats ---- */

/* A message of a chat. */
typedef struct vkt_chat_message {
    const char *role;    /* "system", "user" or "assistant" */
    const char *content; /* UTF-8 */
} vkt_chat_message;

/* The forms of chats. */
typedef enum vkt_chat_template {
    VKT_CHAT_CHATML = 1, /* <|im_start|>ROLE\nCONTENT<|im_end|>\n for each message */
    VKT_CHAT_SMOLLM2,    /* chatml; if the first message is not the system's, SmolLM2's system message comes first */
    VKT_CHAT_QWEN2,      /* chatml, likewise with the system message of Qwen2 */
    VKT_CHAT_QWEN2_5,    /* chatml, likewise with the system message of Qwen2.5 */
    VKT_CHAT_QWEN3,      /* chatml; answers behind the last question begin with the block <think>, and earlier ones lose
                          * theirs */
    VKT_CHAT_LLAMA3      /* bos, then <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|> for each message;
                          * blanks around the content are removed. This is the form of Llama 3; Llama 3.1 and 3.2 add a
                          * system message with dates */
} vkt_chat_template;

/* Returns the template of a name: "chatml", "smollm2", "qwen2", "qwen2.5", "qwen3", "llama3"; 0 for another name. */
VKT_API vkt_chat_template vkt_chat_template_of(const char *name);
/* Guesses the template of a model by words in its Jinja template (tokenizer.chat_template of a GGUF file); 0: it is
 * none of these. */
VKT_API vkt_chat_template vkt_chat_template_guess(const char *jinja);

/* How a chat is encoded. Combine them with |. */
enum {
    VKT_CHAT_ASK = 4,     /* the ids end with the start of an answer, for a model that now writes it */
    VKT_CHAT_NO_THINK = 8 /* with VKT_CHAT_ASK and VKT_CHAT_QWEN3: an empty block <think> follows */
};
/* Appends the ids of a chat of n messages. list->marks is 1 for ids that contain a byte of an answer: of the content of
 * an assistant's message, or of the token that ends it (<|im_end|>, <|eot_id|>). `flags`: VKT_CHAT_ASK,
 * VKT_CHAT_NO_THINK, and VKT_TOKENS_SPECIAL, which here means special tokens that are written in the contents.
 * (transformers always behaves as if it was set.) VKT_E_ARG: a NULL, another role, or no message. VKT_E_NOT_FOUND: the
 * vocabulary lacks a special token of the template. VKT_E_NOMEM. */
VKT_API vkt_result vkt_tokenizer_chat(const vkt_tokenizer *t, vkt_chat_template form, const vkt_chat_message *messages,
                                      size_t n, uint32_t flags, vkt_tokens *list);
/* The same chat as a text, for a log or a test. Free *text with vkt_text_release. Errors as above, except for
 * VKT_E_NOT_FOUND. `host` may be NULL. */
VKT_API vkt_result vkt_chat_text(const vkt_host *host, vkt_chat_template form, const vkt_chat_message *messages,
                                 size_t n, uint32_t flags, char **text);

#ifdef __cplusplus
}
#endif
#endif
