/* bench/schema.h - whether a JSON document fits docs/<name>.schema.json. */
#ifndef VKT_TEST_SCHEMA_H
#define VKT_TEST_SCHEMA_H

#include <stdbool.h>

/* Fails the running test where the schema uses a word that is not understood here. `why` says the first fault. */
bool schema_fits(const char *name, const char *json_path, char why[256]);

#endif
