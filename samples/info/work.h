/* info/work.h - what ops choose, found by lowering graphs: nothing runs, and no pipeline is made. */
#ifndef INFO_WORK_H
#define INFO_WORK_H

#include "info/facts.h"

/* f->works, for what the options name. */
vkt_result info_find_work(const info_options *o, info_facts *f);

#endif
