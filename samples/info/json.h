/* info/json.h - what vkt-info tells, as docs/info.schema.json describes it. */
#ifndef INFO_JSON_H
#define INFO_JSON_H

#include "info/facts.h"

vkt_result info_write_json(const info_options *o, const info_facts *f);

#endif
