#!/bin/sh
# run.sh BUILD_DIR - checks the event files of --run with PyPI's tensorboard. It runs vkt-mnist of BUILD_DIR five times in one
# folder, on generated images, and compares the numbers that tensorboard reads with history.csv. run.sh installs tensorboard in
# BUILD_DIR/tensorboard, where it stays for the next run. The last line is "N passed, N failed, N skipped". The status
# is 0 only if nothing failed.
set -u
case ${1-} in
"" | -*)
    awk 'NR > 1 { if (!sub(/^# ?/, "")) exit; print }' "$0"
    exit 2
    ;;
esac
here=$(cd "$(dirname "$0")" && pwd) || exit 2
build=$(cd "$1" && pwd) || exit 2
home=$build/tensorboard

skip() {
    echo "SKIPPED: event files read by tensorboard: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

mkdir -p "$home" || exit 2
log=$home/install.log
if ! "$home/venv/bin/python" -c 'import tensorboard' 2>/dev/null; then
    rm -rf "$home/venv"
    { python3 -m venv "$home/venv" || python3 -m virtualenv "$home/venv"; } >"$log" 2>&1 ||
        skip "python3 -m venv does not work (package python3-venv; $log)"
    "$home/venv/bin/pip" install --disable-pip-version-check --retries 1 --timeout 15 'tensorboard>=2.10,<3' >>"$log" 2>&1 ||
        skip "pip could not install tensorboard ($log)"
    "$home/venv/bin/python" -c 'import tensorboard' >>"$log" 2>&1 || skip "tensorboard cannot be imported ($log)"
fi
rm -rf "$home/work"
mkdir "$home/work" || exit 2
exec "$home/venv/bin/python" "$here/check.py" "$build/samples/vkt-mnist" "$home/work"
