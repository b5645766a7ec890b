/* Reads vocabulary files. If the reader accepts a file, the words of the vocabulary are written again. Their bytes must
 * be the last bytes of the file, unless the file is compressed. */
#include "fuzz/fuzz.h"
#include "vktrain/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vkt_vocab *v;
    const vkt_result r = vkt_vocab_load(fuzz_host(), fuzz_file(data, size), &v);
    fuzz_status(r, v != NULL);
    if (v) {
        char *text = NULL;
        if (vkt_vocab_to_text(v, &text) == VKT_OK) {
            const char *words = strchr(strchr(text, '\n') + 1, '\n');
            const size_t n = strlen(words);
            fuzz_require(data[0] == 0x1f || (n <= size && memcmp(data + size - n, words, n) == 0), "other words");
        }
        vkt_text_release(&text);
        for (uint32_t id = 0; id < vkt_vocab_size(v) && id < 1000; id++) {
            const char *word = vkt_vocab_word(v, id, NULL);
            fuzz_require(!word || vkt_vocab_id(v, word) == id, "a word with another id");
        }
        uint32_t ids[8], n;
        fuzz_require(vkt_vocab_encode(v, "a b c", ids, 8, &n) == VKT_OK && n <= 5, "a text that is not encoded");
    }
    vkt_vocab_destroy(&v);
    fuzz_end();
    return 0;
}
