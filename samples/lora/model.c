/* lora/model.c - see model.h. */
#include "lora/model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/find_data.h"
#include "common/message.h"
#include "common/terminal.h"

#define TRY(call)                          \
    do {                                   \
        const vkt_result try_r = (call);   \
        if (try_r != VKT_OK) return try_r; \
    } while (0)

static const char default_model[] = "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
enum { LONGEST_CONTEXT = 512 };

/* ---- files ---- */

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

const char *find_file(const char *path, char room[1024])
{
    if (strcmp(path, "-") == 0 || is_there(path) || *path == '/') return path;
    const char *found = find_data(path, is_there, room);
    return found ? found : path;
}

static vkt_result read_form(model *m)
{
    const vkt_gguf_meta *jinja = vkt_gguf_find_meta(m->gguf, "tokenizer.chat_template");
    const vkt_gguf_string *text = jinja && !jinja->is_array && jinja->kind == VKT_GGUF_KIND_TEXT ? jinja->values : NULL;
    if (!m->form && text) m->form = vkt_chat_template_guess(text->text);
    return VKT_OK;
}

/* Returns whether --adapter names a folder. A folder is an adapter of PEFT, a file is an adapter in a GGUF file. */
static bool is_folder(const char *path)
{
    struct stat is;
    return stat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

static vkt_result read_adapter(const session *s, const lora_options *o, model *m)
{
    m->lora = o->lora;
    m->lora.targets = o->targets;
    if (!o->adapter) return VKT_OK;
    if (!is_there(o->adapter)) {
        complain("--adapter: want a folder of PEFT or a GGUF file; there is no %s", o->adapter);
        return VKT_E_NOT_FOUND;
    }
    if (is_folder(o->adapter)) {
        TRY(vkt_peft_config_open(&s->host, o->adapter, &m->config));
    } else {
        vkt_gguf_model of;
        TRY(vkt_gguf_read_model(m->gguf, &of));
        TRY(vkt_lora_gguf_config(&s->host, &of, o->adapter, &m->config));
    }
    m->lora = *vkt_peft_config_lora(m->config);
    m->lora.dropout = o->lora.dropout;
    return VKT_OK;
}

static vkt_result choose_context(const lora_options *o, model *m)
{
    const uint32_t most = vkt_lm_model(m->lm)->context;
    m->context = o->context ? o->context : most < LONGEST_CONTEXT ? most : LONGEST_CONTEXT;
    if (m->context <= most) return VKT_OK;
    complain("--context: the model's is %u tokens, got %u", most, m->context);
    return VKT_E_ARG;
}

vkt_result model_open(const session *s, const lora_options *o, model *m)
{
    char room[1024], bytes[32];
    *m = (model){ .form = o->form, .recompute = s->o.recompute };
    const char *path = find_file(o->model ? o->model : default_model, room);
    if (!o->model && !is_there(path)) {
        complain("no model is given (--model FILE.gguf), and there is no %s in $VKT_DATA, data or ../shared/data",
                 path);
        return VKT_E_NOT_FOUND;
    }
    snprintf(m->path, sizeof m->path, "%s", path);
    TRY(vkt_gguf_open(&s->host, m->path, &m->gguf));
    TRY(vkt_tokenizer_from_gguf(&s->host, m->gguf, &m->tokenizer));
    TRY(read_form(m));
    TRY(read_adapter(s, o, m));
    TRY(vkt_lm_create(s->ctx, m->gguf, &m->lm));
    for (uint32_t i = 0; i < s->ranks.n_more; i++) TRY(vkt_lm_add_context(m->lm, s->ranks.more[i]));
    TRY(choose_context(o, m));
    const vkt_gguf_model *d = vkt_lm_model(m->lm);
    if (vkt_tokenizer_size(m->tokenizer) > d->vocabulary) {
        complain("%s: the tokenizer has %u tokens, the model %u", m->path, vkt_tokenizer_size(m->tokenizer),
                 d->vocabulary);
        return VKT_E_FORMAT;
    }
    snprintf(bytes, sizeof bytes, "%.1f MiB", (double)vkt_lm_bytes(m->lm) / (1 << 20));
    if (!s->o.quiet)
        terminal_printf(stdout, "model   %s: %u blocks of width %u, a vocabulary of %u, %s on %s device\n", m->path,
                        d->blocks, d->width, d->vocabulary, bytes, s->ranks.mpi || s->ranks.n_more ? "each" : "the");
    return VKT_OK;
}

void model_close(model *m)
{
    vkt_lm_destroy(&m->lm);
    vkt_tokenizer_destroy(&m->tokenizer);
    vkt_peft_config_destroy(&m->config);
    vkt_gguf_destroy(&m->gguf);
}

/* The hash is FNV-1a, of the name of each tensor, and of at most PART bytes at each end of the tensor's data. */
void model_identity(const model *m, char out[160])
{
    enum { PART = 4096 };
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < vkt_gguf_n_tensors(m->gguf); i++) {
        const vkt_gguf_tensor *t = vkt_gguf_tensor_at(m->gguf, i);
        const uint64_t n = t->bytes < PART ? t->bytes : PART;
        for (const char *c = t->name; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
        for (int end = 0; end < 2; end++)
            for (uint64_t k = 0; k < n; k++)
                hash = (hash ^ ((const uint8_t *)t->data)[end ? t->bytes - n + k : k]) * 1099511628211u;
    }
    snprintf(out, 160, "%.100s %016llx context %u", vkt_lm_model(m->lm)->name, (unsigned long long)hash, m->context);
}

/* ---- the network ---- */

vkt_tensor model_forward(vkt_builder *b, vkt_tensor rows, void *user)
{
    const model *m = user;
    vkt_graph *g = vkt_builder_graph(b);
    if (m->lora.n_targets) vkt_builder_set_lora(b, &m->lora);
    const vkt_tensor ids = vkt_slice(g, rows, 1, 0, m->context, 1);
    return vkt_lm_hidden(b, m->lm, ids, &(vkt_lm_params){ .recompute = m->recompute });
}

vkt_tensor model_loss(vkt_builder *b, vkt_tensor hidden, vkt_tensor rows, vkt_tensor labels, vkt_tensor targets,
                      void *user)
{
    const model *m = user;
    (void)labels, (void)targets;
    if (!hidden.id) return hidden;
    return vkt_lm_loss(b, m->lm, hidden, vkt_slice(vkt_builder_graph(b), rows, 1, m->context, VKT_END, 1));
}

/* ---- adapters ---- */

vkt_result model_load(const session *s, const model *m, const lora_options *o, vkt_store *store)
{
    if (!o->adapter) return VKT_OK;
    return is_folder(o->adapter) ? vkt_peft_load(&s->host, store, &m->lora, o->adapter)
                                 : vkt_lora_load_gguf(&s->host, store, vkt_lm_model(m->lm), &m->lora, o->adapter);
}

vkt_result model_adapter(const session *s, model *m, const lora_options *o, vkt_store **out)
{
    vkt_graph *g = NULL;
    vkt_builder *b = NULL;
    *out = NULL;
    if (!o->adapter && !s->o.load) {
        m->lora.n_targets = 0;
        return VKT_OK;
    }
    vkt_result r = vkt_graph_create(&s->host, &g);
    if (r == VKT_OK) r = vkt_builder_create(g, false, &b);
    if (r == VKT_OK) {
        const vkt_tensor rows = vkt_input(g, "rows", VKT_U32, VKT_ROWS, vkt_shape2(1, 2 * m->context));
        vkt_keep(g, model_forward(b, rows, m));
        r = vkt_builder_check(b);
    }
    if (r == VKT_OK) r = vkt_store_create(s->ctx, g, out);
    if (r == VKT_OK) r = model_load(s, m, o, *out);
    if (r == VKT_OK && s->o.load) r = vkt_store_load(&s->host, *out, s->o.load);
    vkt_builder_destroy(&b);
    vkt_graph_destroy(&g);
    return r;
}

vkt_result model_try_outputs(const session *s, const lora_options *o)
{
    char path[1024];
    if (o->save_adapter) {
        if (mkdir(o->save_adapter, 0777) != 0 && errno != EEXIST) {
            complain("--save-adapter: %s cannot be made: %s", o->save_adapter, strerror(errno));
            return VKT_E_IO;
        }
        static const char *const files[] = { "adapter_model.safetensors", "adapter_config.json" };
        for (int i = 0; i < 2; i++) {
            snprintf(path, sizeof path, "%s/%s", o->save_adapter, files[i]);
            TRY(vkt_try_output(&s->host, path));
        }
    }
    if (o->save_gguf) TRY(vkt_try_output(&s->host, o->save_gguf));
    return o->merge ? vkt_try_output(&s->host, o->merge) : VKT_OK;
}

vkt_result model_save(const session *s, const model *m, const lora_options *o, vkt_store *store)
{
    const vkt_store_part part = VKT_PART_VALUE;
    const char *base = m->config ? vkt_peft_config_base(m->config) : "";
    /* base_model must be a folder or a name at Hugging Face. The model's name in the GGUF file is neither. */
    const vkt_peft_params p = { .lora = m->lora, .base_model = *base ? base : NULL };
    if (!o->save_adapter && !o->save_gguf && !o->merge) return VKT_OK;
    if (!store) {
        complain("--save-adapter, --save-gguf and --merge: there is no adapter: train one, or name it with --adapter "
                 "or --load");
        return VKT_E_ARG;
    }
    if (o->save_adapter) TRY(vkt_peft_save(&s->host, store, part, &p, o->save_adapter));
    if (o->save_gguf) TRY(vkt_lora_save_gguf(&s->host, store, part, vkt_lm_model(m->lm), &m->lora, o->save_gguf));
    if (o->merge) TRY(vkt_lora_merge_gguf(&s->host, m->gguf, store, part, &m->lora, o->merge_type, o->merge));
    for (int i = 0; i < 3 && !s->o.quiet; i++) {
        const char *const files[] = { o->save_adapter, o->save_gguf, o->merge };
        if (files[i]) terminal_printf(stdout, "wrote   %s\n", files[i]);
    }
    return VKT_OK;
}

/* ---- the plan ---- */

/* The user pointer of build_step. */
typedef struct step {
    const session *s;
    const model *m;
} step;

/* Builds the network up to the loss, as the trainer does. */
static vkt_result build_loss(model *m, uint32_t batch, bool training, vkt_graph *g, vkt_tensor *loss)
{
    const vkt_tensor none = { 0 };
    vkt_builder *b;
    TRY(vkt_builder_create(g, training, &b));
    const vkt_tensor rows = vkt_input(g, "rows", VKT_U32, VKT_ROWS, vkt_shape2(batch, 2 * m->context));
    const vkt_tensor hidden = model_forward(b, rows, m);
    const vkt_result r = vkt_builder_check(b);
    if (r == VKT_OK) *loss = model_loss(b, hidden, rows, none, none, m);
    if (r == VKT_OK && !training) vkt_keep(g, hidden);
    if (r == VKT_OK) vkt_report(g, *loss, none);
    vkt_builder_destroy(&b);
    return r;
}

/* Builds the graph of a training step: a vkt_size_fn. */
static vkt_result build_step(void *user, uint32_t batch, uint32_t context, vkt_graph *g)
{
    const step *of = user;
    model m = *of->m;
    vkt_tensor loss;
    m.context = context;
    TRY(build_loss(&m, batch, true, g, &loss));
    TRY(vkt_backward(g, loss));
    vkt_optimizer optimizer = of->s->o.optimizer;
    /* With shards, sums_bytes counts the gradient sums of micro-batches, so this graph must not have the same sums. */
    if (ranks_shards(&of->s->ranks, &of->s->o) > 1) optimizer.micro_batches = 1;
    TRY(vkt_update(g, &optimizer));
    return of->s->o.ema_decay > 0 ? vkt_publish(g, of->s->o.ema_decay) : VKT_OK;
}

/* Returns how many bytes the program that validates needs; 0 if this cannot be computed. */
static uint64_t validation_bytes(const session *s, model *m, uint32_t batch)
{
    const vkt_host quiet = { .log_level = VKT_LOG_NONE };
    const vkt_program_params p = { .precision = s->o.precision };
    vkt_memory_needs n = { .program_bytes = 0 };
    vkt_graph *g = NULL;
    vkt_tensor loss;
    vkt_result r = vkt_graph_create(&quiet, &g);
    if (r == VKT_OK) r = build_loss(m, batch, false, g, &loss);
    if (r == VKT_OK) r = vkt_program_needs(s->ctx, g, &p, &n);
    vkt_graph_destroy(&g);
    return r == VKT_OK ? n.program_bytes : 0;
}

/* Returns how many bytes a step with shards needs for its sums of gradients. One buffer has the sum of all shards. A
 * rank adds the gradients of its own shards in pairs, then adds the sums of two pairs, and so on: each of these levels
 * has one buffer. Micro-batches need one more buffer. Returns 0 if there are no shards, or if the size cannot be
 * computed. */
static uint64_t sums_bytes(const session *s, const model *m)
{
    const vkt_host quiet = { .log_level = VKT_LOG_NONE };
    const vkt_program_params p = { .precision = s->o.precision };
    const uint32_t shards = ranks_shards(&s->ranks, &s->o);
    uint32_t sums = 1 + (s->o.micro_batches > 1);
    vkt_memory_needs n = { .program_bytes = 0 };
    vkt_graph *g = NULL;
    if (shards == 1) return 0;
    for (uint32_t own = shards / ranks_count(&s->ranks); own > 1; own /= 2) sums++;
    vkt_result r = vkt_graph_create(&quiet, &g);
    if (r == VKT_OK) r = build_step(&(step){ s, m }, 1, m->context, g);
    if (r == VKT_OK) r = vkt_program_needs(s->ctx, g, &p, &n);
    vkt_graph_destroy(&g);
    return r == VKT_OK ? sums * n.bytes[VKT_MEM_GRADIENTS] : 0;
}

static double mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

static void print_plan(const session *s, const vkt_memory_needs *n, uint64_t sums, uint64_t validation, uint64_t data)
{
    char parts[32] = "", each[40] = "";
    const uint32_t count = ranks_count(&s->ranks), shards = ranks_shards(&s->ranks, &s->o);
    if (shards > 1) snprintf(parts, sizeof parts, " of %u shards", shards);
    if (count > 1) snprintf(each, sizeof each, " on each of %u %s", count, s->ranks.mpi ? "ranks" : "devices");
    terminal_printf(
        stdout,
        "memory  %.1f MiB for a step%s%s: model %.1f, adapters with gradients and moments %.1f, activations %.1f, "
        "transfers %.1f; validation %.1f, data %.1f\n",
        mib(n->total_bytes + n->array_bytes + sums + validation + data), parts, each, mib(n->array_bytes),
        mib(n->store_bytes + sums), mib(n->program_bytes), mib(n->staging_bytes), mib(validation), mib(data));
}

/* For a step that does not fit, prints options with which the step fits or needs less memory. */
static void print_ways_out(const session *s, const model *m, const vkt_size_params *p, const vkt_sizes *found)
{
    const uint32_t micro = s->o.micro_batches ? s->o.micro_batches : 1, shards = ranks_shards(&s->ranks, &s->o);
    const uint64_t rows = (uint64_t)p->batch * micro; /* rows of one shard in all micro-batches of a step */
    if (found->batch) {
        uint64_t parts = (rows + found->batch - 1) / found->batch;
        while (rows % parts) parts++;
        complain("--batch %u --context %u fits", found->batch * shards, p->context);
        complain("--batch %llu --micro-batches %llu fits, too, and keeps the size of a step",
                 (unsigned long long)(rows / parts * shards), (unsigned long long)parts);
    }
    if (found->context) complain("--batch %u --context %u fits", p->batch * shards, found->context);
    if (m->recompute) {
        if (!found->batch && !found->context) complain("neither a smaller batch nor a smaller context alone fits");
        return;
    }
    if (!found->planned) return;
    model again = *m;
    vkt_program_params program = *p->program;
    vkt_size_params q = *p;
    vkt_sizes less;
    again.recompute = program.recompute = true;
    q.user = &(step){ s, &again };
    q.program = &program;
    q.max_bytes = UINT64_MAX; /* every step fits this limit, so there is no search */
    if (vkt_find_sizes(s->ctx, &q, &less) == VKT_OK && less.planned)
        complain("--recompute needs %.1f MiB", mib(less.need_bytes));
}

vkt_result model_plan(const session *s, model *m, uint32_t batch, const beside *with)
{
    enum { LEAST_VALIDATED = 128 }; /* with shards, a validation batch has at most max(128, batch / shards) rows */
    const uint64_t device = vkt_ctx_device(s->ctx)->memory_bytes, sums = sums_bytes(s, m);
    const uint32_t shards = ranks_shards(&s->ranks, &s->o), rows = batch / shards;
    const uint32_t most = shards == 1 || rows > LEAST_VALIDATED ? rows : LEAST_VALIDATED;
    const uint32_t at_once = most < batch ? most : batch;
    const uint32_t validated = at_once < with->checked ? at_once : with->checked;
    const uint64_t validation = validated ? with->validators * validation_bytes(s, m, validated) : 0;
    const vkt_program_params program = { .precision = s->o.precision, .recompute = s->o.recompute };
    const vkt_size_params p = { .build = build_step,
                                .user = &(step){ s, m },
                                .batch = rows,
                                .context = m->context,
                                .context_step = 16,
                                .max_bytes = s->o.memory_limit_bytes ? s->o.memory_limit_bytes : device,
                                .other_bytes = sums + validation + with->data,
                                .program = &program };
    vkt_sizes found;
    TRY(vkt_find_sizes(s->ctx, &p, &found));
    if (found.planned && !s->o.quiet) print_plan(s, &found.needs, sums, validation, with->data);
    if (found.fits) return VKT_OK;
    if (found.planned)
        complain("too little memory: a step with --batch %u --context %u needs %.1f MiB, the limit is %.1f MiB", batch,
                 m->context, mib(found.need_bytes), mib(found.limit_bytes));
    else
        complain("this device cannot run a step with --batch %u --context %u", batch, m->context);
    print_ways_out(s, m, &p, &found);
    return found.planned || found.batch || found.context ? VKT_E_MEMORY_CAP : VKT_E_UNSUPPORTED;
}
