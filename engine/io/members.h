/* io/members.h - reads the members of a JSON object one by one, so that a large object never becomes a tree.
 *
 * A tree of json_t, which jansson allocates by malloc, takes up to 75 times the bytes of its text. vkt_members_next
 * allocates nothing: it finds the start and end of each key and value. jansson then checks one key or value at a
 * time. */
#ifndef VKT_MEMBERS_H
#define VKT_MEMBERS_H

#include <jansson.h>

#include "base/base.h"

typedef struct vkt_member {
    char *key, *value; /* parts of the object's text, still JSON: the key has its quotes */
    size_t key_bytes, value_bytes;
} vkt_member;

typedef struct vkt_members {
    char *text; /* owned by the caller; starts with '{' */
    size_t at, n;
    bool first;
    char why[JSON_ERROR_TEXT_LENGTH + 40]; /* after a failure: what is wrong at byte `at` */
} vkt_members;

vkt_members vkt_members_of(char *text, size_t n);
/* Reads the next member to *m. *more is false if the object has no further member. Only white space may follow the
 * object. Returns false if the text is malformed. */
bool vkt_members_next(vkt_members *w, vkt_member *m, bool *more);
/* Parses a key or a value. The caller releases the result. Returns NULL if the text is malformed (*no_memory is false),
 * or if jansson had no memory (*no_memory is true). */
json_t *vkt_members_parse(vkt_members *w, const char *text, size_t n, bool *no_memory);
/* Parses the JSON string at `text`, and overwrites it with the decoded text and a NUL. The decoded text and the NUL are
 * never longer than the JSON string. Returns `text`; NULL if vkt_members_parse returns NULL. */
const char *vkt_members_text(vkt_members *w, char *text, size_t n, bool *no_memory);

#endif
