/* info/facts.h - what vkt-info tells, before it is text or JSON. */
#ifndef INFO_FACTS_H
#define INFO_FACTS_H

#include "base/variant.h"
#include "info/options.h"
#include "vktrain/core.h"

/* Nodes that are the same work, and what the op chose for them. */
typedef struct info_choice {
    const char *op;
    char text[160];  /* inputs and attributes, as in a shapes file */
    uint64_t usable; /* sets of variants: what it chose among */
    vkt_variant taken;
    bool tuned;     /* by the tuning file */
    uint32_t times; /* nodes */
} info_choice;

/* A network's training step, or a case forward and backward. */
typedef struct info_work {
    const char *name, *what; /* lent; `what` is "" for a case */
    info_choice *choices;
    size_t n, cap;
} info_work;

/* A file that the library keeps for the device. */
typedef struct info_file {
    char *path; /* NULL: there is no cache directory */
    uint64_t bytes;
    enum { INFO_FILE_NONE = 0, INFO_FILE_USED, INFO_FILE_IGNORED } state;
} info_file;

typedef struct info_facts {
    vkt_device_info *devices;
    uint32_t n_devices;
    vkt_ctx *ctx; /* of the chosen one; NULL: none could be opened */
    vkt_device_limits limits;
    vkt_memory_stats memory;
    info_file pipelines, tuning;
    size_t n_tuned; /* entries of the tuning file */
    uint64_t off;   /* variants that the environment switches off */
    info_work *works;
    size_t n_works;
} info_facts;

/* The devices alone. The caller frees in any case, here and below. */
vkt_result info_find_devices(const vkt_host *host, info_facts *f);
/* The rest. VKT_E_NOT_FOUND or VKT_E_FORMAT for work that is neither network nor case, logged. */
vkt_result info_find_facts(const vkt_host *host, const info_options *o, info_facts *f);
void info_free(info_facts *f);

#endif
