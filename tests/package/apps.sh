#!/bin/sh
# apps.sh SOURCE BUILD GLSLANG - installs the library of BUILD, and builds the applications of tests/package/apps against it
# with pkg-config and the system's compilers. Runs the applications under the validation layer with synchronization validation.
# If the layer is installed, the application `fault` must cause a message of the layer. A message from another application is a
# failure. GLSLANG compiles the renderer's shader.
set -eu
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
glslang=$3
apps=$source/tests/package/apps
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
sync=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
VK_LAYER_ENABLES=$sync:VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT
VK_LAYER_VALIDATE_SYNC=1
VK_LAYER_SYNCVAL_SHADER_ACCESSES_HEURISTIC=1
XDG_CACHE_HOME=$work/cache
export VK_INSTANCE_LAYERS VK_LAYER_ENABLES VK_LAYER_VALIDATE_SYNC VK_LAYER_SYNCVAL_SHADER_ACCESSES_HEURISTIC XDG_CACHE_HOME

fail() {
    [ ! -f "$work/log" ] || cut -c 1-1000 "$work/log" | head -n 60
    echo "FAILED: $*"
    exit 1
}

step() { # step WHAT COMMAND...: prints WHAT and runs COMMAND; if COMMAND fails, prints its output and ends the script
    what=$1
    shift
    echo "$what"
    "$@" >"$work/log" 2>&1 || fail "$what"
}

# Returns whether the log has a message of the layer. Older layers need VK_LAYER_ENABLES. Newer layers warn that it is deprecated:
# this warning (VALIDATION-SETTINGS) does not count.
messages() { grep -E 'Validation (Error|Warning)|VUID-|SYNC-HAZARD' "$work/log" | grep -qv VALIDATION-SETTINGS; }

run() { # run NAME ARGUMENT...: runs an application, fails if the layer prints a message, and prints the last lines
    name=$1
    shift
    step "$name: run" "$work/$name" "$@"
    ! messages || fail "$name: messages of the validation layer"
    cut -c 1-300 "$work/log" | tail -n 3
}

step "install" cmake --install "$build" --prefix "$work/installed"
PKG_CONFIG_PATH=$(dirname "$(find "$work/installed" -name vktrain.pc)"):${PKG_CONFIG_PATH:-}
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs vktrain vulkan)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir vktrain):${LD_LIBRARY_PATH:-} # for a shared library
export LD_LIBRARY_PATH
step "scene.comp" "$glslang" -V --quiet --vn scene -o "$work/scene.spv.h" "$apps/scene.comp"
for name in fault renderer jobs; do
    # shellcheck disable=SC2086
    step "$name: build" cc -std=c11 -Wall -Wextra -Werror -I"$work" "$apps/$name.c" -o "$work/$name" $flags -lm -pthread
done
# shellcheck disable=SC2086
step "two_contexts: build" c++ -std=c++17 -Wall -Wextra -Werror "$apps/two_contexts.cpp" -o "$work/two_contexts" $flags -pthread

code=0
"$work/fault" >"$work/log" 2>&1 || code=$?
case $code in
0) grep -q SYNC-HAZARD "$work/log" || fail "fault: want a message of synchronization validation" ;;
77) echo "SKIPPED: validation of the applications: VK_LAYER_KHRONOS_validation is not installed" ;;
*) fail "fault: run" ;;
esac
run renderer
run two_contexts
run jobs "$work/state.safetensors"
