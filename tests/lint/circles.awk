# nm -A -P OBJECT... | awk -v name=LIBRARY -f circles.awk - see circles.sh.
#
# A line of nm is "path/to/engine/gpu/memory.c.o: symbol TYPE [value size]". TYPE U is a use. T D B R C V W are definitions that
# other files see.

function file_of(path) {
    sub(/:$/, "", path)
    sub(/\.o(bj)?$/, "", path)
    if (match(path, /\.dir\//)) path = substr(path, RSTART + RLENGTH) # CMakeFiles/LIBRARY.dir/engine/gpu/memory.c
    return path
}

{ file = file_of($1); files[file] = 1 }
$3 == "U" { uses[file, $2] = 1; next }
$3 ~ /^[TDBRCVW]$/ { home[$2] = file }

function reach_all(   i, j, k) {
    for (k in files) for (i in files) if ((i, k) in reach) for (j in files) if ((k, j) in reach) reach[i, j] = 1
}

# Prints the circle of `file`, in order of the files' names. A file is in this circle if it calls `file` and `file` calls it,
# directly or through other files. Then prints the calls between the files of the circle.
function report(file,   other, n, i, j, names, line, key, part) {
    n = 0
    for (other in files) if ((file, other) in reach && (other, file) in reach) {
        done[other] = 1
        for (i = ++n; i > 1 && names[i - 1] > other; i--) names[i] = names[i - 1]
        names[i] = other
    }
    line = name ":"
    for (i = 1; i <= n; i++) line = line (i > 1 ? " <-> " : " ") names[i]
    print line
    for (i = 1; i <= n; i++) for (j = 1; j <= n; j++) for (key in edge) {
        split(key, part, SUBSEP)
        if (part[1] == names[i] && part[2] == names[j]) print "    " part[1] " uses" edge[key] " of " part[2]
    }
}

END {
    for (key in uses) {
        split(key, part, SUBSEP)
        if (!(part[2] in home) || home[part[2]] == part[1]) continue
        edge[part[1], home[part[2]]] = edge[part[1], home[part[2]]] " " part[2]
        reach[part[1], home[part[2]]] = 1
    }
    reach_all()
    for (file in files) if ((file, file) in reach && !(file in done)) report(file)
}
