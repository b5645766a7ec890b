/* fuzz/fuzz.h - what the fuzz targets share.
 *
 * A target is one file, fuzz_<reader>.c, that defines LLVMFuzzerTestOneInput. Two programs are made of it: with
 * libFuzzer (clang, -DVKT_FUZZ=ON), which looks for inputs of its own, and with replay.c, which any compiler builds and
 * every test run calls: it goes through corpus/<reader>/, and through cut and damaged copies of what lies there. What
 * libFuzzer finds belongs into that folder. make_corpus.c writes the rest of it.
 *
 * Whatever the input is, a reader must return a status, leave no output behind a failure, and free what it took. */
#ifndef VKT_FUZZ_H
#define VKT_FUZZ_H

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A resolved host that logs nothing, counts blocks, and has 64 MiB to give: an input that asks for more gets
 * VKT_E_NOMEM. */
const vkt_host *fuzz_host(void);
/* Bytes as a file: its path, until the next one or fuzz_end. */
const char *fuzz_file(const uint8_t *data, size_t size);
/* At the end of each input: closes the file; every block must have been freed. */
void fuzz_end(void);
/* Says what was wrong and ends the program where `ok` is false. */
void fuzz_require(bool ok, const char *what);
/* A reader's status: VKT_OK exactly where there is an output, else one that tells of the input. */
void fuzz_status(vkt_result r, bool has_output);

#endif
