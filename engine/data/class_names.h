/* data/class_names.h - reads a file with the name of one class per line (classes.txt), plain or gzip. */
#ifndef VKT_CLASS_NAMES_H
#define VKT_CLASS_NAMES_H

#include "data/words.h"

/* Adds the names to the empty list `names`, in the file's order. Empty lines do not count. VKT_E_FORMAT if a name
 * occurs twice or has a byte 0; VKT_E_NOMEM; or an error of vkt_gz_read_file. The caller frees `names`, also after a
 * failure. */
vkt_result vkt_class_names_read(const char *path, vkt_words *names);

#endif
