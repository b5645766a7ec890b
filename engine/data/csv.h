/* data/csv.h - reader of CSV (RFC 4180) and of its relatives with another separator.
 *
 * Records end with CRLF or LF, the last one also with the end of the text; fields are parted by the separator. A field
 * in double quotes may hold separators, line ends and, doubled, quotes; its quotes are its first and last character.
 * Beyond RFC 4180: a byte order mark of UTF-8 is skipped, and so is a line without any character. Blanks count; bytes
 * above 127 are passed on as they are. Malformed, each told with its line: a quote that is never closed, text behind a
 * closing quote, a quote in a field that began without one, a CR without its LF, a byte 0, a record with more or fewer
 * fields than the first one.
 *
 *     vkt_csv c;
 *     VKT_TRY(vkt_csv_open(h, path, NULL, &c));
 *     bool more;
 *     vkt_result r;
 *     while ((r = vkt_csv_next(&c, &more)) == VKT_OK && more) ... c.fields[0] .. c.fields[c.n_fields - 1] ...
 *     vkt_csv_close(&c);
 *
 * Whether the first record is a header is the caller's to tell (vkt_csv_find). Threads: different readers, any thread.
 */
#ifndef VKT_CSV_H
#define VKT_CSV_H

#include "base/base.h"

/* No file is larger: whole files are read. */
#define VKT_CSV_MAX_BYTES (UINT64_C(16) << 30)
/* No record has more fields: a field may take one byte of the file, and eight of memory. */
#define VKT_CSV_MAX_FIELDS (1u << 20)

typedef struct vkt_csv_format {
    char separator; /* 0: ',' */
    bool no_quotes; /* quotes are characters like any other, so that no field can hold a separator or a line end */
} vkt_csv_format;

typedef struct vkt_csv {
    size_t n_fields; /* of every record; 0 before the first one */
    char **fields;   /* of the record read last. The texts live, and may be changed, until vkt_csv_close */
    size_t line;     /* in which that record begins, from 1 */
    /* inside */
    const vkt_host *h; /* lent */
    char *name;        /* for messages; owned, like `text` and `fields` */
    char *text, *at, *end;
    size_t next_line, cap;
    char separator, quote; /* quote 0: none */
} vkt_csv;

/* Reads a whole file, plain or gzip; `format` may be NULL. As vkt_file_read. On failure *c is closed. `h` is resolved.
 */
vkt_result vkt_csv_open(const vkt_host *h, const char *path, const vkt_csv_format *format, vkt_csv *c);
/* A copy of `n` bytes of text; messages call it `name`. VKT_E_NOMEM. */
vkt_result vkt_csv_open_memory(const vkt_host *h, const char *name, const char *text, size_t n,
                               const vkt_csv_format *format, vkt_csv *c);
/* The next record; *more = false behind the last one. VKT_E_FORMAT (the message names file and line) or
 * VKT_E_NOMEM: then the reader can only be closed. */
vkt_result vkt_csv_next(vkt_csv *c, bool *more);
/* Which field of the record read last is `name`, whatever the case of its ASCII letters; SIZE_MAX: none. */
size_t vkt_csv_find(const vkt_csv *c, const char *name);
/* Logs "<name>, line <line>: ..." of the record read last and returns VKT_E_FORMAT, for what the reader cannot know. */
vkt_result vkt_csv_fail(const vkt_csv *c, const char *fmt, ...) VKT_PRINTF(2, 3);
/* Safe on a zeroed and on a closed one. */
void vkt_csv_close(vkt_csv *c);

#endif
