# awk -f floors.awk engine/README.md engine/*/*.[ch] - reports every #include "..." that the table of floors does not allow.
#
# A row `| 3 | ops | content | base, ir, kernel ids |` lets engine/ops include its own folder, the folders base and ir, all that
# these two may include, and kernel/ids.h. `all but gpu, kernel` means all folders on lower floors except gpu and kernel, even
# if one of the allowed folders may include gpu or kernel.

function trim(s) { gsub(/^[ \t`]+|[ \t`]+$/, "", s); return s }

function read_row(   col) {
    split($0, col, "|")
    floor[trim(col[3])] = col[2] + 0
    knows_text[trim(col[3])] = trim(col[5])
}

function grant(a, what,   words) {
    if (what == "" || what == "nothing") return
    if (split(what, words, " ") == 2) single[a, words[1] "/" words[2] ".h"] = 1
    else if (!(what in floor)) print "engine/README.md:0: " a " knows " what ", which is no folder of the table"
    else if (floor[what] >= floor[a]) print "engine/README.md:0: " a " knows " what ", which is not on a lower floor"
    else knows[a, what] = 1
}

function read_table(   a, b, c, i, n, part, key, changed) {
    for (a in floor) {
        total[a] = knows_text[a] ~ /^all but /
        n = split(knows_text[a], part, ",")
        if (total[a]) {
            for (b in floor) if (floor[b] < floor[a]) knows[a, b] = 1
            sub(/^all but /, "", part[1])
            for (i = 1; i <= n; i++) delete knows[a, trim(part[i])]
        } else for (i = 1; i <= n; i++) grant(a, trim(part[i]))
    }
    do {
        changed = 0
        for (a in floor) for (b in floor) if (!total[a] && (a, b) in knows) {
            for (c in floor) if ((b, c) in knows && !((a, c) in knows)) changed = knows[a, c] = 1
            for (key in single) {
                split(key, part, SUBSEP)
                if (part[1] == b && !((a, part[2]) in single)) changed = single[a, part[2]] = 1
            }
        }
    } while (changed)
}

function report(text) { print FILENAME ":" FNR ": " text }

FILENAME ~ /README\.md$/ { if ($0 ~ /^\|[ \t]*[0-9]+[ \t]*\|/) read_row(); next }

!ready { ready = 1; read_table() }
FNR == 1 {
    split(FILENAME, path, "/")
    own = path[2]
    if (!(own in floor)) report("engine/" own " is not in the table of engine/README.md")
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, quoted, "\"")
    target = quoted[2]
    if (target ~ /\.\.\//) report("include from the root of engine/, not " target)
    else if (split(target, path, "/") > 1 && path[1] != own && path[1] != "vktrain" && path[1] != "abi") {
        if (!(path[1] in floor)) report("no folder " path[1] " in the table of engine/README.md: " target)
        else if (!((own, path[1]) in knows) && !((own, target) in single))
            report(own " (floor " floor[own] ") must not know " target " (floor " floor[path[1]] ")")
    }
}
END { if (!ready) print "engine/README.md:0: no file was looked at" }
