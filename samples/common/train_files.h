/* common/train_files.h - the files that a training sample is asked to write, and those that it begins with. */
#ifndef SAMPLE_TRAIN_FILES_H
#define SAMPLE_TRAIN_FILES_H

#include "common/options.h"

/* Looks at them before hours of training are spent: 0 where each can be written, else the program's exit status, after
 * a message that names option and path. "-" becomes the path of standard output. */
int train_files_try(train_options *o);
/* The same for --load and --resume, before the data are read: each opens, and is a weights file or a checkpoint. */
int train_inputs_try(const train_options *o);

#endif
