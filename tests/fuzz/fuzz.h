/* fuzz/fuzz.h - the code that the fuzz targets share.
 *
 * A target is one file, fuzz_<reader>.c, that defines LLVMFuzzerTestOneInput. The build makes two programs of it. The
 * program with libFuzzer (clang, -DVKT_FUZZ=ON) searches for new inputs. The program with replay.c runs in every test
 * run, and any compiler can build this program. It reads the files of corpus/<reader>/, and truncated and damaged
 * copies of them. Add the inputs that libFuzzer finds to corpus/<reader>/. make_corpus.c writes the other files,
 * except those of spirv/ and peft_config/.
 *
 * For any input, a reader must return a status, leave no output after a failure, and free its memory. */
#ifndef VKT_FUZZ_H
#define VKT_FUZZ_H

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns a host for the readers. The host logs nothing, counts blocks of memory, and allocates up to 64 MiB. For an
 * input that needs more memory, a reader returns VKT_E_NOMEM. */
const vkt_host *fuzz_host(void);
/* Makes a file of the bytes. Returns its path, valid until the next call or fuzz_end. */
const char *fuzz_file(const uint8_t *data, size_t size);
/* Closes the file, and checks that all memory was freed. Call it at the end of each input. */
void fuzz_end(void);
/* If `ok` is false, prints `what` and ends the program. */
void fuzz_require(bool ok, const char *what);
/* Checks the status of a reader: VKT_OK if there is an output, else VKT_E_FORMAT, VKT_E_UNSUPPORTED or VKT_E_NOMEM. */
void fuzz_status(vkt_result r, bool has_output);

#endif
