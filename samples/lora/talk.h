/* lora/talk.h - answers of the model: one sample answer, and a chat in the terminal. */
#ifndef LORA_TALK_H
#define LORA_TALK_H

#include "lora/model.h"

/* Prints `title`, the question and the model's answer, with tokens a second. `as_text`: the question is the start of a
 * text, not a message of a chat. VKT_E_ARG: the question fills the context. `store` has the adapters; NULL: none. */
vkt_result talk_answer(const session *s, const model *m, const lora_options *o, vkt_store *store, const char *title,
                       const char *question, bool as_text);
/* Reads questions from standard input, one a line, and prints the answers, until an empty line, the end of the input or
 * a signal. If the chat no longer fits into the context, its oldest messages are forgotten. */
vkt_result talk_chat(const session *s, const model *m, const lora_options *o, vkt_store *store);

#endif
