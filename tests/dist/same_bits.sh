#!/bin/sh
# same_bits.sh BUILD MPIRUN [NAME..] - trains networks with 1, 2, 4 and 8 ranks, as threads and as processes, in f32
# and f16. Prints the first 16 digits of the SHA-256 of the weights of each run. These digits must be equal for all runs
# of one network and precision. The exit code is 1 if they differ, or if a run fails.
#
#   sh tests/dist/same_bits.sh build mpirun.openmpi            # all: mnist (469 steps), resnet20 (200), gpt (200)
#   sh tests/dist/same_bits.sh build-mpich mpirun.mpich gpt    # only gpt
#
# BUILD must be configured for the MPI of MPIRUN (VKT_MPI_C_COMPILER). The environment variables RANKS ("1 2 4 8" if not
# set), PRECISIONS ("f32 f16") and WAYS ("threads mpi") select other runs. docs/scaling.md has the results.
# tests/samples/test_devices.c is a small test of the same property.
set -u
[ $# -ge 2 ] || { awk 'NR > 1 { if (!sub(/^# ?/, "")) exit; print }' "$0" >&2; exit 2; }
build=$(cd "$1" && pwd) || exit 2
mpirun=$2
shift 2
[ $# -gt 0 ] || set -- mnist resnet20 gpt
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
status=0

# Prints the program and the options of a network.
command_of() {
    case $1 in
    mnist) echo "$build/samples/vkt-mnist --epochs 1" ;;
    resnet20) echo "$build/samples/vkt-resnet --epochs 2 --batch 16 --limit 1600 --no-augment" ;;
    gpt) echo "$build/samples/vkt-gpt --epochs 1 --batch 16 --context 32 --layers 2 --heads 2 --width 32 --sample 0" ;;
    *) echo "same_bits.sh: mnist, resnet20 or gpt, not $1" >&2 && exit 2 ;;
    esac
}

for network; do
    base=$(command_of "$network") || exit 2
    for precision in ${PRECISIONS:-f32 f16}; do
        first=
        for way in ${WAYS:-threads mpi}; do
            for ranks in ${RANKS:-1 2 4 8}; do
                weights=$out/weights
                rm -f "$weights"
                devices=0
                i=1
                while [ "$way" = threads ] && [ $i -lt "$ranks" ]; do devices=$devices,0 i=$((i + 1)); done
                # shellcheck disable=SC2086 # word splitting is wanted
                if [ "$way" = threads ]; then
                    $base --devices $devices --shards 8 --seed 1 --precision "$precision" --save "$weights" -q
                else
                    $mpirun -n "$ranks" $base --mpi --shards 8 --seed 1 --precision "$precision" --save "$weights" -q
                fi >"$out/log" 2>&1 || { cat "$out/log" && status=1; }
                sum=none
                [ ! -f "$weights" ] || sum=$(sha256sum <"$weights" | cut -c1-16)
                : "${first:=$sum}"
                [ "$sum" = "$first" ] && [ "$sum" != none ] || status=1
                echo "$network $precision $way $ranks $sum"
            done
        done
    done
done
exit $status
