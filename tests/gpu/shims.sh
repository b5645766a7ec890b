#!/bin/sh
# shims.sh DIR - builds libraries from Mesa's source. With these libraries, Mesa's drivers compile for GPUs that are missing:
#   DIR/shims/libintel_noop.so      Arc, for ANV of the Mesa 25 that tests/drivers.sh has unpacked in DIR
#   DIR/shims/libfreedreno_noop.so  Adreno, for Turnip of the Mesa 26 in DIR
#   DIR/shims/libnouveau_noop.so    Ada, for NVK of the Mesa 26 in DIR
# A library replaces a driver of the Linux kernel: it answers the ioctls of Mesa's driver, and runs nothing. Mesa calls such a
# library a drm-shim (src/drm-shim). The source comes from bookworm-backports. The Python package mako, which makes some of the
# headers, and libdrm's headers come from bookworm. Nothing is installed. Needs gcc. The exit code is 0 if all libraries are there.
set -u
dir=$(cd "${1:?usage: shims.sh DIR}" && pwd) || exit 2
out=$dir/shims
[ -f "$out/libintel_noop.so" ] && [ -f "$out/libfreedreno_noop.so" ] && [ -f "$out/libnouveau_noop.so" ] && exit 0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/made/intel/dev" "$work/o"
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -v '^ *#' |
    grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' ')
mirror=${mirror:-http://deb.debian.org/debian}
printf 'deb-src %s bookworm-backports main\ndeb %s bookworm main\n' "$mirror" "$mirror" >"$work/apt/sources.list"

fail() {
    echo "shims: $1" >&2
    exit 1
}
own_apt() {
    (cd "$work/apt" && apt-get -qq -o Dir::Etc::SourceList="$work/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o Acquire::Retries=1 \
        -o Acquire::http::Timeout=15 -o APT::Sandbox::User= "$@") >/dev/null 2>&1
}

own_apt update || fail "no lists of packages from $mirror"
own_apt download libdrm-dev python3-mako python3-markupsafe || fail "no libdrm-dev, python3-mako and python3-markupsafe"
own_apt source --download-only mesa # mirrors may lack Debian's own part of the source, which is not needed
for file in "$work"/apt/*.deb; do dpkg -x "$file" "$work/root"; done
tar -xf "$work"/apt/mesa_*.orig.tar.xz -C "$work" 2>/dev/null || fail "no source of Mesa from bookworm-backports"
mesa=$(find "$work" -maxdepth 1 -name 'mesa-*' -type d)

# Makes headers and C files that the libraries need, and that Mesa's source lacks.
made=$work/made/intel/dev
export PYTHONPATH="$work/root/usr/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1
make() {
    script=$mesa/src/intel/dev/$1.py
    shift
    /usr/bin/python3 "$script" "$@" || fail "$script failed"
}
make intel_device_info_gen_h "$made/intel_device_info_gen.h"
make intel_device_info_serialize_gen_c "$made/serialize.c"
make gen_wa_helpers "$mesa/src/intel/dev/mesa_defs.json" "$made/intel_wa.h" "$made/intel_wa.c"
printf '#define MESA_GIT_SHA1 ""\n' >"$work/made/git_sha1.h"
# Turnip of Mesa 26 binds memory by ioctl 13, which the shim of Mesa 25 does not implement.
sed -i 's/^ *\[DRM_MSM_SUBMITQUEUE_QUERY\] = .*/&\n   [13] = msm_ioctl_noop,/' "$mesa/src/freedreno/drm-shim/freedreno_noop.c"

# The shim of Mesa 25 for NVIDIA's GPUs supports no GPU after Ampere, and reports one TPC (a pair of SMs). Ada (chipset 0x19x)
# has other classes of engines (NVIDIA's open-gpu-doc, classes), and an RTX 4090 has 64 TPCs in 11 GPCs (clusters of TPCs).
sed -i -e 's/gp->value = 0x01000101/gp->value = 0x0100400b/' -e '/oclass = NVF0_P2MF_CLASS/b' \
    -e 's/^ *case 0x170:$/      case 0x190:\n&/' -e 's/GA102_3D_CLASS;/(device_info.chip_id \& ~0xf) == 0x190 ? 0xc997 : &/' \
    -e 's/GA102_COMPUTE_CLASS;/(device_info.chip_id \& ~0xf) == 0x190 ? 0xc9c0 : &/' "$mesa/src/nouveau/drm-shim/nouveau_noop.c"

compile() {
    gcc -O1 -fPIC -w -std=gnu11 -D_GNU_SOURCE -DHAVE_PTHREAD -DHAVE_STRUCT_TIMESPEC -DHAVE_TIMESPEC_GET -DHAVE_ENDIAN_H \
        -DUTIL_ARCH_LITTLE_ENDIAN=1 -DUTIL_ARCH_BIG_ENDIAN=0 -DHAVE___BUILTIN_FFS -DHAVE___BUILTIN_FFSLL \
        -DHAVE___BUILTIN_POPCOUNT -DHAVE___BUILTIN_POPCOUNTLL -DHAVE___BUILTIN_CLZ -DHAVE___BUILTIN_CLZLL \
        -DHAVE___BUILTIN_UNREACHABLE -DHAVE_FUNC_ATTRIBUTE_PACKED -DHAVE_FUNC_ATTRIBUTE_VISIBILITY \
        -DHAVE_FUNC_ATTRIBUTE_UNUSED -DHAVE_FUNC_ATTRIBUTE_FORMAT -DHAVE_FUNC_ATTRIBUTE_MALLOC -DHAVE_FUNC_ATTRIBUTE_PURE \
        -DHAVE_FUNC_ATTRIBUTE_CONST -DHAVE_FUNC_ATTRIBUTE_NORETURN -DHAVE_MKOSTEMP -DHAVE_MEMFD_CREATE -DHAVE_SECURE_GETENV \
        -DHAVE_FLOCK -DHAVE_GNU_QSORT_R -DHAVE_LIBDRM -DMAJOR_IN_SYSMACROS -fvisibility=hidden -ffunction-sections \
        -fdata-sections -I"$mesa/include" -I"$mesa/src" -I"$mesa/src/nouveau/headers" -I"$mesa/src/intel" \
        -I"$mesa/src/intel/common" \
        -I"$mesa/src/intel/dev" -I"$mesa/src/util" -I"$work/made" -I"$work/made/intel" -I"$made" -I"$work/root/usr/include" \
        -I"$work/root/usr/include/libdrm" -c "$1" -o "$2" 2>"$work/log" && return
    cat "$work/log"
    fail "$1 cannot be compiled"
}
link() {
    gcc -shared -Wl,--gc-sections -Wl,-z,defs -o "$work/o/$1" "$work"/o/common-*.o "$work"/o/"$2"-*.o -l:libdrm.so.2 -lz -ldl -lm \
        -lpthread 2>"$work/log" && mv "$work/o/$1" "$out/$1" && return
    cat "$work/log"
    fail "$1 cannot be linked"
}
n=0
for file in drm-shim/device drm-shim/drm_shim util/hash_table util/set util/ralloc util/u_debug util/vma util/anon_file util/log \
    util/os_misc util/os_file util/simple_mtx util/u_call_once util/rb_tree util/u_printf util/parson util/u_process \
    util/memstream util/blob util/mesa-sha1 util/sha1/sha1 util/u_cpu_detect util/u_math util/bitscan util/strtod util/os_time \
    util/futex util/u_thread util/string_buffer util/double util/half_float util/softfloat util/rand_xor util/u_vector \
    c11/impl/threads_posix c11/impl/time; do
    compile "$mesa/src/$file.c" "$work/o/common-$((n += 1)).o"
done
for file in "$mesa"/src/intel/dev/i915/intel_device_info.c "$mesa"/src/intel/dev/xe/intel_device_info.c \
    "$mesa"/src/intel/dev/intel_debug.c "$mesa"/src/intel/dev/intel_device_info.c "$mesa"/src/intel/dev/intel_hwconfig.c \
    "$mesa"/src/intel/dev/intel_kmd.c "$mesa"/src/intel/common/intel_gem.c "$mesa"/src/intel/common/i915/intel_gem.c \
    "$mesa"/src/intel/common/xe/intel_gem.c "$mesa"/src/intel/tools/intel_noop_drm_shim.c "$made/serialize.c" "$made/intel_wa.c"; do
    compile "$file" "$work/o/intel-$((n += 1)).o"
done
compile "$mesa/src/freedreno/drm-shim/freedreno_noop.c" "$work/o/freedreno-1.o"
compile "$mesa/src/nouveau/drm-shim/nouveau_noop.c" "$work/o/nouveau-1.o"
link libnouveau_noop.so nouveau
link libintel_noop.so intel
link libfreedreno_noop.so freedreno
