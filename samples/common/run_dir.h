/* common/run_dir.h - --run DIR: one folder for all that a run leaves.
 *
 *   checkpoint.ckpt      full state, after every epoch; --run DIR again goes on from it
 *   best.safetensors     weights of the best epoch so far; of the last step where a signal came before there was one
 *   results.json         as --json writes it
 *   history.csv          rewritten after every epoch
 *   history.svg          loss and accuracy
 *   options.json         settings, versions, device, data and their hashes, as the run began or went on
 *   log.txt              command line, device, data, summary, epochs, outcome and messages of each start
 *   events.out.tfevents. scalars of each epoch, settings, summary and the plot, for TensorBoard
 *
 * An option such as --save FILE puts that file elsewhere; --checkpoint beside --run is refused. */
#ifndef SAMPLE_RUN_DIR_H
#define SAMPLE_RUN_DIR_H

#include <stdarg.h>

#include "common/options.h"

struct session;

/* Puts the names of files in o->run where the options leave them open, and makes the folder. A checkpoint that is there
 * is resumed: o->goes_on. 0, or the program's exit status after a message. */
int run_dir_begin(train_options *o, int argc, char **argv);
/* Writes to log.txt, if there is one. */
void run_dir_say(const char *format, va_list args);
/* The log function of a vkt_host: stderr and log.txt. */
void run_dir_log(void *user, vkt_log_level level, const char *line);
/* Before the fit: options.json, settings and summary for TensorBoard. */
vkt_result run_dir_train(const struct session *s, vkt_trainer *t);
/* After an epoch: history, log, events and, where it is the best one, its weights. A file that cannot be written is
 * told, and the training goes on. */
void run_dir_epoch(const struct session *s, vkt_trainer *t, const vkt_epoch_record *r, bool best);
/* Whether the folder has the best weights already, so that a run that a signal ends leaves them as they are. */
bool run_dir_keeps_best(const struct session *s);
/* At the end of the run: the plot for TensorBoard; closes the files. VKT_E_IO where one could not be written. */
vkt_result run_dir_end(const struct session *s, vkt_trainer *t);

#endif
