/* data/nfc.h - Unicode's normalization form C (Unicode Standard Annex 15). */
#ifndef VKT_NFC_H
#define VKT_NFC_H

#include "base/base.h"

/* A text of n bytes. `marks` is NULL, or has one mark for each byte: a set of bits that the caller chooses. */
typedef struct vkt_marked {
    char *text;
    uint8_t *marks;
    size_t n;
} vkt_marked;

/* Returns true if a text has no byte from 0xcc on, and so no character from U+0300 on. Such a text is in form C. If the
 * result is false, the text may still be in form C. */
bool vkt_is_nfc(const char *text, size_t n);
/* Normalizes a text. A new character gets the marks of the characters from which it comes, combined with |. If `marks`
 * is NULL, out->marks is NULL, too. Bytes that are not UTF-8 stay. The caller frees out->text and out->marks.
 * VKT_E_NOMEM. */
vkt_result vkt_nfc(const vkt_host *h, const char *text, const uint8_t *marks, size_t n, vkt_marked *out);

#endif
