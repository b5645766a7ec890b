/* lora/options.h - the options of vkt-lora, in addition to the common ones. */
#ifndef LORA_OPTIONS_H
#define LORA_OPTIONS_H

#include <argp.h>

#include "common/options.h"
#include "vktrain/nn.h"
#include "vktrain/gguf.h"
#include "vktrain/tokenizer.h"

enum { MOST_TARGETS = 64 };

typedef struct lora_options {
    const char *model, *adapter; /* NULL: not given */
    vkt_lora_params lora;        /* rank, alpha, dropout; n_targets: number of `targets` below */
    const char *targets[MOST_TARGETS];
    bool has_shape;         /* --rank, --alpha or --targets is given */
    uint32_t context;       /* 0: not given */
    vkt_chat_template form; /* 0: the form of the template in the model's file */
    bool assistant_only;
    const char *validation;       /* a file; NULL: not given */
    uint32_t validation_examples; /* UINT32_MAX: not given */
    const char *save_adapter, *save_gguf, *merge;
    vkt_gguf_type merge_type;
    const char *perplexity;
    bool chat;
    const char *prompt; /* a text that the model answers (--prompt); NULL: not given */
    const char *system; /* the system message of a chat; NULL: not given */
    uint32_t answer;    /* largest number of tokens of an answer; 0: no answers */
    double temperature, top_p;
    uint32_t top_k;
    const train_options *train; /* the common options; the program sets this member before it parses the options */
} lora_options;

lora_options lora_defaults(void);
/* Returns whether the run only uses the model, and does not train. */
bool lora_only_uses(const lora_options *o);
/* The parser of the options, for train_cli.more. Its input is a lora_options. */
extern const struct argp lora_parser;

#endif
