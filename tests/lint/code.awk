# Prints "file:line:code" for C and GLSL files: comments are left out and strings emptied. With -v strings=1, strings stay.
FNR == 1 { comment = 0 }
{
    rest = $0
    code = ""
    gsub(/\\["\\]/, "", rest)
    gsub(/'"'/, "0", rest)
    while (rest != "") {
        if (comment) {
            end = index(rest, "*/")
            if (!end) break
            rest = substr(rest, end + 2)
            comment = 0
            continue
        }
        if (!match(rest, /"[^"]*"|\/\*|\/\//)) {
            code = code rest
            break
        }
        code = code substr(rest, 1, RSTART - 1)
        found = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        if (found == "//") break
        if (found == "/*") comment = 1
        else code = code (strings ? found : "\"\"")
    }
    if (code ~ /[^ \t]/) print FILENAME ":" FNR ":" code
}
