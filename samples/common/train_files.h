/* common/train_files.h - tests the output files and the input files of a training sample. */
#ifndef SAMPLE_TRAIN_FILES_H
#define SAMPLE_TRAIN_FILES_H

#include "common/options.h"

/* Tests each output file before the training. Returns 0 if each can be written, otherwise the program's exit status
 * after a message that names option and path. Replaces "-" by the path of standard output. */
int train_files_try(train_options *o);
/* Tests --load and --resume in the same way, before the data are read: each opens, and is a weights file or a
 * checkpoint. */
int train_inputs_try(const train_options *o);

#endif
