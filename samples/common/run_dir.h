/* common/run_dir.h - --run DIR: one folder for all files of a run.
 *
 *   checkpoint.ckpt      full state, after every epoch; the same --run DIR resumes it
 *   best.safetensors     weights of the best epoch so far; or of the last step, after a signal in the first epoch
 *   results.json         the same as --json
 *   history.csv          rewritten after every epoch
 *   history.svg          loss and accuracy
 *   options.json         settings, versions, device, data and their hashes, at the last start
 *   log.txt              command line, device, data, summary, epochs, outcome and messages of each start
 *   events.out.tfevents. scalars of each epoch, settings, summary and the plot, for TensorBoard
 *
 * An option such as --save FILE puts that file elsewhere. --checkpoint with --run is refused. */
#ifndef SAMPLE_RUN_DIR_H
#define SAMPLE_RUN_DIR_H

#include <stdarg.h>

#include "common/options.h"

struct session;

/* Sets the names of files in o->run that the options do not set, and makes the folder. If the folder has a checkpoint,
 * the run resumes it: o->goes_on. Returns 0, or the program's exit status after a message. */
int run_dir_begin(train_options *o, int argc, char **argv);
/* Writes to log.txt, if there is one. */
void run_dir_say(const char *format, va_list args);
/* Is the log function of a vkt_host: writes to stderr and log.txt. */
void run_dir_log(void *user, vkt_log_level level, const char *line);
/* Begins the fit: writes options.json, and settings and summary for TensorBoard. */
vkt_result run_dir_train(const struct session *s, vkt_trainer *t);
/* Ends an epoch: writes history, log and events. If the epoch is the best one, saves its weights. If a file cannot be
 * written, it prints an error and the training continues. */
void run_dir_epoch(const struct session *s, vkt_trainer *t, const vkt_epoch_record *r, bool best);
/* Returns whether the folder keeps the best weights. Then a run that a signal ends does not replace them. */
bool run_dir_keeps_best(const struct session *s);
/* Ends the run: adds the plot for TensorBoard and closes the files. VKT_E_IO: a file could not be written. */
vkt_result run_dir_end(const struct session *s, vkt_trainer *t);

#endif
