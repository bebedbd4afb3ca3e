"""Text for the stages: the parent's training text, and news split into three parts.

    python3 -m examples.adaptation.text CORPUS --out FOLDER

Writes FOLDER/parent/train.en and train.de: the text of tatoeba.en-de without pairs whose English
line is in the validation or test set of tatoeba.en-fr. `nmtkit preprocess --held-out` has pairs of
the same languages instead. Writes FOLDER/news/train, valid and test (.en, .fr): the pairs of
news-commentary-5k.en-fr without those with an empty side, shuffled.
"""

import argparse
import random
import sys
from pathlib import Path

from nmtkit.errors import ConfigError, DataError, NmtkitError
from nmtkit.text.lines import read_lines, read_pair, resolve

Pairs = list[tuple[str, str]]

PARENT, CHILD, NEWS = "tatoeba.en-de", "tatoeba.en-fr", "news-commentary-5k.en-fr"
SEED = 1


def main() -> int:
    """Write the text; return the exit code."""
    parser = argparse.ArgumentParser(description="Text for the stages of training.")
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="folder of the three corpora")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--news-valid", type=int, default=300, metavar="PAIRS")
    parser.add_argument("--news-test", type=int, default=500, metavar="PAIRS")
    arguments = parser.parse_args()
    try:
        check(arguments.corpus)
        write_parent(arguments.corpus, arguments.out)
        write_news(arguments.corpus, arguments.out, arguments.news_valid, arguments.news_test)
    except NmtkitError as error:
        say(f"error: {error}")
        return error.exit_code
    return 0


def check(corpus: Path) -> None:
    """Check that the folders of a corpus exist.

    Raises:
        ConfigError: one of them does not.
    """
    for name in (PARENT, CHILD, NEWS):
        if not (corpus / name).is_dir():
            raise ConfigError(
                f"{corpus}: no folder {name}; give the absolute path of the folder that has it "
                "(make: CORPUS=)"
            )


def write_parent(corpus: Path, out: Path) -> None:
    """Write the parent's training text without English lines that the child is scored on.

    Raises:
        NmtkitError: a file is missing or malformed.
    """
    held_out = {
        line
        for part in ("valid", "test")
        for line in read_lines(resolve(str(corpus / CHILD / part), "en"))
    }
    pairs = read(corpus / PARENT / "train", "en", "de")
    kept = [(source, target) for source, target in pairs if source not in held_out]
    write(kept, out / "parent" / "train", "en", "de")
    say(f"parent: {len(kept)} of {len(pairs)} pairs; the others are held out")


def write_news(corpus: Path, out: Path, num_valid: int, num_test: int) -> None:
    """Write the training, validation and test set of the news.

    Raises:
        NmtkitError: a file is missing or malformed, or a part has no pairs.
    """
    prefix = corpus / NEWS / "train"
    pairs = [pair for pair in read(prefix, "en", "fr") if all(side.strip() for side in pair)]
    num_train = len(pairs) - num_valid - num_test
    if min(num_train, num_valid, num_test) < 1:
        raise DataError(
            f"{prefix}: {len(pairs)} pairs without empty sides: {num_train} to train, {num_valid} "
            f"to validate, {num_test} to test, but each needs 1; set --news-valid and --news-test "
            "(make: NEWS_VALID=, NEWS_TEST=)"
        )
    random.Random(SEED).shuffle(pairs)
    start = num_test + num_valid
    write(pairs[:num_test], out / "news" / "test", "en", "fr")
    write(pairs[num_test:start], out / "news" / "valid", "en", "fr")
    write(pairs[start:], out / "news" / "train", "en", "fr")
    say(f"news: {num_train} pairs to train, {num_valid} to validate, {num_test} to test")


def read(prefix: Path, source: str, target: str) -> Pairs:
    """Return the pairs of PREFIX.SOURCE and PREFIX.TARGET, or of these with .gz."""
    return list(read_pair(resolve(str(prefix), source), resolve(str(prefix), target)))


def write(pairs: Pairs, prefix: Path, *langs: str) -> None:
    """Write pairs to a file per language."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for side, lang in enumerate(langs):
        with Path(f"{prefix}.{lang}").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{pair[side]}\n" for pair in pairs)


def say(message: str) -> None:
    """Print a message to stderr."""
    sys.stderr.write(f"text: {message}\n")


if __name__ == "__main__":
    sys.exit(main())
