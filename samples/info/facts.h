/* info/facts.h - the facts that vkt-info prints, as text or JSON. */
#ifndef INFO_FACTS_H
#define INFO_FACTS_H

#include "base/variant.h"
#include "info/options.h"
#include "vktrain/core.h"

/* Nodes of one info_work for which the op chose the same variant: `taken`. All of them also have the same `op`, `text`
 * and `usable`. */
typedef struct info_choice {
    const char *op;
    char text[160];  /* inputs and attributes, in the form of bench/case.h */
    uint64_t usable; /* the set of usable variants */
    vkt_variant taken;
    bool tuned;     /* the tuning file chose `taken` */
    uint32_t times; /* number of nodes */
} info_choice;

/* The choices of variants in one graph. The graph is a network's training step, or one op with given shapes (a case).
 * If the op has a gradient, the graph of a case also has the backward pass. */
typedef struct info_work {
    const char *name, *what; /* not owned; `what` is "" for a case */
    info_choice *choices;
    size_t n, cap;
} info_work;

/* A file that the library keeps for the device. */
typedef struct info_file {
    char *path; /* NULL: there is no cache directory */
    uint64_t bytes;
    /* OFF: the environment variable VKT_NO_PIPELINE_CACHE=1 or VKT_NO_TUNING=1 switches the file off. */
    enum { INFO_FILE_NONE = 0, INFO_FILE_USED, INFO_FILE_IGNORED, INFO_FILE_OFF } state;
} info_file;

typedef struct info_facts {
    vkt_device_info *devices;
    uint32_t n_devices;
    vkt_ctx *ctx; /* context on the chosen device; NULL: none was created */
    vkt_device_limits limits;
    vkt_memory_stats memory;
    info_file pipelines, tuning;
    size_t n_tuned; /* number of entries of the tuning file that are used */
    uint64_t off;   /* set of the variants that VKT_NO_<NAME>=1 switches off */
    info_work *works;
    size_t n_works;
} info_facts;

/* Finds only the devices. Call info_free also after an error of this function or of info_find_facts. */
vkt_result info_find_devices(const vkt_host *host, info_facts *f);
/* Finds all other facts, after info_find_devices. VKT_E_NOT_FOUND or VKT_E_FORMAT, logged: a text of o->work is neither
 * a network nor a case that bench_case_parse can read. Other errors are those of the library, for instance for shapes
 * that the op refuses. */
vkt_result info_find_facts(const vkt_host *host, const info_options *o, info_facts *f);
void info_free(info_facts *f);

#endif
