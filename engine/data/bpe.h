/* data/bpe.h - byte-level BPE: the merges of a vocabulary, and the tokens of one piece of a text. */
#ifndef VKT_BPE_H
#define VKT_BPE_H

#include "base/base.h"

/* A merge: two neighbours with the ids `left` and `right` become `id`. */
typedef struct vkt_merge {
    uint32_t left, right, id, rank;
} vkt_merge;

/* Merges by their pair. A zeroed table is empty. Threads: any number may read at once. */
typedef struct vkt_merges {
    vkt_merge *slots;    /* hash table with open addressing; a free slot has the id VKT_NO_TOKEN */
    size_t n_slots;      /* a power of two, or 0; at most half of the slots are used */
    uint64_t multiplier; /* the hash multiplies by this odd number */
    uint32_t shift;      /* the hash has the upper 64 - shift bits of the product */
} vkt_merges;

/* Makes room for n merges. VKT_E_NOMEM. */
vkt_result vkt_merges_begin(const vkt_host *h, size_t n, vkt_merges *m);
/* Adds a merge. It replaces a merge of the same pair. The table must have room. */
void vkt_merges_add(vkt_merges *m, const vkt_merge *merge);
void vkt_merges_free(const vkt_host *h, vkt_merges *m);

/* A token of a piece, with the bytes of the text from which it comes. */
typedef struct vkt_symbol {
    uint32_t id;             /* VKT_NO_TOKEN: the symbol was joined to the one in front of it */
    uint32_t begin, end;     /* the bytes begin .. end - 1 of the text */
    uint32_t before, behind; /* indices of the neighbours; UINT32_MAX: there is none */
} vkt_symbol;

/* A merge that may apply at a symbol and the one behind it. */
typedef struct vkt_candidate {
    uint32_t rank, at, id;
} vkt_candidate;

/* The memory for merging one piece. A zeroed one with `h` set is empty. */
typedef struct vkt_bpe {
    const vkt_host *h;
    vkt_symbol *symbols; /* (n) */
    vkt_candidate *heap; /* (n_heap): heap[0] has the lowest rank; if ranks are equal, it is the leftmost one */
    size_t n, n_heap, room;
} vkt_bpe;

/* Sets the symbols of a piece: one for each byte that has a token. ids[b] is the token of byte b (256 elements).
 * VKT_E_NOMEM. */
vkt_result vkt_bpe_set(vkt_bpe *b, const uint32_t *ids, const char *piece, uint32_t begin, uint32_t end);
/* Merges the symbols until no merge applies. Symbol 0, if there is any, is then the first one; `behind` gives the
 * others. Time O(n log n). */
void vkt_bpe_merge(vkt_bpe *b, const vkt_merges *m);
void vkt_bpe_free(vkt_bpe *b);

#endif
