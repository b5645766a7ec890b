/* tokenizer_ids VOCABULARY - encodes texts, for tests/golden/compare_tokenizers.py. stdin: for each text the number of
 * its bytes (u32, little-endian), and the bytes. stdout: for each text the number of its ids, and the ids (u32). */
#include <stdio.h>
#include <stdlib.h>

#include "data/tokenizer_file.h"

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    test_vocabulary *v = test_vocabulary_read(argv[1]);
    vkt_tokenizer *t;
    if (vkt_tokenizer_create(NULL, &v->params, &t) != VKT_OK) return 1;
    char *text = NULL;
    vkt_tokens list = { 0 };
    int ok = 1;
    for (uint32_t n; ok && fread(&n, sizeof n, 1, stdin) == 1;) {
        char *grown = realloc(text, n + 1);
        ok = grown && fread(grown, 1, n, stdin) == n;
        text = grown ? grown : text;
        list.n = 0;
        ok = ok && vkt_tokenizer_encode(t, text, n, VKT_TOKENS_SPECIAL, &list) == VKT_OK;
        const uint32_t count = (uint32_t)list.n;
        ok = ok && fwrite(&count, sizeof count, 1, stdout) == 1 &&
             fwrite(list.ids, sizeof *list.ids, list.n, stdout) == list.n;
    }
    free(text);
    vkt_tokens_release(&list);
    vkt_tokenizer_destroy(&t);
    test_vocabulary_free(v);
    return ok && fflush(stdout) == 0 ? 0 : 1;
}
