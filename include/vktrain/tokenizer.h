/* vktrain/tokenizer.h - the tokenizer of a language model: byte-level BPE, special tokens, chats.
 *
 *     vkt_tokenizer *t;
 *     vkt_tokens ids = { 0 };
 *     vkt_tokenizer_from_gguf(NULL, gguf, &t);
 *     vkt_tokenizer_encode(t, "Hello world", 11, VKT_TOKENS_SPECIAL, &ids);
 *     vkt_tokens_release(&ids);
 *     vkt_tokenizer_destroy(&t);
 *
 * A GGUF file has the parameters of its tokenizer under tokenizer.ggml.*; tokenizer.ggml.model must be "gpt2". With
 * VKT_TOKENS_SPECIAL, the ids of a UTF-8 text are the same as those of Hugging Face's `tokenizers` for the same model,
 * if PCRE2 has Unicode 14, 15 or 16. (For bos see VKT_TOKENS_BOS.) docs/tokenizer.md explains how this is checked, and
 * where other programs differ.
 *
 * How a text becomes ids: (1) special tokens are cut out; (2) the rest is normalized, if the model needs this; (3) a
 * regular expression splits the rest into pieces, for instance words; (4) each byte of a piece is a token at first.
 * Then merges join neighbouring tokens until no merge applies. The merge of the lowest rank comes first; of equal
 * ranks, the leftmost merge comes first. With "llama-bpe", a piece that is a token needs no merges. Sources: Sennrich,
 * Haddow and Birch, Neural Machine Translation of Rare Words with Subword Units (2016); Radford et al., Language Models
 * are Unsupervised Multitask Learners (2019), section 2.2.
 *
 * A text is bytes with a length, and may contain NULs. Bytes that are not UTF-8 are kept: a piece may contain them. The
 * regular expression treats each of these bytes as U+FFFD. (Programs in Python replace such bytes by U+FFFD before they
 * encode.)
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
    VKT_TOKEN_NORMAL = 1,       /* ordinary text */
    VKT_TOKEN_UNKNOWN = 2,      /* handled like a normal token */
    VKT_TOKEN_CONTROL = 3,      /* a special token; cut out of a text only with VKT_TOKENS_SPECIAL */
    VKT_TOKEN_USER_DEFINED = 4, /* cut out of a text, whatever the flags are; for chats see vkt_tokenizer_chat */
    VKT_TOKEN_UNUSED = 5,       /* handled like a normal token */
    VKT_TOKEN_BYTE = 6          /* handled like a normal token */
} vkt_token_kind;

/* The parts of a tokenizer. Everything is copied. */
typedef struct vkt_tokenizer_params {
    const vkt_gguf_string *tokens; /* (n_tokens): the token of each id. A normal token is written in the 256 characters
                                    * of GPT-2, one for each byte: "Ġthe" is " the". A token with a character that is
                                    * none of these 256 stands for its own bytes. Control tokens and user-defined
                                    * tokens always stand for their own bytes */
    uint32_t n_tokens;             /* number of ids */
    const int32_t *kinds;          /* (n_tokens): vkt_token_kind; NULL: all normal */
    const vkt_gguf_string *merges; /* (n_merges), by rising rank. A merge is two tokens with a blank between them */
    uint32_t n_merges;             /* number of merges */
    const char *pre;               /* which regular expression splits texts:
                                    *   "gpt-2"      GPT-2
                                    *   "smollm"     SmolLM: each digit is a piece; otherwise like "gpt-2"
                                    *   "llama-bpe"  Llama 3: 1 to 3 digits are a piece; a piece that is a token
                                    *                stays whole
                                    *   "qwen2"      Qwen 2 to 3: each digit is a piece; texts are normalized (NFC) */
    const uint32_t *bos, *eos, *unk, *pad; /* ids of these tokens; NULL: the model has none */
    bool add_bos;                          /* texts begin with bos: see VKT_TOKENS_BOS */
} vkt_tokenizer_params;

/* A tokenizer. */
typedef struct vkt_tokenizer vkt_tokenizer;

/* Makes a tokenizer. If two ids of the same kind have the same token, encoding uses the larger id. If two merges are
 * the same, the later merge is used. VKT_E_ARG: there are no tokens, a pointer that is needed is NULL, or an id is too
 * large. VKT_E_FORMAT: a merge is not two tokens, or their concatenation is no token. VKT_E_UNSUPPORTED: `pre` is none
 * of the names above, or the library was built without PCRE2. VKT_E_NOMEM. `host` may be NULL. */
VKT_API vkt_result vkt_tokenizer_create(const vkt_host *host, const vkt_tokenizer_params *params, vkt_tokenizer **out);
/* Makes the tokenizer of a GGUF file, which may be closed afterwards. Without a key tokenizer.ggml.add_bos_token,
 * add_bos is true for models of Llama 3 (pre "llama-bpe") and false for other models. VKT_E_NOT_FOUND: one of the keys
 * model, pre, tokens, token_type and merges (each after "tokenizer.ggml.") is missing. VKT_E_FORMAT: a value has the
 * wrong type, or the lists tokens and token_type have different lengths. VKT_E_UNSUPPORTED: tokenizer.ggml.model is not
 * "gpt2". Also the errors of vkt_tokenizer_create. */
VKT_API vkt_result vkt_tokenizer_from_gguf(const vkt_host *host, const vkt_gguf *g, vkt_tokenizer **out);
VKT_API void vkt_tokenizer_destroy(vkt_tokenizer **t);
/* Returns the number of ids. */
VKT_API uint32_t vkt_tokenizer_size(const vkt_tokenizer *t);
/* Returns the largest number of bytes that one token stands for. */
VKT_API size_t vkt_tokenizer_longest(const vkt_tokenizer *t);
/* Return the ids of bos, eos, unk and pad (vkt_tokenizer_params); VKT_NO_TOKEN if the model has no such token. */
VKT_API uint32_t vkt_tokenizer_bos(const vkt_tokenizer *t);
VKT_API uint32_t vkt_tokenizer_eos(const vkt_tokenizer *t);
VKT_API uint32_t vkt_tokenizer_unk(const vkt_tokenizer *t);
VKT_API uint32_t vkt_tokenizer_pad(const vkt_tokenizer *t);
/* Returns the bytes that an id stands for; NULL: no token has this id. A NUL follows the bytes. *bytes (may be NULL)
 * gets the number of the bytes. The bytes are valid as long as the tokenizer. */
VKT_API const char *vkt_tokenizer_token(const vkt_tokenizer *t, uint32_t id, size_t *bytes);
/* Returns the kind of an id; 0: no token has this id. */
VKT_API vkt_token_kind vkt_tokenizer_kind(const vkt_tokenizer *t, uint32_t id);
/* Returns the id of the token that stands for the bytes of `text`, for instance "<|im_end|>"; VKT_NO_TOKEN: there is no
 * such token. */
VKT_API uint32_t vkt_tokenizer_id(const vkt_tokenizer *t, const char *text, size_t bytes);

/* ---- texts to ids ---- */

/* A growing list of ids. A zeroed list is empty. Functions append to the list. After an error the list has the same
 * ids as before the call. */
typedef struct vkt_tokens {
    uint32_t *ids;       /* (n) */
    uint8_t *marks;      /* (n); 1 if the id belongs to an assistant's answer in a chat, else 0 */
    size_t n;            /* number of ids */
    size_t room;         /* number of ids for which there is memory */
    vkt_allocator alloc; /* the allocator of the tokenizer that appended first; the allocator must outlive the list */
} vkt_tokens;
VKT_API void vkt_tokens_release(vkt_tokens *list); /* frees the memory, and empties the list */

/* Flags for the encoding of a text. Combine them with |. */
enum {
    VKT_TOKENS_SPECIAL = 1, /* control tokens that are written in the text become their ids. Without this flag they are
                             * ordinary text. Do not set the flag for untrusted texts */
    VKT_TOKENS_BOS = 2      /* the ids begin with bos, if the tokenizer has add_bos and bos */
};
/* Appends the ids of a text of `bytes` bytes. If several special tokens begin at the same byte, the longest one is
 * used. A byte for which the vocabulary has no token is left out; vkt_tokenizer_covers returns false if there is such a
 * byte. For any text of n bytes, the time is O(n log n). VKT_E_ARG: a NULL, or a text of 2^31 bytes or more, before or
 * after normalization. VKT_E_NOMEM. */
VKT_API vkt_result vkt_tokenizer_encode(const vkt_tokenizer *t, const char *text, size_t bytes, uint32_t flags,
                                        vkt_tokens *list);
/* Returns whether the vocabulary has a token for each of the 256 bytes. If so, encoding and then decoding gives the
 * bytes of the text again (with "qwen2": the bytes of the normalized text). Two options change this result: with
 * VKT_TOKENS_BOS the decoded text begins with bos, and with skip_special it lacks the control tokens. */
VKT_API bool vkt_tokenizer_covers(const vkt_tokenizer *t);

/* ---- ids to texts ---- */

/* Writes the first `capacity` bytes of the text of n ids to `out`, and the number of all bytes of the text to *bytes.
 * No NUL is added. With `skip_special`, control tokens are left out. If `capacity` is 0, `out` may be NULL. If n is 0,
 * `ids` may be NULL. VKT_E_ARG: another pointer is NULL, or an id is too large. */
VKT_API vkt_result vkt_tokenizer_decode(const vkt_tokenizer *t, const uint32_t *ids, size_t n, bool skip_special,
                                        char *out, size_t capacity, size_t *bytes);

/* Decodes ids one by one, for printing while a model generates: a character whose bytes are spread over several tokens
 * is held back until it is complete. A zeroed stream is at its start. */
typedef struct vkt_token_stream {
    char held[4];      /* the bytes that are held back */
    uint32_t n_held;   /* number of bytes in `held` */
    bool skip_special; /* set by the caller: leave control tokens out */
} vkt_token_stream;
/* Decodes the next id. Writes to `out` the bytes that can be printed now, and a NUL. Bytes that can no longer become
 * UTF-8 are written as they are.
 * `room` is the size of `out`, at least vkt_tokenizer_longest(t) + 4. VKT_E_ARG: a NULL, or `room` is too small, or the
 * id is too large. */
VKT_API vkt_result vkt_tokenizer_stream(const vkt_tokenizer *t, vkt_token_stream *stream, uint32_t id, char *out,
                                        size_t room);
/* Writes the bytes that are held back and a NUL to `out` (at least 4 bytes). Afterwards the stream is at its start. */
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
    VKT_CHAT_SMOLLM2,    /* chatml; a chat that does not begin with a system message gets that of SmolLM2 */
    VKT_CHAT_QWEN2,      /* as SMOLLM2, but with the system message of Qwen2 */
    VKT_CHAT_QWEN2_5,    /* as SMOLLM2, but with the system message of Qwen2.5 */
    VKT_CHAT_QWEN3,      /* chatml. The thoughts in an answer, <think> .. </think>, are left out if the answer is before
                          * the user's last question, or if they are empty. But if the last message is an answer after
                          * that question, it always has a block <think> .. </think>, even an empty one */
    VKT_CHAT_LLAMA3      /* <|begin_of_text|>, then for each message
                          * <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>. Whitespace around the
                          * content is removed. (The templates of Llama 3.1 and 3.2 add a system message with dates;
                          * this template does not.) */
} vkt_chat_template;

/* Returns the template of a name: "chatml", "smollm2", "qwen2", "qwen2.5", "qwen3", "llama3"; 0 for another name. */
VKT_API vkt_chat_template vkt_chat_template_of(const char *name);
/* Guesses the template of a model by words in its Jinja template (tokenizer.chat_template of a GGUF file); 0: no
 * template of vkt_chat_template matches. */
VKT_API vkt_chat_template vkt_chat_template_guess(const char *jinja);

/* Flags for the encoding of a chat. Combine them with |. */
enum {
    VKT_CHAT_ASK = 4,     /* the ids end with the start of an answer, which the model continues */
    VKT_CHAT_NO_THINK = 8 /* with VKT_CHAT_ASK and VKT_CHAT_QWEN3: the start of the answer has an empty block <think> */
};
/* Appends the ids of a chat of n messages. list->marks is 1 for each id that has a byte of an assistant's answer. It is
 * also 1 for the token that ends the answer (<|im_end|>, <|eot_id|>). `flags`: VKT_CHAT_ASK, VKT_CHAT_NO_THINK and
 * VKT_TOKENS_SPECIAL. Without VKT_TOKENS_SPECIAL, some special tokens in the contents are ordinary text: all control
 * tokens, and the user-defined tokens of the form <|name|>. (The Python package transformers always behaves as if this
 * flag was set.) VKT_E_ARG: a NULL, another role or template than those above, no message, or a text of 2 GiB or more.
 * VKT_E_NOT_FOUND: the vocabulary lacks a special token of the template. VKT_E_NOMEM. */
VKT_API vkt_result vkt_tokenizer_chat(const vkt_tokenizer *t, vkt_chat_template form, const vkt_chat_message *messages,
                                      size_t n, uint32_t flags, vkt_tokens *list);
/* Writes to *text the text that vkt_tokenizer_chat encodes, for a log or a test. vkt_text_release frees *text. The
 * errors are those of vkt_tokenizer_chat, except for VKT_E_NOT_FOUND. `host` may be NULL. */
VKT_API vkt_result vkt_chat_text(const vkt_host *host, vkt_chat_template form, const vkt_chat_message *messages,
                                 size_t n, uint32_t flags, char **text);

#ifdef __cplusplus
}
#endif
#endif
