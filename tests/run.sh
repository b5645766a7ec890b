#!/bin/sh
# run.sh [full] - installs missing packages (Debian, Ubuntu), builds the engine and tests it.
#
#   without an option   every op, the trainer and most sample programs on lavapipe, under the validation layer: at most
#                       8 minutes on two cores
#   full                the rest: the tests that the short check leaves out, more cases of each op, other subgroup sizes,
#                       other drivers, sanitizers, fuzzing, lint, a newcomer's first hour, Windows and 64-bit ARM
#
# The last lines are "N passed, N failed, N skipped" (cases, over all phases) and "ran on: <devices>". The exit code is 0
# only when nothing failed. If a phase fails, the later phases still run. Environment:
#
#   VKT_TEST_DRIVER=FILE.json   another Vulkan driver instead of the system's lavapipe
#   VKT_BUILD_DIR=DIR           builds (build-*/) and drivers (.drivers/) go to DIR, so that the checkout may be read-only
#   VKT_DATA=DIR                the folder of the data sets; without it data/ or ../shared/data
set -u
case ${1-} in
"" | full) mode=${1-} ;;
*)
    awk 'NR > 1 { if (!sub(/^# ?/, "")) exit; print }' "$0"
    case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
    ;;
esac
[ -z "${VKT_BUILD_DIR-}" ] || VKT_BUILD_DIR=$(mkdir -p "$VKT_BUILD_DIR" && cd "$VKT_BUILD_DIR" && pwd) || exit 2
cd "$(dirname "$0")/.." || exit 2
. scripts/setup.sh
# shellcheck disable=SC2086
install_missing $VKT_BUILD_PACKAGES $VKT_TEST_PACKAGES || exit 1
# shellcheck disable=SC2086
install_missing $VKT_MPI_PACKAGES || say "going on without MPI: its tests are skipped"
builds=${VKT_BUILD_DIR:-$PWD}
make_folder "$builds" || exit 1

# $out is a folder with the files failures, skips, devices and counts. Each line of the file counts has three numbers: the
# cases that passed, failed and were skipped.
out=$(mktemp -d) || exit 2
started= # the process of a script that runs beside the phases; empty: there is none
trap '[ -z "$started" ] || kill "$started" 2>/dev/null; rm -rf "$out"' EXIT
trap 'exit 130' INT TERM
touch "$out/counts" "$out/failures" "$out/skips" "$out/devices"
start=$(date +%s)
title=

cpu_seconds() { # sets $cpu to the CPU time of all children that have ended
    times >"$out/times"
    cpu=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); s += 60 * t[1] + t[2] } printf "%d", s }' "$out/times")
}

phase() { # phase TITLE: ends the phase before, prints its time and how many cores it kept busy, and begins a new phase
    cpu_seconds
    if [ -n "$title" ]; then
        seconds=$(($(date +%s) - phase_start))
        echo "---- $seconds s, $(awk "BEGIN { printf \"%.1f\", ($cpu - $phase_cpu) / ($seconds + 0.5) }") cores busy"
    fi
    title=$1
    phase_start=$(date +%s)
    phase_cpu=$cpu
    printf '\n==== %s\n' "$title"
}

failed() { # failed WHAT: counts one failure that is no test case
    echo "0 1 0" >>"$out/counts"
    echo "$title: $1" >>"$out/failures"
}

skipped() { # skipped WHY: counts one skip
    echo "0 0 1" >>"$out/counts"
    echo "SKIPPED: $1" | tee -a "$out/skips"
}

build() { # build NAME TARGETS CMAKE-OPTION...: builds targets. A build with errors counts as one failure
    dir=$builds/$1
    targets=$2
    shift 2
    [ "$dir" = "$builds/build-tests" ] || set -- "-DVKT_SPIRV=$builds/build-tests/spv" "$@" # shaders are compiled once
    mkdir -p "$dir"
    # shellcheck disable=SC2086
    quietly "$dir/configure.log" cmake -S . -B "$dir" -G Ninja -DVKT_WERROR=ON -DVKT_REQUIRE_DEVICE=ON \
        -DVKT_GLSLANG_COOP="$coop_compiler" "$@" &&
        quietly "$dir/build.log" cmake --build "$dir" --target $targets -- -k 0 || failed "build of $dir"
}

# has_shaders DIR: brings the shaders of the build in DIR up to date. Fails if no build of this tree was made in DIR, if an
# option of the build leaves out or replaces shaders, if the build has not found spirv-val, or if a shader has an error.
has_shaders() {
    grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$1/CMakeCache.txt" 2>/dev/null &&
        grep -qxF "CMAKE_CACHEFILE_DIR:INTERNAL=$1" "$1/CMakeCache.txt" && # a copy of a build would write to the original
        grep -q '^VKT_TEXELS:BOOL=ON' "$1/CMakeCache.txt" &&
        ! grep -qE '^VKT_(KERNELS|SPIRV|GLSLANG_COOP):[A-Z]*=.|^SPIRV_VAL:.*NOTFOUND' "$1/CMakeCache.txt" &&
        cmake --build "$1" --target vkt_kernel_spirv vkt_tools_spirv >"$out/shaders.log" 2>&1
}

ctest_noise='^ +Start |^Test project|^Internal ctest|Label Time|sec[*]proc|^Errors while'
ctest_noise="$ctest_noise|^Could not find exec|^Unable to find|^Looked in|^/?[^ ]*/tests/" # ctest prints these after a failed build

# check NAME CTEST-OPTION...: runs tests of a build and counts their cases. Three tests run at the same time, because on two
# cores two tests would leave a core idle whenever one of them waits.
check() {
    dir=$builds/$1
    logs=$dir/Testing/Temporary
    shift
    mkdir -p "$logs"
    rm -f "$logs"/*.log
    $wrapper ctest --test-dir "$dir" --output-on-failure -j3 "$@" 2>&1 |
        grep --line-buffered -vE "$ctest_noise"
    touch "$logs/LastTest.log" "$logs/LastTestsFailed.log"
    cases=$(awk -f tests/cases.awk "$logs/LastTestsFailed.log" "$logs/LastTest.log")
    echo "$cases" >>"$out/counts"
    [ "$cases" != "0 0 0" ] || failed "no test ran (ctest $*)"
    sed "s|^[0-9]*:|$title: |" "$logs/LastTestsFailed.log" >>"$out/failures"
    grep -o 'SKIPPED: .*' "$logs/LastTest.log" | tee -a "$out/skips"
    grep -o 'ran on: .*' "$logs/LastTest.log" | sed 's/^ran on: //' >>"$out/devices"
}

# start_script NAME COMMAND...: starts a script, which runs during the next phases, because it often waits for the network.
start_script() {
    script=$1
    shift
    "$@" >"$out/$script" 2>&1 &
    started=$!
}

end_script() { # end_script NAME: waits for the started script, and counts its cases
    wait "$started" || true
    started=
    cpu_seconds && phase_cpu=$cpu # the CPU time of the script belongs to no phase
    cp "$out/$1" "$out/script"
    count_script "$1"
}

check_script() { # check_script SCRIPT ARGUMENT...: runs a script whose last line is "N passed, N failed, N skipped"
    sh "$@" >"$out/script" 2>&1 || true
    count_script "$1"
}

count_script() { # count_script NAME: prints what the script wrote to $out/script, and counts its cases
    cat "$out/script"
    cases=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$out/script" | tail -n 1)
    echo "${cases:-0 1 0}" >>"$out/counts"
    grep -o 'SKIPPED: .*' "$out/script" >>"$out/skips"
    case ${cases:-none} in *" 0 "*) ;; *) echo "$title: $1" >>"$out/failures" ;; esac
}

has_libfuzzer() {
    echo 'int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n) { return p == 0 && n == 1; }' |
        clang -fsanitize=fuzzer,address -x c - -o "$out/fuzzer" 2>/dev/null
}

# ---- the environment of every test
system_driver=$(find /usr/share/vulkan/icd.d /etc/vulkan/icd.d -name 'lvp_icd*.json' 2>/dev/null | head -n 1)
export VK_DRIVER_FILES="${VKT_TEST_DRIVER:-$system_driver}"
export XDG_CACHE_HOME="$builds/build-tests/cache"        # tests neither read nor write the user's caches
export MESA_SHADER_CACHE_DIR="$builds/build-tests/cache" # the driver's cache, shared by all tests
export UBSAN_OPTIONS=print_stacktrace=1
unset VKT_DEBUG VKT_DEVICE VKT_OTHER_DRIVER GALLIVM_PERF
for dir in data ../shared/data; do # tests run in other folders, so VKT_DATA must be an absolute path
    for file in "$dir"/mnist/train-images-idx3-ubyte*; do
        [ -n "${VKT_DATA-}" ] || [ ! -f "$file" ] || VKT_DATA=$(cd "$dir" && pwd)
    done
done
[ -z "${VKT_DATA-}" ] || export VKT_DATA
wrapper= # a command that runs ctest, for instance setarch -R; empty: none

# Switches on two checks of Debian 12's validation layer, 1.3.239. The separator must be ':'. With another separator, the second
# check is off, without a message. gpu/test_planted_faults.c proves that both checks are on.
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
sync_1_3_239=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
sync_1_3_239=$sync_1_3_239:VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT
export VK_LAYER_ENABLES="$sync_1_3_239"

# The layer of drivers.sh also reports two writes to the same bytes without a barrier between them. Layer 1.3.239 does not.
current_layer() ( # current_layer COMMAND...: runs COMMAND under that layer
    unset VK_LAYER_ENABLES
    export VK_LAYER_PATH="$drivers/layers" VK_LAYER_VALIDATE_SYNC=1 VK_LAYER_SYNCVAL_SHADER_ACCESSES_HEURISTIC=1
    "$@"
)
on_driver() ( # on_driver DRIVER.json NAME CTEST-OPTION...: calls check on this driver
    export VK_DRIVER_FILES="$1"
    shift
    check "$@"
)
# Switches off the optimization passes of LLVM, with which lavapipe compiles kernels. Compilation takes most of the time of an
# op's test. Without these passes, compilation takes half as long, and the kernels compute the same results. With "full", some
# tests run with the passes: for instance two cases of each op at a subgroup size of 4, trainings at a subgroup size of 16, and
# first_hour.sh.
compile_quickly() { export GALLIVM_PERF=nopt; }
has_512_bits() { grep -q avx512bw /proc/cpuinfo 2>/dev/null; }

drivers=$builds/.drivers
coop_compiler=
if [ "$mode" = full ]; then
    phase "more drivers, and a shader compiler that knows cooperative matrices"
    sh tests/drivers.sh "$drivers"
    [ ! -f "$drivers/swiftshader.json" ] || export VKT_OTHER_DRIVER="$drivers/swiftshader.json"
    # If drivers.sh could not download glslang, the build uses the system's glslang or the modules of shaders/coop.
    coop_compiler=$(find "$drivers/glslang" -type f 2>/dev/null)
fi

phase "build"
shaders=
if [ -z "$mode" ] && has_shaders "$builds/build"; then shaders=$builds/build/spv; fi
build build-tests all "-DVKT_SPIRV=$shaders" "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG" # -g1 gives the line numbers of a backtrace, in less time than -g
# From now on, a build of build-tests compiles its own shaders, so that a developer's change of a shader has an effect.
[ -z "$shaders" ] || quietly "$builds/build-tests/configure.log" cmake -DVKT_SPIRV= "$builds/build-tests" || failed "configuration"

# For each op, a phase runs the cases with the seeds VKT_TEST_FIRST .. VKT_TEST_FIRST + VKT_TEST_SEEDS - 1. The seed of a case
# also chooses how the device's limits are changed (harness_views in tests/ops/harness.c). Seeds 4 to 9 together give all of
# these changes.
phase "tests on lavapipe, validation with synchronization"
compile_quickly
if [ "$mode" = full ]; then
    export VKT_TEST_SEEDS=4 VKT_TEST_FIRST=6
    check build-tests -L 'ops|record'
    # Of the other tests, this runs only those that the short check leaves out (full_only), and those that may skip
    # cases (may_skip). With LP_NUM_THREADS=0, lavapipe runs kernels in the thread of its queue. In the short check,
    # which does not set LP_NUM_THREADS, kernels run in several threads.
    (export LP_NUM_THREADS=0; check build-tests -L 'full_only|may_skip' -LE 'lint|ops|record')
else
    export VKT_TEST_SEEDS=2 VKT_TEST_FIRST=4
    check build-tests -LE 'lint|full_only'
fi
unset VKT_TEST_SEEDS VKT_TEST_FIRST GALLIVM_PERF

# Labels of single tests (full_only, one_width, slow_drivers_not, ..) are explained in tests/CMakeLists.txt.
if [ "$mode" = full ]; then
    start_script ports.sh env -u VK_INSTANCE_LAYERS -u VK_LAYER_ENABLES sh tests/ports.sh "$builds/build-tests" "$builds/build-ports"
    for bits in 128 512; do
        phase "kernels at a subgroup size of $((bits / 32)) (LP_NATIVE_VECTOR_WIDTH=$bits)"
        (
            export LP_NATIVE_VECTOR_WIDTH=$bits VKT_TEST_SEEDS=2 VKT_TEST_FIRST=2
            [ "$bits" = 128 ] || VKT_TEST_FIRST=10
            export VKT_TRAITS=words64=$((bits / 512)) # 0: kernels store vec4s; 1: they store words of 64 bits
            random='^ops/test_ops(_[0-9])?$' # two cases of each op
            ([ "$bits" = 128 ] || compile_quickly; check build-tests -R "$random")
            (compile_quickly; check build-tests -L 'ops|record' -LE one_width -E "$random")
            if [ "$bits" = 512 ] && has_512_bits; then # vkt_ctx_create_wide may choose 512 bits, so training is tested too
                check build-tests -R '^train/test_(.*_golden|trainer_state|ranks_steps)$'
            elif [ "$bits" = 512 ]; then
                skipped "training with vectors of 512 bits: the CPU has none"
            fi
        )
    done

    phase "more drivers, small shapes"
    export VKT_TEST_SMALL=1 VKT_TEST_SEEDS=1 VKT_TEST_FIRST=6
    if [ -f "$drivers/swiftshader.json" ]; then # small shapes: SwiftShader takes ten times as long as lavapipe
        on_driver "$drivers/swiftshader.json" build-tests -L 'ops|record' -LE 'one_width|slow_drivers_not|swiftshader_not'
    else
        skipped "ops on SwiftShader: it could not be had"
    fi
    compile_quickly
    # Cases 5, 10, 15, .. also run without texel loads (harness_views). Mesa 25 then needs minutes to compile kernels with large
    # tiles. So this phase runs case 7.
    VKT_TEST_FIRST=7
    if [ ! -f "$drivers/mesa25.json" ]; then
        skipped "ops on Mesa 25: it could not be had"
    elif [ -f "$drivers/layers/VkLayer_khronos_validation.json" ]; then
        current_layer on_driver "$drivers/mesa25.json" build-tests -L 'ops|record|gpu' -LE 'one_width|slow_drivers_not'
    else
        on_driver "$drivers/mesa25.json" build-tests -L 'ops|record' -LE 'one_width|slow_drivers_not'
        skipped "a current validation layer: it could not be had"
    fi

    phase "cooperative matrices on Mesa 26"
    if [ -f "$drivers/mesa26.json" ] && [ -f "$drivers/layers/VkLayer_khronos_validation.json" ]; then
        mkdir -p "$builds/build-coop" # its tests run the programs of build-tests under Debian 13's C library
        for test in ops_test_shared ops_test_mlp_shared ops_test_mlp ops_test_attention ops_test_attention_tiles ops_test_coop \
            ops_test_flexible ops_test_bfloat ops_test_split ops_test_quantized train_test_trainer_golden; do
            echo "add_test($test \"$drivers/newer/run\" \"$builds/build-tests/tests/$test\")"
        done >"$builds/build-coop/CTestTestfile.cmake"
        for part in 1 2; do
            echo "add_test(ops_test_ops_$part \"$drivers/newer/run\" \"$builds/build-tests/tests/ops_test_ops\")"
            echo "set_tests_properties(ops_test_ops_$part PROPERTIES ENVIRONMENT VKT_TEST_SHARE=$part/2 COST 2)" # they begin first
        done >>"$builds/build-coop/CTestTestfile.cmake"
        export VKT_REQUIRE_COOP=1 VKT_TEST_OPS=attention,conv2d,conv_transpose2d,linear,linear_cross_entropy,linear_quantized,matmul,mlp,mlp_mse \
            VKT_TEST_SEEDS=3 VKT_TEST_FIRST=9
        current_layer on_driver "$drivers/mesa26.json" build-coop
        unset VKT_REQUIRE_COOP VKT_TEST_OPS
    else
        skipped "cooperative matrices: Mesa 26 could not be had"
    fi
    unset VKT_TEST_SMALL VKT_TEST_SEEDS VKT_TEST_FIRST GALLIVM_PERF

    phase "Windows and 64-bit ARM, tested beside the phases above: packages, tests under wine and qemu, a training"
    end_script ports.sh
    start_script first_hour.sh env -u VK_INSTANCE_LAYERS -u VK_LAYER_ENABLES sh tests/first_hour.sh "$builds/build-tests"

    phase "kernels as the compilers of GPUs see them, and the script of a first run on a GPU"
    install_missing python3 # both scripts make their tables with Python
    check_script tests/gpu/readiness.sh "$builds/build-tests" "$drivers"
    root=$PWD
    (cd "$out" && check_script "$root/tests/gpu/first_run.sh" --small "$builds/build-tests")

    phase "all tests under AddressSanitizer and UndefinedBehaviorSanitizer"
    unset VK_INSTANCE_LAYERS VK_LAYER_ENABLES # layer 1.3.239 leaks memory; the phases above have used it
    # -O1 compiles in half the time of -O2, with all checks. But with -O1 gcc also warns of impossible cases, so -Werror is off.
    build build-asan all -DVKT_SANITIZE=address,undefined -DVKT_WERROR=OFF "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG"
    # AddressSanitizer keeps freed memory in quarantines: here one of 1 MiB (default: 256 MiB), and one of 16 KiB for each
    # thread. The page faults of a large quarantine took up to half of a test's time. With LP_NUM_THREADS=0, lavapipe runs
    # kernels in the thread of its queue. This phase runs case 6, because an earlier phase has already compiled the kernels of
    # case 6.
    export ASAN_OPTIONS=quarantine_size_mb=1:thread_local_quarantine_size_kb=16 LP_NUM_THREADS=0 VKT_TEST_SEEDS=1 VKT_TEST_FIRST=6
    compile_quickly
    check build-asan -LE 'lint|sanitizers_not'
    unset ASAN_OPTIONS LP_NUM_THREADS VKT_TEST_SEEDS VKT_TEST_FIRST GALLIVM_PERF

    phase "data loader, a queue that two threads share, and ranks that are threads, under ThreadSanitizer"
    threaded="data_test_augment data_test_images data_test_loader embed_test_threads dist_test_threads dist_test_all_reduce"
    threaded="$threaded train_test_ranks_resume train_test_ranks_fit train_test_ranks_faults"
    build build-tsan "$threaded" -DVKT_SANITIZE=thread
    ! setarch -R true 2>/dev/null || wrapper="setarch -R" # gcc 12's runtime may fail if addresses are too random
    export TSAN_OPTIONS="suppressions='$PWD/tests/support/tsan.supp'"
    check build-tsan -R "^($(echo "$threaded" | sed 's/_test/.test/g; s/ /|/g'))\$"
    unset TSAN_OPTIONS
    wrapper=

    phase "a newcomer's first hour, tested beside the phases above, and event files as TensorBoard reads them"
    end_script first_hour.sh
    install_missing python3-venv # without this package the script skips its tests and prints that
    check_script tests/tensorboard/run.sh "$builds/build-tests"

    phase "lint, a build without warnings by clang and with SPIR-V that is not compressed, and every reader of files under libFuzzer"
    check build-tests -L lint
    # One build by clang has the readers under libFuzzer, and compiles all other files for their warnings. It links only what
    # is run.
    clang_targets="unit_test_abi unit_test_module gpu_test_kernel"
    fuzz=OFF
    has_libfuzzer || install_missing libclang-rt-dev
    if has_libfuzzer; then
        fuzz=ON
        clang_targets="fuzz $clang_targets"
    else
        skipped "libFuzzer: this clang has none"
    fi
    build build-clang "$clang_targets" -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DVKT_COMPRESS_SPIRV=OFF -DVKT_FUZZ=$fuzz
    ninja -C "$builds/build-clang" -t targets all 2>/dev/null | sed -n 's/^\([^:]*\.o\): .*/\1/p' >"$out/objects"
    quietly "$builds/build-clang/build.log" xargs -a "$out/objects" ninja -C "$builds/build-clang" -k 0 || failed "compilation by clang"
    [ -s "$out/objects" ] || failed "clang: no file was compiled"
    check build-clang -R '^(unit/test_(abi|module)|gpu/test_kernel)$'
    [ "$fuzz" = OFF ] || check build-clang -R '^fuzz/.*_libfuzzer$'
fi

phase "totals after $(($(date +%s) - start)) s"
sort "$out/skips" | uniq -c
sed 's/^/FAILED: /' "$out/failures"
awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$out/counts"
echo "ran on: $(sort -u "$out/devices" | paste -sd '|' | sed 's/|/; /g')"
[ ! -s "$out/failures" ]
