#!/bin/sh
# times.sh BUILD [DRIVERS] - prints the compile times and run times of the networks of times/times.def on CPU drivers,
# and the statistics of RADV's compiler. The CPU drivers are the lavapipe of this machine and the drivers in DRIVERS, a
# folder that tests/drivers.sh has filled. This is no test, because the times depend on the machine.
set -u
build=${1:?usage: times.sh BUILD [DRIVERS]}
drivers=${2-/nonexistent}
program=$build/tests/embed_times
unset VK_INSTANCE_LAYERS VK_LAYER_ENABLES VK_ICD_FILENAMES GALLIVM_PERF
export MESA_SHADER_CACHE_DISABLE=true
cmake --build "$build" --target embed_times >/dev/null || exit 1

# run FILE COMMAND...: runs a command with the driver of FILE, if FILE exists.
run() {
    file=$1
    shift
    if [ -f "$file" ]; then
        VK_DRIVER_FILES=$file "$@"
    else
        echo "SKIPPED: no $file"
    fi
}
icd=/usr/share/vulkan/icd.d
run $icd/lvp_icd.x86_64.json "$program"
run "$drivers/swiftshader.json" "$program"
run "$drivers/mesa25.json" "$program"
run "$drivers/mesa26.json" "$drivers/newer/run" "$program"
run $icd/radeon_icd.x86_64.json env RADV_FORCE_FAMILY=gfx1100 "$program" --compile
