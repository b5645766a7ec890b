/* samples/program.h - runs the sample programs as their users do, and reads their exit codes, output and files. The
 * programs run in the rig's folder, a temporary folder (rig.dir). */
#ifndef VKT_TEST_PROGRAM_H
#define VKT_TEST_PROGRAM_H

#include <jansson.h>
#include <sys/types.h>

#include "train/rig.h"

typedef struct run {
    int status;      /* exit code; -1: killed */
    char *out, *err; /* stdout and stderr */
} run;

/* Starts a program in the rig's folder. Its output goes to the files out and err there. `args` has its arguments. `env`
 * has changes of its environment: "NAME=value", or "NAME" to remove a variable; NULL: no changes. Both lists end with
 * NULL. */
pid_t program_start(const rig *r, const char *program, const char *const *env, const char *const *args);
/* Waits for the program. A message of the validation layer on stderr fails the test. run_forget frees the output. */
run program_finish(const rig *r, pid_t child);
void run_forget(const rig *r, run *done);
/* Runs the program, whose status must be 0. Returns its output, which the caller frees with run_forget. */
run program_output(const rig *r, const char *program, const char *const *args);
/* Runs the program. Fails the test unless it ends with `status` and its stderr contains `says`. */
void program_expect(const rig *r, const char *program, int status, const char *says, const char *const *args);

/* Returns a whole file of the rig's folder as text. Free it with vkt_free. */
char *program_text(const rig *r, const char *name);
bool program_wrote(const rig *r, const char *name); /* whether the file exists and is not empty */
/* Reads a JSON file of the rig's folder. Fails the test if it is not JSON. The caller frees the result with
 * json_decref. */
json_t *program_json(const rig *r, const char *name);
/* Returns member `key`, which must be a number. */
double json_number_of(const json_t *o, const char *key);

#endif
