# filter.awk HEADER - prints a header with its comments in Doxygen's form. Doxyfile.in makes Doxygen call this script. In
# the headers themselves, comments are plain C. A comment describes:
#
#   /* vktrain/x.h - ... */      the file, and the module that the whole file belongs to
#   /* ---- title ---- */        a module in the file's module, up to the next title; text below the title is its description
#   /* text */                   on lines of its own: the next declaration, and each later declaration that has no comment
#                                of its own, up to a blank line or the next such text. If there is no such
#                                declaration, the text describes the module that the text is in. Inside braces: the
#                                next member only
#   x; /* text */                the declaration, member, value or macro before it
#   #define ALL(X) X(A, "text")  the value A of the enum that expands this list
#
# In a text, indented lines keep their layout, and lines that begin with "- " are a list. A text contains no commands of
# Doxygen. Names of the library become links.

# ---- texts ----

function escaped(s)
{
    gsub(/[\\@&#<>%$]/, "\\\\&", s)
    gsub(/--/, "\\--", s)
    return s
}

# Returns whether a name must not become a link. Such a name is an environment variable, an option or a macro of the
# build, or a call with arguments, for which Doxygen would search an overload.
function is_foreign(name, behind)
{
    return name ~ /^VKT_(DEBUG|DEVICE|TRAITS|NO_|KERNELS|WITH_|BUILDS_DLL)$/ || behind ~ /^=/ || behind ~ /^\([^)]/
}

# Puts a '#' before each name of the library, except foreign names (is_foreign). Doxygen makes links of names with '#'.
# Text between ` becomes code.
function linked(s,    out, before, name)
{
    while (match(s, /(vkt|VKT)_[A-Za-z0-9_]+/)) {
        before = substr(s, 1, RSTART - 1)
        name = substr(s, RSTART, RLENGTH)
        s = substr(s, RSTART + RLENGTH)
        out = out before (before ~ /[A-Za-z0-9_\/-]$/ || is_foreign(name, s) ? "" : "#") name
    }
    s = out s
    out = ""
    while (match(s, /`[^`]+`/)) {
        out = out substr(s, 1, RSTART - 1) "<tt>" substr(s, RSTART + 1, RLENGTH - 2) "</tt>"
        s = substr(s, RSTART + RLENGTH)
    }
    return out s
}

# Converts the lines of a comment to Doxygen's markup. The lines have no /*, */ or leading * any more.
function markup(lines, n,    i, s, out, laid_out, list)
{
    for (i = 1; i <= n; i++) {
        s = lines[i]
        if (s ~ /^ *- / || (list && s ~ /^   /)) { # an item, or its next line
            list = 1
        } else if (s ~ /^  /) {
            list = 0
            if (!laid_out) out = out "\n<pre>\n"
            laid_out = 1
        } else
            list = 0
        if (laid_out && (list || s !~ /^  /)) {
            out = out "</pre>\n"
            laid_out = 0
        }
        out = out linked(escaped(s)) "\n"
    }
    if (laid_out) out = out "</pre>\n"
    sub(/\n$/, "", out)
    return out
}

# ---- comments ----

function close_group()
{
    if (in_section) print "/** @} */"
    in_section = ""
}

function slug(s)
{
    s = tolower(s)
    sub(/[:;].*/, "", s) # removes a remark behind the title
    gsub(/[^a-z0-9]+/, "_", s)
    return s
}

# Handles the comment in body[1..n], whose lines had no code.
function own_comment(    title, i, text)
{
    if (!depth) end_run()
    if (body[1] ~ /^---- .* -+$/) {
        close_group()
        title = body[1]
        gsub(/^-+ | -+$/, "", title)
        for (i = 1; i < n; i++) body[i] = body[i + 1]
        in_section = module "_" slug(title)
        print "/** @defgroup " in_section " " module ".h: " escaped(title)
        print markup(body, n - 1)
        print "@{ */"
        return
    }
    text = markup(body, n)
    if (is_file) {
        sub(/^[^ ]* /, "", text) # removes the file's name
        sub(/^\\?-+ /, "", text)
        print "/** @file\n" text " */"
        file_text = text
        is_file = 0
        return
    }
    if (depth) {
        print "/** " text " */"
        return
    }
    run = text
    run_used = 0
}

# Ends the declarations that a text on lines of its own describes. Outside of braces, this function is called at each blank
# line and before each comment on lines of its own. If there was no such declaration, the text describes the module that the text is in.
function end_run()
{
    if (run != "" && !run_used)
        print "/** @} */\n/** @addtogroup " (in_section != "" ? in_section : module) "\n@details " run "\n@{ */"
    run = ""
}

# Adds a line of a comment to body. Returns true if the comment ends in this line.
function take(line)
{
    if (line ~ /^ *\*\/$/) return 1
    sub(/^ *\*? ?/, "", line)
    return set_text(line)
}
# Adds a line of a comment to body. The caller has already removed the /* or * at the beginning of the line. Returns true
# if the comment ends in this line.
function set_text(line,    ends)
{
    ends = sub(/ *\*\/.*$/, "", line)
    body[++n] = line
    return ends
}

# ---- code ----

# Updates the depth of braces for a line without comments.
function count_braces(code)
{
    gsub(/"([^"\\]|\\.)*"|'([^'\\]|\\.)*'/, "", code)
    depth += gsub(/\{/, "", code) - gsub(/\}/, "", code)
}

# Splits "type a, *b;" into one declaration for each name. Otherwise Doxygen gives the text only to the last name.
function members(code, text,    list, i, k, type, out)
{
    sub(/; *$/, "", code)
    k = split(code, list, /, */)
    type = list[1]
    sub(/[^ ]*$/, "", type)
    sub(/^.* /, "", list[1])
    for (i = 1; i <= k; i++) out = out type list[i] "; /**< " text " */\n"
    sub(/\n$/, "", out)
    return out
}

# Prints a complete declaration. Its own comment is in body[1..n].
function end_statement()
{
    if (run != "" && starts_declaration && (!run_used || !n)) {
        print "/** " run " */"
        run_used = 1
    }
    if (n && !starts_declaration && statement ~ /^[^()]*,[^()]*; *$/)
        print members(statement, markup(body, n))
    else if (n)
        print statement " /**< " markup(body, n) " */"
    else
        print statement
    statement = ""
}

function row_of(line)
{
    return match(line, /^ *X\([A-Za-z0-9_]+, *".*"\)/)
}

# Prints the entries X(NAME, "text") of a list as values of an enum. `value` is the text of one
# value, in which `name` stands for NAME.
function expand(list, value,    i, v)
{
    for (i = 1; i <= rows[list]; i++) {
        v = value
        sub(/##name|name/, row_name[list, i], v)
        print v " /**< " linked(escaped(row_text[list, i])) " */"
    }
}

BEGIN {
    is_file = 1
    module = ARGV[1]
    sub(/.*\//, "", module)
    sub(/\.h$/, "", module)
}

in_comment {
    if (!take($0)) next
    in_comment = 0
    if (own) own_comment()
    else end_statement()
    next
}

/^#ifdef __cplusplus/ {
    cplusplus++
    if (cplusplus == 2) {
        close_group()
        print "/** @} */"
    }
    skip = 1
}
skip {
    print
    if (/^#endif/) {
        skip = 0
        if (cplusplus == 1) print "/** @defgroup " module " " module ".h\n" file_text "\n@{ */"
    }
    next
}

/^ *\/\*/ {
    n = 0
    own = 1
    line = $0
    sub(/^ *\/\* ?/, "", line)
    if (set_text(line)) own_comment()
    else in_comment = 1
    next
}

/^$/ {
    if (!depth) end_run()
    print
    next
}

{
    if (statement == "") {
        starts_declaration = !depth && /^(VKT_API|typedef|static inline|#define|enum|struct)/
        n = 0
    }
    code = $0
    comment = index(code, "/*")
    if (comment) {
        line = substr(code, comment + 2)
        sub(/^ /, "", line)
        code = substr(code, 1, comment - 1)
    }
}

# Reads lists of entries X(NAME, "text"), and the enums that expand them.
/^#define VKT_[A-Z_]+\(X\)/ {
    list = $2
    sub(/\(.*/, "", list)
}
list != "" && row_of(code) {
    row = code
    gsub(/^ *X\(|"\)[ \\]*$/, "", row)
    rows[list]++
    row_name[list, rows[list]] = substr(row, 1, index(row, ",") - 1)
    sub(/^[^"]*"/, "", row)
    row_text[list, rows[list]] = row
}
/^#define VKT_[A-Z_]+_ENUM\(/ {
    value = code
    sub(/^#define [^)]*\) */, "", value)
}
/^#(define|undef) VKT_[A-Z_]+_ENUM/ { next }
/^ *VKT_[A-Z_]+\(VKT_[A-Z_]+_ENUM\) *$/ {
    sub(/^ */, "", code)
    sub(/\(.*/, "", code)
    expand(code, value)
    next
}

{
    at_top = !depth
    count_braces(code)
    statement = statement (statement == "" ? "" : "\n") code
    if (statement ~ /^#/)
        more = /\\$/
    else
        more = code !~ /[;{},] *$/ || (at_top && !depth && code ~ /, *$/) # a comma at the top level: more arguments
    if (comment) {
        if (set_text(line)) end_statement()
        else {
            in_comment = 1
            own = 0
        }
    } else if (!more)
        end_statement()
}
