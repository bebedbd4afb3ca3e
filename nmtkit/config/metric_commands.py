"""Programs as metrics: the entries NAME=COMMAND of --metric-command.

`nmtkit/evaluation/metric_command.py` runs them.
"""

import re
from collections.abc import Iterator, Sequence

from nmtkit.config.metrics import METRICS, NONE, SCORE_KEYS
from nmtkit.config.problems import Problem, shown

_NAME = re.compile(r"[A-Za-z][\w.+-]*", re.ASCII)
_TAKEN = {NONE, *SCORE_KEYS, *METRICS, *(info.label for info in METRICS.values())}


def metric_commands(entries: Sequence[str]) -> dict[str, str]:
    """Return the commands of valid entries, by name."""
    return dict(map(_split, entries))


def metric_command_problems(entries: Sequence[str]) -> Iterator[Problem]:
    """Yield the problems of entries."""
    names: set[str] = set()
    for entry in entries:
        name, command = _split(entry)
        if not command:
            problem = (
                f"metric_command ({shown(entry)}) must be NAME=COMMAND, such as "
                "'ratio=python3 ratio.py'"
            )
        elif not _NAME.fullmatch(name):
            problem = (
                f"metric_command: the name {shown(name)} must be letters, digits, '.', '+', '-' "
                "and '_', a letter first; rename it"
            )
        elif name in _TAKEN:
            problem = f"metric_command: {name} is a metric, or a key of --json; choose another name"
        elif name in names:
            problem = f"metric_command names {name} twice; leave one out, or rename it"
        else:
            names.add(name)
            continue
        yield Problem(("metric_command",), f"{problem} [metrics.metric_command]")


def _split(entry: str) -> tuple[str, str]:
    name, _, command = entry.partition("=")
    return name.strip(), command.strip()
