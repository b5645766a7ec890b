#!/bin/sh
# small.sh SOURCE SPV - builds two small libraries, and a program for each library. The first library has only the kernels of a
# network of fully connected layers, with the options of docs/size.md. It must have at most 400,000 bytes, stripped. The second
# library links only the system's libraries for C and threads. SPV has the compiled shaders.
set -eu
source=$(cd "$1" && pwd)
spv=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$source/tests/package/small

fail() {
    [ ! -f "$work/log" ] || cat "$work/log"
    echo "FAILED: $*"
    exit 1
}

step() { # step WHAT COMMAND...: prints WHAT and runs COMMAND; if COMMAND fails, prints its output and ends the script
    what=$1
    shift
    echo "$what"
    "$@" >"$work/log" 2>&1 || fail "$what"
}

configure() { # configure NAME KERNELS OPTION...: configures a build, without samples and tests unless an option enables them
    name=$1 kernels=$2
    shift 2
    step "$name: configure" cmake -G Ninja -S "$source" -B "$work/$name" -DVKT_SPIRV="$spv" -DVKT_BUILD_TESTS=OFF -DVKT_BUILD_SAMPLES=OFF \
        -DVKT_WITH_MPI=OFF "-DVKT_KERNELS=$kernels" "$@"
}

# All public functions that small.c calls, and no others, are exported.
exports=$(grep -oE '\bvkt_[a-z0-9_]+\(' "$here/small.c" | tr -d '(' | grep -vE '^vkt_shape[0-9]$' | sort -u | paste -sd ';')
configure small 'linear;relu;mse;adam' -DCMAKE_BUILD_TYPE=MinSizeRel -DBUILD_SHARED_LIBS=ON -DVKT_TEXELS=OFF "-DVKT_EXPORTS=$exports" \
    -DCMAKE_C_FLAGS=-fno-asynchronous-unwind-tables
step "small: build" cmake --build "$work/small"
strip -o "$work/small.so" "$work/small/libvktrain.so"
bytes=$(wc -c <"$work/small.so")
echo "small: $bytes bytes, stripped"
[ "$bytes" -le 400000 ] || fail "want at most 400000 bytes"
nm -D --defined-only "$work/small.so" | awk 'NF == 3 { print $3 }' | sort | paste -sd ';' >"$work/exported"
[ "$(cat "$work/exported")" = "$exports" ] || fail "want the exports $exports, got $(cat "$work/exported")"
step "small: an application" "${CC:-cc}" -std=c11 -I"$source/include" -o "$work/app" "$here/small.c" -L"$work/small" -lvktrain
step "small: run" env LD_LIBRARY_PATH="$work/small" "$work/app"
tail -n 1 "$work/log"

# Wrong names stop the configuration with a message.
for wrong in VKT_KERNELS=liner VKT_KERNELS=GEMM_TIEL VKT_EXPORTS=vkt_liner; do
    if cmake -G Ninja -S "$source" -B "$work/wrong" -DVKT_SPIRV="$spv" -DVKT_BUILD_TESTS=OFF -DVKT_BUILD_SAMPLES=OFF -DBUILD_SHARED_LIBS=ON \
        "-D$wrong" >"$work/log" 2>&1; then
        fail "-D$wrong: want an error"
    fi
    grep -q "${wrong%%=*}: .*'${wrong#*=}'" "$work/log" || fail "-D$wrong: want a message with the name"
    rm -rf "$work/wrong"
done

# The options VKT_WITH_* exclude libraries. The options CMAKE_DISABLE_FIND_PACKAGE_* hide the same libraries from CMake. So the
# configuration fails if it still requires one of these libraries.
configure without 'linear;relu;mse;adam;write' -DCMAKE_BUILD_TYPE=Debug -DCMAKE_INSTALL_LIBDIR=lib -DVKT_BUILD_SAMPLES=ON -DVKT_WITH_JPEG=OFF -DVKT_WITH_PNG=OFF \
    -DVKT_WITH_CAIRO=OFF -DVKT_WITH_ZLIB=OFF -DVKT_WITH_JANSSON=OFF -DVKT_WITH_PCRE2=OFF -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON -DCMAKE_DISABLE_FIND_PACKAGE_JPEG=ON -DCMAKE_DISABLE_FIND_PACKAGE_PNG=ON
grep -q '^-- VKT_WITH_JANSSON=OFF: no samples except ' "$work/log" || fail "want a message that samples are left out"
step "without: build" cmake --build "$work/without"
step "without: install" cmake --install "$work/without" --prefix "$work/installed"
for words in zlib png jpeg jansson cairo pcre2; do
    ! grep -i "$words" "$work/installed/lib/pkgconfig/vktrain.pc" "$work/installed/lib/cmake/vktrain/"*.cmake >"$work/log" ||
        fail "want a package without $words"
done
PKG_CONFIG_PATH=$work/installed/lib/pkgconfig
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs vktrain)
# shellcheck disable=SC2086
step "without: an application" "${CC:-cc}" -std=c11 -o "$work/app" "$here/without.c" $flags
needed=$(readelf -d "$work/app" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^lib(c|m|dl|pthread|gcc_s)\.so|^ld-linux' || true)
[ -z "$needed" ] || fail "the program needs $needed"
step "without: run" "$work/app" "$work"
tail -n 1 "$work/log"
[ ! -x "$work/without/samples/vkt-embed_minimal" ] || step "without: vkt-embed_minimal" "$work/without/samples/vkt-embed_minimal"
