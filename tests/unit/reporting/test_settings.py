from hypothesis import given
from hypothesis import strategies as st

from nmtkit.config.fields import Field, Value, fields_of, recipe_of
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import loads
from nmtkit.reporting.document import Table
from nmtkit.reporting.runs import Run
from nmtkit.reporting.settings import settings
from tests.unit.reporting.builders import run_of

FIELDS = fields_of(TrainRecipe)


def table(*runs: Run) -> Table:
    found = settings(runs).table
    assert found is not None
    return found


def other_value(field: Field) -> Value:
    """Return a value that is not the default, permitted or not."""
    if field.kind is bool:
        return not field.default
    if isinstance(field.default, str):
        return field.default + " "
    assert isinstance(field.default, int | float), f"{field.name} is of a new kind"
    return field.default + 1


@given(st.sets(st.sampled_from(list(FIELDS))), st.sets(st.sampled_from(list(FIELDS))))
def test_the_table_names_exactly_the_settings_that_differ(
    first: set[str], second: set[str]
) -> None:
    defaults = {name: field.default for name, field in FIELDS.items()}
    runs = [
        run_of(settings={**defaults, **{name: other_value(FIELDS[name]) for name in chosen}})
        for chosen in (set[str](), first, second)
    ]
    differing = [f"{FIELDS[name].section}.{name}" for name in FIELDS if name in first | second]
    if not differing:
        assert settings(runs).sentences == ["all settings are equal"]
        assert settings(runs).table is None
    else:
        assert [row[0].text for row in table(*runs).rows] == differing


def test_each_run_has_a_column_with_what_its_recipe_says() -> None:
    changed: dict[str, Value] = {
        "norm": "pre",
        "devices": 2,
        "tie_embeddings": False,
        "dropout": 0.25,
    }
    found = table(run_of("base"), run_of("changed", settings=changed))
    assert found.headers == ["setting", "base", "changed"]
    assert [[cell.text for cell in row] for row in found.rows] == [
        ["model.dropout", "0.1", "0.25"],
        ["model.norm", '"post"', '"pre"'],
        ["model.tie_embeddings", "true", "false"],
        ["ranks.devices", '"auto"', "2"],
    ]


def test_a_value_is_written_as_a_recipe_takes_it() -> None:
    recipe = recipe_of(TrainRecipe, {"norm": "pre", "max_updates": 7, "adam_epsilon": 1e-12})
    other = run_of(settings={"max_updates": 9})
    run = run_of(settings={"norm": "pre", "max_updates": 7, "adam_epsilon": 1e-12})
    lines = []
    for name, value, _ in table(run, other).rows:
        section, setting = name.text.split(".")
        lines += [f"[{section}]\n{setting} = {value.text}"]
    merged = "\n".join(dict.fromkeys("\n".join(lines).split("\n")))
    assert loads(merged, TrainRecipe, "table") == recipe
