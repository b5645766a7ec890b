/* bench/schema.h - checks whether a JSON document conforms to docs/<name>.schema.json. */
#ifndef VKT_TEST_SCHEMA_H
#define VKT_TEST_SCHEMA_H

#include <stdbool.h>

/* Returns whether the JSON file conforms. If not, `why` gets the first fault. Fails the running test if the schema uses
 * a keyword that schema.c does not implement. */
bool schema_fits(const char *name, const char *json_path, char why[256]);

#endif
