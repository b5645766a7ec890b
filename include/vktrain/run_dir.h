/* vktrain/run_dir.h - one folder for all files of a training run. The same program started again continues the run.
 *
 *   vkt_run_dir *run;
 *   vkt_run_dir_open(NULL, "runs/first", NULL, &run);
 *   vkt_run_dir_fit(run, trainer, &(vkt_fit_params){ .epochs = 20 }, NULL);
 *   vkt_run_dir_destroy(&run);
 *
 *   checkpoint.ckpt       full state, after every epoch
 *   best.safetensors      weights of the best epoch so far; of the last step, if the run ended before it had one
 *   results.json          vkt_trainer_results, at the end
 *   history.csv           rewritten after every epoch
 *   history.svg           loss and accuracy, at the end
 *   options.json          settings of the run, at its last start
 *   log.txt               a line per start and per epoch, and what the program adds
 *   events.out.tfevents.  scalars of each epoch, options, summary and the plot, for TensorBoard
 *
 * Threads: one at a time per object. */
#ifndef VKTRAIN_RUN_DIR_H
#define VKTRAIN_RUN_DIR_H

#include "vktrain/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The files of the folder. */
typedef enum vkt_run_file {
    VKT_RUN_CHECKPOINT = 0, /* checkpoint.ckpt */
    VKT_RUN_WEIGHTS,        /* best.safetensors */
    VKT_RUN_RESULTS,        /* results.json */
    VKT_RUN_HISTORY,        /* history.csv */
    VKT_RUN_PLOT,           /* history.svg */
    VKT_RUN_OPTIONS,        /* options.json */
    VKT_RUN_LOG,            /* log.txt */
    VKT_RUN_FILE_COUNT      /* number of files */
} vkt_run_file;

/* An open folder. */
typedef struct vkt_run_dir vkt_run_dir;

/* Opens a folder, and makes it and the folders above it if they are missing. Opens log.txt and locks it, so that no
 * other process can use the folder, and writes a line with the time (UTC) and `title`: the command line, for instance;
 * NULL: nothing. VKT_E_ARG, VKT_E_IO, VKT_E_NOMEM, VKT_E_STATE: another process has the folder open; *out = NULL then.
 * Owner: the caller. `host` may be NULL. */
VKT_API vkt_result vkt_run_dir_open(const vkt_host *host, const char *folder, const char *title, vkt_run_dir **out);
VKT_API void vkt_run_dir_destroy(vkt_run_dir **d);
/* Returns the path of a file of the folder, valid as long as the object; NULL for another number. */
VKT_API const char *vkt_run_dir_path(const vkt_run_dir *d, vkt_run_file file);
/* Returns whether the folder had a checkpoint when it was opened: then vkt_run_dir_fit continues that run. */
VKT_API bool vkt_run_dir_resumes(const vkt_run_dir *d);
/* Leaves this file out of vkt_run_dir_fit, for a program that writes it itself. To write the checkpoint to another
 * path, set vkt_fit_params.checkpoint instead. */
VKT_API void vkt_run_dir_omit(vkt_run_dir *d, vkt_run_file file);
/* Appends a text to log.txt as it is. An error of the file is found at the end of vkt_run_dir_fit. */
VKT_API void vkt_run_dir_log(vkt_run_dir *d, const char *text);

/* Calls vkt_trainer_fit and writes the files. If the folder has a checkpoint and the trainer has not trained and was
 * not resumed, it is resumed first. `options`: the JSON for options.json; NULL: vkt_trainer_settings. `params` may be
 * NULL; its callbacks are called too.
 *
 * Returns the result of vkt_trainer_resume or vkt_trainer_fit. VKT_E_CHECKPOINT also if another file could not be
 * written: this is logged at once and does not disturb the training. A fit that fails before its first step leaves
 * older files as they are, except options, log and events. After an error or a stop, best.safetensors still has the
 * best epoch. */
VKT_API vkt_result vkt_run_dir_fit(vkt_run_dir *d, vkt_trainer *t, const vkt_fit_params *params, const char *options);

#ifdef __cplusplus
}
#endif
#endif
