/* data/class_names.h - reader of a file with the name of a class in each line (classes.txt), plain or gzip. */
#ifndef VKT_CLASS_NAMES_H
#define VKT_CLASS_NAMES_H

#include "data/words.h"

/* Adds the names to the empty list `names`, in their order; blank lines do not count. VKT_E_FORMAT for a name that
 * comes twice; else as vkt_gz_read_file. `names` is the caller's to free also after a failure. */
vkt_result vkt_class_names_read(const char *path, vkt_words *names);

#endif
