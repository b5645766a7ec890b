/* samples/lora.h - the options, files and data of the tests of vkt-lora. The tests' model is tiny and random. */
#ifndef VKT_TEST_LORA_H
#define VKT_TEST_LORA_H

#include "samples/program.h"

#define LORA_MODEL VKT_TEST_DIR "/golden/lm/llama.gguf"
#define LORA_TINY "--model", LORA_MODEL, "--template", "chatml", "--context", "48"
#define LORA_TRAIN LORA_TINY, "--data", "data.jsonl", "--lr", "0.02", "--answer", "0"

/* Writes a file in the rig's folder (rig.dir). */
void lora_write_text(const rig *r, const char *name, const char *text);
/* Writes data.jsonl: 40 questions with answers. */
void lora_write_data(const rig *r);
/* Copies the model without its last `cut` bytes. */
void lora_write_shorter_model(const rig *r, const char *name, size_t cut);

#endif
