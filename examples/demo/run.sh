#!/bin/sh
# All steps on a small corpus; each command is printed when it runs. Needs nmtkit on the PATH, which
# `make demo` provides. Writes only to demo/. An interrupted demonstration continues when it is run
# again; without demo/ it starts from the beginning.
set -eu
cd "$(dirname "$0")/../.."

run() {
    printf '\n$ %s\n' "$1"
    eval "$1"
}

[ -e demo ] && printf 'continuing in demo/; delete it to start from the beginning\n'
[ -e demo/corpus ] || run 'python -m examples.demo.corpus demo/corpus'
[ -e demo/data ] || run 'nmtkit preprocess -s en -t de --train demo/corpus/train --valid demo/corpus/valid --vocab-size 2000 --out demo/data'
run 'nmtkit train demo/data --out demo/run --config examples/demo/recipe.toml'
run 'nmtkit average-checkpoints demo/run --out demo/model --overwrite'
run 'nmtkit translate demo/model < demo/corpus/test.en > demo/test.out.de'

printf '\nThe first five sentences of the test set, translated:\n'
paste demo/corpus/test.en demo/test.out.de demo/corpus/test.de | head -n 5 |
    while IFS='	' read -r source translation reference; do
        printf '\n  source       %s\n  translation  %s\n  reference    %s\n' \
            "$source" "$translation" "$reference"
    done

run 'nmtkit score --reference demo/corpus/test.de < demo/test.out.de'
