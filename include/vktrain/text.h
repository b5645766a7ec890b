/* vktrain/text.h - texts as sequences of word ids: a table of labelled texts, the vocabulary, the data set.
 *
 *     vkt_texts *texts;                                       label<TAB>text, one line each
 *     vkt_vocab *vocab;                                       words by falling frequency
 *     vkt_dataset *train;                                     (N,300) of u16 or u32, with class labels
 *     vkt_texts_from_tsv(host, "train.tsv.gz", &(vkt_tsv_params){ .classes_path = "classes.txt" }, &texts);
 *     vkt_vocab_create(host, NULL, vkt_texts_all(texts), vkt_texts_rows(texts), &vocab);
 *     vkt_dataset_from_texts(texts, vocab, &(vkt_sequence_params){ .maxlen = 300 }, &train);
 *
 * Definitions are those of Keras' Tokenizer, pad_sequences and text data sets (keras.preprocessing, keras.datasets).
 * Texts are UTF-8. A vocabulary keeps bytes that are not UTF-8; an alphabet refuses them.
 *
 * Threads: functions that take a pointer to const may run on several threads at once. `host` may be NULL; it is copied.
 * Constructors return VKT_OK and set *out, which the caller owns. After an error *out = NULL. The errors are VKT_E_ARG,
 * VKT_E_NOMEM and those that each function names. */
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
 * in which they first appear in the table. */
typedef struct vkt_tsv_params {
    const char *classes_path;       /* a file with one class name a line, in the order of the class numbers */
    const char *const *class_names; /* instead of a file: the class names, in the order of the class numbers */
    uint32_t classes;               /* number of class_names */
} vkt_tsv_params;

/* Reads a file of lines label<TAB>text, plain or gzip, without header or quoting. Empty lines are skipped. `params` may
 * be NULL. VKT_E_NOT_FOUND, VKT_E_IO; VKT_E_FORMAT: a line has no tab or several tabs (the message has the number of
 * the line), a label is no class name, or there is no row. */
VKT_API vkt_result vkt_texts_from_tsv(const vkt_host *host, const char *path, const vkt_tsv_params *params,
                                      vkt_texts **out);
/* Reads lines label<TAB>text from a text in memory; messages call this text `name`. Errors as for
 * vkt_texts_from_tsv. */
VKT_API vkt_result vkt_texts_from_tsv_text(const vkt_host *host, const char *name, const char *text,
                                           const vkt_tsv_params *params, vkt_texts **out);
VKT_API void vkt_texts_destroy(vkt_texts **t); /* data sets made from the table stay valid */
/* Return the contents; pointers are valid as long as the table. */
VKT_API uint32_t vkt_texts_rows(const vkt_texts *t);                  /* number of texts */
VKT_API const char *const *vkt_texts_all(const vkt_texts *t);         /* (rows) */
VKT_API const uint32_t *vkt_texts_labels(const vkt_texts *t);         /* (rows) */
VKT_API uint32_t vkt_texts_classes(const vkt_texts *t);               /* number of classes */
VKT_API const char *const *vkt_texts_class_names(const vkt_texts *t); /* (classes); for a test set, pass these names as
                                                                       * vkt_tsv_params.class_names */

/* ---- the vocabulary ---- */

#define VKT_TEXT_FILTERS "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n" /* as in Keras: an apostrophe separates no words */

/* Ids that do not stand for words of the vocabulary. */
enum {
    VKT_ID_PAD = 0,    /* fills sequences up, by default */
    VKT_ID_START = 1,  /* starts a sequence */
    VKT_ID_UNKNOWN = 2 /* a word that the vocabulary does not have */
};

/* The options of a vocabulary. A member that is 0 selects the default of Keras, except for index_from. */
typedef struct vkt_vocab_params {
    uint32_t num_words;  /* every id is below num_words; words without an id become VKT_ID_UNKNOWN. 0: no limit */
    uint32_t index_from; /* id of the most frequent word, at least 3; 0 means 3. (In the data sets of Keras, id 3 is not
                          * used, and the most frequent word has id 4) */
    bool keep_case;      /* do not change words to lower case (Keras: lower=False) */
    const char *filters; /* ASCII characters that separate words, as blanks do; NULL: VKT_TEXT_FILTERS */
} vkt_vocab_params;

/* Words and their ids. */
typedef struct vkt_vocab vkt_vocab;

/* Counts the words of `n` texts, and gives ids to the words: from index_from on, by falling frequency. Of words with
 * the same frequency, the word that was seen first comes first. Blanks and the characters of `filters` separate words.
 * Without keep_case, words change to lower case: the letters of ASCII, Latin-1, Latin Extended-A, modern Greek and
 * Cyrillic. A letter outside of ASCII changes only if its capital and small form have two UTF-8 bytes each. `params`
 * may be NULL. */
VKT_API vkt_result vkt_vocab_create(const vkt_host *host, const vkt_vocab_params *params, const char *const *texts,
                                    size_t n, vkt_vocab **out);
VKT_API void vkt_vocab_destroy(vkt_vocab **v); /* data sets made with the vocabulary stay valid */
/* Returns V, the number of rows that an embedding needs. Every id of a word is below V. */
VKT_API uint32_t vkt_vocab_size(const vkt_vocab *v);
/* Returns the word of an id; NULL for an id without a word. The text is valid as long as the vocabulary. *count (may be
 * NULL) gets the frequency of the word. */
VKT_API const char *vkt_vocab_word(const vkt_vocab *v, uint32_t id, uint64_t *count);
/* Returns the id of a word; VKT_ID_UNKNOWN if the vocabulary does not have this word. `word` is compared as it is, so
 * without keep_case it must be in lower case. */
VKT_API uint32_t vkt_vocab_id(const vkt_vocab *v, const char *word);
/* Encodes a text. Writes the ids of its first `capacity` words to `ids`, and the number of all its words to *n.
 * VKT_E_NOMEM. */
VKT_API vkt_result vkt_vocab_encode(const vkt_vocab *v, const char *text, uint32_t *ids, uint32_t capacity,
                                    uint32_t *n);

/* Write a vocabulary as an ASCII text, and read the text back. Lines end with \n. In words and filters, the byte % and
 * all bytes outside of 33..126 are written as %XX, with two hexadecimal digits in capitals.
 *     vktrain-vocabulary 1 index_from=3 lower=1 words=25873
 *     filters=%09%0A!"#$%25&()*+,-./:;<=>?@[\]^_`{|}~
 *     62304 the                                                   count and word, by falling count
 * vkt_text_release frees *text. VKT_E_FORMAT: the text has another form. The message has `name` and the number of the
 * line, with two exceptions: the message about an index_from of 1 or 2, and the message about a filter that is not
 * ASCII. */
VKT_API vkt_result vkt_vocab_to_text(const vkt_vocab *v, char **text);
VKT_API vkt_result vkt_vocab_from_text(const vkt_host *host, const char *name, const char *text, vkt_vocab **out);
/* Save a vocabulary to a file, in the form of vkt_vocab_to_text, and load it. Saving writes the whole file or nothing;
 * VKT_E_IO, VKT_E_NOMEM. Loading reads a plain or gzip file; VKT_E_NOT_FOUND, VKT_E_IO, VKT_E_FORMAT. */
VKT_API vkt_result vkt_vocab_save(const vkt_vocab *v, const char *path);
VKT_API vkt_result vkt_vocab_load(const vkt_host *host, const char *path, vkt_vocab **out);

/* ---- characters, for a model that generates text character by character ---- */

/* Characters and their ids: 0, 1, .. in the order of their Unicode code points. */
typedef struct vkt_alphabet vkt_alphabet;

/* Makes an alphabet of the different characters of a text of n bytes. A program that predicts later needs the same
 * alphabet: save a short text that has each character once, and make the alphabet from this text. VKT_E_FORMAT: the
 * text is empty, or not UTF-8 (the message has the offset of the byte). */
VKT_API vkt_result vkt_alphabet_create(const vkt_host *host, const char *text, size_t n, vkt_alphabet **out);
VKT_API void vkt_alphabet_destroy(vkt_alphabet **a);
VKT_API uint32_t vkt_alphabet_size(const vkt_alphabet *a); /* number of characters; every id is below it */
/* Returns a character as UTF-8, valid as long as the alphabet; NULL if no character has this id. */
VKT_API const char *vkt_alphabet_character(const vkt_alphabet *a, uint32_t id);
/* Encodes a text of n bytes. Writes the ids of its first `capacity` characters to `ids`, and the number of all its
 * characters to *count. VKT_E_FORMAT: the alphabet does not have a character of the text, or the text is not
 * UTF-8. This error is not logged, and *count is then the number of characters before the error. */
VKT_API vkt_result vkt_alphabet_encode(const vkt_alphabet *a, const char *text, size_t n, uint32_t *ids,
                                       uint32_t capacity, uint32_t *count);

/* ---- sequences of equal length ---- */

/* The options of sequences. A member that is 0 selects the default of Keras. */
typedef struct vkt_sequence_params {
    uint32_t maxlen;      /* length of all sequences; 0: the length of the longest sequence, at least 1 */
    bool padding_post;    /* fill sequences up at their end, else at their front (Keras: padding='post') */
    bool truncating_post; /* cut ids off at the end, else at the front (Keras: truncating='post') */
    uint32_t value;       /* the id that fills sequences up */
    bool no_start;        /* true: sequences have no VKT_ID_START, as in texts_to_sequences of Keras. false: each
                           * sequence begins with VKT_ID_START, as in the data sets of Keras, before it is cut or
                           * filled up */
} vkt_sequence_params;

/* Cuts or fills up a sequence of n ids. `out` gets p->maxlen ids. p->maxlen must not be 0. Keras calls this
 * pad_sequences. */
VKT_API void vkt_pad_sequence(const vkt_sequence_params *p, const uint32_t *ids, uint32_t n, uint32_t *out);
/* Makes the row of one text as vkt_dataset_from_texts does. The row has params->maxlen ids. *words gets the number
 * of words of the text, and *unknown the number of words that the vocabulary does not have. `words` and `unknown` may
 * be NULL. VKT_E_ARG: another pointer is NULL, or maxlen is 0. VKT_E_NOMEM. */
VKT_API vkt_result vkt_vocab_row(const vkt_vocab *v, const vkt_sequence_params *params, const char *text, uint32_t *row,
                                 uint32_t *words, uint32_t *unknown);
/* Makes a data set with a row of `maxlen` ids for each text, and with the table's labels and class names. Ids are u16
 * if vkt_vocab_size(v) <= 65536 and params->value < 65536, else u32. `params` may be NULL. */
VKT_API vkt_result vkt_dataset_from_texts(const vkt_texts *t, const vkt_vocab *v, const vkt_sequence_params *params,
                                          vkt_dataset **out);

#ifdef __cplusplus
}
#endif
#endif
