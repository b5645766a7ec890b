#!/bin/sh
# bare.sh - installs the packages, and then runs the two commands of the README as a newcomer would. The commands run in a
# copy of this tree without the folder data. The copy is below a folder whose name has a space. The user is not root, and
# there is no network.
#
# The commands must add nothing to the checkout but folders of builds. At the end, bare.sh configures a build of a read-only
# checkout with VKT_BUILD_DIR, and runs a sample in this checkout. Only root can change the user. If bare.sh does not run as root,
# the commands run as the present user. If the kernel does not allow `unshare -n`, bare.sh prints a line, and the commands have
# network.
#
# `bare.sh CACHE` copies the kernels that the driver compiled in the tests to the folder CACHE.
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
only_builds_are_new() {
    new=$(cd "$tree" && { find . -type f -o -type l; } | sed 's,^\./,,' | grep -vE '^build(-tests)?/' | sort | comm -13 "$work/files" -)
    [ -z "$new" ] || { status=1; echo "FAILED: the commands left in the checkout: $new"; }
}
git ls-files | sort >"$work/files"
step bare sh samples/run.sh
step bare sh tests/run.sh
only_builds_are_new
[ -z "${1-}" ] || { mkdir -p "$1" && cp -r "$tree/build-tests/cache/." "$1"; } || status=1
chmod -R a-w "$tree"
# The target help compiles nothing. Nothing that is compiled is written to the checkout, as only_builds_are_new has found.
step bare VKT_BUILD_DIR="$home/builds" sh -c '. scripts/setup.sh && build_sample "$PWD" help'
[ -f "$home/builds/build/build.ninja" ] || { status=1; echo "FAILED: VKT_BUILD_DIR has no build"; }
step bare build-tests/samples/vkt-linreg
exit "$status"
