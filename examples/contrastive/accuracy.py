"""Print how often a model prefers right translations to wrong ones, by category.

    python3 accuracy.py SUITE --model MODEL [another option of `nmtkit score`]...

A line of SUITE has columns separated by tabs: source, right translation, one or more wrong ones,
category. Source: Sennrich 2017, https://aclanthology.org/E17-2060/.
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any


def main() -> None:
    """Score all translations; print per category how often the right one is the most probable."""
    suite, *options = sys.argv[1:]
    lines = Path(suite).read_text("utf-8").removesuffix("\n").split("\n")
    examples = [line.split("\t") for line in lines]
    for number, columns in enumerate(examples, 1):
        if len(columns) < 4 or not all(map(str.strip, columns)):
            sys.exit(f"{suite}:{number}: not source, right, wrong, category; fix the line")
    pairs = [(source, text) for source, *texts, _ in examples for text in texts]
    scored = map(json.loads, score(pairs, options))
    results = defaultdict[str, list[bool]](list)
    for _, *texts, category in examples:
        results[category].append(is_right(*[next(scored) for _ in texts]))
    rows = [*results.items(), ("all", [one for found in results.values() for one in found])]
    for category, found in rows:
        share = f"{100 * sum(found) / len(found):.2f}"
        sys.stdout.write(f"{category}\t{len(found)}\t{sum(found)}\t{share}\n")


def score(pairs: list[tuple[str, str]], options: list[str]) -> list[str]:
    """Return the JSON lines that `nmtkit score` prints for sources and translations."""
    objects = (json.dumps({"source": source, "translation": text}) for source, text in pairs)
    command = ["nmtkit", "score", *options, "--input-format", "json", "--json"]
    done = subprocess.run(
        command, input="\n".join(objects), stdout=subprocess.PIPE, encoding="utf-8", check=False
    )
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout.split("\n")


def is_right(right: dict[str, Any], *wrong: dict[str, Any]) -> bool:
    """Whether the right translation is more probable than each wrong one.

    Equal tokens may get other last digits in another batch; that is no difference.
    """
    return all(
        right["log_prob"] > one["log_prob"] and right["tokens"] != one["tokens"] for one in wrong
    )


if __name__ == "__main__":
    main()
