/* lora/talk.h - answers of the model: one sample answer, and a chat in the terminal. */
#ifndef LORA_TALK_H
#define LORA_TALK_H

#include "lora/model.h"

/* A question for a single answer. */
typedef struct question {
    const char *title; /* what is printed above it */
    const char *text;
    bool is_text;    /* it is the start of a text, not a message of a chat */
    bool is_of_data; /* if it fills the context, a remark says so, and there is no answer. Otherwise VKT_E_ARG */
    bool may_lack;   /* if memory is lacking, a remark says so, and there is no answer. Otherwise it is an error */
} question;

/* Returns VKT_OK after a remark that there is no `what`, if r is an error of device memory. Otherwise returns r. */
vkt_result talk_without(const char *what, vkt_result r);

/* Prints the question and the model's answer, with tokens a second. `store` has the adapters; NULL: none. */
vkt_result talk_answer(const session *s, const model *m, const lora_options *o, vkt_store *store, const question *q);
/* Reads questions from standard input, one a line, and prints the answers, until an empty line, the end of the input or
 * a signal. If the chat no longer fits into the context, its oldest messages are forgotten. A message that does not fit
 * alone is refused, and the chat goes on without it. */
vkt_result talk_chat(const session *s, const model *m, const lora_options *o, vkt_store *store);

#endif
