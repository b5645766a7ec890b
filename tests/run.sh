#!/bin/sh
# run.sh [quick] - installs what is missing (Debian, Ubuntu), builds the engine and runs all its tests.
#
#   quick   only the first phase: every test on lavapipe under the validation layer
#
# Ends with "N passed, N failed, N skipped" (single cases, over all phases) and "ran on: <devices>"; the exit code is 0
# only when nothing failed. Later phases run after a failure too. VKT_TEST_DRIVER=FILE.json takes that Vulkan driver in
# place of the system's lavapipe. Builds stay in build-*/, more drivers in .drivers/.
set -u
case ${1-} in
"" | quick) mode=${1-} ;;
*)
    awk 'NR > 1 { if (!sub(/^# ?/, "")) exit; print }' "$0"
    case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
    ;;
esac
cd "$(dirname "$0")/.." || exit 2
. scripts/setup.sh
# shellcheck disable=SC2086
install_missing $VKT_BUILD_PACKAGES $VKT_TEST_PACKAGES || exit 1

out=$(mktemp -d) || exit 2 # files: counts ("passed failed skipped" per line), failures, skips, devices
trap 'rm -rf "$out"' EXIT
touch "$out/counts" "$out/failures" "$out/skips" "$out/devices"
start=$(date +%s)
title=

phase() { # phase TITLE: ends the one before, with its time
    [ -z "$title" ] || echo "---- $(($(date +%s) - phase_start)) s"
    title=$1
    phase_start=$(date +%s)
    printf '\n==== %s\n' "$title"
}

failed() { # failed WHAT: one failure that is no test case
    echo "0 1 0" >>"$out/counts"
    echo "$title: $1" >>"$out/failures"
}

skipped() { # skipped WHY
    echo "0 0 1" >>"$out/counts"
    echo "SKIPPED: $1" | tee -a "$out/skips"
}

build() { # build DIR TARGETS CMAKE-OPTION...: what does not build fails, the rest is tested all the same
    dir=$1
    targets=$2
    shift 2
    [ "$dir" = build-tests ] || set -- "-DVKT_SPIRV=$PWD/build-tests/spirv" "$@" # shaders are compiled once
    mkdir -p "$dir"
    # shellcheck disable=SC2086
    quietly "$dir/configure.log" cmake -S . -B "$dir" -G Ninja -DVKT_WERROR=ON -DVKT_REQUIRE_DEVICE=ON \
        -DVKT_GLSLANG_COOP="$coop_compiler" "$@" &&
        quietly "$dir/build.log" cmake --build "$dir" --target $targets -- -k 0 || failed "build of $dir"
}

ctest_noise='^ +Start |^Test project|^Internal ctest|Label Time|sec[*]proc|^Errors while'
ctest_noise="$ctest_noise|^Could not find exec|^Unable to find|^Looked in|^/?[^ ]*/tests/" # where a build failed

check() { # check DIR CTEST-OPTION...: runs tests of a build and counts their cases
    dir=$1
    logs=$dir/Testing/Temporary
    shift
    mkdir -p "$logs"
    rm -f "$logs"/*.log
    $wrapper ctest --test-dir "$dir" --output-on-failure -j2 "$@" 2>&1 |
        grep -vE "$ctest_noise"
    touch "$logs/LastTest.log" "$logs/LastTestsFailed.log"
    cases=$(awk -f tests/cases.awk "$logs/LastTestsFailed.log" "$logs/LastTest.log")
    echo "$cases" >>"$out/counts"
    [ "$cases" != "0 0 0" ] || failed "no test ran (ctest $*)"
    sed "s|^[0-9]*:|$title: |" "$logs/LastTestsFailed.log" >>"$out/failures"
    grep -o 'SKIPPED: .*' "$logs/LastTest.log" | tee -a "$out/skips"
    grep -o 'ran on: .*' "$logs/LastTest.log" | sed 's/^ran on: //' >>"$out/devices"
}

has_libfuzzer() {
    echo 'int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n) { return p == 0 && n == 1; }' |
        clang -fsanitize=fuzzer,address -x c - -o "$out/fuzzer" 2>/dev/null
}

# ---- the environment of every test
system_driver=$(find /usr/share/vulkan/icd.d /etc/vulkan/icd.d -name 'lvp_icd*.json' 2>/dev/null | head -n 1)
export VK_DRIVER_FILES="${VKT_TEST_DRIVER:-$system_driver}"
export XDG_CACHE_HOME="$PWD/build-tests/cache" # neither reads nor writes the user's caches
export MESA_SHADER_CACHE_DIR="$PWD/build-tests/cache" # the driver's: also of tests with a cache directory of their own
export UBSAN_OPTIONS=print_stacktrace=1
unset VKT_DEBUG VKT_DEVICE
for dir in data ../shared/data; do # tests run elsewhere, so they are told where data sets lie
    [ -n "${VKT_DATA-}" ] || [ ! -d "$dir/mnist" ] || VKT_DATA=$(cd "$dir" && pwd)
done
[ -z "${VKT_DATA-}" ] || export VKT_DATA
wrapper= # of ctest

# Debian 12's layer, 1.3.239. The separator must be ':', others switch the second setting off in silence:
# gpu/test_planted_faults.c proves that both are on.
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
sync_1_3_239=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
sync_1_3_239=$sync_1_3_239:VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT
export VK_LAYER_ENABLES="$sync_1_3_239"

current_layer() ( # current_layer COMMAND...: under a validation layer of today, which alone sees write after write
    unset VK_LAYER_ENABLES
    export VK_LAYER_PATH="$drivers/layers" VK_LAYER_VALIDATE_SYNC=1 VK_LAYER_SYNCVAL_SHADER_ACCESSES_HEURISTIC=1
    "$@"
)
on_driver() ( # on_driver DRIVER.json DIR CTEST-OPTION...
    export VK_DRIVER_FILES="$1"
    shift
    check "$@"
)

drivers=$PWD/.drivers
if [ "$mode" != quick ]; then
    phase "more drivers, and a shader compiler that knows cooperative matrices"
    sh tests/drivers.sh "$drivers"
fi

phase "all tests on lavapipe, validation with synchronization"
coop_compiler=$(find "$drivers/glslang" -type f 2>/dev/null) # nothing: kernels of cooperative matrices are left out
build build-tests all "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG" # lines of a backtrace, in four fifths of the time
# The run of everything has 25 minutes on two cores. So every phase draws a few cases of each op, and none draws another's:
# a case also says which limits are pretended (harness_views), and together they go through all of them.
export VKT_TEST_SEEDS=2 VKT_TEST_FIRST=4
check build-tests -LE lint
unset VKT_TEST_SEEDS VKT_TEST_FIRST

# What neither another width nor another driver can change much, and what takes long there. (Products in shared memory have no
# subgroup operations; test_shared runs on Mesa 26 once more.)
default_width_only='test_op_goldens|test_training_goldens|test_large|test_harness|test_ops_table|test_cost|test_errors|test_reference'
default_width_only="$default_width_only|test_shared"
# At 512 bits all of these compile for twice as long, which is for nobody where the CPU has no such vectors: every op stays.
real_width_only='test_conv2d$|test_relu_pool|test_mlp|test_attention|test_unpool|test_long'

if [ "$mode" != quick ]; then
    for bits in 128 512; do
        phase "kernels at a subgroup size of $((bits / 32)) (LP_NATIVE_VECTOR_WIDTH=$bits)"
        (
            export LP_NATIVE_VECTOR_WIDTH=$bits VKT_TEST_SEEDS=1 VKT_TEST_FIRST=3
            [ "$bits" = 128 ] || VKT_TEST_FIRST=8
            export VKT_WORDS64=$((bits / 512)) # both ways to store, whatever this CPU prefers
            if [ "$bits" = 512 ] && grep -q avx512bw /proc/cpuinfo; then
                VKT_TEST_SEEDS=2
            elif [ "$bits" = 512 ]; then
                default_width_only="$default_width_only|$real_width_only"
                skipped "more than a case of each op at 512 bits of $real_width_only: the CPU has no such vectors"
            fi
            check build-tests -L ops -E "$default_width_only"
            if [ "$bits" = 512 ] && grep -q avx512bw /proc/cpuinfo; then # what vkt_ctx_create_wide trains with
                check build-tests -R '^train/test_(.*_golden|trainer_state)$'
            elif [ "$bits" = 512 ]; then
                skipped "training with vectors of 512 bits: the CPU has none"
            fi
        )
    done

    phase "more drivers, small shapes"
    export VKT_TEST_SMALL=1 VKT_TEST_SEEDS=1 VKT_TEST_FIRST=6
    # Each op on each driver, by every variant. What looks into one of them or at whole programs has the widths above, and
    # most of its time here would go into compiling kernels.
    widths_only="$default_width_only|test_relu_pool|test_unpool|test_epilogue|test_conv2d$|test_mlp|test_attention"
    if [ -f "$drivers/swiftshader.json" ]; then # its kernels take ten times as long: Mesa 25 has the others of these
        on_driver "$drivers/swiftshader.json" build-tests -L ops \
            -E "$widths_only|test_conv2d_fft|test_in_place|test_elementwise|test_debug"
    else
        skipped "ops on SwiftShader: it could not be had"
    fi
    VKT_TEST_FIRST=7 # not 5: without texel loads, Mesa 25 compiles tiles for minutes
    if [ ! -f "$drivers/mesa25.json" ]; then
        skipped "ops on Mesa 25: it could not be had"
    elif [ -f "$drivers/layers/VkLayer_khronos_validation.json" ]; then
        current_layer on_driver "$drivers/mesa25.json" build-tests -L 'ops|gpu' -E "$widths_only"
    else
        on_driver "$drivers/mesa25.json" build-tests -L ops -E "$widths_only"
        skipped "a current validation layer: it could not be had"
    fi

    phase "cooperative matrices on Mesa 26"
    if [ -f "$drivers/mesa26.json" ] && [ -f "$drivers/layers/VkLayer_khronos_validation.json" ]; then
        mkdir -p build-coop # its tests are those programs of build-tests, under Debian 13's C library
        for test in ops_test_shared ops_test_ops ops_test_coop; do
            echo "add_test($test $drivers/newer/run $PWD/build-tests/tests/$test)"
        done >build-coop/CTestTestfile.cmake
        export VKT_REQUIRE_COOP=1 VKT_TEST_OPS=conv2d,conv_transpose2d,linear,matmul VKT_TEST_SEEDS=3 VKT_TEST_FIRST=9
        current_layer on_driver "$drivers/mesa26.json" build-coop
        unset VKT_REQUIRE_COOP VKT_TEST_OPS
    else
        skipped "cooperative matrices: Mesa 26 could not be had"
    fi
    unset VKT_TEST_SMALL VKT_TEST_SEEDS VKT_TEST_FIRST

    phase "all tests under AddressSanitizer and UndefinedBehaviorSanitizer"
    unset VK_INSTANCE_LAYERS VK_LAYER_ENABLES # the layer of 1.3.239 leaks; it had its turn
    # -O1 compiles in half the time of -O2 and has all checks, but warns of what cannot be: the other builds are without warnings.
    build build-asan all -DVKT_SANITIZE=address,undefined -DVKT_WERROR=OFF "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g1 -DNDEBUG"
    # What is freed is touched anew after 8 MiB, not 256: page faults took up to half of a test. And kernels compiled above.
    export ASAN_OPTIONS=quarantine_size_mb=8 VKT_TEST_SEEDS=1 VKT_TEST_FIRST=4
    numbers_only='test_op_goldens|test_large|test_long|test_in_place|test_shared|test_mlp|test_conv2d$' # by the same host code
    numbers_only="$numbers_only|test_trainer_precision|test_resnet$|test_mnist_data|test_reference"
    check build-asan -LE lint -E "planted_faults|$numbers_only"
    unset ASAN_OPTIONS VKT_TEST_SEEDS VKT_TEST_FIRST

    phase "data loader, and a queue that two threads share, under ThreadSanitizer"
    threaded="data_test_augment data_test_images data_test_loader embed_test_threads"
    build build-tsan "$threaded" -DVKT_SANITIZE=thread
    ! setarch -R true 2>/dev/null || wrapper="setarch -R" # gcc 12's runtime dislikes much address randomisation
    export TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan.supp"
    check build-tsan -R "^($(echo "$threaded" | sed 's/_test/.test/g; s/ /|/g'))\$"
    unset TSAN_OPTIONS
    wrapper=

    phase "lint, a build without warnings by clang, and every reader of files under libFuzzer"
    check build-tests -L lint
    has_libfuzzer || install_missing libclang-rt-dev
    if has_libfuzzer; then
        build build-clang all -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DVKT_FUZZ=ON
        check build-clang -R '^fuzz/.*_libfuzzer$'
    else
        build build-clang all -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DVKT_FUZZ=OFF
        skipped "libFuzzer: this clang has none"
    fi
fi

phase "totals after $(($(date +%s) - start)) s"
sort "$out/skips" | uniq -c
sed 's/^/FAILED: /' "$out/failures"
awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$out/counts"
echo "ran on: $(sort -u "$out/devices" | paste -sd '|' | sed 's/|/; /g')"
[ ! -s "$out/failures" ]
