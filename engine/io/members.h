/* io/members.h - reads the members of a JSON object one by one. Nothing is allocated: vkt_members_next finds the start
 * and end of each key and value, and io/json.h checks one key or value at a time. */
#ifndef VKT_MEMBERS_H
#define VKT_MEMBERS_H

#include "io/json.h"

typedef struct vkt_member {
    char *key, *value; /* parts of the object's text, still JSON: the key has its quotes */
    size_t key_bytes, value_bytes;
} vkt_member;

typedef struct vkt_members {
    char *text; /* the caller's; starts with '{' */
    size_t at, n;
    bool first;
    const char *why; /* after a failure: what is wrong at byte `at` */
} vkt_members;

vkt_members vkt_members_of(char *text, size_t n);
/* Reads the next member to *m. *more is false if the object has no further member; then only white space may follow the
 * object. Returns false if the text is malformed. */
bool vkt_members_next(vkt_members *w, vkt_member *m, bool *more);
/* Checks a value of the object (vkt_json_check). Returns false if it is malformed. */
bool vkt_members_check(vkt_members *w, const char *text, size_t n);
/* Replaces a text in quotes, a key or a value of the object, by what it means and a NUL (vkt_json_decode). Returns NULL
 * if it is malformed. */
const char *vkt_members_text(vkt_members *w, char *text, size_t n);

#endif
