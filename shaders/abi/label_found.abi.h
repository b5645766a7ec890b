/* label_found.abi.h - two numbers that label_rows.comp computes. */
#define FOUND_COUNT 0 /* number of labels that count (label_rows.abi.h) */
#define FOUND_WRONG 1 /* number of wrong labels in real rows. A wrong label is neither a class nor ignored */
#define FOUND_WORDS 2
