# awk -f cases.awk LastTestsFailed.log LastTest.log - prints the numbers of passed, failed and skipped cases of a ctest run. The
# numbers come from cmocka's summaries. A test program without a summary counts as one case. A program that failed without a
# failed case counts as one failure. For instance, it crashed, or a sanitizer reported something at its exit.
# (LastTestsFailed.log is needed, because LastTest.log has "Passed" for a test that could not start.)
function close_test() {
    if (test == "") return
    if (test in bad && !failed) failed = 1
    else if (!(passed + failed + skipped)) passed = 1
    all_passed += passed
    all_failed += failed
    all_skipped += skipped
}
FILENAME ~ /LastTestsFailed/ { sub(/^[0-9]+:/, ""); bad[$0]; next }
/^[0-9]+\/[0-9]+ Testing: / {
    close_test()
    sub(/^[^:]*: /, "")
    test = $0
    passed = failed = skipped = 0
}
match($0, /\[  (PASSED  |FAILED  |SKIPPED )\] [0-9]+ test\(s\)/) {
    kind = substr($0, RSTART + 3, 6)
    n = substr($0, RSTART + 13) + 0
    if (kind == "PASSED") passed += n
    else if (kind == "FAILED") failed += n
    else skipped += n
}
END { close_test(); print all_passed + 0, all_failed + 0, all_skipped + 0 }
