#!/bin/sh
# drivers.sh DIR - downloads more CPU Vulkan drivers and a current validation layer for Debian 12, and unpacks them under DIR:
#   DIR/mesa25.json       lavapipe of Mesa 25.0.7 (bookworm-backports). It needs the libraries that the system installs
#                         with its own mesa-vulkan-drivers
#   DIR/swiftshader.json  SwiftShader (from chromium-common): subgroups of 4, no fp16, no int64, no float atomics
#   DIR/layers/           a current VK_LAYER_KHRONOS_validation (from chromium-common), for VK_LAYER_PATH
#   DIR/mesa26.json       lavapipe of Mesa 26 (trixie-backports), with cooperative matrices. It needs Debian 13's C library, so
#                         start programs with DIR/newer/run PROGRAM ARGUMENT...
#   DIR/glslang           Debian 13's shader compiler, which supports GL_KHR_cooperative_matrix
# The script installs nothing and does not need root. It keeps packages that DIR already has. If a package cannot be
# downloaded, the script prints a message, continues, and ends with exit code 0. tests/run.sh counts a missing driver as
# skipped.
set -u
mkdir -p "${1:?usage: drivers.sh DIR}/layers" || exit 1
dir=$(cd "$1" && pwd)

# Finds the mirror in the system's own sources, which have one of apt's two formats.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -v '^ *#' |
    grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' ')
mirror=${mirror:-http://deb.debian.org/debian}
mirror=${mirror%/}

# sources LINE...: writes these lines ("URL SUITE") to a sources.list under DIR, and makes empty folders for apt's package lists
# and packages. So apt does not change the system's own files.
sources() {
    rm -rf "$dir/apt"
    mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial"
    printf 'deb %s main\n' "$@" >"$dir/apt/sources.list"
}
own_apt() {
    (cd "$dir/apt" && apt-get -qq -o Dir::Etc::SourceList="$dir/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$dir/apt/lists" -o Dir::Cache="$dir/apt/cache" -o Acquire::Retries=1 \
        -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15 -o APT::Sandbox::User= "$@") >>"$dir/log" 2>&1
}

# fetch PACKAGE SUITE URL...: unpacks the suite's newest PACKAGE into DIR/root, from the first URL that has it.
fetch() {
    package=$1
    suite=$2
    shift 2
    for url; do
        sources "$url $suite"
        if own_apt update && own_apt download "$package/$suite"; then
            dpkg -x "$dir"/apt/"$package"_*.deb "$dir/root" && rm -rf "$dir/apt" && return 0
        fi
    done
    rm -rf "$dir/apt"
    echo "drivers: no $package from $suite (see $dir/log)" >&2
    return 1
}

# provide FILE PACKAGE SUITE URL...: prints the path of FILE. Fetches the package first if FILE is missing.
provide() {
    file=$1
    shift
    [ -n "$(find "$dir/root" -name "$file" 2>/dev/null)" ] || fetch "$@" || return 1
    find "$dir/root" -name "$file" | head -n 1
}
# Unpacks Debian 13's lavapipe and shader compiler, with all libraries that they need, in DIR/newer.
fetch_newer() {
    sources "$mirror trixie" "$mirror trixie-backports"
    # shellcheck disable=SC2046 # word splitting is wanted
    own_apt update && own_apt -o Dir::State::status=/dev/null download mesa-vulkan-drivers/trixie-backports \
        $(echo libc6 libgcc-s1 libstdc++6 glslang-tools libllvm19 libdrm2 libelf1t64 zlib1g libzstd1 libxml2 libedit2 libz3-4 \
            libffi8 libexpat1 libwayland-client0 libx11-xcb1 libx11-6 libxcb1 libxcb-dri3-0 libxcb-present0 libxcb-randr0 \
            libxcb-shm0 libxcb-sync1 libxcb-xfixes0 libxshmfence1 libdisplay-info2 libxau6 libxdmcp6 libbsd0 libmd0 libtinfo6) ||
        return 1
    for file in "$dir"/apt/*.deb; do dpkg -x "$file" "$dir/newer" || return 1; done
    rm -rf "$dir/apt"
}

driver_json() { printf '{"file_format_version":"1.0.1","ICD":{"library_path":"%s","api_version":"%s"}}\n' "$1" "$2"; }

: >"$dir/log"
rm -f "$dir"/*.json "$dir"/layers/*.json
if ! grep -q '^VERSION_CODENAME=bookworm' /etc/os-release 2>/dev/null; then
    echo "drivers: these packages fit Debian 12 only" >&2
    exit 0
fi
if library=$(provide libvulkan_lvp.so mesa-vulkan-drivers bookworm-backports "$mirror" http://archive.debian.org/debian); then
    driver_json "$library" 1.4.0 >"$dir/mesa25.json"
fi
if library=$(provide libvk_swiftshader.so chromium-common bookworm-security "$mirror-security" \
    http://security.debian.org/debian-security); then
    driver_json "$library" 1.3.0 >"$dir/swiftshader.json"
fi
newer=$dir/newer/usr/lib/x86_64-linux-gnu
if [ -x "$dir/newer/run" ] || fetch_newer; then
    printf '#!/bin/sh\nexec %s --library-path %s:/usr/lib/x86_64-linux-gnu "$@"\n' "$newer/ld-linux-x86-64.so.2" "$newer" \
        >"$dir/newer/run"
    printf '#!/bin/sh\nexec %s %s "$@"\n' "$dir/newer/run" "$dir/newer/usr/bin/glslang" >"$dir/glslang"
    chmod +x "$dir/newer/run" "$dir/glslang"
    driver_json "$newer/libvulkan_lvp.so" 1.4.0 >"$dir/mesa26.json"
else
    rm -rf "$dir/apt" "$dir/newer" "$dir/glslang"
    echo "drivers: no Mesa 26 and glslang from trixie (see $dir/log)" >&2
fi
if library=$(find "$dir/root" -name libVkLayer_khronos_validation.so 2>/dev/null | grep .); then
    cat >"$dir/layers/VkLayer_khronos_validation.json" <<END
{"file_format_version": "1.2.0",
 "layer": {"name": "VK_LAYER_KHRONOS_validation", "type": "GLOBAL", "library_path": "$library",
           "api_version": "1.4.0", "implementation_version": "1", "description": "Khronos validation",
           "instance_extensions": [{"name": "VK_EXT_debug_utils", "spec_version": "1"},
                                   {"name": "VK_EXT_validation_features", "spec_version": "1"},
                                   {"name": "VK_EXT_layer_settings", "spec_version": "1"}]}}
END
fi
