/* io/members.h - reads the members of a JSON object one by one, so that a large object never becomes a tree.
 *
 * A tree of jansson takes up to 75 times the bytes of its text, from malloc. These functions allocate nothing. They
 * find the start and end of each key and value, and pass one at a time to jansson, which checks it. */
#ifndef VKT_MEMBERS_H
#define VKT_MEMBERS_H

#include <jansson.h>

#include "base/base.h"

typedef struct vkt_member {
    char *key, *value; /* their JSON text, the key with its quotes; parts of the object's text */
    size_t key_bytes, value_bytes;
} vkt_member;

typedef struct vkt_members {
    char *text; /* the caller's; starts with '{' */
    size_t at, n;
    bool first;
    char why[JSON_ERROR_TEXT_LENGTH + 40]; /* after a failure: the error at byte `at` */
} vkt_members;

vkt_members vkt_members_of(char *text, size_t n);
/* Reads the next member. After the last one *more is false; only white space may follow the object. Returns false if
 * the text is malformed. */
bool vkt_members_next(vkt_members *w, vkt_member *m, bool *more);
/* Parses a key or a value. The caller releases the result. NULL: malformed, or jansson had no memory (*no_memory). */
json_t *vkt_members_parse(vkt_members *w, const char *text, size_t n, bool *no_memory);
/* Parses a text and writes it, with its NUL, over its own JSON, which is never shorter. NULL as vkt_members_parse. */
const char *vkt_members_text(vkt_members *w, char *text, size_t n, bool *no_memory);

#endif
