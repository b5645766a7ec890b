/* label_found.abi.h - two numbers that label_rows.comp computes. */
#define FOUND_COUNT 0 /* how many labels count */
#define FOUND_WRONG 1 /* how many labels of real rows are neither a class nor ignored */
#define FOUND_WORDS 2
