"""In which settings runs differ: a row a setting, a column a run."""

from collections.abc import Sequence

from nmtkit.config.fields import fields_of, values_of
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import literal
from nmtkit.reporting.document import Cell, Section, Table
from nmtkit.reporting.runs import Run


def settings(runs: Sequence[Run]) -> Section:
    """Return the table of the settings that are not the same in all runs, as in their recipes."""
    values = [values_of(run.recipe) for run in runs]
    rows = [
        [Cell(f"{field.section}.{name}"), *(Cell(literal(field, one[name])) for one in values)]
        for name, field in fields_of(TrainRecipe).items()
        if any(one[name] != values[0][name] for one in values)
    ]
    if not rows:
        return Section("Settings that differ", None, ["all settings are equal"])
    headers = ["setting", *(run.name for run in runs)]
    return Section("Settings that differ", Table(headers, rows), [])
