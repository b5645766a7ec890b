/* data/pretoken.h - splits a text into pieces, as the regular expression of a model's pre-tokenizer does. */
#ifndef VKT_PRETOKEN_H
#define VKT_PRETOKEN_H

#include "base/base.h"

typedef struct vkt_splitter vkt_splitter;   /* never changes: any number of threads may use it */
typedef struct vkt_split_run vkt_split_run; /* belongs to one thread */

/* Further rules that follow from the name of a pre-tokenizer. */
typedef struct vkt_pre_rules {
    bool nfc;          /* texts are normalized before they are split */
    bool whole_pieces; /* a piece whose text is a token becomes this token, without merges */
} vkt_pre_rules;

/* Makes the splitter for the pre-tokenizer `name`, and sets *rules. VKT_E_UNSUPPORTED: no pre-tokenizer has this name,
 * the library was built without PCRE2, or PCRE2 rejects the expression. VKT_E_NOMEM. */
vkt_result vkt_splitter_create(const vkt_host *h, const char *name, vkt_splitter **out, vkt_pre_rules *rules);
void vkt_splitter_destroy(vkt_splitter **s);

/* Makes the memory that splitting needs. VKT_E_NOMEM. */
vkt_result vkt_split_run_create(const vkt_splitter *s, vkt_split_run **out);
void vkt_split_run_destroy(vkt_split_run **run);
/* Returns in *end the end of the piece that begins at `at`. Both are byte offsets in `text`; `at` is below n. `text` is
 * UTF-8. VKT_E_NOMEM. */
vkt_result vkt_split_next(vkt_split_run *run, const char *text, size_t n, size_t at, size_t *end);

#endif
