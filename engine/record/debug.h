/* record/debug.h - for tests: what a shader writes where it should not. */
#ifndef VKT_RECORD_DEBUG_H
#define VKT_RECORD_DEBUG_H

#include "record/record.h"

/* A program whose values share no memory and have 256 bytes of nobody's behind each of them. */
vkt_result vkt_program_create_guarded(vkt_ctx *ctx, vkt_graph *g, vkt_store *store, const vkt_program_params *params,
                                      vkt_program **out);
/* The same, but outputs take the memory of inputs where a row allows it. */
vkt_result vkt_program_create_in_place(vkt_ctx *ctx, vkt_graph *g, vkt_store *store, const vkt_program_params *params,
                                       vkt_program **out);
/* Fills all memory of activations and scratch, guards included, with `word`. */
vkt_result vkt_program_poison(vkt_program *p, uint32_t word);
/* Whether every word that belongs to no value still is `word`; else *bad names the value in front of the first that is
 * not (a string of the program's). */
vkt_result vkt_program_check_guards(vkt_program *p, uint32_t word, bool *intact, const char **bad);
/* The physical bytes of a kept value, padding included; `bytes` is its physical size. */
vkt_result vkt_program_read_raw(vkt_program *p, vkt_tensor t, void *physical, uint64_t bytes);

#endif
