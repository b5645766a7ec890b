/* vktrain/run_dir.h - one folder for all files of a training run. If the program is started again, it continues the
 * run.
 *
 *   vkt_run_dir *run;
 *   vkt_run_dir_open(NULL, "runs/first", NULL, &run);
 *   vkt_run_dir_fit(run, trainer, &(vkt_fit_params){ .epochs = 20 }, NULL);
 *   vkt_run_dir_destroy(&run);
 *
 *   checkpoint.ckpt       full state of the trainer, written after every epoch, unless a loss or a weight is not finite
 *   best.safetensors      weights of the best epoch so far; weights of the last step if the run ended without a best
 *                         epoch and did not diverge
 *   results.json          the text of vkt_trainer_results, written at the end (needs jansson)
 *   history.csv           losses, accuracies, metrics, learning rate and time of each epoch, rewritten after each epoch
 *   history.svg           a plot of loss and accuracy, written at the end (needs cairo)
 *   options.json          settings of the run, written at each start
 *   log.txt               a line for each start and each epoch, and texts that the program adds
 *   events.out.tfevents.* scalars of each epoch, options, summary and the plot, for TensorBoard (the plot needs cairo
 *                         and libpng)
 *
 * Threads: one at a time per object. */
#ifndef VKTRAIN_RUN_DIR_H
#define VKTRAIN_RUN_DIR_H

#include "vktrain/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The files of the folder, except the event files (events.out.tfevents.*). */
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

/* Opens a folder. Makes the folder and the folders above it if they are missing. Opens log.txt and locks this file, so
 * that no process can open the folder a second time. Then writes a line to log.txt: the time (UTC) and `title`, for
 * instance the command line. If `title` is NULL, the line has only the time. VKT_E_STATE: the folder is open already.
 * VKT_E_ARG, VKT_E_IO, VKT_E_NOMEM. After an error *out = NULL. Owner: the caller. `host` may be NULL. */
VKT_API vkt_result vkt_run_dir_open(const vkt_host *host, const char *folder, const char *title, vkt_run_dir **out);
VKT_API void vkt_run_dir_destroy(vkt_run_dir **d);
/* Returns the path of a file of the folder; NULL if `file` is no vkt_run_file. The path is valid until `d` is
 * destroyed. */
VKT_API const char *vkt_run_dir_path(const vkt_run_dir *d, vkt_run_file file);
/* Returns whether the folder had a checkpoint.ckpt when the folder was opened. If so, vkt_run_dir_fit resumes a new
 * trainer from this file, unless vkt_fit_params.checkpoint names another file. */
VKT_API bool vkt_run_dir_resumes(const vkt_run_dir *d);
/* Excludes `file` from the files that vkt_run_dir_fit writes. A program calls this function if it writes `file` itself.
 * The function has no effect on the log and the checkpoint. To write the checkpoint to another path, set
 * vkt_fit_params.checkpoint. */
VKT_API void vkt_run_dir_omit(vkt_run_dir *d, vkt_run_file file);
/* Appends `text` to log.txt, unchanged. If the write fails, the vkt_run_dir_fit in progress returns an error at its
 * end. If no fit is in progress, the next vkt_run_dir_fit returns the error. */
VKT_API void vkt_run_dir_log(vkt_run_dir *d, const char *text);

/* Calls vkt_trainer_fit and writes the files. If vkt_fit_params.checkpoint is NULL, the checkpoint is the folder's
 * checkpoint.ckpt. A new trainer, which has not trained and was not resumed, is first resumed from the checkpoint if
 * this file exists. (A checkpoint.ckpt that was written after vkt_run_dir_open does not count.) `options` is the JSON
 * text for options.json. If `options` is NULL, options.json gets the text of vkt_trainer_settings; in a library without
 * jansson, it is not written. If `params` is NULL, epoch 1 is the last epoch. The callbacks of `params` are called as
 * in vkt_trainer_fit.
 *
 * Returns the result of vkt_trainer_resume or vkt_trainer_fit. If options.json or the event file cannot be written at
 * the start, returns the error, and there is no training. If a file cannot be written later, the failure is logged at
 * once (a failure of log.txt is not logged), the training continues, and the result is VKT_E_CHECKPOINT, unless the fit
 * has another error. history.csv is rewritten after each epoch, so only a failure of its last write is an error. If a
 * fit fails before its first step, the files of earlier starts do not change, except options.json, log.txt and the
 * event files. If there is a best epoch, best.safetensors has the weights of this epoch also after an error or a
 * stop. */
VKT_API vkt_result vkt_run_dir_fit(vkt_run_dir *d, vkt_trainer *t, const vkt_fit_params *params, const char *options);

#ifdef __cplusplus
}
#endif
#endif
