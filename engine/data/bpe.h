/* data/bpe.h - byte-level BPE: the merges of a vocabulary, and the tokens of one piece of a text. */
#ifndef VKT_BPE_H
#define VKT_BPE_H

#include "base/base.h"

/* A merge: two neighbours with the ids `left` and `right` become `id`. The merge with the lowest rank comes first. */
typedef struct vkt_merge {
    uint32_t left, right, id, rank;
} vkt_merge;

/* A table of merges, found by the pair (left, right). A zeroed table has no slots, and only vkt_merges_begin and
 * vkt_merges_free accept it. Threads: any number may read at once. */
typedef struct vkt_merges {
    vkt_merge *slots;    /* hash table with open addressing; a free slot has the id VKT_NO_TOKEN */
    size_t n_slots;      /* a power of two, or 0; at most half of the slots are used */
    uint64_t multiplier; /* an odd number */
    uint32_t shift;      /* the hash is (left << 32 | right) * multiplier >> shift, in 64 bits */
} vkt_merges;

/* Makes room for n merges. VKT_E_NOMEM. */
vkt_result vkt_merges_begin(const vkt_host *h, size_t n, vkt_merges *m);
/* Adds a merge, or replaces the merge of the same pair. The table must have room. */
void vkt_merges_add(vkt_merges *m, const vkt_merge *merge);
void vkt_merges_free(const vkt_host *h, vkt_merges *m);

/* A token of a piece, and the bytes of the text that became this token. */
typedef struct vkt_symbol {
    uint32_t id;             /* VKT_NO_TOKEN: the symbol was joined to the one in front of it */
    uint32_t begin, end;     /* the bytes begin .. end - 1 of the text */
    uint32_t before, behind; /* indices of the neighbours; UINT32_MAX: there is none */
} vkt_symbol;

/* A merge that may apply to symbol `at` and the symbol behind it. */
typedef struct vkt_candidate {
    uint32_t rank, at, id;
} vkt_candidate;

/* The memory for merging one piece. At first, all members but `h` are zero. */
typedef struct vkt_bpe {
    const vkt_host *h;
    vkt_symbol *symbols; /* (n) */
    vkt_candidate *heap; /* (n_heap): heap[0] has the lowest rank; if ranks are equal, the lowest `at` */
    size_t n, n_heap, room;
} vkt_bpe;

/* Sets the symbols of a piece: one symbol for each byte that has a token. The piece is the bytes begin .. end - 1 of a
 * text. `ids` has 256 elements: the token of each byte, or VKT_NO_TOKEN. VKT_E_NOMEM. */
vkt_result vkt_bpe_set(vkt_bpe *b, const uint32_t *ids, const char *piece, uint32_t begin, uint32_t end);
/* Merges the symbols until no merge applies. Afterwards symbol 0, if there are symbols, is the first token of the
 * piece. `behind` of each token is the index of the next token. Time O(n log n). */
void vkt_bpe_merge(vkt_bpe *b, const vkt_merges *m);
void vkt_bpe_free(vkt_bpe *b);

#endif
