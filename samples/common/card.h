/* common/card.h - describes the samples that a network reads. The description is the attachment "data", a JSON object,
 * in the network's checkpoints and weights files. With it, --predict needs no data set. */
#ifndef SAMPLE_CARD_H
#define SAMPLE_CARD_H

#include <jansson.h>

#include "vktrain/train.h"

enum { CARD_CHANNELS = 16 };

typedef struct data_card {
    json_t *root;
    uint32_t chw[3];  /* shape of a sample */
    uint32_t classes; /* 0: the network does not classify */
    double mean[CARD_CHANNELS], deviation[CARD_CHANNELS];
} data_card;

/* Attaches a JSON object to `t`: program ("vkt-mnist"), sample shape, mean and deviation, number and names of the
 * classes, and the members of `more` (NULL: none). It takes over `more`. VKT_E_SHAPE: the data set has more than
 * CARD_CHANNELS channels. */
vkt_result card_attach(vkt_trainer *t, const char *program, const vkt_dataset *train, json_t *more);
/* Reads the card of a file that `program` wrote. VKT_E_NOT_FOUND: the file has no card. VKT_E_FORMAT: the card is
 * damaged or another program wrote it. Prints a message on stderr unless `quiet`. After VKT_OK, card_close frees *out.
 */
vkt_result card_read(const char *path, const char *program, bool quiet, data_card *out);
void card_close(data_card *c);

/* Returns the name of class k. If the class has no name, writes its number to `room` and returns `room`. */
const char *card_class(const data_card *c, uint32_t k, char room[16]);
/* Read a member that one sample program added. Return `usual` if the member is missing or out of range. */
uint32_t card_integer(const data_card *c, const char *key, uint32_t most, uint32_t fallback);
double card_number(const data_card *c, const char *key, double fallback);
const char *card_text(const data_card *c, const char *key, const char *fallback);

#endif
