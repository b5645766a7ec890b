/* samples/program.h - the sample programs as their users run them: options in, exit code, output and files out. */
#ifndef VKT_TEST_PROGRAM_H
#define VKT_TEST_PROGRAM_H

#include <jansson.h>
#include <sys/types.h>

#include "train/rig.h"

typedef struct run {
    int status;      /* exit code; -1: killed */
    char *out, *err; /* what it printed */
} run;

/* Starts a program in the rig's folder; its output goes to the files out and err there. `env` (NULL: the test's own)
 * are texts "NAME=value", or "NAME" to unset it, `args` the program's arguments; both end with NULL. */
pid_t program_start(const rig *r, const char *program, const char *const *env, const char *const *args);
/* Waits for it; a message of the validation layer fails the test. run_forget frees what it printed. */
run program_finish(const rig *r, pid_t child);
void run_forget(const rig *r, run *done);
/* Runs it and fails the test unless it ends with `status` and stderr holds `says`. */
void program_expect(const rig *r, const char *program, int status, const char *says, const char *const *args);

/* Returns a whole file of the rig's folder as text. Free it with vkt_free. */
char *program_text(const rig *r, const char *name);
bool program_wrote(const rig *r, const char *name); /* it is there, and not empty */
/* A JSON file of the rig's folder: json_decref. Fails the test if it is none. */
json_t *program_json(const rig *r, const char *name);
/* Returns member `key`, which must be a number. */
double json_number_of(const json_t *o, const char *key);

#endif
