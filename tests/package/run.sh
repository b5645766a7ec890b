#!/bin/sh
# run.sh SOURCE BUILD SPV - installs the static library of BUILD, with vkt-info, and a shared library that this script builds.
# Applications use each library through find_package and through pkg-config, and use the source as a subdirectory. SPV has the
# compiled shaders, so the subdirectory compiles only one shader, as a test.
set -eu
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
spv=$(cd "$3" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
app=$source/tests/package/app
version=$(sed -nE 's/^#define VKT_VERSION_(MAJOR|MINOR|PATCH) +//p' "$source/include/vktrain/core.h" | paste -sd .)

step() { # step WHAT COMMAND...: prints WHAT and runs COMMAND; if COMMAND fails, prints its output and ends the script
    what=$1
    shift
    echo "$what"
    "$@" >"$work/log" 2>&1 || {
        cat "$work/log"
        echo "FAILED: $what"
        exit 1
    }
}

use_package() { # use_package NAME PREFIX: builds and runs the application through CMake
    step "$1: find_package" cmake -S "$app" -B "$work/cmake-$1" -DCMAKE_PREFIX_PATH="$2"
    step "$1: build" cmake --build "$work/cmake-$1"
    step "$1: run, C" env LD_LIBRARY_PATH="$2/lib" "$work/cmake-$1/app_c"
    step "$1: run, C++" env LD_LIBRARY_PATH="$2/lib" "$work/cmake-$1/app_cpp"
    step "$1: run, a device of its own" env LD_LIBRARY_PATH="$2/lib" "$work/cmake-$1/app_vk"
    if [ -f "$2/lib/pkgconfig/vktrain_mpi.pc" ]; then
        step "$1: run, with libvktrain_mpi" env LD_LIBRARY_PATH="$2/lib" "$work/cmake-$1/app_mpi"
    fi
}

use_pkg_config() { # use_pkg_config NAME PREFIX OPTION...: builds and runs the application through pkg-config
    name=$1 prefix=$2
    shift 2
    PKG_CONFIG_PATH=$prefix/lib/pkgconfig
    export PKG_CONFIG_PATH
    flags=$(pkg-config "$@" --cflags --libs vktrain)
    [ "$(pkg-config --modversion vktrain)" = "$version" ] || {
        echo "FAILED: $name: want version $version as in core.h, got $(pkg-config --modversion vktrain)"
        exit 1
    }
    # shellcheck disable=SC2086
    step "$name: pkg-config" "${CC:-cc}" -std=c11 "$app/app.c" -o "$work/app-$name" $flags
    # shellcheck disable=SC2086
    step "$name: the program of README.md" "${CC:-cc}" -std=c11 "$source/samples/train_minimal.c" -o "$work/readme-$name" $flags
    step "$name: run" env LD_LIBRARY_PATH="$prefix/lib" "$work/app-$name"
    [ -f "$prefix/lib/pkgconfig/vktrain_mpi.pc" ] || return 0
    flags=$(pkg-config "$@" --cflags --libs vktrain_mpi)
    # shellcheck disable=SC2086
    step "$name: pkg-config, libvktrain_mpi" "${CC:-cc}" -std=c11 "$app/app_mpi.c" -o "$work/app_mpi-$name" $flags
    step "$name: run, libvktrain_mpi" env LD_LIBRARY_PATH="$prefix/lib" "$work/app_mpi-$name"
}

dead_links() { # dead_links PREFIX: prints the relative links of installed pages that lead nowhere
    find "$1" -name '*.md' | while read -r page; do
        grep -o ']([^) ]*)' "$page" | sed 's/^](//; s/)$//; s/#.*//' | while read -r link; do
            case $link in
            "" | *:*) ;;
            *) [ -e "$(dirname "$page")/$link" ] || echo "${page#"$1"}: $link" ;;
            esac
        done
    done
}

if [ -f "$build/libvktrain.a" ] && grep -q '^CMAKE_BUILD_TYPE:.*=Rel' "$build/CMakeCache.txt"; then
    step "size: link" "${CC:-cc}" -shared -s -o "$work/whole.so" -Wl,--whole-archive "$build/libvktrain.a" -Wl,--no-whole-archive
    bytes=$(wc -c <"$work/whole.so")
    echo "size: $bytes bytes with all shaders, stripped"
    [ "$bytes" -lt 3700000 ] || {
        echo "FAILED: the library is to stay below 3.7 MB"
        exit 1
    }
    if grep -aqE 'PHILOX_TEST|BENCH_(COPY|FMA)' "$work/whole.so"; then
        echo "FAILED: the library has kernels of shaders/tools.def"
        exit 1
    fi
else
    echo "size: not looked at, for this is no static release build"
fi

step "static: install" cmake --install "$build" --prefix "$work/static"
mv "$work/static" "$work/moved" # an installed package may be moved
for program in train_minimal embed_minimal; do # compiles the installed programs, without linking them
    step "installed $program" cc -std=c11 -c -I"$work/moved/include" -o "$work/$program.o" "$(find "$work/moved" -name "$program.c")"
done
step "installed documents" test -f "$(find "$work/moved" -name embedding.md)"
dead_links "$work/moved" >"$work/dead"
[ ! -s "$work/dead" ] || {
    echo "FAILED: installed pages have links to files that are not installed"
    cat "$work/dead"
    exit 1
}
use_package static "$work/moved"
use_pkg_config static "$work/moved"
use_pkg_config static-static "$work/moved" --static
[ ! -x "$build/samples/vkt-info" ] || step "vkt-info" "$work/moved/bin/vkt-info" --help
[ -z "$(command -v glslangValidator)" ] || step "vktrain.glsl" glslangValidator -V --quiet -I"$work/moved/include" -o "$work/inline.spv" \
    -DDIMS=2 -DLEVELS=3 -DFEATURES=1 -DFREQUENCIES=1 -DHIDDEN=2 "$source/tests/embed/shaders/inline.comp"
[ -z "$(command -v glslangValidator)" ] || step "vktrain.hlsl" glslangValidator -D -e main -S comp -V --quiet -I"$work/moved/include" \
    -o "$work/inline.spv" -DDIMS=2 -DLEVELS=3 -DFEATURES=1 -DFREQUENCIES=1 -DHIDDEN=2 "$source/tests/embed/shaders/inline.hlsl"
if [ -n "$(command -v glslangValidator)" ]; then # compiles the sample that has its own shaders, as docs/custom.md says
    shader=$(find "$work/moved" -name custom_loss.comp)
    step "custom_loss.comp" glslangValidator -V --quiet --vn custom_loss -o "$work/custom_loss.spv.h" "$shader"
    step "custom_loss.comp, its gradient" glslangValidator -V --quiet -DGRADIENT --vn custom_loss_dx -o "$work/custom_loss_dx.spv.h" "$shader"
    step "custom_loss.c" cc -std=c11 -c -I"$work/moved/include" -I"$work" -o "$work/custom_loss.o" "${shader%.comp}.c"
fi

# Builds the shared library as a subdirectory of an application. All symbols that the library exports begin with vkt_.
step "subdirectory: configure" cmake -G Ninja -S "$app" -B "$work/sub" -DVKTRAIN_SOURCE="$source" -DBUILD_SHARED_LIBS=ON \
    -DVKT_INSTALL=ON -DVKT_BUILD_SAMPLES=ON -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_BUILD_TYPE=Debug # Debug compiles in a third of the time
step "subdirectory: a shader" cmake --build "$work/sub" --target vktrain/spv/REPORT.spv vkt_embed
step "subdirectory: the other shaders" cmake -DVKT_SPIRV="$spv" "$work/sub"
step "subdirectory: build" cmake --build "$work/sub"
step "subdirectory: run" "$work/sub/app_cpp"
foreign=$(nm -D --defined-only "$work"/sub/vktrain/libvktrain*.so | awk 'NF == 3 && $3 !~ /^vkt_/')
[ -z "$foreign" ] || {
    echo "FAILED: the library exports: $foreign"
    exit 1
}
# Before 1.0 the interface changes with the minor version, so the soname has the major and the minor number.
soname=$(awk '/^#define VKT_VERSION_MAJOR/ { m = $3 } /^#define VKT_VERSION_MINOR/ { n = $3 }
    END { print "libvktrain.so." m (m ? "" : "." n) }' "$source/include/vktrain/core.h")
readelf -d "$work/sub/vktrain/libvktrain.so" | grep -qF "soname: [$soname]" || {
    echo "FAILED: want the soname $soname"
    readelf -d "$work/sub/vktrain/libvktrain.so"
    exit 1
}
step "shared: install" cmake --install "$work/sub" --prefix "$work/shared"
use_package shared "$work/shared"
use_pkg_config shared "$work/shared"
