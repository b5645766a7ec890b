/* data/vocab.h - what vocab.c and vocab_file.c share. */
#ifndef VKT_VOCAB_H
#define VKT_VOCAB_H

#include "data/words.h"
#include "vktrain/text.h"

struct vkt_vocab {
    vkt_host host;
    vkt_words words; /* by rank: word i has the id index_from + i */
    uint32_t index_from;
    bool keep_case;
    bool parts[128]; /* ASCII characters that part words; the blank always does */
};

/* A vocabulary without words; num_words is only checked. `h` is resolved. */
vkt_result vkt_vocab_begin(const vkt_host *h, const vkt_vocab_params *p, vkt_vocab **out);

#endif
