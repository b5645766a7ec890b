/* resnet.c - vkt-resnet: trains a residual network to classify photographs on a Vulkan device. The training begins with
 * random weights or with pretrained weights. With pretrained weights, the program first trains the last layer alone for
 * --frozen-epochs epochs, then all layers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "common/find_data.h"
#include "common/image_data.h"
#include "common/message.h"
#include "common/predict_images.h"
#include "common/report.h"
#include "common/session.h"
#include "common/terminal.h"
#include "vktrain/models.h"

#define PROGRAM "vkt-resnet"
enum {
    OPT_NETWORK = 512,
    OPT_SIZE,
    OPT_SCRATCH,
    OPT_NEW_HEAD,
    OPT_FROZEN_EPOCHS,
    OPT_EVALUATE,
    OPT_NO_AUGMENT,
    OPT_LIMIT
};
enum { SMALLEST = 8, LARGEST = 1024, CIFAR_CLASSES = 10, IMAGENET_CLASSES = 1000 };

static const char doc[] =
    "Trains a residual network to classify photographs on a Vulkan device. It begins with pretrained weights: those "
    "of "
    "--load, or for resnet20 pretrained/cifar10-resnet20.safetensors, if that is here. It prints how many images they "
    "recognise, trains the last layer while the rest is frozen, then everything, the rest at a tenth of the rate. "
    "Without weights, or with --from-scratch, it begins at random.";

static const struct {
    const char *name;
    vkt_resnet_params params;
} networks[] = {
    { "resnet20", { .depth = 20, .cifar = true } },
    { "resnet32", { .depth = 32, .cifar = true } },
    { "resnet44", { .depth = 44, .cifar = true } },
    { "resnet56", { .depth = 56, .cifar = true } },
    { "resnet18", { .depth = 18 } },
    { "resnet34", { .depth = 34 } },
    { "resnet50", { .depth = 50 } },
    { "resnet101", { .depth = 101 } },
    { "resnet152", { .depth = 152 } },
};
enum { NETWORKS = sizeof networks / sizeof *networks };

/* If a run begins with pretrained weights, this factor multiplies the learning rate of all layers except the last one.
 * A small rate changes the pretrained weights little. */
static const float SLOWER = 0.1f;

/* Mean and standard deviation of red, green and blue (0 to 1). Torchvision's weights and the CIFAR weights expect
 * images that are normalised with these numbers. */
static const double mean[3] = { 0.485, 0.456, 0.406 }, deviation[3] = { 0.229, 0.224, 0.225 };

/* ---- options ---- */

typedef struct resnet_options {
    uint32_t network; /* index in `networks` */
    uint32_t size;    /* side of an image, in pixels. 0: 32 if the network has vkt_resnet_params.cifar, otherwise 224 */
    uint32_t frozen_epochs, limit;
    bool scratch, new_head, evaluate, no_augment;
} resnet_options;

static const struct argp_option option_table[] = {
    { 0, 0, 0, 0, "Network", 5 },
    { "network", OPT_NETWORK, "NAME", 0,
      "resnet20 (default), 32, 44, 56 of the CIFAR form; resnet18, 34, 50, 101, 152 of torchvision's", 5 },
    { "size", OPT_SIZE, "N", 0, "images become N x N (32 for the CIFAR form, else 224)", 5 },
    { "from-scratch", OPT_SCRATCH, 0, 0, "begin at random, also if pretrained weights are here", 5 },
    { "new-head", OPT_NEW_HEAD, 0, 0, "use all weights but the last layer's: for other classes than theirs", 5 },
    { "frozen-epochs", OPT_FROZEN_EPOCHS, "N", 0,
      "with weights: first so many epochs of the last layer alone, the rest frozen and in evaluation mode (1)", 5 },
    { "evaluate", OPT_EVALUATE, 0, 0, "with weights: print how many images they recognise, and end", 5 },
    { "limit", OPT_LIMIT, "N", 0, "use at most N images for training and for validation (0: all)", 5 },
    { "no-augment", OPT_NO_AUGMENT, 0, 0, "use the training images as they are: not cropped or mirrored at random", 5 },
    { 0 }
};

/* Returns the index of a network. NETWORKS: no network has that name. */
static uint32_t find_network(const char *name)
{
    uint32_t i = 0;
    while (i < NETWORKS && strcmp(name, networks[i].name) != 0) i++;
    return i;
}

static uint32_t network(struct argp_state *state, const char *text)
{
    const uint32_t i = find_network(text);
    if (i < NETWORKS) return i;
    argp_error(state, "--network: want resnet20, 32, 44 or 56, or resnet18, 34, 50, 101 or 152, got '%s'", text);
    return 0;
}

static error_t on_option(int key, char *text, struct argp_state *state)
{
    resnet_options *o = state->input;
    switch (key) {
    case OPT_NETWORK: o->network = network(state, text); break;
    case OPT_SIZE: o->size = (uint32_t)option_integer(state, "size", text, SMALLEST, LARGEST); break;
    case OPT_SCRATCH: o->scratch = true; break;
    case OPT_NEW_HEAD: o->new_head = true; break;
    case OPT_FROZEN_EPOCHS:
        o->frozen_epochs = (uint32_t)option_integer(state, "frozen-epochs", text, 0, UINT32_MAX);
        break;
    case OPT_EVALUATE: o->evaluate = true; break;
    case OPT_LIMIT: o->limit = (uint32_t)option_integer(state, "limit", text, 0, UINT32_MAX); break;
    case OPT_NO_AUGMENT: o->no_augment = true; break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* ---- the network ---- */

typedef struct model {
    vkt_resnet_params net;
    bool frozen; /* all layers except the last one are frozen */
    bool slow;   /* group 0 of the optimizer has all layers except the last one, and the factor SLOWER */
} model;

static const char *const backbone[] = { "conv1.*", "bn1.*", "layer*" };
enum { BACKBONE = sizeof backbone / sizeof *backbone };

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const model *m = user;
    const vkt_tensor y = vkt_resnet(b, x, &m->net);
    vkt_graph *g = vkt_builder_graph(b);
    vkt_result r = VKT_OK;
    for (int i = 0; i < BACKBONE && y.id && r == VKT_OK; i++) {
        if (m->frozen) r = vkt_freeze(g, backbone[i]);
        if (m->slow) r = vkt_set_group(g, backbone[i], 0);
    }
    return r == VKT_OK ? y : (vkt_tensor){ 0 };
}

/* ---- pretrained weights, and the training of the last layer alone ---- */

typedef struct start {
    session *s;
    const resnet_options *o;
    const image_data *data;
    const char *weights; /* the weights file */
    float **values;      /* copies of all parameters and states, in the store's order, for the training of all layers */
    uint32_t n;
} start;

static vkt_result load(vkt_trainer *t, const start *from)
{
    vkt_result r = VKT_OK;
    if (!from->o->new_head) return vkt_trainer_load(t, from->weights);
    for (int i = 0; i < BACKBONE && r == VKT_OK; i++) r = vkt_trainer_load_matching(t, from->weights, backbone[i]);
    return r;
}

/* Evaluates the training, validation and test images together. Prints the mean loss and the number of correct
 * predictions, unless --quiet is given. Adds the numbers to the results of --json. */
static vkt_result evaluate(vkt_trainer *t, const start *from)
{
    const vkt_dataset *const parts[] = { from->data->train, from->data->check, from->data->test };
    double loss = 0, right = 0, rows = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double l, a;
        if (!parts[i]) continue;
        const vkt_result r = vkt_trainer_evaluate(t, parts[i], &l, &a);
        if (r != VKT_OK) return r;
        const double n = vkt_dataset_rows(parts[i]);
        loss += l * n;
        right += round(a * n);
        rows += n;
    }
    from->s->more = json_pack("{s:o, s:I, s:I}", "pretrained_loss", real_or_null(loss / rows), "pretrained_right",
                              (json_int_t)right, "pretrained_rows", (json_int_t)rows);
    if (!from->s->o.quiet)
        terminal_printf(stdout,
                        "before  without training, with the weights as loaded: %.0f of %.0f images are recognised "
                        "(%.2f %%), loss %.4f\n",
                        right, rows, 100 * right / rows, loss / rows);
    return VKT_OK;
}

static vkt_result take(vkt_trainer *t, start *from)
{
    vkt_store *store = vkt_trainer_store(t);
    from->n = vkt_store_count(store);
    from->values = calloc(from->n, sizeof *from->values);
    vkt_result r = from->values ? VKT_OK : VKT_E_NOMEM;
    for (uint32_t i = 0; i < from->n && r == VKT_OK; i++) {
        const vkt_shape s = vkt_store_shape(store, i);
        size_t elements = 1;
        for (uint32_t d = 0; d < s.rank; d++) elements *= s.dim[d];
        from->values[i] = malloc(elements * sizeof(float));
        r = from->values[i] ? vkt_store_read(store, i, VKT_PART_VALUE, from->values[i]) : VKT_E_NOMEM;
    }
    return r;
}

static vkt_result give(const start *from, vkt_trainer *t)
{
    vkt_result r = VKT_OK;
    for (uint32_t i = 0; i < from->n && r == VKT_OK; i++)
        r = vkt_store_write(vkt_trainer_store(t), i, VKT_PART_VALUE, from->values[i]);
    return r;
}

static void start_free(start *from)
{
    for (uint32_t i = 0; i < from->n; i++) free(from->values[i]);
    free(from->values);
}

/* Loads the weights. Evaluates them, unless the last layer is new. Trains the last layer for --frozen-epochs epochs,
 * unless --evaluate is given. Stores all values in from->values. */
static vkt_result begin_pretrained(start *from, const vkt_trainer_params *params)
{
    session *s = from->s;
    model frozen = *(const model *)params->model.user;
    frozen.frozen = frozen.net.use_running = true;
    frozen.slow = false;
    vkt_trainer_params p = *params;
    p.model.user = &frozen;
    p.schedule = (vkt_schedule){ .kind = VKT_SCHEDULE_CONSTANT };
    session bare = *s; /* a copy without --load, --resume and --find-lr */
    bare.o.load = bare.o.resume = bare.o.find_lr = NULL;
    vkt_trainer *t = NULL;
    vkt_result r = session_trainer(&bare, &p, &t);
    if (r == VKT_OK) r = load(t, from);
    if (r == VKT_OK && !from->o->new_head) r = evaluate(t, from);
    if (r == VKT_OK && from->o->frozen_epochs && !from->o->evaluate) {
        if (!s->o.quiet) puts("\nthe last layer alone");
        const vkt_fit_params fit = { .epochs = from->o->frozen_epochs };
        r = session_follow(s, &fit, t);
        if (session_interrupted()) r = session_finish(s, &fit, t, r, false);
    }
    if (r == VKT_OK) r = take(t, from);
    vkt_trainer_destroy(&t);
    return r;
}

/* ---- predictions ---- */

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Attaches the data card (vktrain/card.h). The card has the name of the network, and the length to which the shorter
 * side of an image is resized. */
static vkt_result attach(vkt_trainer *t, const resnet_options *o, uint32_t resize)
{
    char more[80];
    snprintf(more, sizeof more, "{\"network\": \"%s\", \"resize\": %u}", networks[o->network].name, resize);
    return vkt_trainer_attach_card(t, PROGRAM, more);
}

/* Makes a card for weights that have none. For a network of the CIFAR form, the number of classes is 10, as for
 * CIFAR-10. For other networks it is 1000, as for torchvision's weights. The card has no names of classes. */
static vkt_result usual_card(const session *s, const resnet_options *o, vkt_card **out)
{
    const bool cifar = networks[o->network].params.cifar;
    const uint32_t side = o->size ? o->size : cifar ? 32 : 224;
    char text[400];
    snprintf(text, sizeof text,
             "{\"sample\": [3,%u,%u], \"classes\": %d, \"mean\": [%g,%g,%g], \"deviation\": [%g,%g,%g], "
             "\"network\": \"%s\", \"resize\": %u}",
             side, side, cifar ? CIFAR_CLASSES : IMAGENET_CLASSES, mean[0], mean[1], mean[2], deviation[0],
             deviation[1], deviation[2], networks[o->network].name, cifar ? side : side * 8 / 7);
    if (!s->o.quiet)
        complain("%s does not name its classes: using it as %s with %d classes, which are printed as numbers",
                 s->o.load, networks[o->network].name, cifar ? CIFAR_CLASSES : IMAGENET_CLASSES);
    return vkt_card_from_text(&s->host, s->o.load, text, out);
}

static vkt_result predict_with(session *s, const vkt_card *card)
{
    const char *name = vkt_card_text(card, "network");
    const uint32_t which = name ? find_network(name) : NETWORKS;
    if (which == NETWORKS) {
        complain("%s: want one of the networks of --network, got '%.40s'", s->o.load, name ? name : "");
        return VKT_E_FORMAT;
    }
    model m = { .net = networks[which].params };
    m.net.classes = card->classes;
    return predict_images(s, PROGRAM, forward, &m, card, 0);
}

static vkt_result predict(session *s, const resnet_options *o)
{
    vkt_card *card = NULL;
    vkt_result r =
        exists(s->o.load) ? vkt_card_read(&s->host, s->o.load, PROGRAM, &card) : predict_card(s, PROGRAM, &card);
    if (r == VKT_E_NOT_FOUND && exists(s->o.load)) r = usual_card(s, o, &card);
    if (r == VKT_OK) r = predict_with(s, card);
    vkt_card_destroy(&card);
    return r;
}

/* ---- the run ---- */

/* Returns the path of the pretrained weights. NULL: there are none, for instance with --from-scratch. Without --load,
 * resnet20 uses the CIFAR weights if they are found. The CIFAR weights have ten classes. If the data have another
 * number of classes, the function then sets o->new_head, so that only the weights of the backbone are used. */
static const char *weights_of(const session *s, resnet_options *o, uint32_t classes, char room[DATA_PATH])
{
    if (o->scratch) return NULL;
    if (s->o.load) return s->o.load;
    if (strcmp(networks[o->network].name, "resnet20") != 0) return NULL;
    o->new_head |= classes != CIFAR_CLASSES;
    return find_data("pretrained/cifar10-resnet20.safetensors", exists, room);
}

/* The name of a text in the checkpoint (vkt_trainer_attach). The text says whether the run began with pretrained
 * weights. If it did, a resumed run must also multiply the learning rate of the backbone by SLOWER. */
static const char start_name[] = "start";

static bool began_with_weights(const char *checkpoint)
{
    char *text = NULL;
    const bool found =
        vkt_read_attachment(&(vkt_host){ .log_level = VKT_LOG_NONE }, checkpoint, start_name, &text) == VKT_OK;
    const bool with = found && strcmp(text, "weights") == 0;
    vkt_text_release(&text);
    return with;
}

/* Returns the weight decay of *o for use in a vkt_param_group. In a vkt_optimizer, a weight decay of 0 means the
 * default. In a vkt_param_group, 0 means no decay. So instead of 0, the function returns the default. */
static float decay_of(const vkt_optimizer *o)
{
    const vkt_preset preset = o->keras ? VKT_PRESET_KERAS3 : VKT_PRESET_TORCH;
    return o->weight_decay > 0 ? o->weight_decay : vkt_optimizer_preset(o->kind, preset).weight_decay;
}

static vkt_result run(session *s, resnet_options *o, const image_data *data, uint32_t resize)
{
    char room[DATA_PATH];
    model all = { .net = networks[o->network].params };
    all.net.classes = vkt_dataset_classes(data->train);
    start from = { .s = s, .o = o, .data = data, .weights = weights_of(s, o, all.net.classes, room) };
    const vkt_trainer_params p = {
        .model = { .name = networks[o->network].name, .forward = forward, .user = &all },
        .train = data->train,
        .validation = data->check,
        .schedule = { .kind = VKT_SCHEDULE_COSINE,
                      .total = ranks_steps(&s->ranks, &s->o, vkt_dataset_rows(data->train)) },
    };
    if (s->o.resume ? began_with_weights(s->o.resume) : from.weights != NULL) {
        all.slow = true;
        s->o.optimizer.groups[0] = (vkt_param_group){ .lr_factor = SLOWER, .weight_decay = decay_of(&s->o.optimizer) };
    }
    if (!s->o.quiet)
        printf("weights %s\n", s->o.resume    ? s->o.resume
                               : from.weights ? from.weights
                                              : "random numbers: none are loaded");
    if (o->evaluate && (!from.weights || o->new_head)) {
        complain("--evaluate: want weights of the same classes to evaluate (--load FILE)");
        return VKT_E_NOT_FOUND;
    }
    const bool begin = from.weights && (!s->o.resume || o->evaluate);
    vkt_result r = begin ? begin_pretrained(&from, &p) : VKT_OK;
    if (r == VKT_OK && o->evaluate && s->o.json && !write_results(s, json_incref(s->more))) r = VKT_E_IO;
    s->scored = data->test ? data->test : data->check;
    s->scored_set = data->test ? "test" : "validation";
    vkt_trainer *t = NULL;
    if (r == VKT_OK && !o->evaluate && !session_interrupted()) {
        s->o.load = NULL; /* begin_pretrained has loaded the file, or the file is not used (--from-scratch, --resume) */
        r = session_trainer(s, &p, &t);
        if (r == VKT_OK) r = vkt_trainer_attach(t, start_name, all.slow ? "weights" : "random numbers");
        if (r == VKT_OK && begin) r = give(&from, t);
        if (r == VKT_OK) r = attach(t, o, resize);
        if (r == VKT_OK) r = session_fit(s, NULL, t);
    }
    vkt_trainer_destroy(&t);
    start_free(&from);
    return r;
}

/* Keeps the first `rows` samples (0: all). */
static vkt_result limit(vkt_dataset **d, uint32_t rows)
{
    vkt_dataset *all = *d;
    if (!all || rows == 0 || rows >= vkt_dataset_rows(all)) return VKT_OK;
    const vkt_result r = vkt_dataset_slice(all, 0, rows, d);
    if (r == VKT_OK)
        vkt_dataset_destroy(&all);
    else
        *d = all;
    return r;
}

int main(int argc, char **argv)
{
    resnet_options o = { .frozen_epochs = 1 };
    const struct argp more = { .options = option_table, .parser = on_option };
    const train_cli cli = {
        .doc = doc, .data = image_data_help, .classes = true, .predict = image_predict_help, .more = &more, .input = &o
    };
    session s = { .o = { .epochs = 3,
                         .batch = 64,
                         .optimizer = { .kind = VKT_SGD, .momentum = 0.9f, .weight_decay = 1e-4f },
                         .lr = 0.01f,
                         .seed = 1 } };
    session_begin(&s, &cli, argc, argv);
    if (!session_open(&s)) return session_end(&s, VKT_E_NO_DEVICE);
    if (s.o.predict) return session_end(&s, predict(&s, &o));
    const bool cifar = networks[o.network].params.cifar;
    const uint32_t size = o.size ? o.size : cifar ? 32 : 224;
    const image_data_params p = { .folder = s.o.data,
                                  .name = "cifar10-jpeg",
                                  .images = { .height = size,
                                              .width = size,
                                              .resize = cifar ? size : size * 8 / 7, /* as torchvision: 224 gives 256 */
                                              .random_crop = !o.no_augment,
                                              .crop_padding = cifar && !o.no_augment ? 4 : 0,
                                              .random_flip = !o.no_augment },
                                  .mean = mean,
                                  .deviation = deviation };
    image_data data = { 0 };
    vkt_result r = image_data_open(&s.host, &p, &data);
    if (r == VKT_OK) r = limit(&data.train, o.limit);
    if (r == VKT_OK) r = limit(&data.check, o.limit);
    if (r == VKT_OK)
        session_set_data(&s, &(session_data){ data.source, data.made_up, data.train, data.check, data.test });
    if (r == VKT_OK) r = run(&s, &o, &data, p.images.resize);
    image_data_close(&data);
    return session_end(&s, r);
}
