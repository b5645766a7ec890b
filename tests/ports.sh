#!/bin/sh
# ports.sh BUILD [DIR] - builds for 64-bit Windows and for 64-bit ARM Linux, and tests both on this machine.
#
# Runs the tests of tests/unit, tests/data and tests/io: the Windows build under wine, the ARM build under qemu-user (without
# data/test_costs). Trains a small network with each build, if a Vulkan driver is there. Leaves the packages in DIR (default:
# BUILD/ports): vktrain-<version>-windows-x86_64.zip and vktrain-<version>-linux-aarch64.tar.gz. BUILD is a finished build of
# this tree. Its SPIR-V is embedded in both ports.
#
# Installs the cross compilers, zlib for Windows, wine and qemu-user, if it can (Debian; root or sudo). Builds cmocka and
# jansson for Windows in DIR. Unpacks libraries and lavapipe for ARM in DIR, without installing them. If something is not
# available, skips the tests that need it and prints why. The last line is "N passed, N failed, N skipped". The status is 0
# only if nothing failed.
set -u
case ${1-} in
"" | -*)
    awk 'NR > 1 { if (!sub(/^# ?/, "")) exit; print }' "$0"
    exit 2
    ;;
esac
build=$(cd "$1" && pwd) || exit 2
dir=${2:-$build/ports}
mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 2
cd "$(dirname "$0")/.." || exit 2
. scripts/setup.sh
spirv=$(sed -n 's/^VKT_SPIRV:PATH=//p' "$build/CMakeCache.txt")

windows_packages="gcc-mingw-w64-x86-64 libz-mingw-w64-dev"
arm_packages="gcc-aarch64-linux-gnu"
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
touch "$out/counts"

passed() { echo "1 0 0" >>"$out/counts"; }
failed() {
    echo "FAILED: $1"
    echo "0 1 0" >>"$out/counts"
}
skipped() {
    echo "SKIPPED: $1"
    echo "0 0 1" >>"$out/counts"
}

# ---- packages that are built or unpacked, not installed

mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -v '^ *#' |
    grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' ')
mirror=${mirror:-http://deb.debian.org/debian}
mirror=${mirror%/}
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)

own_apt() { # own_apt ARCHITECTURE ARGUMENT...: runs apt-get with lists in $dir/apt, so that the system's lists do not change
    mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial"
    printf '%s %s %s main\n' deb "$mirror" "$suite" deb-src "$mirror" "$suite" >"$dir/apt/sources.list"
    : >"$dir/apt/status"
    architecture=$1
    shift
    (cd "$dir/apt" && apt-get -qq -y -o Dir::Etc::SourceList="$dir/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$dir/apt/lists" -o Dir::Cache="$dir/apt/cache" -o Dir::State::status="$dir/apt/status" \
        -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o Acquire::Retries=1 \
        -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15 -o APT::Sandbox::User= -o Debug::NoLocking=1 "$@") \
        >>"$dir/apt.log" 2>&1
}

# provide_source NAME CMAKE-OPTION...: builds a library for Windows into $dir/NAME, from Debian's source package. Debian has no
# package of this library for Windows.
provide_source() {
    name=$1
    shift
    [ ! -f "$dir/$name/complete" ] || return 0
    rm -rf "$dir/$name" "$dir/$name-source" "$dir/$name-build" "$dir/apt"
    own_apt amd64 update && own_apt amd64 source --download-only "$name"
    mkdir -p "$dir/$name-source"
    rm -f "$dir/apt/"*.asc # signatures
    tar -xf "$dir/apt/${name}_"*.orig.tar.* -C "$dir/$name-source" --strip-components=1 2>>"$dir/apt.log" || return 1
    quietly "$dir/$name.log" cmake -S "$dir/$name-source" -B "$dir/$name-build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        --toolchain "$PWD/cmake/toolchains/x86_64-w64-mingw32.cmake" -DBUILD_SHARED_LIBS=OFF \
        "-DCMAKE_C_FLAGS=-D__USE_MINGW_ANSI_STDIO=1 -w" -DCMAKE_INSTALL_PREFIX="$dir/$name" "$@" &&
        quietly "$dir/$name.log" cmake --build "$dir/$name-build" --target install && : >"$dir/$name/complete"
}

provide_cmocka() {
    provide_source cmocka -DWITH_EXAMPLES=OFF -DUNIT_TESTING=OFF &&
        cp "$dir/cmocka/lib/libcmocka.dll.a" "$dir/cmocka/lib/cmocka.dll.a" # the name that cmocka's CMake package uses
}

provide_jansson() {
    provide_source jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF -DJANSSON_WITHOUT_TESTS=ON
}

# Unpacks packages for ARM into $dir/arm64-root: the libraries that the build links, lavapipe, and all packages that these
# need.
provide_arm64() {
    [ ! -f "$dir/arm64-root/complete" ] || return 0
    rm -rf "$dir/arm64-root" "$dir/apt"
    own_apt arm64 update && own_apt arm64 install --download-only --no-install-recommends zlib1g-dev libjpeg62-turbo-dev \
        libpng-dev libjansson-dev libpcre2-dev libcmocka-dev libvulkan1 mesa-vulkan-drivers || return 1
    for file in "$dir"/apt/cache/archives/*.deb; do dpkg -x "$file" "$dir/arm64-root" || return 1; done
    # An absolute link in a package means a file below arm64-root, not a file of this machine. libm.so is such a link. If it led
    # to no file, the linker would take libm.a.
    find "$dir/arm64-root" -type l -lname '/*' | while read -r link; do
        ln -sfn "$dir/arm64-root$(readlink "$link")" "$link"
    done
    : >"$dir/arm64-root/complete"
    rm -rf "$dir/apt"
}

# ---- building and testing

# build_port NAME CMAKE-OPTION...: builds the library, the tests of tests/unit, tests/data and tests/io, a sample program, and
# ports/step.c in $dir/NAME.
build_port() {
    name=$1
    shift
    quietly "$dir/$name.configure.log" cmake -S . -B "$dir/$name" -G Ninja -DVKT_WERROR=ON -DBUILD_SHARED_LIBS=ON \
        -DVKT_SPIRV="${spirv:-$build/spv}" "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -DNDEBUG" "$@" &&
        quietly "$dir/$name.build.log" cmake --build "$dir/$name" --target vktrain vkt-train_minimal ports_step \
            tests_unit tests_data tests_io
}

# test_port NAME CTEST-OPTION...: runs the tests of a build and counts their cases.
test_port() {
    name=$1
    logs=$dir/$1/Testing/Temporary
    shift
    mkdir -p "$logs"
    rm -f "$logs"/*.log
    ctest --test-dir "$dir/$name" -j2 -L '^(unit|data|io)$' --timeout 300 "$@" >"$out/ctest" 2>&1
    touch "$logs/LastTest.log" "$logs/LastTestsFailed.log"
    cases=$(awk -f tests/cases.awk "$logs/LastTestsFailed.log" "$logs/LastTest.log")
    echo "$name: unit, data and io: $cases (passed, failed, skipped)"
    echo "$cases" >>"$out/counts"
    grep -o 'SKIPPED: .*' "$logs/LastTest.log" | sort -u
    [ "$cases" != "0 0 0" ] || failed "$name: no test ran"
    [ ! -s "$logs/LastTestsFailed.log" ] || grep -E '\[  FAILED|error:|ERROR|Failure!|vktrain' "$logs/LastTest.log"
}

# step NAME COMMAND...: runs COMMAND, which starts the program ports/step.c. This program trains and writes its weights
# to $out/NAME.
step() {
    name=$1
    shift
    "$@" "$out/$name" >"$out/step" 2>&1
    status=$?
    sed "/^X connection/d; s/^/$name: /" "$out/step" # wine prints this line when its display ends
    case $status in
    0) passed ;;
    77) skipped "$name: training: no Vulkan device was found" ;;
    *) failed "$name: training (status $status)" ;;
    esac
    return $status
}

# pack NAME FORMAT FILE: packs what the build installs.
pack() {
    rm -rf "$dir/package" "${dir:?}/$3"
    if quietly "$dir/$1.install.log" cmake --install "$dir/$1" --strip --prefix "$dir/package/vktrain" &&
        (cd "$dir/package" && cmake -E tar cf "$dir/$3" --format="$2" vktrain); then
        passed
        echo "$1: $(ls -l "$dir/$3")"
    else
        failed "$1: the package"
    fi
    rm -rf "$dir/package"
}

version=$(sed -n 's/^#define VKT_VERSION_\(MAJOR\|MINOR\|PATCH\) *\([0-9]*\)$/\2/p' include/vktrain/core.h | paste -sd .)

# ---- Windows

# Trains under wine and outside of wine. If wine has a display, its vulkan-1.dll passes calls to the loader of this machine. So
# both trainings use the same driver, and their weights must have the same bits.
train_windows() {
    if ! command -v xvfb-run >/dev/null; then
        skipped "windows: training: wine has no Vulkan without a display (xvfb-run)"
        return
    fi
    step windows xvfb-run -a "$wine" "$dir/windows/tests/ports_step.exe" || return
    quietly "$dir/step.log" cmake --build "$build" --target ports_step || return
    step native "$build/tests/ports_step" || return
    if cmp "$out/native" "$out/windows"; then
        passed
    else
        failed "windows: the weights differ from those outside of wine"
    fi
}

run_windows() {
    # shellcheck disable=SC2086
    if ! install_missing $windows_packages; then
        skipped "windows: the cross compiler cannot be installed"
        return
    fi
    if ! provide_cmocka || ! provide_jansson; then
        skipped "windows: the source of cmocka or jansson cannot be fetched or built (see $dir/apt.log)"
        return
    fi
    install_missing wine64 wine || true
    wine=$(command -v /usr/lib/wine/wine64 || command -v wine64 || command -v wine)
    # Debian has no packages of jpeg, png, cairo and pcre2 for Windows.
    export PKG_CONFIG_LIBDIR="$dir/jansson/lib/pkgconfig"
    if ! build_port windows --toolchain "$PWD/cmake/toolchains/x86_64-w64-mingw32.cmake" -DVKT_WITH_JPEG=OFF -DVKT_WITH_PNG=OFF \
        -DVKT_WITH_CAIRO=OFF -DVKT_WITH_PCRE2=OFF -DVKT_WINDOWS_ROOT="$dir/jansson" \
        -Dcmocka_DIR="$dir/cmocka/lib/cmake/cmocka" -DCMAKE_CROSSCOMPILING_EMULATOR="$wine"; then
        failed "windows: the build"
        return
    fi
    unset PKG_CONFIG_LIBDIR
    passed
    cp "$dir/cmocka/bin/cmocka.dll" "$dir/windows"/libvktrain*.dll "$dir/windows/tests" # a program finds DLLs in its own folder
    pack windows zip "vktrain-$version-windows-x86_64.zip"
    if [ -z "$wine" ]; then
        skipped "windows: tests and training: wine cannot be installed"
        return
    fi
    export WINEPREFIX="$dir/wine" WINEDEBUG=-all WINEDLLOVERRIDES="mscoree=;mshtml="
    export LC_ALL=C.UTF-8 # in other locales wine cannot open files whose names are not ASCII
    if ! "$wine" wineboot --init >"$dir/wineboot.log" 2>&1; then
        skipped "windows: tests and training: wine does not start (see $dir/wineboot.log)"
        return
    fi
    test_port windows
    train_windows
}

# ---- ARM

run_arm() {
    # shellcheck disable=SC2086
    if ! install_missing $arm_packages; then
        skipped "arm64: the cross compiler cannot be installed"
        return
    fi
    if ! provide_arm64; then
        skipped "arm64: its libraries cannot be fetched (see $dir/apt.log)"
        return
    fi
    install_missing qemu-user || true
    qemu=$(command -v qemu-aarch64)
    # cairo would need a hundred packages more. vkt-embed and vkt-bfloat of BUILD run on this machine, so they need not
    # be built again.
    if ! build_port arm64 --toolchain "$PWD/cmake/toolchains/aarch64-linux-gnu.cmake" -DVKT_ARM64_ROOT="$dir/arm64-root" \
        -DVKT_WITH_CAIRO=OFF -DVKT_HOST_TOOLS="$build" -DCMAKE_CROSSCOMPILING_EMULATOR="$qemu;-L;$dir/arm64-root"; then
        failed "arm64: the build"
        return
    fi
    passed
    pack arm64 gnutar "vktrain-$version-linux-aarch64.tar.gz"
    if [ -z "$qemu" ]; then
        skipped "arm64: tests and training: qemu-user cannot be installed"
        return
    fi
    test_port arm64 -E '^data/test_costs$'
    skipped "arm64: data/test_costs: it takes minutes under qemu"
    (
        VK_DRIVER_FILES=$(find "$dir/arm64-root" -name 'lvp_icd*.json' | head -n 1)
        export VK_DRIVER_FILES
        unset VK_INSTANCE_LAYERS # the layers are built for this machine, so an ARM program cannot load them
        step arm64 "$qemu" -L "$dir/arm64-root" "$dir/arm64/tests/ports_step"
    )
}

run_windows
run_arm
awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }' "$out/counts"
