# generate.awk - writes vktrain.glsl or vktrain.hlsl from vktrain.shader: awk -v to=glsl -f generate.awk vktrain.shader
#
# `cmake --build build --target inline_shaders` calls this script. Lines between @glsl or @hlsl and the next line that
# begins with @ go only into the file of that language. The array `word` has the replacements of identifiers. The
# backslashes at the ends of a macro's lines are aligned in one column.
BEGIN {
    if (to == "hlsl") {
        for (n = 2; n <= 4; n++) {
            word["vec" n] = "float" n
            word["uvec" n] = "uint" n
            word["bvec" n] = "bool" n
        }
        word["vec"] = "float"
        word["vecD"] = "floatD"
        word["splat4"] = "(float4)"
        word["usplat4"] = "(uint4)"
        word["realsplat4"] = "(float4)"
        word["uintBitsToFloat"] = "asfloat"
    } else {
        word["splat4"] = "vec4"
        word["usplat4"] = "uvec4"
        word["realsplat4"] = "VKT_REAL4"
    }
    word["EXT"] = to
    word["VKTRAIN_EXT"] = "VKTRAIN_" toupper(to)
    keep = 1
}

function translate(line,    out, name) {
    out = ""
    while (match(line, /[A-Za-z_][A-Za-z_0-9]*/)) {
        name = substr(line, RSTART, RLENGTH)
        out = out substr(line, 1, RSTART - 1) ((name in word) ? word[name] : name)
        line = substr(line, RSTART + RLENGTH)
    }
    return out line
}

# Prints the collected lines of a macro with their backslashes, then `last`, a line without a backslash.
function flush(last,    i, most) {
    most = 0
    for (i = 1; i <= waiting; i++) if (length(macro[i]) > most) most = length(macro[i])
    for (i = 1; i <= waiting; i++) printf "%-" most "s \\\n", macro[i]
    waiting = 0
    print last
}

/^@/ { keep = $0 == "@end" || $0 == "@" to; next }
!keep { next }
{
    line = translate($0)
    if (sub(/ *\\$/, "", line)) macro[++waiting] = line
    else flush(line)
}
