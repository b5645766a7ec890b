#!/bin/sh
# circles_selftest.sh - compiles small libraries and checks that circles.sh reports the circles in them, and nothing else.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 2
passed=0
failed=0

library() { rm -rf ./*.c ./*.o lib.objects; : > lib.objects; }
file() { # file NAME TEXT: adds a source file to the library, and compiles it
    printf '%s\n' "$2" > "$1.c"
    ${CC:-cc} -c "$1.c" -o "$1.c.o" || exit 2
    echo "$1.c.o" >> lib.objects
}
expect() { # expect STATUS LINE WHAT: circles.sh must end with STATUS and print LINE ("": nothing but the summary)
    sh "$here/circles.sh" lib.objects > out 2>&1
    status=$?
    if [ "$status" -eq "$1" ] && if [ -n "$2" ]; then grep -qxF "$2" out; else [ "$(wc -l < out)" -eq 1 ]; fi; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $3 (status $status)"
        cat out
    fi
}

library
file a 'void b(void); void a(void) { b(); }'
file b 'void c(void); void b(void) { c(); }'
file c 'int puts(const char *); void c(void) { puts("x"); }'
expect 0 '' 'calls in one direction are no circle'
file d 'void a(void); void d(void) { a(); } static void c(void) { } void e(void) { c(); }'
expect 0 '' 'a static function of the same name is no call'

library
file a 'void b(void); void a(void) { b(); }'
file b 'void a(void); void b(void) { a(); }'
file c 'void a(void); void c(void) { a(); }'
expect 1 'lib: a.c <-> b.c' 'two files that call each other'
expect 1 '    b.c uses a of a.c' 'the calls of the circle are named'

library
file a 'void b(void); void a(void) { b(); }'
file b 'void c(void); void b(void) { c(); }'
file c 'void a(void); void c(void) { a(); }'
expect 1 'lib: a.c <-> b.c <-> c.c' 'a circle of three files'

library
file a 'extern const int b; int a(void) { return b; }'
file b 'int a(void); const int b = 1; int *f(void) { return (int *)a; }'
expect 1 'lib: a.c <-> b.c' 'a circle through data and the address of a function'

library
file a 'void b(void); void a(void) { b(); }'
file b 'void a(void); void b(void) { a(); }'
file c 'void d(void); void c(void) { d(); }'
file d 'void c(void); void d(void) { c(); }'
expect 1 'lib: a.c <-> b.c' 'the first of two circles'
expect 1 'lib: c.c <-> d.c' 'the second of two circles'

library
echo gone.c.o > lib.objects
expect 1 'lib.objects: nm cannot read its objects: build them first' 'an object that is not there'
library
expect 1 'lib.objects: want objects, got none' 'a library without objects'

echo "circles selftest: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
