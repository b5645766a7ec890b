#!/bin/sh
# shipped.sh SOURCE CMAKE - checks that the modules of shaders/coop belong to the sources of this tree. Then it plants single
# faults, each in a new copy of the tree, and checks that cmake/coop.cmake reports each of them. Needs no shader compiler.
set -u
source=$(cd "$1" && pwd) || exit 2
cmake=$2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0

"$cmake" -P "$source/cmake/coop.cmake" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}

# plant WANT COMMAND...: runs COMMAND in a fresh copy of the tree. cmake/coop.cmake must then fail, with WANT in its message.
plant() {
    want=$1
    shift
    rm -rf "$work/tree"
    mkdir -p "$work/tree/include" "$work/tree/cmake"
    cp -R "$source/shaders" "$work/tree/"
    cp -R "$source/include/vktrain" "$work/tree/include/"
    cp "$source/cmake/coop.cmake" "$source/cmake/Kernels.cmake" "$source/cmake/bfloat.c" "$work/tree/cmake/"
    (cd "$work/tree" && "$@") || exit 2
    if "$cmake" -P "$work/tree/cmake/coop.cmake" >"$work/log" 2>&1 || ! grep -q "$want" "$work/log"; then
        cat "$work/log"
        echo "FAILED: want \"$want\" after: $*"
        failed=1
    fi
}
edit() { sed -i "$1" "$2"; }

other='was made from other sources'
plant "GEMM_COOP.hex $other" edit '$a // a comment' shaders/product/gemm_shared.comp
plant "GEMM_COOP.hex $other" edit '$a // a comment' shaders/lib/blocks_coop.glsl # an included file
plant "CONV2D_DW_COOP.hex $other" edit '$a /* a comment */' shaders/abi/blocks.abi.h
plant "GEMM_COOP.hex $other" edit '/^VKT_KERNEL(GEMM_COOP,/s/COOP=1/COOP=2/' shaders/kernels.def
plant "GEMM_BFLOAT.hex $other" edit '$a /* a comment */' cmake/bfloat.c # bfloat.c writes this module
plant "GEMM_COOP.hex is missing" rm shaders/coop/GEMM_COOP.hex
plant "GEMM_COOP.hex has other words" edit '$s/[0-8]/9/' shaders/coop/GEMM_COOP.hex # one digit
plant "GEMM_COOP.hex has other words" edit '/^# words:/d' shaders/coop/GEMM_COOP.hex
plant "NEW.hex is missing" edit '/^VKT_KERNEL(GEMM_COOP,/{p;s/GEMM_COOP/NEW/}' shaders/kernels.def
plant "OLD.hex belongs to no entry" touch shaders/coop/OLD.hex
plant "coop_modules" rm shaders/coop/GEMM_COOP.hex # the message names the target that writes the files
exit $failed
