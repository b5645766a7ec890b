/* fuzz/replay.c - runs a fuzz target without libFuzzer:  replay FOLDER...
 *
 * The inputs are the files of the folders as they are, truncated, and damaged. The damage is random, with a fixed seed.
 * Files whose names begin with "." are left out. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/philox.h"
#include "fuzz/fuzz.h"

enum { MAX_FILE = 1 << 20, TRUNCATIONS = 200, DAMAGES = 400 };

static unsigned inputs;

/* Runs the target on a copy of the input. The copy's block of memory has exactly the input's size, so a sanitizer
 * reports a read just behind the input. (For an empty input, the block has 1 byte.) */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    fuzz_require(copy != NULL, "no memory");
    if (size) memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    inputs++;
}

/* Makes one to four changes, or fewer if no bytes are left. Each change flips a bit, or sets, removes or repeats some
 * bytes. Returns the new size, at most size + 256. */
static size_t damage(uint8_t *data, size_t size, vkt_rng *r)
{
    for (uint32_t n = vkt_rng_range(r, 1, 4); n > 0 && size > 0; n--) {
        const size_t at = vkt_rng_range(r, 0, (uint32_t)size - 1);
        const size_t most = VKT_MIN(size - at, 64), bytes = vkt_rng_range(r, 1, (uint32_t)most);
        switch (vkt_rng_range(r, 0, 4)) {
        case 0: data[at] ^= (uint8_t)(1u << vkt_rng_range(r, 0, 7)); break;
        case 1: data[at] = (uint8_t)vkt_rng_range(r, 0, 255); break;
        case 2: memset(data + at, vkt_rng_range(r, 0, 1) ? 0xff : '9', bytes); break;
        case 3:
            memmove(data + at, data + at + bytes, size - at - bytes);
            size -= bytes;
            break;
        case 4:
            memmove(data + at + bytes, data + at, size - at);
            size += bytes;
            break;
        }
    }
    return size;
}

static void run_file(const char *path)
{
    static uint8_t data[MAX_FILE], damaged[2 * MAX_FILE];
    FILE *f = fopen(path, "rb");
    fuzz_require(f != NULL, path);
    const size_t size = fread(data, 1, sizeof data, f);
    fuzz_require(feof(f) || size < sizeof data, "a file of the corpus is too large");
    fclose(f);
    run(data, size);
    for (size_t i = 0; i < TRUNCATIONS && i < size; i++) run(data, size <= TRUNCATIONS ? i : size * i / TRUNCATIONS);
    vkt_rng r = vkt_rng_make(1, VKT_STREAM_TEST, 0, 0);
    for (int i = 0; i < DAMAGES; i++) {
        memcpy(damaged, data, size);
        run(damaged, damage(damaged, size, &r));
    }
}

int main(int argc, char **argv)
{
    unsigned files = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **list;
        const int n = scandir(argv[i], &list, NULL, alphasort);
        fuzz_require(n >= 0, argv[i]);
        for (int k = 0; k < n; k++) {
            char path[1024];
            snprintf(path, sizeof path, "%s/%s", argv[i], list[k]->d_name);
            if (list[k]->d_name[0] != '.') {
                run_file(path);
                files++;
            }
            free(list[k]);
        }
        free(list);
    }
    fuzz_require(files > 0, "want folders with files");
    printf("%u inputs made of %u files\n", inputs, files);
    return 0;
}
