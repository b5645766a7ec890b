/* bench/schema.c - see schema.h. Implements only the JSON Schema keywords that the files docs/NAME.schema.json use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bench/schema.h"

typedef struct check {
    const json_t *root; /* root of the schema */
    char *why;
} check;

static bool fits(const check *c, const json_t *schema, const json_t *value, const char *at);

static bool fault(const check *c, const char *at, const char *what, const char *detail)
{
    snprintf(c->why, 256, "%.120s: %s%.80s", *at ? at : "the document", what, detail);
    return false;
}

static bool is_type(const json_t *v, const char *type)
{
    return (strcmp(type, "object") == 0 && json_is_object(v)) || (strcmp(type, "array") == 0 && json_is_array(v)) ||
           (strcmp(type, "string") == 0 && json_is_string(v)) || (strcmp(type, "number") == 0 && json_is_number(v)) ||
           (strcmp(type, "integer") == 0 && json_is_integer(v)) ||
           (strcmp(type, "boolean") == 0 && json_is_boolean(v)) || (strcmp(type, "null") == 0 && json_is_null(v));
}

static bool fits_type(const check *c, const json_t *type, const json_t *v, const char *at)
{
    if (json_is_string(type))
        return is_type(v, json_string_value(type)) || fault(c, at, "want ", json_string_value(type));
    size_t i;
    const json_t *one;
    json_array_foreach(type, i, one) if (is_type(v, json_string_value(one))) return true;
    return fault(c, at, "it has none of the types", "");
}

static bool fits_enum(const check *c, const json_t *list, const json_t *v, const char *at)
{
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one) if (json_equal(one, v)) return true;
    return fault(c, at, "none of the values: ", json_is_string(v) ? json_string_value(v) : "");
}

static bool fits_required(const check *c, const json_t *names, const json_t *v, const char *at)
{
    size_t i;
    const json_t *name;
    json_array_foreach(names, i, name) if (!json_object_get(v, json_string_value(name))) return fault(
        c, at, "lacks ", json_string_value(name));
    return true;
}

static bool fits_properties(const check *c, const json_t *schema, const json_t *v, const char *at)
{
    const json_t *properties = json_object_get(schema, "properties");
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)v, name, member)
    {
        char below[160];
        const json_t *rule = json_object_get(properties, name);
        snprintf(below, sizeof below, "%.100s.%.50s", at, name);
        if (!rule && json_is_false(json_object_get(schema, "additionalProperties")))
            return fault(c, at, "has an unknown ", name);
        if (rule && !fits(c, rule, member, below)) return false;
    }
    return true;
}

static bool fits_items(const check *c, const json_t *rule, const json_t *v, const char *at)
{
    size_t i;
    const json_t *one;
    json_array_foreach(v, i, one)
    {
        char below[160];
        snprintf(below, sizeof below, "%.120s[%zu]", at, i);
        if (!fits(c, rule, one, below)) return false;
    }
    return true;
}

/* Returns the definition of NAME for a reference "#/$defs/NAME". */
static const json_t *definition(const check *c, const json_t *ref)
{
    const char *text = json_string_value(ref), *prefix = "#/$defs/";
    assert_memory_equal(text, prefix, strlen(prefix));
    const json_t *found = json_object_get(json_object_get(c->root, "$defs"), text + strlen(prefix));
    assert_non_null(found);
    return found;
}

static bool fits(const check *c, const json_t *schema, const json_t *v, const char *at)
{
    const char *word;
    json_t *rule;
    json_object_foreach((json_t *)(uintptr_t)schema, word, rule)
    {
        bool good = true;
        if (strcmp(word, "type") == 0)
            good = fits_type(c, rule, v, at);
        else if (strcmp(word, "enum") == 0)
            good = fits_enum(c, rule, v, at);
        else if (strcmp(word, "required") == 0)
            good = !json_is_object(v) || fits_required(c, rule, v, at);
        else if (strcmp(word, "properties") == 0)
            good = !json_is_object(v) || fits_properties(c, schema, v, at);
        else if (strcmp(word, "items") == 0)
            good = fits_items(c, rule, v, at);
        else if (strcmp(word, "minimum") == 0)
            good = json_number_value(v) >= json_number_value(rule) || fault(c, at, "is below the minimum", "");
        else if (strcmp(word, "$ref") == 0)
            good = fits(c, definition(c, rule), v, at);
        else if (word[0] != '$' && strcmp(word, "title") != 0 && strcmp(word, "description") != 0 &&
                 strcmp(word, "additionalProperties") != 0)
            fail_msg("the schema's word \"%s\" is not understood by this test", word);
        if (!good) return false;
    }
    return true;
}

bool schema_fits(const char *name, const char *json_path, char why[256])
{
    char path[512];
    json_error_t error;
    snprintf(path, sizeof path, "%s/../docs/%s.schema.json", VKT_TEST_DIR, name);
    json_t *schema = json_load_file(path, 0, &error);
    assert_non_null(schema);
    json_t *document = json_load_file(json_path, 0, &error);
    const check c = { .root = schema, .why = why };
    snprintf(why, 256, "%.200s", document ? "" : error.text);
    const bool good = document && fits(&c, schema, document, "");
    json_decref(schema);
    json_decref(document);
    return good;
}
