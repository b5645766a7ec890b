/* data/temp.c - see temp.h. */
#include "data/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <zlib.h>

#include "support/host.h"

const char *temp_write(const vkt_temp_dir *t, const char *name, const void *bytes, size_t n, bool gzip)
{
    const char *path = vkt_temp_dir_file(t, name);
    const gzFile f = gzopen(path, gzip ? "wb" : "wbT");
    assert_non_null(f);
    assert_int_equal(n ? gzwrite(f, bytes, (unsigned)n) : 0, n);
    assert_int_equal(gzclose(f), Z_OK);
    return path;
}

int temp_setup(void **state)
{
    static vkt_temp_dir t;
    t = vkt_temp_dir_make();
    *state = &t;
    return vkt_test_setup(state);
}

int temp_teardown(void **state)
{
    vkt_temp_dir_remove(*state);
    return vkt_test_teardown(state);
}
