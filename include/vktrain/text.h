/* vktrain/text.h - texts as sequences of word numbers: a table of labelled texts, the vocabulary, the data set.
 *
 *     vkt_texts *texts;                                       label<TAB>text, one line each
 *     vkt_vocab *vocab;                                       words by falling frequency
 *     vkt_dataset *train;                                     (N,300) of u16 or u32, with class labels
 *     vkt_texts_from_tsv(host, "train.tsv.gz", &(vkt_tsv_params){ .classes_path = "classes.txt" }, &texts);
 *     vkt_vocab_create(host, NULL, vkt_texts_all(texts), vkt_texts_rows(texts), &vocab);
 *     vkt_dataset_from_texts(texts, vocab, &(vkt_sequence_params){ .maxlen = 300 }, &train);
 *
 * Definitions are those of Keras' Tokenizer, pad_sequences and text data sets (keras.preprocessing, keras.datasets).
 * Texts are UTF-8; other bytes are kept as they are.
 *
 * Threads: functions that take a pointer to const may run on several threads at once. `host` may be NULL; it is copied.
 * Constructors return VKT_OK and set *out, which the caller owns; else they return a status and *out = NULL: VKT_E_ARG,
 * VKT_E_NOMEM, and those that each function names. */
#ifndef VKTRAIN_TEXT_H
#define VKTRAIN_TEXT_H

#include "vktrain/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a table of labelled texts ---- */

/* Texts in memory, each with a class number. */
typedef struct vkt_texts vkt_texts;

/* The classes of a table. Give a file, or the names, or neither. If neither is given, classes are numbered in the order
 * in which the table has them first. */
typedef struct vkt_tsv_params {
    const char *classes_path;       /* a file with one class name a line, in the order of their numbers */
    const char *const *class_names; /* or the names themselves, `classes` of them */
    uint32_t classes;               /* number of class_names */
} vkt_tsv_params;

/* Reads lines label<TAB>text, plain or gzip, without header or quoting. `params` may be NULL. VKT_E_NOT_FOUND,
 * VKT_E_IO, VKT_E_FORMAT (the message names the line): a line without a tab or with several, a label that is not a
 * class name, no line at all. */
VKT_API vkt_result vkt_texts_from_tsv(const vkt_host *host, const char *path, const vkt_tsv_params *params,
                                      vkt_texts **out);
/* Reads such lines from a text in memory, which messages call `name`. */
VKT_API vkt_result vkt_texts_from_tsv_text(const vkt_host *host, const char *name, const char *text,
                                           const vkt_tsv_params *params, vkt_texts **out);
VKT_API void vkt_texts_destroy(vkt_texts **t); /* data sets made from it stay valid */
/* Return the contents; pointers are valid as long as the table. */
VKT_API uint32_t vkt_texts_rows(const vkt_texts *t);                  /* number of texts */
VKT_API const char *const *vkt_texts_all(const vkt_texts *t);         /* (rows) */
VKT_API const uint32_t *vkt_texts_labels(const vkt_texts *t);         /* (rows) */
VKT_API uint32_t vkt_texts_classes(const vkt_texts *t);               /* every label is below it */
VKT_API const char *const *vkt_texts_class_names(const vkt_texts *t); /* (classes), for vkt_tsv_params of a test set */

/* ---- the vocabulary ---- */

#define VKT_TEXT_FILTERS "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n" /* as Keras': the apostrophe is part of a word */

/* Ids that do not stand for words of the vocabulary. */
enum {
    VKT_ID_PAD = 0,    /* fills a sequence up */
    VKT_ID_START = 1,  /* starts a sequence */
    VKT_ID_UNKNOWN = 2 /* a word that the vocabulary does not have */
};

/* The options of a vocabulary. Zero is Keras' default. */
typedef struct vkt_vocab_params {
    uint32_t num_words;  /* V, the cap: every id is below it, rarer words are unknown; 0: all words */
    uint32_t index_from; /* id of the most frequent word; 0: 3. In the arrays that Keras provides it is 4: its ranks
                          * count from 1, and 3 is unused */
    bool keep_case;      /* Keras: lower=False */
    const char *filters; /* ASCII characters that separate words, as blanks do; NULL: VKT_TEXT_FILTERS */
} vkt_vocab_params;

/* Words and their ids. */
typedef struct vkt_vocab vkt_vocab;

/* Counts the words of `n` texts and numbers them from index_from on, by falling frequency; among equal ones the word
 * seen first comes first. A text is changed to lower case (ASCII, and the Latin, Greek and Cyrillic letters of two
 * UTF-8 bytes whose lower case has two bytes). Filtered characters become blanks, and blanks separate words. `params`
 * may be NULL. */
VKT_API vkt_result vkt_vocab_create(const vkt_host *host, const vkt_vocab_params *params, const char *const *texts,
                                    size_t n, vkt_vocab **out);
VKT_API void vkt_vocab_destroy(vkt_vocab **v); /* data sets made with it stay valid */
/* Returns V, the rows of an embedding. Every id is below it. */
VKT_API uint32_t vkt_vocab_size(const vkt_vocab *v);
/* Returns the word of an id, and in *count (may be NULL) how often it was counted; NULL for an id without a word. */
VKT_API const char *vkt_vocab_word(const vkt_vocab *v, uint32_t id, uint64_t *count);
/* Returns the id of a word, given in lower case as the vocabulary has it; VKT_ID_UNKNOWN if there is no such word. */
VKT_API uint32_t vkt_vocab_id(const vkt_vocab *v, const char *word);
/* Encodes a text: *n is the number of ids, and the first `capacity` of them are written. VKT_E_NOMEM. */
VKT_API vkt_result vkt_vocab_encode(const vkt_vocab *v, const char *text, uint32_t *ids, uint32_t capacity,
                                    uint32_t *n);

/* Write a vocabulary as an ASCII text, and read it back. Lines end with \n. Bytes up to a blank, from 127 on, and % are
 * written as %XX, in capitals.
 *     vktrain-vocabulary 1 index_from=3 lower=1 words=25873
 *     filters=!"#$%25&()*+,-./:;<=>?@[\]^_`{|}~%09%0A
 *     62304 the                                                   count and word, by falling count
 * vkt_text_release frees *text. VKT_E_FORMAT for a text of another form; the message calls it `name` and has the line.
 */
VKT_API vkt_result vkt_vocab_to_text(const vkt_vocab *v, char **text);
VKT_API vkt_result vkt_vocab_from_text(const vkt_host *host, const char *name, const char *text, vkt_vocab **out);
/* Save and load a vocabulary as this text in a file. Saving writes the whole file or nothing. VKT_E_IO; loading as
 * vkt_texts_from_tsv. */
VKT_API vkt_result vkt_vocab_save(const vkt_vocab *v, const char *path);
VKT_API vkt_result vkt_vocab_load(const vkt_host *host, const char *path, vkt_vocab **out);

/* ---- characters, for a model that writes letter by letter ---- */

/* Characters and their ids: 0, 1, .. in the order of their Unicode numbers. */
typedef struct vkt_alphabet vkt_alphabet;

/* Finds the different characters of a text of n bytes. VKT_E_FORMAT: it is empty, or not UTF-8 (the message has the
 * byte). The characters of an alphabet, one behind the other, are a text that gives the same alphabet. */
VKT_API vkt_result vkt_alphabet_create(const vkt_host *host, const char *text, size_t n, vkt_alphabet **out);
VKT_API void vkt_alphabet_destroy(vkt_alphabet **a);
VKT_API uint32_t vkt_alphabet_size(const vkt_alphabet *a); /* number of characters; every id is below it */
/* Returns a character as UTF-8, valid as long as the alphabet; NULL for an id that it does not have. */
VKT_API const char *vkt_alphabet_character(const vkt_alphabet *a, uint32_t id);
/* Encodes a text of n bytes: *count is its number of characters, and the first `capacity` ids are written.
 * VKT_E_FORMAT, not logged: the alphabet lacks one of the characters, or the text is not UTF-8; *count characters are
 * before it. */
VKT_API vkt_result vkt_alphabet_encode(const vkt_alphabet *a, const char *text, size_t n, uint32_t *ids,
                                       uint32_t capacity, uint32_t *count);

/* ---- sequences of one length ---- */

/* The options of sequences. Zero is Keras' default. */
typedef struct vkt_sequence_params {
    uint32_t maxlen;      /* L; 0: the longest of the texts */
    bool padding_post;    /* Keras: padding='post'; else shorter sequences are filled up at the front */
    bool truncating_post; /* Keras: truncating='post'; else longer ones lose their front */
    uint32_t value;       /* the id that fills up */
    bool no_start;        /* leave out the VKT_ID_START that starts each sequence before it is cut or filled up (Keras'
                           * data sets have it, texts_to_sequences does not) */
} vkt_sequence_params;

/* Cuts or fills n ids to p->maxlen (at least 1), as Keras' pad_sequences. */
VKT_API void vkt_pad_sequence(const vkt_sequence_params *p, const uint32_t *ids, uint32_t n, uint32_t *out);
/* Makes the row of one text, p->maxlen ids (at least 1), as vkt_dataset_from_texts does. *words: how many words it has;
 * *unknown: how many of them the vocabulary lacks; both may be NULL. VKT_E_ARG, VKT_E_NOMEM. */
VKT_API vkt_result vkt_vocab_row(const vkt_vocab *v, const vkt_sequence_params *params, const char *text, uint32_t *row,
                                 uint32_t *words, uint32_t *unknown);
/* Makes a data set with a row of `maxlen` ids per text: u16 if they fit, else u32; with the table's labels and class
 * names. */
VKT_API vkt_result vkt_dataset_from_texts(const vkt_texts *t, const vkt_vocab *v, const vkt_sequence_params *params,
                                          vkt_dataset **out);

#ifdef __cplusplus
}
#endif
#endif
