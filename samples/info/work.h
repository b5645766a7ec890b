/* info/work.h - finds the variants that ops choose. It only lowers graphs: it runs nothing and makes no pipeline. */
#ifndef INFO_WORK_H
#define INFO_WORK_H

#include "info/facts.h"

/* Sets f->works for the networks and cases in the options. If the options have none, sets it for all networks. */
vkt_result info_find_work(const info_options *o, info_facts *f);

#endif
