/* vktrain/card.h - a data card: the shape, normalisation and classes of the samples that a network was trained on. The
 * card is stored with the weights, so a program that predicts does not need the training set.
 *
 *   vkt_trainer_attach_card(trainer, "pets", NULL);         before vkt_trainer_fit and vkt_trainer_save
 *
 *   vkt_card_read(NULL, "weights.safetensors", "pets", &card);
 *   size = (vkt_image_params){ .height = card->chw[1], .width = card->chw[2] };
 *   vkt_image_row(NULL, &size, "a.jpg", bytes, n, row);
 *   vkt_card_dataset(card, VKT_ROW_U8, row, 1, &data);      normalised as in training
 *   vkt_predictor_create(ctx, &(vkt_predictor_params){ .model = .., .data = data, .weights = .. }, &predictor);
 *   vkt_predictor_run(predictor, 0, 1, NULL, logits);
 *   vkt_likeliest(logits, card->classes, 1, &k, &probability);
 *   puts(vkt_card_class(card, k, room));
 *
 * The card is the attached text "data" (see vkt_trainer_attach), a JSON object:
 *   {"program": "pets", "sample": [3,32,32], "mean": [..], "deviation": [..], "classes": 2, "names": ["cat","dog"]}
 * "names" is null if the classes have no names. A card of vectors of W numbers has the "sample" [1,1,W] and one more
 * member, "vector": true. Threads: functions that take a pointer to const may run on several threads at once. */
#ifndef VKTRAIN_CARD_H
#define VKTRAIN_CARD_H

#include "vktrain/train.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VKT_CARD_CHANNELS 16 /* largest number of channels of a sample */

typedef struct vkt_card vkt_card;
/* A card that was read. The caller reads the members. */
struct vkt_card {
    uint32_t chw[3];                /* C, H, W of a sample */
    uint32_t classes;               /* 0: the data had no classes */
    double mean[VKT_CARD_CHANNELS]; /* mean of each channel: see vkt_dataset_normalize */
    double std[VKT_CARD_CHANNELS];  /* standard deviation of each channel, above 0 */
};

/* Attaches the card of the trainer's training set (vkt_trainer_attach). `program` names the kind of network.
 * vkt_card_read checks this name. `more`: a JSON object, whose members are added to the card; NULL: none. VKT_E_SHAPE:
 * more than VKT_CARD_CHANNELS channels. VKT_E_ARG: `more` is no JSON object. VKT_E_NOMEM. */
VKT_API vkt_result vkt_trainer_attach_card(vkt_trainer *t, const char *program, const char *more);

/* Reads the card of a weights file or checkpoint. VKT_E_NOT_FOUND, which is not logged: there is no such file, or the
 * file has no card. VKT_E_FORMAT: the file is no safetensors file, the card is damaged, or the "program" of the
 * card is not `program`. VKT_E_IO, VKT_E_NOMEM. After an error *out = NULL. Owner: the caller. `host` may be NULL. */
VKT_API vkt_result vkt_card_read(const vkt_host *host, const char *path, const char *program, vkt_card **out);
/* Makes a card from the JSON text of a card. A program needs this function for weights without a card, for instance
 * weights of PyTorch. Messages call the text `name`. VKT_E_FORMAT: the text is no card. VKT_E_NOMEM. After an error
 * *out = NULL. Owner: the caller. `host` may be NULL. */
VKT_API vkt_result vkt_card_from_text(const vkt_host *host, const char *name, const char *text, vkt_card **out);
VKT_API void vkt_card_destroy(vkt_card **c); /* data sets of vkt_card_dataset stay valid */

/* Returns the name of class k, valid as long as the card. If the class has no name, writes the number k to `room` and
 * returns `room`. */
VKT_API const char *vkt_card_class(const vkt_card *c, uint32_t k, char room[16]);
/* Returns the text of the member `key` of the card's JSON object, valid as long as the card; NULL: the object has no
 * such member, or the member is no text. `key` may also be a member of `more` (see vkt_trainer_attach_card). */
VKT_API const char *vkt_card_text(const vkt_card *c, const char *key);
/* Reads the member `key`, which is a number or a list of numbers. Writes the first `most` numbers to `out` (may be
 * NULL), and returns how many numbers the member has. UINT32_MAX: the object has no such member, or the member is
 * neither a number nor a list of numbers. */
VKT_API uint32_t vkt_card_numbers(const vkt_card *c, const char *key, uint32_t most, double *out);

/* Makes a data set of n samples in memory, row-major, without labels. Samples of u8 and f32 are normalised by the
 * card's mean and std. The samples are not copied: `rows` must outlive the data set. Returns what
 * vkt_dataset_from_arrays returns. */
VKT_API vkt_result vkt_card_dataset(const vkt_card *c, vkt_row_type type, const void *rows, uint32_t n,
                                    vkt_dataset **out);

#ifdef __cplusplus
}
#endif
#endif
