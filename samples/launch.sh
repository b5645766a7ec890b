#!/bin/sh
# launch.sh [-n RANKS] [-H HOST[:SLOTS],..] [-r TRIES] PROGRAM OPTION... - trains in several processes, and goes on
# after a failure.
#
#   sh samples/launch.sh -n 4 build/samples/vkt-mnist --checkpoint mnist.ckpt --epochs 20
#   sh samples/launch.sh -H node1:4,node2:4 build/samples/vkt-resnet --run runs/first
#
# It starts `mpirun -n RANKS PROGRAM OPTION... --mpi`. If a rank fails, all ranks end, and the checkpoint stays. The
# script then asks which hosts answer, and goes on from the checkpoint. The number of ranks stays, if these hosts have
# room for it; otherwise it becomes the largest power of two for which they have room. If a try fails before it writes a
# checkpoint, the number of ranks is halved, but stays at least 1. With a fixed number of shards (--shards), the result
# does not depend on the number of ranks, and the run ends with the same bits as a run without failure. After a wrong
# option, or after SIGHUP, SIGINT or SIGTERM, there is no further try.
#
#   -n RANKS   number of ranks of the first try, a power of two; fewer, if the hosts have fewer slots
#              (default: the largest power of two for which the hosts have slots)
#   -H HOSTS   hosts, each with its number of slots (default: 1), in the form of mpirun's --host
#              (default: this machine with RANKS slots)
#   -r TRIES   number of tries, the first one included (default: 5)
#
# Give -n, -H or both. OPTION... must have --checkpoint FILE or --run DIR. The script reads two environment variables:
#
#   MPIRUN     the launcher (default: mpirun)
#   VKT_ASK    a command that succeeds if a host answers; the script appends the host's name to the command
#              (if not set, the script runs ssh -o BatchMode=yes -o ConnectTimeout=10 HOST true)
set -u

complain() { echo "launch.sh: $*" >&2; }
usage() { awk 'NR > 1 { if (!sub(/^# ?/, "")) exit; print }' "$0"; }

ranks='' hosts='' tries=5
while getopts n:H:r:h option; do
    case $option in
    n) ranks=$OPTARG ;;
    H) hosts=$OPTARG ;;
    r) tries=$OPTARG ;;
    h) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
done
shift $((OPTIND - 1))
case "x$ranks$tries" in *[!x0-9]*) complain "-n and -r want numbers" && exit 2 ;; esac
if [ $# = 0 ] || [ -z "$ranks$hosts" ]; then usage >&2 && exit 2; fi
[ -n "$hosts" ] || hosts=localhost:$ranks

# The checkpoint from which a run continues. `resumes` is set if the program needs --resume to read the checkpoint. With
# --run, the program finds the checkpoint itself.
checkpoint='' resumes='' previous=''
for argument; do
    case $previous in
    --checkpoint) checkpoint=$argument resumes=yes ;;
    --run) checkpoint=$argument/checkpoint.ckpt ;;
    esac
    case $argument in
    --checkpoint=*) checkpoint=${argument#*=} resumes=yes ;;
    --run=*) checkpoint=${argument#*=}/checkpoint.ckpt ;;
    --resume | --resume=*) complain "leave out --resume: with --checkpoint FILE, the script resumes FILE when it exists" && exit 2 ;;
    esac
    previous=$argument
done
[ -n "$checkpoint" ] || { complain "want --checkpoint FILE or --run DIR among the options" && exit 2; }

answers() { # answers HOST: returns whether HOST answers
    case $1 in localhost | 127.0.0.1) return 0 ;; esac
    if [ -n "${VKT_ASK-}" ]; then $VKT_ASK "$1"; else ssh -o BatchMode=yes -o ConnectTimeout=10 "$1" true </dev/null; fi
}

# Sets `alive` to the hosts that answer, with their slots, and `slots` to the sum of these slots.
find_hosts() {
    alive='' slots=0
    for host in $(echo "$hosts" | tr , ' '); do
        name=${host%:*} count=1
        [ "$name" = "$host" ] || count=${host##*:}
        if answers "$name" >/dev/null 2>&1; then
            alive="$alive${alive:+,}$name:$count"
            slots=$((slots + count))
        else
            complain "$name does not answer"
        fi
    done
}

power_of_two() { # power_of_two N: prints the largest power of two that is at most N
    power=1
    while [ $((power * 2)) -le "$1" ]; do power=$((power * 2)); done
    echo $power
}

state_of() { # state_of FILE: prints a text that changes with the content of the file
    if [ -f "$1" ]; then cksum "$1"; else echo none; fi
}

launcher=${MPIRUN:-mpirun}
if "$launcher" --version 2>/dev/null | grep -q 'Open MPI'; then
    on_hosts() { echo "--oversubscribe --host $alive"; }
else
    on_hosts() { echo "-hosts $(echo "$alive" | sed 's/:[0-9]*//g')"; }
fi

# start OPTION...: trains in `ranks` processes. If `again` is set, goes on from the checkpoint with --resume. Programs refuse
# --seed and --load beside --resume, because a checkpoint has its own seed and weights. So from the second try on, start
# leaves out these options and their short forms if `again` is set. The first try keeps the options, so the program refuses
# them: a checkpoint that exists before the first try may be of another run.
start() {
    is_value=''
    [ -z "$again" ] || [ "$try" = 1 ] || for argument; do
        shift
        [ -z "$is_value" ] || { is_value='' && continue; }
        case $argument in
        --se | --see | --seed | --lo | --loa | --load) is_value=yes ;;
        --se=* | --see=* | --seed=* | --lo=* | --loa=* | --load=*) ;;
        *) set -- "$@" "$argument" ;;
        esac
    done
    # shellcheck disable=SC2046 # word splitting is wanted
    "$launcher" -n "$ranks" $(on_hosts) "$@" --mpi ${again:+--resume "$checkpoint"}
}

try=1
while :; do
    find_hosts
    [ "$slots" -gt 0 ] || { complain "no host answers" && exit 1; }
    most=$(power_of_two "$slots")
    if [ -z "$ranks" ] || [ "$ranks" -gt "$most" ]; then ranks=$most; fi
    before=$(state_of "$checkpoint")
    again=
    [ -z "$resumes" ] || [ "$before" = none ] || again=yes
    complain "$ranks ranks${again:+, from $checkpoint}"
    start "$@"
    status=$?
    [ "$status" -ne 0 ] || exit 0
    case $status in 2 | 129 | 130 | 143) exit $status ;; esac # a wrong option, or SIGHUP, SIGINT or SIGTERM
    [ "$try" -lt "$tries" ] || { complain "the last of $tries tries failed" && exit $status; }
    try=$((try + 1))
    if [ "$(state_of "$checkpoint")" = "$before" ] && [ "$ranks" -gt 1 ]; then ranks=$((ranks / 2)); fi
done
