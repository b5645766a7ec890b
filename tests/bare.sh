#!/bin/sh
# bare.sh - installs the packages, and then runs the two commands of the README as a newcomer would. The commands run in a
# copy of this tree without the folder data. The copy is below a folder whose name has a space. The user is not root, and
# there is no network.
#
# At the end, bare.sh runs a sample program from a read-only checkout, with VKT_BUILD_DIR. Only root can change the user. If
# bare.sh does not run as root, the commands run as the present user. If the kernel does not allow `unshare -n`, bare.sh prints
# a line, and the commands have network.
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
step bare sh samples/run.sh
[ ! -e "$tree/data" ] || { status=1; echo "FAILED: a download that failed left $(ls -R "$tree/data")"; }
step bare sh tests/run.sh
rm -rf "$tree/build" "$tree/build-tests"
chmod -R a-w "$tree"
step bare VKT_BUILD_DIR="$home/builds" sh samples/run.sh linreg
exit "$status"
