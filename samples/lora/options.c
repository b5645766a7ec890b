/* lora/options.c - see options.h. */
#include "lora/options.h"

#include <stdlib.h>
#include <string.h>

#include "common/options.h"

enum {
    OPT_MODEL = 512,
    OPT_TEMPLATE,
    OPT_CONTEXT,
    OPT_ASSISTANT_ONLY,
    OPT_VALIDATION,
    OPT_VALIDATION_EXAMPLES,
    OPT_ADAPTER,
    OPT_RANK,
    OPT_ALPHA,
    OPT_TARGETS,
    OPT_DROPOUT,
    OPT_SAVE_ADAPTER,
    OPT_SAVE_GGUF,
    OPT_MERGE,
    OPT_MERGE_TYPE,
    OPT_PERPLEXITY,
    OPT_CHAT,
    OPT_PROMPT,
    OPT_SYSTEM,
    OPT_ANSWER,
    OPT_TEMPERATURE,
    OPT_TOP_K,
    OPT_TOP_P
};

static const struct argp_option table[] = {
    { 0, 0, 0, 0, "Model and data", 5 },
    { "model", OPT_MODEL, "FILE.gguf", 0, "the model: llama, qwen2 or qwen3 (smollm2/SmolLM2-135M-Instruct.Q4_1.gguf)",
      5 },
    { "context", OPT_CONTEXT, "T", 0,
      "tokens of a row; longer examples lose their end (512, or the model's if it is shorter)", 5 },
    { "template", OPT_TEMPLATE, "NAME", 0,
      "form of chats: chatml, smollm2, qwen2, qwen2.5, qwen3, llama3 (the one that the model's file has)", 5 },
    { "assistant-only", OPT_ASSISTANT_ONLY, 0, 0, "only answers and completions count in the loss", 5 },
    { "validation", OPT_VALIDATION, "FILE", 0, "a file to validate on, in a form of --data", 5 },
    { "validation-examples", OPT_VALIDATION_EXAMPLES, "N", 0,
      "if there is no --validation, validate on the last N examples of --data (a tenth, at most 100); 0: do not "
      "validate",
      5 },
    { 0, 0, 0, 0, "Adapters", 6 },
    { "rank", OPT_RANK, "R", 0, "rank of the adapters (8)", 6 },
    { "alpha", OPT_ALPHA, "X", 0, "the factor of the adapters is X / R (16)", 6 },
    { "targets", OPT_TARGETS, "LIST", 0,
      "layers with an adapter (q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj)", 6 },
    { "lora-dropout", OPT_DROPOUT, "P", 0, "dropout of the adapters' input in training (0)", 6 },
    { "adapter", OPT_ADAPTER, "PATH", 0,
      "begin with this adapter: a folder of PEFT, or a GGUF file of llama.cpp; rank, alpha and targets are its own",
      6 },
    { "save-adapter", OPT_SAVE_ADAPTER, "FOLDER", 0, "write the adapter for PEFT", 6 },
    { "save-gguf", OPT_SAVE_GGUF, "FILE.gguf", 0, "write the adapter for llama.cpp", 6 },
    { "merge", OPT_MERGE, "FILE.gguf", 0, "write the model with the adapter merged", 6 },
    { "merge-type", OPT_MERGE_TYPE, "TYPE", 0, "of merged matrices: f16 (default), f32 or q8_0", 6 },
    { 0, 0, 0, 0, "Use of the model. Without --data, these and files of --adapter or --load need no training", 7 },
    { "perplexity", OPT_PERPLEXITY, "FILE", 0, "print the perplexity of a text, in windows of --context tokens", 7 },
    { "chat", OPT_CHAT, 0, 0, "talk to the model; an empty line or the end of the input ends the chat", 7 },
    { "system", OPT_SYSTEM, "TEXT", 0, "the system's message of --chat", 7 },
    { "prompt", OPT_PROMPT, "TEXT", 0,
      "question of the sample answer (the last one of the data); without --data, print only the answer", 7 },
    { "answer", OPT_ANSWER, "N", 0, "most tokens of an answer (200); 0: no sample answer", 7 },
    { "temperature", OPT_TEMPERATURE, "X", 0, "0: always the likeliest token (0)", 7 },
    { "top-k", OPT_TOP_K, "K", 0, "only the K likeliest tokens; 0: all (0)", 7 },
    { "top-p", OPT_TOP_P, "P", 0, "only the likeliest tokens whose probabilities add up to P (1)", 7 },
    { 0 }
};

static const char *const all_targets[] = {
    "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"
};

lora_options lora_defaults(void)
{
    lora_options o = { .lora = { .rank = 8, .alpha = 16 },
                       .validation_examples = UINT32_MAX,
                       .merge_type = VKT_GGUF_F16,
                       .answer = 200,
                       .top_p = 1 };
    o.lora.n_targets = sizeof all_targets / sizeof *all_targets;
    memcpy(o.targets, all_targets, sizeof all_targets);
    return o;
}

/* Sets o->targets, the names of the layers with adapters, from a list with commas, for instance "q_proj,v_proj". The
 * names point into `text`: each comma in it becomes the end of a string. */
static void read_targets(struct argp_state *state, lora_options *o, char *text)
{
    o->lora.n_targets = 0;
    for (char *at = text; at; text = at) {
        at = strchr(text, ',');
        if (at) *at++ = '\0';
        if (!*text || o->lora.n_targets == MOST_TARGETS)
            argp_error(state, "--targets: want 1 to %d names of layers with commas", MOST_TARGETS);
        else
            o->targets[o->lora.n_targets++] = text;
        if (!*text) return;
    }
}

static vkt_gguf_type merge_type(struct argp_state *state, const char *text)
{
    if (strcmp(text, "f16") == 0) return VKT_GGUF_F16;
    if (strcmp(text, "f32") == 0) return VKT_GGUF_F32;
    if (strcmp(text, "q8_0") != 0) argp_error(state, "--merge-type: want f16, f32 or q8_0, got '%s'", text);
    return VKT_GGUF_Q8_0;
}

static vkt_chat_template template_of(struct argp_state *state, const char *text)
{
    const vkt_chat_template form = vkt_chat_template_of(text);
    if (!form) argp_error(state, "--template: want chatml, smollm2, qwen2, qwen2.5, qwen3 or llama3, got '%s'", text);
    return form;
}

static uint32_t whole(struct argp_state *state, const char *option, const char *text, uint32_t least)
{
    return (uint32_t)option_integer(state, option, text, least, 1u << 20);
}

static error_t on_use(int key, char *text, struct argp_state *state)
{
    lora_options *o = state->input;
    switch (key) {
    case OPT_PERPLEXITY: o->perplexity = text; break;
    case OPT_CHAT: o->chat = true; break;
    case OPT_SYSTEM: o->system = text; break;
    case OPT_PROMPT: o->prompt = text; break;
    case OPT_ANSWER: o->answer = whole(state, "answer", text, 0); break;
    case OPT_TEMPERATURE: o->temperature = option_number(state, "temperature", text, 0, 100); break;
    case OPT_TOP_K: o->top_k = whole(state, "top-k", text, 0); break;
    case OPT_TOP_P: o->top_p = option_number(state, "top-p", text, 1e-6, 1); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

bool lora_only_uses(const lora_options *o)
{
    const bool converts = (o->adapter || o->train->load) && (o->merge || o->save_gguf || o->save_adapter);
    return !o->train->data && (o->perplexity || o->chat || o->prompt || converts);
}

/* Refuses options that contradict each other. If the run only uses the model, also refuses --devices, --mpi and the
 * options in `trains`, because they are for training. */
static void check_options(struct argp_state *state, const lora_options *o)
{
    const train_options *t = o->train;
    const struct {
        const char *name, *value;
    } trains[] = { { "run", t->run },         { "resume", t->resume },
                   { "save", t->save },       { "checkpoint", t->checkpoint },
                   { "history", t->history }, { "plot", t->plot },
                   { "profile", t->profile }, { "find-lr", t->find_lr } };
    if (o->adapter && o->has_shape)
        argp_error(state, "--adapter: rank, alpha and targets are those of %s: leave out the options", o->adapter);
    if (o->validation && o->validation_examples != UINT32_MAX)
        argp_error(state, "--validation and --validation-examples: want one of them");
    if (o->adapter && t->load)
        argp_error(state, "--adapter, --load: both have the weights of the adapter: want one of them");
    if (!lora_only_uses(o)) return;
    if (t->mpi || (t->devices && strchr(t->devices, ',')))
        argp_error(state, "--devices, --mpi: are for training: want --data");
    for (size_t i = 0; i < sizeof trains / sizeof *trains; i++)
        if (trains[i].value)
            argp_error(state, "--%s: is for training: want --data, or leave out --%s", trains[i].name, trains[i].name);
}

static error_t on_option(int key, char *text, struct argp_state *state)
{
    lora_options *o = state->input;
    switch (key) {
    case OPT_MODEL: o->model = text; break;
    case OPT_TEMPLATE: o->form = template_of(state, text); break;
    case OPT_CONTEXT: o->context = whole(state, "context", text, 2); break;
    case OPT_ASSISTANT_ONLY: o->assistant_only = true; break;
    case OPT_VALIDATION: o->validation = text; break;
    case OPT_VALIDATION_EXAMPLES: o->validation_examples = whole(state, "validation-examples", text, 0); break;
    case OPT_ADAPTER: o->adapter = text; break;
    case OPT_RANK:
        o->lora.rank = (uint32_t)option_integer(state, "rank", text, 1, 4096);
        o->has_shape = true;
        break;
    case OPT_ALPHA:
        o->lora.alpha = (float)option_number(state, "alpha", text, 1e-3, 1e6);
        o->has_shape = true;
        break;
    case OPT_TARGETS:
        read_targets(state, o, text);
        o->has_shape = true;
        break;
    case OPT_DROPOUT: o->lora.dropout = (float)option_number(state, "lora-dropout", text, 0, 0.99); break;
    case OPT_SAVE_ADAPTER: o->save_adapter = text; break;
    case OPT_SAVE_GGUF: o->save_gguf = text; break;
    case OPT_MERGE: o->merge = text; break;
    case OPT_MERGE_TYPE: o->merge_type = merge_type(state, text); break;
    case ARGP_KEY_END: check_options(state, o); break;
    default: return on_use(key, text, state);
    }
    return 0;
}

const struct argp lora_parser = { .options = table, .parser = on_option };
