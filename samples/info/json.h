/* info/json.h - writes the output of vkt-info as docs/info.schema.json describes it. */
#ifndef INFO_JSON_H
#define INFO_JSON_H

#include "info/facts.h"

vkt_result info_write_json(const info_options *o, const info_facts *f);

#endif
