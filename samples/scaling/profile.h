/* scaling/profile.h - reads the profile of a step from a JSON file. */
#ifndef SCALING_PROFILE_H
#define SCALING_PROFILE_H

#include <stdbool.h>

#include "scaling/model.h"

/* Reads
 *     { "forward_ms": 20, "backward_ms": 40, "update_ms": 2, "buckets": [ { "bytes": 4194304, "ready_ms": 25 }, ... ] }
 * into *p. Buckets are in the order in which they are ready. If the file has another form, prints what is wrong and
 * returns false. The caller frees p->buckets, also after an error. */
bool scaling_read(const char *path, scaling_profile *p);

#endif
