# embed/calls.awk - writes one C function for each function of the public headers, except for mpi.h. The C function calls the
# public function with arguments of the right types:
#
#   static void call_vkt_keep(void) { vkt_keep(HANDLE(0, vkt_graph), VALUE(1, vkt_tensor)); }
#
# Also writes two macros: DROPS lists the types of handles, and CALLS lists the functions. test_calls.c defines the macros of
# the arguments (HANDLE, VALUE, ..). For each handle type and each plain type of the headers, test_calls.c must define an
# argument. Otherwise test_calls.c does not compile.
{
    while (match($0, /\/\*([^*]|\*+[^*\/])*\*+\//)) $0 = substr($0, 1, RSTART - 1) substr($0, RSTART + RLENGTH)
    if (in_comment) {
        if (!match($0, /\*\//)) next
        $0 = substr($0, RSTART + 2)
        in_comment = 0
    }
    if (match($0, /\/\*/)) {
        $0 = substr($0, 1, RSTART - 1)
        in_comment = 1
    }
    if ($0 ~ /^typedef struct vkt_[a-z_]+ vkt_[a-z_]+; *$/) {
        sub(/;.*/, "", $4)
        if (!($4 in is_handle)) handles[++n_handles] = $4
        is_handle[$4] = 1
    }
    if ($0 ~ /^VKT_API /) text = ""
    else if (text == "") next
    text = text " " $0
    if (text ~ /;/) {
        functions[++n_functions] = text
        text = ""
    }
}

function argument(s, i,    stars, type, is_const) {
    gsub(/\[[^]]*\]/, "*", s)
    stars = gsub(/\*/, " ", s)
    is_const = gsub(/(^| )const( |$)/, " ", s)
    split(s, words, " ")
    type = words[1]
    if (type in is_handle) return (stars == 1 ? "HANDLE(" : "SLOT(") i ", " type ")"
    if (stars == 1 && type == "char" && is_const) return "TEXT(" i ")"
    if (stars == 2 && type == "char" && !is_const) return "SLOT(" i ", text)"
    return stars ? "POINTER(" i ", " type ")" : "VALUE(" i ", " type ")"
}

function function_of(s,    name, list, args, n, i, call, result) {
    sub(/;.*/, "", s)
    match(s, /vkt_[a-z0-9_]+\(/)
    name = substr(s, RSTART, RLENGTH - 1)
    list = substr(s, RSTART + RLENGTH)
    result = substr(s, 1, RSTART - 1)
    sub(/\) *$/, "", list)
    n = list ~ /^ *(void)? *$/ ? 0 : split(list, args, ",")
    for (i = 1; i <= n; i++) call = call (i > 1 ? ", " : "") argument(args[i], i - 1)
    call = name "(" call ")"
    if (result ~ / vkt_result *$/) call = "returned_status(" call ")"
    else if (result ~ / vkt_tensor *$/) call = "returned_tensor(" call ")"
    else call = "(void)" call
    printf "static void call_%s(void)\n{\n    %s;\n}\n\n", name, call
    table = table sprintf(" \\\n    { \"%s\", %d, call_%s },", name, n, name)
}

END {
    for (h = 1; h <= n_handles; h++) drops = drops " \\\n    DROP(" handles[h] ")"
    printf "#define DROPS%s\n\n", drops
    print "DROPS\n"
    for (f = 1; f <= n_functions; f++) function_of(functions[f])
    printf "#define CALLS%s\n", table
}
