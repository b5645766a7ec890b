# Prints "file:line:text" for each line of a comment in C, C++ and GLSL files: code is left out, and so are strings. A line
# that begins a comment is "file:line:> text".
FNR == 1 { comment = 0 }
{
    rest = $0
    gsub(/\\["\\]/, "", rest)
    gsub(/'"'/, "0", rest)
    while (rest != "") {
        mark = ""
        if (!comment) {
            if (!match(rest, /"[^"]*"|\/\*|\/\//)) break
            found = substr(rest, RSTART, 2)
            rest = substr(rest, RSTART + RLENGTH)
            if (found == "//") {
                print FILENAME ":" FNR ":> " rest
                break
            }
            if (found != "/*") continue
            comment = 1
            mark = ">"
        }
        end = index(rest, "*/")
        text = end ? substr(rest, 1, end - 1) : rest
        print FILENAME ":" FNR ":" mark text
        comment = !end
        rest = end ? substr(rest, end + 2) : ""
    }
}
