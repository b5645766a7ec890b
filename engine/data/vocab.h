/* data/vocab.h - the struct of a vocabulary, for vocab.c, vocab_file.c and texts.c. */
#ifndef VKT_VOCAB_H
#define VKT_VOCAB_H

#include "data/words.h"
#include "vktrain/text.h"

struct vkt_vocab {
    vkt_host host;
    vkt_words words; /* the most frequent word first; word i has the id index_from + i */
    uint32_t index_from;
    bool keep_case;
    bool parts[128]; /* [c]: the ASCII character c separates words; a blank always does */
};

/* Creates a vocabulary without words. p->num_words is only checked. VKT_E_ARG, VKT_E_NOMEM. After an error *out is
 * NULL. `h` must be a result of vkt_host_resolve. */
vkt_result vkt_vocab_begin(const vkt_host *h, const vkt_vocab_params *p, vkt_vocab **out);

#endif
