/* lora/main.c - vkt-lora: fine-tunes a quantized language model with low-rank adapters on Vulkan devices.
 *
 * The model is a GGUF file. Its weights stay as they are; the adapters (Hu et al., LoRA, 2021) are trained. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "common/report.h"
#include "common/terminal.h"
#include "lora/model.h"
#include "lora/perplexity.h"
#include "lora/rows.h"
#include "lora/talk.h"

#define TRY(call)                                                                                     \
    do {                                                                                              \
        const vkt_result try_r = (call);                                                              \
        if (try_r != VKT_OK) return try_r; /* session_end prints the error if there was no message */ \
    } while (0)

static const char default_data[] = "gsm8k/train.jsonl";
enum { MOST_VALIDATION = 100 };

/* The objects of a run. */
typedef struct work {
    session *s;
    lora_options *o;
    model m;
    rows rows, checked; /* rows: the rows of --data; checked: the rows of --validation */
    vkt_dataset *train, *check;
    double first_loss; /* of the validation set before the training; NaN: not measured */
} work;

/* ---- the data ---- */

static void print_rows(const work *w, const char *path, const rows *r)
{
    if (w->s->o.quiet) return;
    const char *kind = !r->chats && !r->texts ? "plain text"
                       : !r->texts            ? "chats"
                       : !r->chats            ? "texts"
                                              : "chats and texts";
    terminal_printf(stdout, "data    %s: %s, %u rows of %u tokens, %.1f of them used on average, %.1f labels count\n",
                    path, kind, r->n, w->m.context, (double)r->tokens / r->n, (double)r->counted / r->n);
    if (r->cut)
        terminal_printf(stdout, "        %u examples are longer than the context of %u tokens: their ends are cut\n",
                        r->cut, w->m.context);
    if (r->left_out)
        terminal_printf(stdout, "        %u examples are left out: nothing in them counts within %u tokens\n",
                        r->left_out, w->m.context);
}

static vkt_result read_data(work *w, const char *name, rows *out)
{
    char room[1024];
    const rows_params p = {
        .tokenizer = w->m.tokenizer, .form = w->m.form, .context = w->m.context, .assistant_only = w->o->assistant_only
    };
    const char *path = find_file(name, room);
    if (!rows_read(path, &p, out)) return VKT_E_FORMAT;
    print_rows(w, path, out);
    return VKT_OK;
}

/* Makes the data sets. With --validation, all examples of --data are for training. Otherwise the last
 * --validation-examples are for validation, and the examples before them for training. */
static vkt_result make_sets(work *w)
{
    const vkt_host *h = &w->s->host;
    uint32_t examples = w->o->validation_examples, n = w->rows.n;
    if (examples == UINT32_MAX) {
        examples = w->rows.n_examples / 10;
        if (examples > MOST_VALIDATION) examples = MOST_VALIDATION;
    }
    if (w->o->validation) {
        TRY(read_data(w, w->o->validation, &w->checked));
        TRY(rows_dataset(h, &w->checked, w->m.context, 0, w->checked.n, &w->check));
    } else if (examples) {
        n = examples < w->rows.n_examples ? rows_split(&w->rows, examples) : 0;
        if (n == 0) {
            complain("--validation-examples: want fewer than the %u examples of the data, got %u", w->rows.n_examples,
                     examples);
            return VKT_E_ARG;
        }
        if (n < w->rows.n) TRY(rows_dataset(h, &w->rows, w->m.context, n, w->rows.n - n, &w->check));
    }
    return rows_dataset(h, &w->rows, w->m.context, 0, n, &w->train);
}

/* ---- the training ---- */

/* Returns a schedule. The rate rises from lr / 100 to lr over the first twentieth of all steps, at most 1000 steps.
 * Then it falls to a tenth of lr along a cosine. */
static vkt_schedule schedule(const session *s, uint32_t n)
{
    const train_options *o = &s->o;
    const uint32_t step = ranks_step_rows(&s->ranks, o, n);
    const uint64_t steps = ((uint64_t)n + step - 1) / step * o->epochs;
    const uint32_t warmup = (uint32_t)(steps / 20 < 1000 ? steps / 20 : 1000);
    return (vkt_schedule){ .kind = VKT_SCHEDULE_COSINE,
                           .warmup = warmup,
                           .warmup_from = 0.01,
                           .total = steps - warmup,
                           .min_lr = (double)o->lr / 10 };
}

/* Prints the validation loss before and after the training, and the speed. Adds these and other numbers to --json. */
static vkt_result finish(session *s, vkt_trainer *t)
{
    const work *w = s->user;
    const vkt_epoch_record *best = vkt_trainer_best(t);
    const double last = best ? best->val_loss : (double)NAN, ms = vkt_trainer_ms_per_step(t);
    const double rate = s->per_batch * 1000 / ms;
    if (!s->o.quiet && !isnan(last) && !isnan(w->first_loss))
        terminal_printf(stdout, "check   validation loss %.4f -> %.4f, perplexity %.3f -> %.3f\n", w->first_loss, last,
                        exp(w->first_loss), exp(last));
    if (!s->o.quiet && !isnan(ms)) terminal_printf(stdout, "speed   %.0f tokens/s (without padding)\n", rate);
    s->more = json_pack("{s:{s:o, s:i, s:f, s:i, s:i, s:i, s:i, s:o, s:o, s:o}}", "lora", "model", text_json(w->m.path),
                        "rank", (int)w->m.lora.rank, "alpha", (double)w->m.lora.alpha, "context", (int)w->m.context,
                        "rows", (int)w->rows.n, "cut", (int)w->rows.cut, "left_out", (int)w->rows.left_out,
                        "validation_loss_before", real_or_null(w->first_loss), "validation_loss", real_or_null(last),
                        "tokens_per_second", real_or_null(rate));
    return s->more ? VKT_OK : VKT_E_NOMEM;
}

/* Prints an answer of the model to --prompt. Without --prompt, the question comes from the file of --validation. If
 * that file is not given or has no question, the question comes from the file of --data (rows.prompt). */
static vkt_result sample(const work *w, vkt_store *store, const char *title)
{
    const lora_options *o = w->o;
    const rows *data = w->checked.prompt ? &w->checked : &w->rows;
    const question q = { .title = title,
                         .text = o->prompt ? o->prompt : data->prompt,
                         .is_text = o->prompt ? !w->m.form : data->prompt_is_text,
                         .is_of_data = !o->prompt,
                         .may_lack = true };
    if (w->s->o.quiet || !o->answer || !q.text || session_interrupted()) return VKT_OK; /* a rank above 0 is quiet */
    return talk_answer(w->s, &w->m, o, store, &q);
}

/* Returns whether this rank validates before the training. A rank that neither prints nor writes results skips
 * this validation. */
static bool validates_first(const work *w)
{
    const train_options *o = &w->s->o;
    return w->check && !o->resume && !o->find_lr && (!o->quiet || o->json);
}

/* Validates before the training, and prints the result. */
static vkt_result validate(work *w, vkt_trainer *t)
{
    const session *s = w->s;
    if (!validates_first(w) || session_interrupted()) return VKT_OK;
    TRY(talk_without("validation before the training", vkt_trainer_evaluate(t, w->check, &w->first_loss, NULL)));
    if (!s->o.quiet && !isnan(w->first_loss))
        terminal_printf(stdout, "before  validation loss %.4f, perplexity %.3f\n", w->first_loss, exp(w->first_loss));
    return VKT_OK;
}

static vkt_result train(work *w, vkt_trainer *t)
{
    session *s = w->s;
    char identity[160];
    model_identity(&w->m, identity);
    TRY(vkt_trainer_attach(t, "model", identity));
    TRY(model_load(s, &w->m, w->o, vkt_trainer_store(t)));
    if (!s->o.resume && !s->o.find_lr) {
        TRY(validate(w, t));
        TRY(sample(w, vkt_trainer_store(t), "answer before the training"));
    }
    s->unit = "tok";
    const uint32_t n = vkt_dataset_rows(w->train), step = ranks_step_rows(&s->ranks, &s->o, n);
    s->per_batch = (double)w->rows.tokens / w->rows.n * (step < n ? step : n);
    s->user = w;
    s->finish = finish;
    return session_fit(s, NULL, t);
}

/* ---- use of the model ---- */

/* Does what --perplexity and --chat ask for. In a run without training, writes the file of --json. */
static vkt_result use(work *w, vkt_store *store)
{
    session *s = w->s;
    double perplexity = (double)NAN;
    uint64_t tokens = 0;
    if (w->o->perplexity && !session_interrupted()) {
        TRY(perplexity_of(s, &w->m, store, w->o->perplexity, &perplexity, &tokens));
        if (!session_interrupted()) printf("perplexity %.4f\n", perplexity);
    }
    const vkt_result r = w->o->chat && !session_interrupted() ? talk_chat(s, &w->m, w->o, store) : VKT_OK;
    if (!w->train && s->o.json &&
        !write_results(s, json_pack("{s:o, s:o, s:o}", "model", text_json(w->m.path), "perplexity",
                                    real_or_null(perplexity), "tokens",
                                    isnan(perplexity) ? json_null() : json_integer((json_int_t)tokens))))
        return r == VKT_OK ? VKT_E_IO : r;
    return r;
}

/* Replaces the weights of the adapters by the averages of --ema. After the training, only the averages are needed. */
static vkt_result take_averages(vkt_store *store)
{
    float *x = malloc(vkt_store_elements(store) * sizeof *x);
    vkt_result r = x ? VKT_OK : VKT_E_NOMEM;
    for (uint32_t i = 0; r == VKT_OK && i < vkt_store_count(store); i++) {
        r = vkt_store_read(store, i, VKT_PART_PUBLISHED, x);
        if (r == VKT_OK) r = vkt_store_write(store, i, VKT_PART_VALUE, x);
    }
    free(x);
    return r;
}

/* Returns whether the trainer has trained weights that can be saved. A signal or an error may have ended the training.
 * Returns false with --find-lr, if no step was made, if the device was lost, or if the training diverged before there
 * was a best epoch. */
static bool has_trained(const session *s, const vkt_trainer *t)
{
    uint32_t epochs;
    vkt_trainer_history(t, &epochs);
    if (s->o.find_lr || (!epochs && !vkt_trainer_first_step_ns(t)) || s->failed == VKT_E_DEVICE_LOST) return false;
    return s->error != VKT_E_DIVERGED || vkt_trainer_best_epoch(t);
}

/* Writes the adapter. `r` is the result of the training. VKT_E_CHECKPOINT means that only a checkpoint could not be
 * written. After any other error, returns `r`. Otherwise disconnects the processes of --mpi, so that no rank waits
 * during answers and chats. After that, prints an answer, and does what --perplexity and --chat ask for. If the adapter
 * could not be written, or after a signal, leaves out the answer, --perplexity and --chat. */
static vkt_result use_trained(work *w, vkt_store *store, vkt_result r)
{
    session *s = w->s;
    vkt_result saved = s->o.ema_decay > 0 ? take_averages(store) : VKT_OK;
    if (saved == VKT_OK) saved = model_save(s, &w->m, w->o, store);
    if (r != VKT_OK && r != VKT_E_CHECKPOINT) return r;
    ranks_leave(&s->ranks, saved != VKT_OK);
    if (saved == VKT_OK && !session_interrupted()) saved = sample(w, store, "answer after the training");
    if (saved == VKT_OK && !session_interrupted()) saved = use(w, store);
    return r == VKT_OK ? saved : r;
}

/* Chooses the number of shards if there are several ranks and no --shards: the largest power of two, at most 8, that
 * divides the batch. If this power of two is less than the number of ranks, the trainer's default stays. */
static void choose_shards(session *s)
{
    const uint32_t count = ranks_count(&s->ranks);
    uint32_t shards = 8;
    while (s->o.batch % shards != 0) shards /= 2;
    if (count > 1 && !s->o.shards && shards >= count) s->o.shards = shards;
}

/* Computes the number of rows in a batch of the trainer. All shards of the batch have the same number of rows. */
static vkt_result choose_batch(const session *s, uint32_t n, uint32_t *batch)
{
    const uint32_t shards = ranks_shards(&s->ranks, &s->o), want = s->o.batch;
    *batch = ranks_batch(&s->ranks, &s->o, n);
    if (want % shards != 0) {
        complain("--batch: want a multiple of the %u shards, got %u: --batch %u would work, or another --shards",
                 shards, want, want / shards * shards + shards);
        return VKT_E_ARG;
    }
    if (*batch == 0) complain("--shards: want at most the %u rows to train on, got %u", n, shards);
    return *batch ? VKT_OK : VKT_E_ARG;
}

/* Checks whether a step fits into the memory (model_plan). With several ranks, each rank validates on a part of the
 * validation set. The validation before the training is different: it runs on one rank, with the whole set. So it needs
 * a second program and a second copy of the set. */
static vkt_result plan(work *w, uint32_t batch)
{
    const session *s = w->s;
    const uint32_t checked = w->check && !s->o.find_lr ? vkt_dataset_rows(w->check) : 0;
    const uint32_t validators = ranks_count(&s->ranks) > 1 && validates_first(w) ? 2 : 1;
    const uint64_t n = vkt_dataset_rows(w->train) + (uint64_t)checked * validators;
    const beside with = { checked, validators, s->o.stream ? 0 : n * vkt_dataset_row_bytes(w->train) };
    return model_plan(s, &w->m, batch, &with);
}

static vkt_result run_training(work *w)
{
    session *s = w->s;
    vkt_trainer *t = NULL;
    const char *data = s->o.data ? s->o.data : default_data;
    TRY(read_data(w, data, &w->rows));
    TRY(make_sets(w));
    const uint32_t n = vkt_dataset_rows(w->train);
    uint32_t batch;
    TRY(choose_batch(s, n, &batch));
    TRY(plan(w, batch));
    s->data = (session_data){ data, false, w->train, w->check, NULL };
    const vkt_trainer_params p = {
        .model = { .name = "adapters", .forward = model_forward, .user = &w->m, .loss = model_loss },
        .train = w->train,
        .validation = w->check,
        .schedule = schedule(s, vkt_dataset_rows(w->train))
    };
    vkt_result r = session_trainer(s, &p, &t);
    if (r == VKT_OK) r = train(w, t);
    if (t && has_trained(s, t)) r = use_trained(w, vkt_trainer_store(t), r);
    vkt_trainer_destroy(&t);
    return r;
}

/* For a rank above 0: switches off what only rank 0 does. That is chat, answers, perplexity, and files of adapters and
 * merged models. */
static void be_silent(lora_options *o)
{
    o->chat = false;
    o->answer = 0;
    o->perplexity = o->save_adapter = o->save_gguf = o->merge = NULL;
}

/* Returns whether the run only uses the model, and does not train. */
static bool only_uses(const work *w)
{
    const lora_options *o = w->o;
    const bool converts = (o->adapter || w->s->o.load) && (o->merge || o->save_gguf || o->save_adapter);
    return !w->s->o.data && (o->perplexity || o->chat || o->prompt || converts);
}

/* Refuses --adapter together with --load. If the run only uses the model, also refuses --devices, --mpi and the options
 * in `trains`, because they are for training. */
static vkt_result check_options(const work *w)
{
    const train_options *o = &w->s->o;
    const struct {
        const char *name, *value;
    } trains[] = { { "run", o->run }, /* the first one, because --run sets other members */
                   { "resume", o->resume },   { "save", o->save }, { "checkpoint", o->checkpoint },
                   { "history", o->history }, { "plot", o->plot }, { "profile", o->profile },
                   { "find-lr", o->find_lr } };
    if (w->o->adapter && o->load) {
        complain("--adapter, --load: both have the weights of the adapter: want one of them");
        return VKT_E_ARG;
    }
    if (!only_uses(w)) return VKT_OK;
    if (w->s->ranks.n_more || w->s->ranks.mpi) {
        complain("--devices, --mpi: are for training: want --data");
        return VKT_E_ARG;
    }
    for (size_t i = 0; i < sizeof trains / sizeof *trains; i++)
        if (trains[i].value) {
            complain("--%s: is for training: want --data, or leave out --%s", trains[i].name, trains[i].name);
            return VKT_E_ARG;
        }
    return VKT_OK;
}

static vkt_result run(work *w)
{
    const lora_options *o = w->o;
    vkt_store *store;
    TRY(check_options(w));
    const bool only_use = only_uses(w); /* be_silent changes the options */
    if (!ranks_is_first(&w->s->ranks)) be_silent(w->o);
    choose_shards(w->s);
    TRY(model_open(w->s, o, &w->m));
    TRY(model_try_outputs(w->s, o));
    if (!only_use) return run_training(w);
    vkt_result r = model_adapter(w->s, &w->m, o, &store);
    const question q = { .title = "answer", .text = o->prompt, .is_text = !w->m.form };
    if (r == VKT_OK) r = model_save(w->s, &w->m, o, store);
    if (r == VKT_OK && o->prompt && o->answer) r = talk_answer(w->s, &w->m, o, store, &q);
    if (r == VKT_OK) r = use(w, store);
    vkt_store_destroy(&store);
    return r;
}

int main(int argc, char **argv)
{
    lora_options o = lora_defaults();
    const train_cli cli = { .doc =
                                "Fine-tunes a quantized language model (a GGUF file) with low-rank adapters on one "
                                "Vulkan device or several. On several devices, a batch has the largest power of two of "
                                "shards that divides it, at most 8, if there is no --shards.",
                            .data = "JSON lines of messages, of question and answer, or of prompt and completion, or a "
                                    "plain text (gsm8k/train.jsonl)",
                            .more = &lora_parser,
                            .input = &o };
    session s = { .o = { .epochs = 1, .batch = 4, .optimizer = { .kind = VKT_ADAM }, .lr = 2e-4f, .seed = 1 },
                  /* before the training, the other ranks wait while rank 0 validates and answers */
                  .ranks = { .timeout_seconds = RANKS_LONGEST_WAIT } };
    session_begin(&s, &cli, argc, argv);
    work w = { .s = &s, .o = &o, .first_loss = (double)NAN };
    const vkt_result r = session_open(&s) ? run(&w) : VKT_E_NO_DEVICE;
    vkt_dataset_destroy(&w.train);
    vkt_dataset_destroy(&w.check);
    rows_free(&w.rows);
    rows_free(&w.checked);
    model_close(&w.m);
    return session_end(&s, r);
}
