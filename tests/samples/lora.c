#include "samples/lora.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

void lora_write_text(const rig *r, const char *name, const char *text)
{
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, name), text, strlen(text)), VKT_OK);
}

void lora_write_data(const rig *r)
{
    char text[8192];
    size_t at = 0;
    for (int i = 0; i < 40; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "{\"question\": \"what is %d?\", \"answer\": \"it is %d\"}\n", i, i % 10);
    lora_write_text(r, "data.jsonl", text);
}

void lora_write_shorter_model(const rig *r, const char *name, size_t cut)
{
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(&r->h, LORA_MODEL, 1 << 20, &bytes, &n), VKT_OK);
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, name), bytes, n - cut), VKT_OK);
    vkt_free(&r->h, bytes);
}
