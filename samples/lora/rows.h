/* lora/rows.h - texts and chats of a file as rows of token ids, for training a language model.
 *
 * A row has 2 T numbers for a context of T tokens: T ids, then T labels. The label of a token is the id of the token
 * after it, or IGNORED if the label does not count. The ids after the end of a text are the tokenizer's pad token. If
 * there is none, they are the eos token; if there is no eos token either, they are 0.
 *
 * A file has JSON lines or plain text. A JSON line is empty or has an object of one of these forms:
 *
 *   {"messages": [{"role": "user", "content": "..."}, ...]}   a chat in the model's form
 *   {"question": "...", "answer": "..."}                       a chat of a user and an assistant
 *   {"prompt": "...", "completion": "..."}                     a text and its continuation, then eos if there is one
 *
 * Plain text becomes consecutive rows of T tokens; the last row may have fewer. A file has JSON lines if its first
 * character that is no blank is '{'. But a file whose name ends in .txt always has plain text, and a file whose name
 * ends in .json or .jsonl must have JSON lines. A byte order mark in front of the text is skipped. */
#ifndef LORA_ROWS_H
#define LORA_ROWS_H

#include "vktrain/data.h"
#include "vktrain/tokenizer.h"

#define IGNORED UINT32_MAX /* a label that does not count */

typedef struct rows_params {
    const vkt_tokenizer *tokenizer;
    vkt_chat_template form; /* the form of the model's chats; 0: not known */
    uint32_t context;       /* T */
    bool assistant_only;    /* JSON lines: labels count only in answers of an assistant and in completions */
} rows_params;

/* The rows of a file. */
typedef struct rows {
    uint32_t *ids;         /* (n, 2 T) */
    uint32_t *examples;    /* (n): the row's example, counted from 1 */
    uint32_t n, room;      /* n: number of rows; room: number of rows for which there is memory */
    uint32_t n_examples;   /* number of JSON objects; for plain text, number of rows */
    uint64_t tokens;       /* tokens of all rows, without padding */
    uint64_t counted;      /* labels that count */
    uint32_t cut;          /* examples that were longer than the context, and lost their end */
    uint32_t left_out;     /* examples without a label that counts, for instance because the prompt fills the context */
    uint32_t chats, texts; /* chats: JSON lines with a chat; texts: the other JSON lines; both are 0 for plain text */
    char *prompt;          /* the prompt for a sample answer. It is the "prompt" or the first question of the last JSON
                            * line that has a prompt or a question. NULL: there is no such line */
    bool prompt_is_text;   /* `prompt` is a text to continue, not a message of a chat */
} rows;

/* Reads a file, or for "-" JSON lines from standard input. Returns false, with a message on stderr, if the file cannot
 * be read, if a signal ends standard input, if a line is wrong (the message has its number), or if there is no row.
 * Call rows_free in any case. */
bool rows_read(const char *path, const rows_params *p, rows *out);
void rows_free(rows *r);
/* Makes a data set of the rows [first, first + n). */
vkt_result rows_dataset(const vkt_host *host, const rows *r, uint32_t context, uint32_t first, uint32_t n,
                        vkt_dataset **out);
/* Returns the first row of the last `examples` (at most n_examples) examples. The rows before it are for training. */
uint32_t rows_split(const rows *r, uint32_t examples);

/* Makes the windows of vkt-lora --perplexity from the ids of a text: consecutive windows of T tokens, in which every
 * token but the first counts. The last window may be shorter. If it has only one token, it is left out. */
bool rows_windows(const uint32_t *ids, size_t n, const rows_params *p, rows *out);

#endif
