# awk -f docs.awk FILE.md... - prints the references and the headings of documents, one per line:
#   FILE:LINE link TARGET      the target of [text](TARGET), except web addresses
#   FILE:LINE path PATH        `PATH` in code quotes that begins with a folder of this tree
#   FILE:LINE name NAME        `NAME` in code quotes that is a name of the API: vkt_...
#   FILE:LINE heading SLUG     a heading; links write it as #SLUG
# Text between lines of ``` is skipped.
FNR == 1 { fenced = 0 }
/^ *```/ { fenced = !fenced; next }
fenced { next }
function say(kind, what) { print FILENAME ":" FNR " " kind " " what }
/^#+ / {
    slug = tolower($0)
    sub(/^#+ +/, "", slug)
    gsub(/[^a-z0-9 _-]/, "", slug)
    gsub(/ /, "-", slug)
    say("heading", slug)
}
{
    rest = $0
    while (match(rest, /`[^`]+`/)) {
        code = substr(rest, RSTART + 1, RLENGTH - 2)
        if (code ~ /^(cmake|docs|engine|include|samples|scripts|shaders|tests)\/[A-Za-z0-9_.\/-]*$/) say("path", code)
        if (code ~ /^vkt_[a-z0-9_]+(\(\))?$/) { sub(/\(\)/, "", code); say("name", code) }
        rest = substr(rest, RSTART + RLENGTH)
    }
    rest = $0
    gsub(/`[^`]*`/, "", rest)
    while (match(rest, /\]\([^)]+\)/)) {
        target = substr(rest, RSTART + 2, RLENGTH - 3)
        if (target !~ /^(https?|mailto):/) say("link", target)
        rest = substr(rest, RSTART + RLENGTH)
    }
}
