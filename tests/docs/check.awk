# awk -f check.awk HEADER... XML... - prints one line for each function that the headers declare and Doxygen's XML lacks, and
# for each symbol without a text. Doxygen itself does not warn of functions that the preprocessor hides, nor of enumerators
# without a text.

# ---- headers: a declaration from VKT_API to its ";" ----
FILENAME ~ /\.h$/ {
    if (!declaring && !/^VKT_API /) next
    declaration = (declaring ? declaration " " : "") $0
    declaring = !/;/
    if (declaring) next
    if (!match(declaration, /vkt_[a-z0-9_]+\(/)) print FILENAME ": a declaration that is not understood: " declaration
    else declared[substr(declaration, RSTART, RLENGTH - 1)] = FILENAME
    next
}

# ---- XML, one element per line: symbols contain other symbols, so the open symbols are a stack ----
/<(memberdef|enumvalue|compounddef) / {
    depth++
    kind[depth] = $0
    sub(/.* kind="/, "", kind[depth])
    sub(/".*/, "", kind[depth])
    if (/<enumvalue /) kind[depth] = "enumvalue"
    name[depth] = has_text[depth] = ""
}
/<(name|compoundname)>/ && name[depth] == "" {
    name[depth] = $0
    gsub(/.*<(name|compoundname)>|<\/.*/, "", name[depth])
    if (kind[depth] == "function") found[name[depth]] = 1
}
/<(brief|detailed)description>/ { in_text = 1 }
/<para>/ && in_text { has_text[depth] = 1 }
/<\/(brief|detailed)description>/ { in_text = 0 }
/<\/(memberdef|enumvalue|compounddef)>/ {
    if (!has_text[depth] && kind[depth] !~ /^(dir|group)$/ && name[depth] !~ /^@|\.dox$/) # @: an enum without a name
        print name[depth] " (" kind[depth] ") has no text"
    symbols++
    depth--
}

END {
    for (f in declared) {
        functions++
        if (!(f in found)) print f " of " declared[f] " is not in the reference"
    }
    if (functions < 300 || symbols < 1000) print "only " functions + 0 " functions and " symbols + 0 " symbols were found"
}
