/* data/nfc.h - Unicode's normalization form C (Unicode Standard Annex 15). */
#ifndef VKT_NFC_H
#define VKT_NFC_H

#include "base/base.h"

/* A text of n bytes, and for each byte a mark, or NULL. */
typedef struct vkt_marked {
    char *text;
    uint8_t *marks;
    size_t n;
} vkt_marked;

/* Returns whether a text is surely in this form: it has no character from U+0300 on. */
bool vkt_is_nfc(const char *text, size_t n);
/* Normalizes a text. A new character gets the marks of the characters from which it comes, combined with |. `marks` may
 * be NULL; then out->marks is NULL. Bytes that are not UTF-8 stay. The caller frees out->text and out->marks.
 * VKT_E_NOMEM. */
vkt_result vkt_nfc(const vkt_host *h, const char *text, const uint8_t *marks, size_t n, vkt_marked *out);

#endif
