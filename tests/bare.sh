#!/bin/sh
# bare.sh - installs the packages, and then runs the two commands of the README as a newcomer would. The commands run in a
# copy of this tree without the folder data. The copy is below a folder whose name has a space. The user is not root, and
# there is no network.
#
# In the copy, the commands may change only folders of builds. At the end, bare.sh makes the copy read-only, builds a
# part of the library from it with VKT_BUILD_DIR, and runs a sample program in it.
#
# Only root can change the user. If bare.sh does not run as root, the commands run as the present user. If neither
# `unshare -n` nor `unshare -rn` works, bare.sh prints a line, and the commands have network.
#
# `bare.sh CACHE` copies the kernels that the driver compiled in the tests to the folder CACHE. CACHE is a path from the root
# of the repository.
set -u
cd "$(dirname "$0")/.." || exit 2
. scripts/setup.sh
# shellcheck disable=SC2086
install_missing $VKT_BUILD_PACKAGES $VKT_TEST_PACKAGES || exit 1

work=$(mktemp -d) || exit 2
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
chmod 755 "$work"
home="$work/a home"
tree="$home/a copy"
mkdir -p "$tree" "$home/builds"
git ls-files -z | xargs -0 cp --parents -t "$tree"

as_user=
if [ "$(id -u)" = 0 ]; then
    chown -R 65534:65534 "$home"
    as_user="setpriv --reuid=65534 --regid=65534 --clear-groups"
fi
offline=
if unshare -n true 2>/dev/null; then
    offline="unshare -n"
elif unshare -rn true 2>/dev/null; then
    offline="unshare -rn"
else
    echo "bare.sh: this kernel allows no unshare -n: the network stays"
fi

bare() ( # bare COMMAND...: runs COMMAND in the copy, with the prefixes $offline and $as_user and a new environment
    cd "$tree" || exit 1
    # shellcheck disable=SC2086
    exec $offline $as_user env -i PATH="$PATH" HOME="$home" TERM=dumb LANG=C.UTF-8 "$@"
)

status=0
step() { # step COMMAND...: runs COMMAND, prints its time, and notes a failure
    echo "==== without data, without network: $*"
    began=$(date +%s)
    "$@" || { status=1; echo "FAILED: $*"; }
    echo "---- $(($(date +%s) - began)) s"
}
sums() { # prints all files of the copy with their checksums, all links, and all empty folders; leaves out folders of builds
    (cd "$tree" && find . '(' -path ./build -o -path ./build-tests ')' -prune -o -type f -exec cksum {} + -o -type l -print -o \
        -type d -empty -print) | sort
}
only_builds_are_new() { # fails the check if the commands added or changed a file that is in no folder of a build
    sums >"$work/after"
    diff "$work/before" "$work/after" || { status=1; echo "FAILED: the commands changed the checkout"; }
}
sums >"$work/before"
step bare sh samples/run.sh
step bare sh tests/run.sh
only_builds_are_new
[ -z "${1-}" ] || { mkdir -p "$1" && cp -r "$tree/build-tests/cache/." "$1"; } || status=1
chmod -R a-w "$tree"
# vkt_base is a small part of the library. The whole library would take a minute.
step bare VKT_BUILD_DIR="$home/builds" sh -c '. scripts/setup.sh && build_sample "$PWD" vkt_base'
[ -f "$home/builds/build/libvkt_base.a" ] || { status=1; echo "FAILED: VKT_BUILD_DIR has no build"; }
step bare build-tests/samples/vkt-linreg
exit "$status"
