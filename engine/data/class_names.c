/* data/class_names.c - see class_names.h. */
#include "data/class_names.h"

#include "data/gz.h"

#define MAX_BYTES (UINT64_C(1) << 28)

/* Adds the name between `at` and `end`; `end` is at the line feed or at the end of the text. A carriage return just
 * before `end` does not belong to the name. An empty line adds nothing. */
static vkt_result add_line(const char *path, const char *at, const char *end, vkt_words *names)
{
    const size_t before = names->n, bytes = (size_t)(end - at) - (end > at && end[-1] == '\r');
    uint32_t number;
    if (bytes == 0) return VKT_OK;
    if (memchr(at, 0, bytes)) return vkt_fail(names->h, VKT_E_FORMAT, "\"%s\" is no text: it has a byte 0", path);
    VKT_TRY(vkt_words_add(names, at, bytes, 1, &number));
    if (names->n > before) return VKT_OK;
    return vkt_fail(names->h, VKT_E_FORMAT, "\"%s\": class \"%.*s\" is listed twice", path, (int)VKT_MIN(bytes, 100),
                    at);
}

vkt_result vkt_class_names_read(const char *path, vkt_words *names)
{
    void *text;
    size_t n;
    VKT_TRY(vkt_gz_read_file(names->h, path, MAX_BYTES, &text, &n));
    vkt_result r = VKT_OK;
    const size_t mark = n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; /* a byte order mark */
    for (const char *at = (const char *)text + mark, *end = (const char *)text + n; at < end && r == VKT_OK;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end) line_end = end;
        r = add_line(path, at, line_end, names);
        at = line_end + 1;
    }
    vkt_free(names->h, text);
    return r;
}
