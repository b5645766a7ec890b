/* common/train_files.h - tests the output files and the input files of a sample program for training. */
#ifndef SAMPLE_TRAIN_FILES_H
#define SAMPLE_TRAIN_FILES_H

#include "common/options.h"

/* Tests the output files before the training: two options must not name the same file, names of figures must end in
 * .svg or .png, and each file must be writable. Returns 0, or the program's exit status after a message that names the
 * option. For --json, --history and --profile, "-" means standard output: the function replaces it by a path. For the
 * other options, "-" is an error. */
int train_files_try(train_options *o);
/* Tests the files of --load and --resume before the data are read. The file of --load must be a weights file or a
 * checkpoint, and the file of --resume must be a checkpoint. Returns 0 or the exit status, as train_files_try does.
 * With --predict it tests nothing. */
int train_inputs_try(const train_options *o);

#endif
