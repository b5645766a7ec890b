# shellcheck shell=sh disable=SC2034 # the scripts that read this file use its variables
# setup.sh - functions that install missing packages and build a sample. Scripts of samples/ and tests/ read this file.
# VKT_BUILD_DIR=DIR in the environment puts all builds into DIR, so that the checkout may be read-only.

VKT_BUILD_PACKAGES="build-essential cmake ninja-build pkg-config libvulkan-dev libvulkan1 glslang-tools spirv-tools
    mesa-vulkan-drivers zlib1g-dev libjpeg-dev libpng-dev libcairo2-dev libjansson-dev libpcre2-dev libglfw3-dev curl ca-certificates"
VKT_TEST_PACKAGES="libcmocka-dev vulkan-validationlayers clang clang-format doxygen xvfb"
VKT_MPI_PACKAGES="libopenmpi-dev openmpi-bin libmpich-dev mpich" # both kinds of MPI, for the tests of libvktrain_mpi

message() { echo "vktrain: $*" >&2; }

# quietly LOG COMMAND...: runs COMMAND and writes its output to LOG. If COMMAND fails, calls show_errors and returns 1.
quietly() {
    log=$1
    shift
    "$@" >"$log" 2>&1 && return 0
    show_errors "$@"
    return 1
}

# show_errors COMMAND...: prints the lines of $log that report errors, each with the five lines after it, but at most 100 lines.
# If no line reports an error, prints the last 40 lines. At the end, prints that COMMAND failed.
show_errors() {
    { grep -A 5 -iE '(^|[^a-z])error|FAILED:' "$log" || tail -n 40 "$log"; } | head -n 100 >&2
    message "failed: $* (whole output: $log)"
}

is_installed() { dpkg -s "$1" 2>/dev/null | grep -q '^Status: install ok installed'; }

# install_missing PACKAGE...: installs the packages that are missing. Does not call apt-get if none is missing. If the user is
# not root and cannot run sudo without a password, prints the command for the user and fails. On a system without apt, prints
# a message and succeeds, because CMake reports later what is missing.
install_missing() {
    if ! command -v dpkg >/dev/null || ! command -v apt-get >/dev/null; then
        message "this system has no apt; install the packages that it has for: $*"
        return 0
    fi
    missing=
    for package; do is_installed "$package" || missing="$missing $package"; done
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        as_root="sudo -n"
    else
        message "packages are missing, and only root may install them. Please run:"
        echo "    sudo apt-get update && sudo apt-get install -y$missing" >&2
        return 1
    fi
    apt_log=$(mktemp)
    message "fetching the lists of packages (apt-get update)"
    # shellcheck disable=SC2086 # word splitting is wanted
    quietly "$apt_log" $as_root apt-get -qq update || return 1
    message "installing (apt-get install; some minutes the first time):$missing"
    # shellcheck disable=SC2086
    quietly "$apt_log" $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
        -o DPkg::Lock::Timeout=120 $missing || return 1
    rm -f "$apt_log"
}

# make_folder DIR: makes the folder like mkdir -p. If DIR cannot be written, prints what to do and fails.
make_folder() {
    mkdir -p "$1" 2>/dev/null && [ -w "$1" ] && return 0
    message "$1 cannot be written: set VKT_BUILD_DIR to a folder for builds, for instance VKT_BUILD_DIR=\$HOME/vktrain-build"
    return 1
}

# show_build: copies ninja's output from stdin to stdout, and prints the progress on stderr. On a terminal, unless TERM
# is empty or dumb, it rewrites one line. Elsewhere it prints a line whenever another 10 % of the commands are done, but only
# if the build has 50 or more commands.
show_build() {
    rewrites="" reported=0
    [ ! -t 2 ] || case ${TERM-} in "" | dumb) ;; *) rewrites=1 ;; esac
    while IFS= read -r line; do
        printf '%s\n' "$line"
        case $line in
        "["[0-9]*/[0-9]*"] "*) ;;
        *) continue ;;
        esac
        count=${line%%"]"*}
        count=${count#"["}
        tenths=$((${count%/*} * 10 / ${count#*/}))
        if [ "$rewrites" ]; then
            printf '\rbuilding %s' "$count" >&2
            reported=1
        elif [ "${count#*/}" -ge 50 ] && [ "$tenths" -gt "$reported" ]; then
            message "building: $count"
            reported=$tenths
        fi
    done
    [ ! "$rewrites" ] || [ "$reported" = 0 ] || echo >&2
}

# build_quietly LOG COMMAND...: runs COMMAND (cmake --build) as the function `quietly` does. Also prints the progress of ninja.
build_quietly() {
    log=$1
    shift
    { "$@" 2>&1 && echo "build succeeded"; } | show_build >"$log"
    [ "$(tail -n 1 "$log")" = "build succeeded" ] && return 0
    show_errors "$@"
    return 1
}

# build_sample ROOT TARGET: installs what the build needs. Sets `build` to $VKT_BUILD_DIR/build (ROOT/build if the variable is
# empty or not set), and builds TARGET there.
build_sample() {
    # shellcheck disable=SC2086
    install_missing $VKT_BUILD_PACKAGES || return 1
    build=${VKT_BUILD_DIR:-$1}/build
    make_folder "$build" || return 1
    if [ -f "$build/build.ninja" ] || [ -f "$build/Makefile" ]; then
        message "building (build/)"
    else
        message "configuring and building (build/; a minute or two the first time)"
        quietly "$build/configure.log" cmake -S "$1" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
            -DVKT_BUILD_TESTS=OFF || return 1
    fi
    build_quietly "$build/build.log" cmake --build "$build" --target "$2" --parallel
}
