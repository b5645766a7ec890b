#!/bin/sh
# readiness.sh [--write] BUILD [DRIVERS] - compiles the kernels of the reference networks, and of the cases in
# readiness/cases.txt, by the compilers of GPUs that this machine need not have. The script checks what came out: registers,
# spills, waves, instructions, threads and barriers.
#
#   sh tests/gpu/readiness.sh build                    compares with docs/gpu.md
#   sh tests/gpu/readiness.sh --write build .drivers   writes the tables of docs/gpu.md
#
# Debian 12's RADV compiles for RDNA 2, RDNA 3 and Vega. RADV of the Mesa 25 that tests/drivers.sh unpacks in DRIVERS also compiles
# matrix instructions. The drivers for Arc (Mesa 25), Adreno and Ada (Mesa 26) need the libraries that tests/gpu/shims.sh builds.
# Missing drivers count as skips. The last line is "N passed, N failed, N skipped".
set -u
write=
if [ "${1-}" = --write ]; then
    write=--write
    shift
fi
build=$(cd "${1:?usage: readiness.sh [--write] BUILD [DRIVERS]}" && pwd) || exit 2
drivers=${2-}
here=$(cd "$(dirname "$0")" && pwd)
networks="mnist-b128 image-b32 reuters-b32 mlp-b16384 grid-b16384 transformer-b4 resnet50-b8"
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
documents=
failed=0
skips=0

skip() {
    echo "SKIPPED: $1"
    skips=$((skips + 1))
}

# compile NAME LIBRARY PRECISION COMMAND...: compiles the kernels in PRECISION with the Vulkan driver LIBRARY, and
# writes what came out to $out/NAME. COMMAND starts gpu_readiness, and gets its arguments.
compile() {
    name=$1
    precision=$3
    printf '{"file_format_version":"1.0.1","ICD":{"library_path":"%s","api_version":"1.4.0"}}\n' "$2" >"$out/driver.json"
    shift 3
    # shellcheck disable=SC2086 # one argument per network
    if grep -v '^#' "$here/readiness/cases.txt" | tr '\n' '\0' | xargs -0 env -u VK_INSTANCE_LAYERS -u VK_LAYER_ENABLES -u VK_ICD_FILENAMES VK_DRIVER_FILES="$out/driver.json" \
        MESA_SHADER_CACHE_DISABLE=true "$@" "$precision" $networks >"$out/$name" 2>"$out/log"; then
        documents="$documents $name=$out/$name"
    else
        cat "$out/log"
        echo "readiness: $name: the programs could not be made"
        failed=$((failed + 1))
    fi
}

cmake --build "$build" --target gpu_readiness >"$out/log" 2>&1 || {
    cat "$out/log"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}
program=$build/tests/gpu_readiness
radv=/usr/share/vulkan/icd.d/radeon_icd.x86_64.json
if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release 2>/dev/null && [ -f "$radv" ]; then
    for generation in gfx1100 navi21 vega10; do
        compile "$generation" libvulkan_radeon.so f32 env RADV_FORCE_FAMILY="$generation" "$program"
    done
else
    skip "kernels by RADV of Debian 12: it is not installed"
fi
library=$(find "${drivers:-/nonexistent}/root" -name libvulkan_radeon.so 2>/dev/null)
if [ -n "$library" ]; then
    for precision in f32 f16 f32-split; do
        compile "navi31-$precision" "$(realpath "$library")" "$precision" env RADV_FORCE_FAMILY=navi31 "$program"
    done
else
    skip "kernels with matrix instructions by RADV of Mesa 25: tests/drivers.sh has not unpacked it"
fi
arc=$(find "${drivers:-/nonexistent}/root" -name libvulkan_intel.so 2>/dev/null)
adreno=$(find "${drivers:-/nonexistent}/newer/usr/lib" -name libvulkan_freedreno.so 2>/dev/null)
if [ -n "$arc" ] && [ -n "$adreno" ] && sh "$here/shims.sh" "$drivers"; then
    shims=$(cd "$drivers/shims" && pwd)
    compile dg2 "$(realpath "$arc")" f32 env INTEL_STUB_GPU_PLATFORM=dg2 LD_PRELOAD="$shims/libintel_noop.so" "$program"
    newer=$(dirname "$(realpath "$adreno")") # the folder of Turnip and NVK, and of Debian 13's C library, which both need
    compile a740 "$newer/libvulkan_freedreno.so" f32 env FD_GPU_ID=740 "$newer/ld-linux-x86-64.so.2" \
        --preload "$shims/libfreedreno_noop.so" --library-path "$newer:/usr/lib/x86_64-linux-gnu" "$program"
    for precision in f32 f16; do
        compile "ada-$precision" "$newer/libvulkan_nouveau.so" "$precision" env NOUVEAU_CHIPSET=192 \
            "$newer/ld-linux-x86-64.so.2" --preload "$shims/libnouveau_noop.so" \
            --library-path "$newer:/usr/lib/x86_64-linux-gnu" "$program"
    done
else
    skip "kernels of Arc, Adreno and Ada: tests/gpu/shims.sh could not build what Mesa's drivers need, or Mesa is not unpacked"
fi
export PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 "$here/readiness/selftest.py" >"$out/result" 2>&1 # checks that each rule of readiness.py finds a planted fault
# shellcheck disable=SC2086 # one argument per document; the option may be empty
/usr/bin/python3 "$here/readiness/readiness.py" "$here/../../docs/gpu.md" "$here/readiness/exceptions.txt" $write $documents \
    >>"$out/result" 2>&1
grep -vE '^[0-9]+ passed' "$out/result"
[ "$(grep -cE '^[0-9]+ passed' "$out/result")" -eq 2 ] || failed=$((failed + 1)) # a script ended before it printed its counts
awk -v f="$failed" -v s="$skips" '/^[0-9]+ passed/ { p += $1; f += $3; s += $5 }
    END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f }' "$out/result"
