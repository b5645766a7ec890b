/* data/csv.h - reads CSV (RFC 4180), and similar formats with another separator.
 *
 * Records end with CRLF or LF; the last record may also end where the text ends. The separator is between fields. A
 * field in double quotes may contain separators, line ends, and quotes; such a quote is written twice. A blank in front
 * of the opening quote or behind the closing quote is an error. All other blanks are part of a field. Bytes above 127
 * stay as they are. Beyond RFC 4180, the reader skips a byte order mark of UTF-8, and lines without any character.
 * These are errors, reported with their line: a quote that is never closed, text behind a closing quote, a quote in a
 * field that does not begin with a quote, a CR without LF outside quotes, a byte 0, a record with more or fewer fields
 * than the first record.
 *
 *     vkt_csv c;
 *     VKT_TRY(vkt_csv_open(h, path, NULL, &c));
 *     bool more;
 *     vkt_result r;
 *     while ((r = vkt_csv_next(&c, &more)) == VKT_OK && more) ... c.fields[0] .. c.fields[c.n_fields - 1] ...
 *     vkt_csv_close(&c);
 *
 * The caller decides whether the first record is a header (vkt_csv_find). Threads: any; one call at a time per reader.
 */
#ifndef VKT_CSV_H
#define VKT_CSV_H

#include "base/base.h"

/* The largest number of bytes of a file, after unpacking. A limit is necessary because whole files are read. */
#define VKT_CSV_MAX_BYTES (UINT64_C(16) << 30)
/* The largest number of fields of a record. A limit is necessary because even a field of one byte needs a pointer of
 * eight bytes. */
#define VKT_CSV_MAX_FIELDS (1u << 20)

typedef struct vkt_csv_format {
    char separator; /* 0: ',' */
    bool no_quotes; /* quotes are normal characters, so no field can contain a separator or a line end */
} vkt_csv_format;

typedef struct vkt_csv {
    size_t n_fields; /* number of fields in each record; 0 before the first one */
    char **fields;   /* fields of the newest record. The texts are valid until vkt_csv_close, and may be changed */
    size_t line;     /* line in which the newest record begins, from 1 */
    /* private */
    const vkt_host *h; /* not owned */
    char *name;        /* for messages; owned, like `text` and `fields` */
    char *text, *at, *end;
    size_t next_line, cap;
    char separator, quote; /* quote 0: quotes are normal characters */
} vkt_csv;

/* Opens a reader, and reads the whole file, plain or gzip. `format` may be NULL. VKT_E_ARG: the separator is a line
 * end, or a quote (unless no_quotes is set). Other errors are those of vkt_gz_read_file. On failure there is nothing to
 * close. `h` must be resolved. */
vkt_result vkt_csv_open(const vkt_host *h, const char *path, const vkt_csv_format *format, vkt_csv *c);
/* Copies the n bytes of `text`, and opens a reader of the copy. Messages call the text `name`. VKT_E_ARG: the separator
 * is a line end, or a quote (unless no_quotes is set). VKT_E_NOMEM. */
vkt_result vkt_csv_open_memory(const vkt_host *h, const char *name, const char *text, size_t n,
                               const vkt_csv_format *format, vkt_csv *c);
/* Reads the next record. *more is false if there is none. VKT_E_FORMAT (the message has file and line), VKT_E_NOMEM.
 * After an error the reader can only be closed. */
vkt_result vkt_csv_next(vkt_csv *c, bool *more);
/* Returns the index of the field with the text `name` in the newest record; SIZE_MAX if there is none. The case of
 * ASCII letters does not matter. */
size_t vkt_csv_find(const vkt_csv *c, const char *name);
/* Logs "<name>, line <line>: ..." for the newest record and returns VKT_E_FORMAT. It is for errors that the caller
 * finds. */
vkt_result vkt_csv_fail(const vkt_csv *c, const char *fmt, ...) VKT_PRINTF(2, 3);
/* Closes the reader. *c may be zeroed, or closed already. */
void vkt_csv_close(vkt_csv *c);

#endif
