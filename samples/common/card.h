/* common/card.h - what a network's rows are like, in its checkpoints and weights files: the attachment "data", a JSON
 * object. So --predict needs no data set. */
#ifndef SAMPLE_CARD_H
#define SAMPLE_CARD_H

#include <jansson.h>

#include "vktrain/train.h"

enum { CARD_CHANNELS = 16 };

typedef struct data_card {
    json_t *root;
    uint32_t chw[3];  /* of a row */
    uint32_t classes; /* 0: the network does not classify */
    double mean[CARD_CHANNELS], deviation[CARD_CHANNELS];
} data_card;

/* Attaches program ("vkt-mnist"), sample shape, mean and deviation, classes and their names, and the members of `more`
 * (NULL: none), which it takes over. Data sets of more than CARD_CHANNELS channels are VKT_E_SHAPE. */
vkt_result card_attach(vkt_trainer *t, const char *program, const vkt_dataset *train, json_t *more);
/* Reads the card of a file that `program` has written. VKT_E_NOT_FOUND if it has none, and VKT_E_FORMAT for a damaged
 * card or another program's: told on stderr unless `quiet`. card_close frees *out after VKT_OK. */
vkt_result card_read(const char *path, const char *program, bool quiet, data_card *out);
void card_close(data_card *c);

/* The name of class k; its number, written to `room`, where it has none. */
const char *card_class(const data_card *c, uint32_t k, char room[16]);
/* Members that are a sample's own: `usual` where they are missing or out of range. */
uint32_t card_integer(const data_card *c, const char *key, uint32_t most, uint32_t usual);
double card_number(const data_card *c, const char *key, double usual);
const char *card_text(const data_card *c, const char *key, const char *usual);

#endif
