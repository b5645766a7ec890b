/* io/json.h - checks and decodes JSON (RFC 8259) where it is, without memory of its own. io/members.h finds the members
 * of an object. */
#ifndef VKT_JSON_H
#define VKT_JSON_H

#include "base/base.h"

/* Values may be nested to this depth. */
#define VKT_JSON_DEPTH 64

/* An error in a text: what is wrong, and at which byte. */
typedef struct vkt_json_error {
    const char *why; /* a static string */
    size_t at;
} vkt_json_error;

/* Checks that text[0 .. n) is one value: its grammar, UTF-8, and that each integer fits int64_t. Names of members may
 * repeat. Returns false, and fills in *e, if the text is not such a value. */
bool vkt_json_check(const char *text, size_t n, vkt_json_error *e);
/* Replaces a text in quotes, text[0 .. n), by what it means and a NUL. The result is never longer than the text.
 * Returns false, and fills in *e, if the text is malformed; the bytes are undefined then. The text must not contain a
 * NUL. */
bool vkt_json_decode(char *text, size_t n, vkt_json_error *e);
/* Reads the list text[0 .. n), which vkt_json_check has accepted: writes its first `most` items to `items`, and the
 * number of all to *count. Returns false if the value is no list. An item that is no integer >= 0 becomes UINT64_MAX.
 */
bool vkt_json_integers(const char *text, size_t n, uint64_t *items, size_t most, size_t *count);
/* Appends `s` in quotes. Returns false, and appends nothing, if `s` is not UTF-8. */
bool vkt_json_add(vkt_text *t, const char *s);

#endif
