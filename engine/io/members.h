/* io/members.h - walks over the members of a JSON object one by one, so that a large object never becomes a tree.
 *
 * A tree of jansson's takes up to 75 times the bytes of its text, from malloc. A walk takes nothing: it finds where
 * each key and value begins and ends, and hands one at a time to jansson, which checks it. */
#ifndef VKT_MEMBERS_H
#define VKT_MEMBERS_H

#include <jansson.h>

#include "base/base.h"

typedef struct vkt_member {
    char *key, *value; /* their JSON text, the key with its quotes; inside the walk's text */
    size_t key_bytes, value_bytes;
} vkt_member;

typedef struct vkt_members {
    char *text; /* the caller's; begins with '{' */
    size_t at, n;
    bool first;
    char why[JSON_ERROR_TEXT_LENGTH + 40]; /* after a failure: what is wrong at byte `at` */
} vkt_members;

vkt_members vkt_members_of(char *text, size_t n);
/* The next member; *more = false behind the last one, and what follows the object is white space. False: malformed. */
bool vkt_members_next(vkt_members *w, vkt_member *m, bool *more);
/* Parses a key or a value, which the caller releases. NULL: malformed; *no_memory: or jansson had none. */
json_t *vkt_members_parse(vkt_members *w, const char *text, size_t n, bool *no_memory);
/* Parses a text, which takes the place of its JSON, NUL included: it is never longer. NULL likewise. */
const char *vkt_members_text(vkt_members *w, char *text, size_t n, bool *no_memory);

#endif
