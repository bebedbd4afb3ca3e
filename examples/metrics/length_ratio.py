"""A metric as a program: the ratio of the lengths of translation and reference, in percent.

    nmtkit score --reference test.de --metric-command ratio='python3 length_ratio.py' < test.out.de

It reads lines of source, translation and references, separated by tabs, and writes a number for
each: the shorter length in characters, divided by the longer one. Of several references, the
closest one counts.
"""

import sys


def ratio(translation: str, reference: str) -> float:
    """Return the ratio of the lengths in percent; 100 if both are empty."""
    shorter, longer = sorted((len(translation), len(reference)))
    return 100 * shorter / longer if longer else 100.0


def main() -> None:
    """Score segments from standard input to standard output."""
    sys.stdin.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    for line in sys.stdin:
        _source, translation, *references = line.removesuffix("\n").split("\t")
        scores = [ratio(translation, reference) for reference in references]
        sys.stdout.write(f"{max(scores, default=0.0)}\n")


if __name__ == "__main__":
    main()
