/* Reads the input as lines label<TAB>text, and makes a vocabulary and sequences from the texts. The vocabulary must be
 * the same after a conversion to text and back. Also reads the input as class names. */
#include "fuzz/fuzz.h"
#include "vktrain/text.h"

static void make_sequences(const vkt_texts *t, const vkt_vocab *v, const vkt_sequence_params *p)
{
    vkt_dataset *d;
    const vkt_result r = vkt_dataset_from_texts(t, v, p, &d);
    fuzz_status(r, d != NULL);
    vkt_dataset_destroy(&d);
}

static void round_trip(const vkt_vocab *v)
{
    char *text = NULL, *again = NULL;
    vkt_vocab *w = NULL;
    vkt_result r = vkt_vocab_to_text(v, &text);
    if (r == VKT_OK) r = vkt_vocab_from_text(fuzz_host(), "text", text, &w);
    if (r == VKT_OK) r = vkt_vocab_to_text(w, &again);
    fuzz_require(r == VKT_E_NOMEM || (r == VKT_OK && strcmp(text, again) == 0), "a vocabulary that does not come back");
    vkt_text_release(&text);
    vkt_text_release(&again);
    vkt_vocab_destroy(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    vkt_texts *t, *again;
    vkt_result r = vkt_texts_from_tsv(fuzz_host(), path, NULL, &t);
    fuzz_status(r, t != NULL);
    if (t) {
        const vkt_vocab_params params[] = { { .num_words = 0 }, { .num_words = 9, .keep_case = true, .filters = "," } };
        for (size_t i = 0; i < VKT_COUNT(params); i++) {
            vkt_vocab *v;
            r = vkt_vocab_create(fuzz_host(), &params[i], vkt_texts_all(t), vkt_texts_rows(t), &v);
            fuzz_status(r, v != NULL);
            if (!v) continue;
            round_trip(v);
            make_sequences(t, v, NULL);
            make_sequences(t, v, &(vkt_sequence_params){ .maxlen = 5, .no_start = true, .value = 1u << 20 });
            vkt_vocab_destroy(&v);
        }
    }
    vkt_texts_destroy(&t);
    r = vkt_texts_from_tsv(fuzz_host(), path, &(vkt_tsv_params){ .classes_path = path }, &again);
    fuzz_status(r, again != NULL);
    vkt_texts_destroy(&again);
    fuzz_end();
    return 0;
}
