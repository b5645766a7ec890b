/* bench/schema.h - checks whether a JSON document conforms to docs/<name>.schema.json. */
#ifndef VKT_TEST_SCHEMA_H
#define VKT_TEST_SCHEMA_H

#include <stdbool.h>

/* Returns whether the document conforms. If not, `why` gets the first fault. Fails the running test if the schema uses
 * a word that is not implemented here. */
bool schema_fits(const char *name, const char *json_path, char why[256]);

#endif
