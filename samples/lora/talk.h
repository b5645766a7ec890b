/* lora/talk.h - answers of the model: one sample answer, and a chat in the terminal. */
#ifndef LORA_TALK_H
#define LORA_TALK_H

#include "lora/model.h"

/* A question for a single answer. */
typedef struct question {
    const char *title; /* printed above the question */
    const char *text;
    bool is_text; /* the model continues `text`; false: `text` is a message of a chat, and the model answers it */
    /* The question comes from the data. If it is too long for the context, a remark replaces the answer. If is_of_data
     * is false, talk_answer returns VKT_E_ARG for a question that is too long. */
    bool is_of_data;
    bool may_lack; /* if there is too little device memory, a remark replaces the answer; false: this is an error */
} question;

/* If r says that the device has too little memory, prints a remark that there is no `what`, and returns VKT_OK.
 * Otherwise returns r. */
vkt_result talk_without(const char *what, vkt_result r);

/* Prints the question, the model's answer, and its speed in tokens a second. `store` has the adapters (NULL: the model
 * answers without adapters). */
vkt_result talk_answer(const session *s, const model *m, const lora_options *o, vkt_store *store, const question *q);
/* Reads questions from standard input, one a line, and prints the answers, until an empty line, the end of the input or
 * a signal. If the chat no longer fits into the context, its oldest messages are forgotten. If the system message
 * and a new message fill the whole context, the new message is refused, and the chat goes on without it. `store` is as
 * for talk_answer. */
vkt_result talk_chat(const session *s, const model *m, const lora_options *o, vkt_store *store);

#endif
