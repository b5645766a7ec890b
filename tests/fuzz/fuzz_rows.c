/* Reads the input as a file of training data of vkt-lora: JSON lines or plain text. This file defines complain(), so
 * that the reader prints no messages. */
#include "common/message.h"
#include "fuzz/fuzz.h"
#include "lora/rows.h"

enum { T = 16 };

void complain(const char *format, ...)
{
    (void)format;
}

/* Makes the tokenizer of a tiny model once. */
static const vkt_tokenizer *tokenizer(void)
{
    static vkt_tokenizer *t;
    vkt_gguf *g;
    if (t) return t;
    fuzz_require(vkt_gguf_open(NULL, VKT_TEST_DIR "/golden/lm/llama.gguf", &g) == VKT_OK, "no model");
    fuzz_require(vkt_tokenizer_from_gguf(NULL, g, &t) == VKT_OK, "no tokenizer");
    vkt_gguf_destroy(&g);
    return t;
}

/* Checks that all ids are tokens, and that the counts in `r` match its rows. */
static void check(const rows *r, uint32_t words)
{
    uint64_t counted = 0;
    uint32_t before = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const uint32_t *ids = r->ids + (size_t)i * 2 * T;
        uint32_t in_row = 0;
        for (uint32_t t = 0; t < T; t++) {
            fuzz_require(ids[t] < words, "an id that is no token");
            fuzz_require(ids[T + t] < words || ids[T + t] == IGNORED, "a label that is no token");
            in_row += ids[T + t] != IGNORED;
        }
        fuzz_require(in_row > 0, "a row in which nothing counts");
        fuzz_require(r->examples[i] >= before && r->examples[i] > 0 && r->examples[i] <= r->n_examples,
                     "a row of no example");
        before = r->examples[i];
        counted += in_row;
    }
    fuzz_require(counted == r->counted && r->tokens <= (uint64_t)T * r->n, "wrong counts");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    for (int only = 0; only < 2; only++) {
        const rows_params p = {
            .tokenizer = tokenizer(), .form = VKT_CHAT_CHATML, .context = T, .assistant_only = only
        };
        rows r;
        const bool ok = rows_read(path, &p, &r);
        fuzz_require(!ok || r.n > 0, "no rows");
        fuzz_require(!ok || !(r.chats + r.texts) || r.n + r.left_out == r.n_examples, "a lost example");
        check(&r, vkt_tokenizer_size(p.tokenizer));
        rows_free(&r);
    }
    fuzz_end();
    return 0;
}
