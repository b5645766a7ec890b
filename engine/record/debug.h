/* record/debug.h - functions for tests, for instance to find out whether a shader writes outside of its values. */
#ifndef VKT_RECORD_DEBUG_H
#define VKT_RECORD_DEBUG_H

#include "record/record.h"

/* Creates a program whose values share no memory. Behind each activation and each scratch value there is a guard: 256
 * unused bytes. */
vkt_result vkt_program_create_guarded(vkt_ctx *ctx, vkt_graph *g, vkt_store *store, const vkt_program_params *params,
                                      vkt_program **out);
/* Creates a program like vkt_program_create_guarded, but an output may use the memory of an input if the op descriptor
 * allows this. */
vkt_result vkt_program_create_in_place(vkt_ctx *ctx, vkt_graph *g, vkt_store *store, const vkt_program_params *params,
                                       vkt_program **out);
/* Fills all memory of activations and scratch, guards included, with `word`. */
vkt_result vkt_program_poison(vkt_program *p, uint32_t word);
/* Checks that the words between values still are `word`, as vkt_program_poison wrote them. If not, *intact is false,
 * and *bad is the name of a value with a wrong word behind it. The program owns this string. */
vkt_result vkt_program_check_guards(vkt_program *p, uint32_t word, bool *intact, const char **bad);
/* Reads the physical bytes of a value of the graph, padding included. VKT_E_ARG: `bytes` is not its physical size, or
 * not a multiple of 4. */
vkt_result vkt_program_read_raw(vkt_program *p, vkt_tensor t, void *physical, uint64_t bytes);

#endif
