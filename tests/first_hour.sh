#!/bin/sh
# first_hour.sh BUILD_DIR - runs the commands of a newcomer's first hour, with the sample programs of BUILD_DIR.
#
# Runs the programs, except vkt-ntc and vkt-scaling, in terminals of 80 and 40 columns and with their output in a file. Runs
# them without network, if the system allows that. Also makes the usual mistakes of users. Checks for each run that the exit
# status is right, that no line is wider than the terminal, that no part of a rewritten line stays, that a file gets no escape
# sequence, and that an error says what to do. Prints the failures, and ends with "N passed, N failed, N skipped". The status is
# 0 only if nothing failed. BUILD_DIR/first_hour/transcript.txt has all output, for a reader.
#
# Some lines may be wider than the terminal: lines of tables (vkt-bench, vkt-info, vkt-audit), messages, and lines that name
# files. At 40 columns, all lines may be wider. Real data sets come from VKT_DATA, if it is set. Some images and a language
# model come from tests/golden. All other data are generated here.
set -u
case ${1-} in
"" | -*)
    awk 'NR > 1 { if (!sub(/^# ?/, "")) exit; print }' "$0"
    exit 2
    ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd) || exit 2
build=$(cd "$1" && pwd) || exit 2
out=$build/first_hour
bin=$build/samples
rm -rf "$out/work"
mkdir -p "$out/work/none" || exit 2
transcript=$out/transcript.txt
: >"$transcript"
"${CC:-cc}" -std=c11 -O1 -I"$root/tests" -o "$out/in_terminal" "$root/tests/first_hour/in_terminal.c" \
    "$root/tests/support/terminal.c" || exit 2

export XDG_CACHE_HOME="${XDG_CACHE_HOME:-$out/cache}" MESA_SHADER_CACHE_DIR="${MESA_SHADER_CACHE_DIR:-$out/cache}"
export LANG=C.UTF-8 TERM=xterm VKT_MNIST_MIRROR=
unset LC_ALL LC_CTYPE NO_COLOR COLUMNS VKT_DEBUG VKT_DEVICE
real=${VKT_DATA-} # the folder of real data; VKT_DATA is unset below, so only the runs of from_real get it
[ -z "$real" ] || real=$(cd "$real" && pwd)
unset VKT_DATA
cd "$out/work" || exit 2
passed=0 failed=0 skipped=0

fail() { # fail WHY: reports a failure of the run that `go` checks
    echo "FAILED: $what: $*" | tee -a "$transcript"
    good=
}

skip() {
    echo "SKIPPED: $*" | tee -a "$transcript"
    skipped=$((skipped + 1))
}

offline=
if unshare -rn true 2>/dev/null; then
    offline="unshare -rn"
else
    skip "runs without network: this system does not let a user switch it off"
fi

# go WHERE STATUS SAYS COMMAND...: runs COMMAND and checks the run. WHERE is "piped" or a number of columns. STATUS is one
# status or several, such as "1|2". The output must contain SAYS.
go() {
    where=$1 want=$2 says=$3 good=yes
    shift 3
    what="$* ($where)"
    printf '\n==== %s\n$ %s\n' "$where" "$*" >>"$transcript"
    : >report
    begun=$(date +%s)
    if [ "$where" = piped ]; then
        # shellcheck disable=SC2086 # word splitting is wanted
        timeout 300 $offline "$@" >seen 2>&1 </dev/null
        status=$?
    else
        # shellcheck disable=SC2086
        "$out/in_terminal" "$where" report timeout 300 $offline "$@" >seen
        status=$?
    fi
    cat seen >>"$transcript"
    echo "-> status $status, $(($(date +%s) - begun)) s" >>"$transcript"
    case "|$want|" in
    *"|$status|"*) ;;
    *) fail "status $status, want $want" ;;
    esac
    # A terminal breaks lines, also within words. So the output and SAYS are compared without white space.
    [ ! "$says" ] || tr -d ' \n\r' <seen | grep -qF -e "$(echo "$says" | tr -d ' \n')" || fail "it does not say '$says'"
    ! grep -q 'validation:' seen || fail "a message of the validation layer"
    [ "$where" != piped ] || look_at_file
    [ "$where" = piped ] || look_at_screen
    ! grep -q 'vktrain error' seen || fail "a message that does not begin with the name of the program"
    [ "$want" = 0 ] || grep -qE "$help" seen || fail "an error that does not say what to do"
    if [ "$good" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# A message that says what to do next, or which name to check, has one of these words.
help='want |use |[Tt]ry |needs? |would |instead|leave out|--[a-z]|install|set |there are|the columns are|another kind|whole output'
help="$help|No such file|Is a directory|Not a directory|this run|in the checkpoint"

look_at_file() {
    ! LC_ALL=C grep -q "$(printf '[\033\r]')" seen || fail "escape sequences or carriage returns in a file"
}

look_at_screen() {
    grep -qx 'torn 0' report || fail "a line that wraps is rewritten, and its beginning stays behind"
    if [ "$where" = 80 ] && [ ! "${table-}" ] && grep -q '^wide ' report; then
        fail "wider than the terminal: $(grep '^wide ' report | head -n 3)"
    fi
    case ${TERM-} in
    xterm) ;;
    *) grep -qx 'escapes 0' report || fail "escape sequences with TERM='${TERM-}'" ;;
    esac
    [ "${LANG-}" != C ] || grep -qx 'letters 0' report || fail "letters beyond ASCII in the locale C"
}

everywhere() { # everywhere SAYS COMMAND...: runs a command, which must succeed, in 80 columns, in 40 columns, and piped
    said=$1
    shift
    for place in 80 40 piped; do go "$place" 0 "$said" "$@"; done
}

mistake() { # mistake STATUS SAYS COMMAND...: runs a command, which must fail with STATUS
    go piped "$@"
}

one_message() { # checks that the last run printed exactly one error
    [ "$(grep -c '^vkt-[a-z]*: ' seen)" = 1 ] && return
    fail "more than one message, or none"
    failed=$((failed + 1))
}

has() { # has SAMPLE: returns whether the sample was built, and counts a skip if not
    [ -x "$bin/vkt-$1" ] || {
        skip "vkt-$1: it is not built"
        return 1
    }
}

offers() { # offers SAMPLE OPTION: returns whether the sample has the option, and counts a skip if not
    "$bin/vkt-$1" --help | grep -q -e "--$2" || {
        skip "vkt-$1 --$2: there is no such option"
        return 1
    }
}

# ---- generated data

put() { # put FORMAT: prints the bytes of a printf format
    # shellcheck disable=SC2059 # the argument is a format
    printf "$1"
}

make_digits() { # make_digits FOLDER: 120 training images and 120 test images of 28 x 28 pixels, in ten classes
    mkdir -p "$1"
    for part in train t10k; do
        {
            put '\0\0\010\003\0\0\0\170\0\0\0\034\0\0\0\034'
            yes 0123456789abcdefghijklmnopqrstuvw | head -c 94080
        } >"$1/$part-images-idx3-ubyte"
        {
            put '\0\0\010\001\0\0\0\170'
            for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do put '\0\001\002\003\004\005\006\007\010\011'; done
        } >"$1/$part-labels-idx1-ubyte"
    done
}

make_images() { # make_images FOLDER: two classes of 12 images
    for class in gray noise; do
        mkdir -p "$1/$class"
        for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
            for ending in jpg png; do
                [ ! -f "$root/tests/golden/images/$class.$ending" ] ||
                    cp "$root/tests/golden/images/$class.$ending" "$1/$class/$i.$ending"
            done
        done
    done
}

make_news() { # make_news FOLDER: training and test texts on two topics
    mkdir -p "$1"
    for part in train test; do
        for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
            printf 'wheat\tthe harvest of wheat number %s is good\nmoney\tthe bank lends %s millions more\n' "$i" "$i"
        done >"$1/$part.tsv"
    done
}

make_digits digits
make_images images
make_news news
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    echo "Line $i: the quick brown fox jumps over the lazy dog, and over the other $i dogs, too."
done >text.txt
{
    echo "weight,colour,price"
    for i in 4 9 2 7 8 3 5 1 6 4 9 2; do printf '%s.5,red,%s0\n%s.1,blue,%s5\n' "$i" "$i" "$i" "$i"; done
} >table.csv
mkdir -p half
cp digits/train-images-idx3-ubyte half/
echo "this is no weights file" >text.safetensors

# ---- the samples, by a user's first commands

small="--epochs 2 --batch 32"
tiny="--epochs 1 --layers 1 --width 32 --heads 2 --context 16 --sample 40"
if has mnist; then
    # shellcheck disable=SC2086
    everywhere "correct" "$bin/vkt-mnist" --data digits $small
    everywhere "--memory-limit" "$bin/vkt-mnist" --help
    everywhere "usable" "$bin/vkt-mnist" --list-devices
    # shellcheck disable=SC2086
    go piped 0 "" "$bin/vkt-mnist" --data digits $small -q --save weights.safetensors --checkpoint run.ckpt --json r.json \
        --history h.csv --plot p.svg
    # shellcheck disable=SC2086
    go 80 0 "epoch 3/3" "$bin/vkt-mnist" --data digits --batch 32 --epochs 3 --resume run.ckpt
    # shellcheck disable=SC2086
    (
        export TERM=dumb LANG=C
        what='' good='' table=''
        go 80 0 "epoch 2/2" "$bin/vkt-mnist" --data digits $small
        echo "$passed $failed" >counts
    )
    read -r passed failed <counts
    go 80 0 "all 120 rows" "$bin/vkt-mnist" --data digits --epochs 1 --batch 100000
fi
if has images; then
    # shellcheck disable=SC2086
    everywhere "test    " "$bin/vkt-images" --epochs 1
    # shellcheck disable=SC2086
    go 80 0 "2 classes" "$bin/vkt-images" --data images $small
fi
# shellcheck disable=SC2086
! has gpt || everywhere "generated text" "$bin/vkt-gpt" --data text.txt $tiny
for i in 1 2 3 4 5 6 7 8 9; do echo '{"question": "What is '$i'?", "answer": "It is '$i'."}'; done >chats.jsonl
lora="--model $root/tests/golden/lm/llama.gguf --template chatml --context 48"
if has lora; then
    # shellcheck disable=SC2086
    everywhere "perplexity" "$bin/vkt-lora" $lora --data chats.jsonl --epochs 2 --answer 8 --validation-examples 2 --save-adapter tuned
    # shellcheck disable=SC2086
    go piped 0 "tokens/s" "$bin/vkt-lora" $lora --adapter tuned --prompt "What is 3?" --answer 4
fi
# shellcheck disable=SC2086
! has reuters || everywhere "epoch 2/2" "$bin/vkt-reuters" --data news $small
! has resnet || everywhere "epoch 1/1" "$bin/vkt-resnet" --from-scratch --epochs 1 --limit 8 --batch 8
if has table; then
    everywhere "columns, and what they are" "$bin/vkt-table" --epochs 2
    go piped 0 "price" "$bin/vkt-table" --data table.csv --epochs 2
fi
! has linreg || everywhere "found   t = " "$bin/vkt-linreg" --rows 10000 --epochs 60
! has matmul || everywhere "GFLOP/s" "$bin/vkt-matmul" --size 100,20,30
! has train_minimal || everywhere "of the test images" "$bin/vkt-train_minimal"
! has custom_loss || everywhere "own loss" "$bin/vkt-custom_loss"
! has embed_minimal || everywhere "the network predicts" "$bin/vkt-embed_minimal"
! has view || everywhere "after 3 steps" "$bin/vkt-view" --headless 3 --save v.safetensors
! has nrc || everywhere "differ by at most" "$bin/vkt-nrc" --headless 2 --size 32x24 --reference 16
table=yes
! has info || everywhere "device 0" "$bin/vkt-info"
! has audit || everywhere "all right" "$bin/vkt-audit" --all --filter softmax_xent --seeds 1
! has bench || everywhere "softmax_xent" "$bin/vkt-bench" --filter '^softmax_xent' --sizes small --min-time 1
table=

# ---- predictions with trained weights

if has images && offers images predict; then
    # shellcheck disable=SC2086
    go piped 0 "" "$bin/vkt-images" --data images $small -q --save images.safetensors
    go 80 0 "noise" "$bin/vkt-images" --load images.safetensors --predict images/noise/1.png
    mistake 1 "nowhere.jpg" "$bin/vkt-images" --load images.safetensors --predict nowhere.jpg
    mistake 2 "--load" "$bin/vkt-images" --predict images/noise/1.png
fi
if has reuters && offers reuters predict; then
    # shellcheck disable=SC2086
    go piped 0 "" "$bin/vkt-reuters" --data news $small -q --save news.safetensors
    go piped 0 "money" sh -c "echo the bank lends millions | '$bin/vkt-reuters' --load news.safetensors --predict -"
fi

# ---- help: every heading above its own options

for sample in mnist images gpt lora reuters resnet table linreg matmul view nrc bench audit; do
    has "$sample" || continue
    go piped 0 "Usage: vkt-$sample" "$bin/vkt-$sample" --help
    # A heading begins with one blank and a capital letter. The next line must not be a heading.
    if awk '/^ [A-Z]/ { if (heading) bad = 1; heading = 1; next } { heading = 0 } END { exit !bad }' seen; then
        what="vkt-$sample --help"
        fail "two headings, one after the other"
        failed=$((failed + 1))
    fi
done

# ---- real data

from_real() { # from_real FOLDER SAMPLE STATUS SAYS OPTION...: runs the sample on real data in a terminal
    if [ -z "$real" ] || [ ! -d "$real/$1" ]; then
        skip "vkt-$2 with $1: VKT_DATA has no such folder"
        return
    fi
    has "$2" || return
    program=$bin/vkt-$2 status_wanted=$3 text=$4
    shift 4
    go 80 "$status_wanted" "$text" env VKT_DATA="$real" "$program" "$@"
}
# The folder real-digits has MNIST's 10,000 test images also as training images, because training on 60,000 takes longer.
if [ -n "$real" ] && [ -d "$real/mnist" ]; then
    mkdir -p real-digits
    for file in "$real"/mnist/t10k-*; do
        name=$(basename "$file")
        ln -s "$file" "real-digits/$name"
        ln -s "$file" "real-digits/train-${name#t10k-}"
    done
fi
from_real mnist mnist 0 "10000 to train on" --data real-digits --epochs 1 --batch 256 --lr 0.01
from_real caltech101 images 0 "101 classes" --epochs 1 --batch 64
from_real reuters46-keras reuters 0 "46 classes" --epochs 1 --batch 512
from_real cifar10-jpeg resnet 0 "are recognised" --evaluate --limit 64

# ---- mistakes

wrong() { # wrong SAMPLE OPTION...: tries an unknown option, then each OPTION, which has an invalid value
    sample=$1
    has "$sample" || return
    mistake 2 "--help" "$bin/vkt-$sample" --nonsense
    shift
    for option; do mistake 2 "--${option%%=*}" "$bin/vkt-$sample" "--$option"; done
}
wrong mnist batch=0 lr=fast epochs=-1 seed=x memory-limit=12Q schedule=sine optimizer=lion precision=half
wrong images size=9 batch=0
wrong gpt layers=0 heads=0
wrong lora context=1 rank=0 template=word top-p=0
wrong reuters epochs=none
wrong resnet network=resnet7
wrong linreg rows=0
wrong matmul size=3
wrong view side=0
wrong nrc size=9
wrong bench sizes=huge
wrong audit seeds=0
wrong info
if has mnist; then
    mistake 2 "'digits'" "$bin/vkt-mnist" digits
    mistake 1 "nowhere does not exist" "$bin/vkt-mnist" --data nowhere
    mistake 1 "train-images-idx3-ubyte" "$bin/vkt-mnist" --data none
    mistake 1 "train-labels-idx1-ubyte" "$bin/vkt-mnist" --data half
    mistake 1 "text.txt is no folder" "$bin/vkt-mnist" --data text.txt
    mistake 2 "vkt-mnist --help" "$bin/vkt-mnist" --data digits --epochs 1 --plot p.gif
    mistake 1 "no/w" "$bin/vkt-mnist" --data digits --epochs 1 --save no/w
    mistake 1 "none" "$bin/vkt-mnist" --data digits --epochs 1 --save none
    mistake 1 "missing.st" "$bin/vkt-mnist" --data digits --load missing.st
    mistake 1 "text.safetensors" "$bin/vkt-mnist" --data digits --load text.safetensors
    mistake 1 "missing.st" "$bin/vkt-mnist" --data nowhere --load missing.st # --load is checked before the data are read
    mistake 2 "leave out --checkpoint" "$bin/vkt-mnist" --data digits --run run --checkpoint run.ckpt
    mistake 1 "missing.ckpt" "$bin/vkt-mnist" --data digits --resume missing.ckpt
    mistake 1 "weights.safetensors" "$bin/vkt-mnist" --data digits --resume weights.safetensors
    mistake 1 "" "$bin/vkt-mnist" --data digits --batch 16 --resume run.ckpt
    mistake 1 "no such card" "$bin/vkt-mnist" --device "no such card"
    mistake 1 "99" "$bin/vkt-mnist" --device 99
    mistake 1 "" "$bin/vkt-mnist" --data digits --memory-limit 1M
    mistake 2 "--checkpoint FILE" "$bin/vkt-mnist" --checkpoint-every 5
    mistake 1 "" env VK_ICD_FILENAMES=/none.json VK_DRIVER_FILES=/none.json "$bin/vkt-mnist" --data digits
fi
if has lora; then
    mistake 1 "nowhere.gguf" "$bin/vkt-lora" --model nowhere.gguf --data chats.jsonl
    mistake 1 "--model FILE.gguf" "$bin/vkt-lora" --data chats.jsonl
    # shellcheck disable=SC2086
    mistake 1 "nowhere.jsonl" "$bin/vkt-lora" $lora --data nowhere.jsonl
    # shellcheck disable=SC2086
    mistake 1 "one object a line" sh -c "echo '[]' >list.json; exec '$bin/vkt-lora' $lora --data list.json"
    # shellcheck disable=SC2086
    mistake 1 "nowhere" "$bin/vkt-lora" $lora --adapter nowhere --prompt hello
fi
if has gpt; then
    # shellcheck disable=SC2086
    go piped 0 "" "$bin/vkt-gpt" --data text.txt $tiny -q --checkpoint gpt.ckpt
    # shellcheck disable=SC2086
    mistake 1 "" "$bin/vkt-gpt" --data text.txt $tiny --layers 2 --resume gpt.ckpt
    mistake 2 "--heads" "$bin/vkt-gpt" --data text.txt --heads 5
    mistake 1 "nowhere.txt" "$bin/vkt-gpt" --data nowhere.txt
    mistake 1 "characters" "$bin/vkt-gpt" --data text.safetensors
    mistake 1 "" "$bin/vkt-mnist" --data digits --resume gpt.ckpt
fi
if has images; then
    mistake 1 "nowhere does not exist" "$bin/vkt-images" --data nowhere
    one_message
    mistake 1 "class" "$bin/vkt-images" --data none
    one_message
    mistake 1 "" "$bin/vkt-images" --data digits
    mistake 1 "of shape" "$bin/vkt-images" --data images --load weights.safetensors
fi
if has table; then
    mistake 2 "--help" "$bin/vkt-table" --nonsense
    mistake 1 "nowhere.csv" "$bin/vkt-table" --data nowhere.csv
    mistake 1 "weight" "$bin/vkt-table" --data table.csv --target nothing
    mistake 1 "want" "$bin/vkt-table" --data text.safetensors
fi
! has reuters || mistake 1 "train.tsv" "$bin/vkt-reuters" --data none
! has resnet || mistake 1 "" "$bin/vkt-resnet" --data images --load weights.safetensors
! has view || mistake 1 "nowhere.png" "$bin/vkt-view" --headless 1 --image nowhere.png
if has info; then
    mistake 1 "conv" "$bin/vkt-info" 'conv9d (1,2)'
    one_message
fi

# ---- the first build prints its progress (scripts/setup.sh)

cat >building.sh <<EOF
. "$root/scripts/setup.sh"
compile() { for i in 1 30 60 100; do echo "[\$i/100] Building C object"; done; [ "\$1" = well ]; }
build_quietly log compile "\$1"
EOF
go 80 0 "building 100/100" sh building.sh well
go piped 0 "building: 60/100" sh building.sh well
mistake 1 "whole output: log" sh building.sh badly

echo "transcript: $transcript"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
