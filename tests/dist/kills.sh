#!/bin/sh
# kills.sh BUILD MPIRUN N - does this N times: trains with four ranks, and kills one of them with SIGKILL at a random
# moment. Then two ranks continue from the checkpoint, or train from the start if there is no checkpoint. They must end
# with the weights of a run without a kill. Prints one line each time, also if there was no rank to kill. If the two
# ranks fail, prints their output, too. The exit code is 1 if two ranks failed or ended with other weights, or if the run
# without a kill failed.
#
#   sh tests/dist/kills.sh build mpirun.openmpi 20
set -u
[ $# = 3 ] || { awk 'NR > 1 { if (!sub(/^# ?/, "")) exit; print }' "$0" >&2; exit 2; }
gpt=$(cd "$1" && pwd)/samples/vkt-gpt || exit 2
mpirun=$2
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
cd "$out" || exit 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
awk 'BEGIN { for (i = 0; i < 400; i++) printf "the old cat %d hid. ", i * 7 % 13 }' >text
run="$gpt --data text --context 16 --layers 1 --heads 2 --width 16 --batch 16 --epochs 12 --schedule constant --sample 0 -q"

# shellcheck disable=SC2086 # word splitting is wanted
$run --shards 8 --save whole || exit 1
lost=0
i=1
while [ $i -le "$3" ]; do
    rm -f c rest
    # shellcheck disable=SC2086
    $mpirun -n 4 $run --mpi --checkpoint c --checkpoint-every 3 >log 2>&1 &
    child=$!
    pause=$(awk -v seed="$i$$" 'BEGIN { srand(seed); printf "%.2f", 0.3 + 3 * rand() }')
    sleep "$pause"
    rank=$(pgrep -f "^$gpt .*--checkpoint c" | awk -v seed="$$$i" 'BEGIN { srand(seed) } { p[NR] = $1 }
        END { if (NR) print p[int(rand() * NR) + 1] }')
    killed="no rank was there"
    [ -z "$rank" ] || { kill -9 "$rank" 2>/dev/null && killed="killed"; }
    wait $child
    from="the start"
    resume=
    [ ! -f c ] || { from="its checkpoint" && resume="--resume c"; }
    # shellcheck disable=SC2086
    $mpirun -n 2 $run --mpi $resume --save rest >log2 2>&1 || cat log2
    verdict="the same weights"
    cmp -s whole rest || { verdict="OTHER WEIGHTS" && lost=1; }
    echo "$i: $killed after $pause s; two ranks went on from $from: $verdict"
    i=$((i + 1))
done
exit $lost
