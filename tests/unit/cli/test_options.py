import importlib
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import (
    AttentionRecipe,
    PreprocessRecipe,
    Recipe,
    RerankRecipe,
    ScoreRecipe,
    TrainRecipe,
    TranslateRecipe,
    fields_of,
    values_of,
)
from nmtkit.config.toml import dumps, loads
from nmtkit.errors import ConfigError
from nmtkit_cli.command import Command
from nmtkit_cli.options import recipe_command, recipe_from, refuse_idle_settings
from tests.messages import refuses


def probe(taken: list[TrainRecipe]) -> Command:
    """Return a command that appends its recipe to a list."""

    @recipe_command("probe", TrainRecipe, "probe data")
    @click.argument("data", metavar="DATA")
    def command(recipe: TrainRecipe, data: str) -> None:
        """Probe."""
        assert data == "data"
        taken.append(recipe)

    return command


def recipe_for(*arguments: str) -> TrainRecipe:
    taken: list[TrainRecipe] = []
    probe(taken).main(["data", *arguments], standalone_mode=False)
    return taken[0]


@pytest.mark.parametrize(
    ("module", "recipe_type"),
    [
        ("preprocess", PreprocessRecipe),
        ("train", TrainRecipe),
        ("translate", TranslateRecipe),
        ("score", ScoreRecipe),
        ("rerank", RerankRecipe),
        ("attention", AttentionRecipe),
    ],
)
def test_every_setting_is_a_flag_in_kebab_case_and_there_is_no_other(
    module: str, recipe_type: type[Recipe]
) -> None:
    command: Command = importlib.import_module(f"nmtkit_cli.{module}").command
    own = {"data", "model", "models", "out", "help_all", "workers", "shard", "overwrite", "as_text"}
    own |= {"reference", "systems", "source", "page", "as_json", "config", "preset", "print_config"}
    own |= {"parent", "update_vocabulary", "target", "files", "tune"}
    flags = {option.name: option.opts for option in command.params if option.name not in own}
    assert set(flags) == set(fields_of(recipe_type))
    assert own.isdisjoint(fields_of(recipe_type))
    assert all("--" + str(name).replace("_", "-") in flags[name] for name in flags)


def test_a_flag_that_is_not_given_leaves_the_default() -> None:
    assert recipe_for() == TrainRecipe()


def test_flags_override_the_file_the_preset_and_the_defaults(
    tmp_path: Path,
) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text("[model]\nheads = 4\ndropout = 0.2\n", encoding="utf-8")
    recipe = recipe_for("--dropout", "0.3", "--preset", "big", "--config", str(file))
    assert recipe.model.dropout == 0.3
    assert recipe.model.heads == 4
    assert recipe.model.model_size == 1024
    assert recipe.model.encoder_layers == TrainRecipe().model.encoder_layers


@pytest.mark.parametrize(
    ("given", "idle", "value"),
    [
        (("--validate-metrics", "none"), "beam", 4),
        (("--validate-every", "0"), "length_penalty", 0.6),
        (("--schedule", "constant", "--learning-rate", "0.1"), "learning_rate_scale", 1.0),
    ],
)
def test_a_setting_of_a_preset_that_has_no_effect_is_dropped_and_a_flag_is_refused(
    given: tuple[str, ...], idle: str, value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = recipe_for("--preset", "wsj", *given)
    assert not capsys.readouterr().err
    assert values_of(recipe)[idle] == value
    assert recipe.model.model_size == 1024
    flag = "--" + idle.replace("_", "-")
    with refuses(ConfigError, idle):
        recipe_for("--preset", "wsj", *given, flag, "2")


NO_TRANSLATION = "length_penalty (1.0) has no effect in training that does not translate the"


def write_recipe(folder: Path) -> Path:
    file = folder / "recipe.toml"
    text = "[search]\nlength_penalty = 1\n[validation]\npatience = 5\nbest_metric = 'bleu'\n"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_setting_of_a_file_that_a_flag_leaves_without_effect_is_dropped_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_recipe(tmp_path)
    assert recipe_for("--config", str(file)).search.length_penalty == 1
    assert not capsys.readouterr().err
    recipe = recipe_for("--config", str(file), "--validate-every", "0")
    assert recipe == recipe_for("--validate-every", "0")
    warning = capsys.readouterr().err
    assert warning.startswith(f"nmtkit: warning: {file}: ")
    for name in ("best_metric (bleu)", "patience (5)"):
        assert f"{name} has no effect without --validate-every; " in warning
    assert NO_TRANSLATION in warning
    assert warning.count("\n") == 1


def test_a_setting_of_a_file_that_a_dropped_one_leaves_without_effect_is_dropped_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text("[significance]\npaired_ar = true\ntrials = 500\n", encoding="utf-8")
    recipe = recipe_from(ScoreRecipe, None, file, {"sentence_level": True})
    assert recipe.significance == ScoreRecipe().significance
    warning = capsys.readouterr().err
    assert "paired_ar (True) has no effect with --sentence-level" in warning
    assert "trials (500) has no effect without --paired-ar" in warning


def test_a_flag_without_effect_is_an_error_whoever_names_the_cause(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text("[validation]\nvalidate_every = 0\n", encoding="utf-8")
    for cause in (("--config", str(file)), ("--validate-every", "0")):
        with refuses(ConfigError, NO_TRANSLATION):
            recipe_for(*cause, "--length-penalty", "1")


def test_a_contradiction_of_a_file_and_a_flag_stays_an_error(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text("[checkpoints]\nsave_every = 300\n", encoding="utf-8")
    with refuses(ConfigError, "validate_every 500 save_every"):
        recipe_for("--config", str(file), "--validate-every", "500")


@pytest.mark.parametrize("flag", ["--devices", "--read-workers", "--max-tokens"])
def test_zero_is_refused_where_it_would_be_a_word(flag: str) -> None:
    with refuses(click.BadParameter, "0 1; auto"):
        recipe_for(flag, "0")
    assert recipe_for(flag, "auto") == recipe_from(
        TrainRecipe, None, None, {flag.removeprefix("--").replace("-", "_"): 0}
    )


def test_switches_turn_settings_on_and_off() -> None:
    assert not recipe_for("--no-tie-embeddings").model.tie_embeddings
    assert recipe_for("--tie-embeddings").model.tie_embeddings


def test_a_setting_without_effect_is_an_error_as_a_flag_and_a_warning_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @recipe_command("probe", TrainRecipe, "")
    def command(recipe: TrainRecipe) -> None:
        """Probe."""
        refuse_idle_settings(recipe, ("model", "seed", "checkpoints"), "here", ("dropout",))

    file = tmp_path / "recipe.toml"
    file.write_text("[checkpoints]\nkeep = 7\n", encoding="utf-8")
    arguments = ["--config", str(file), "--dropout", "0.3", "--patience", "2"]
    command.main(arguments, standalone_mode=False)
    assert capsys.readouterr().err == "nmtkit: warning: --keep of --config: no effect here\n"
    keys = "--tie-embeddings --seed; leave them out"
    with refuses(click.UsageError, keys, recorded=False):
        command.main([*arguments, "--seed", "1", "--no-tie-embeddings"], standalone_mode=False)
    assert capsys.readouterr().err == ""


def test_a_repeated_flag_is_a_list_and_a_short_one_is_the_long_one() -> None:
    taken: list[PreprocessRecipe] = []

    @recipe_command("probe", PreprocessRecipe, "")
    def command(recipe: PreprocessRecipe) -> None:
        """Probe."""
        taken.append(recipe)

    languages = ["-s", "en", "--target-lang", "de"]
    command.main(
        ["--train", "a", "--train", "b", "--valid", "v", *languages], standalone_mode=False
    )
    assert taken[0].corpus.train == ("a", "b")
    assert taken[0].corpus.source_lang == "en"


def test_one_error_has_the_wrong_values_of_all_flags() -> None:
    keys = "dropout much 0 0.99 heads 1.5 norm prer; pre keep 0 1"
    with refuses(ConfigError, keys):
        recipe_for("--dropout", "much", "--heads", "1.5", "--norm", "prer", "--keep", "0")


def test_the_printed_recipe_is_read_back_unchanged() -> None:
    arguments = ["--preset", "big", "--dropout", "0.25", "--print-config"]
    taken: list[TrainRecipe] = []
    result = CliRunner().invoke(probe(taken), arguments, catch_exceptions=False)
    assert not taken
    assert values_of(loads(result.stdout, TrainRecipe, "stdout")) == {
        **values_of(TrainRecipe()),
        **PRESETS["big"],
        "dropout": 0.25,
    }


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        (None, "recipe.toml; --config"),
        (b"\xff", "recipe.toml UTF-8; UTF-8"),
        (b"[model]\nhaeds = 8\n", "recipe.toml haeds model; heads"),
    ],
)
def test_a_configuration_file_that_cannot_be_read_is_named(
    tmp_path: Path, content: bytes | None, keys: str
) -> None:
    file = tmp_path / "recipe.toml"
    if content is not None:
        file.write_bytes(content)
    with refuses(ConfigError, keys):
        recipe_for("--config", str(file))


def test_a_configuration_file_has_a_largest_size(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_bytes(b"#" * 2**18)
    assert recipe_for("--config", str(file)) == TrainRecipe()
    file.write_bytes(b"#" * 2**18 + b"\n")
    for path in (file, Path("/dev/zero")):
        with refuses(ConfigError, f"{path} 262,144; --print-config"):
            recipe_for("--config", str(path))


def test_a_byte_order_mark_of_a_configuration_file_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_bytes(b"\xef\xbb\xbf" + dumps(TrainRecipe()).encode())
    assert recipe_for("--config", str(file)) == TrainRecipe()


@pytest.mark.parametrize("recipe_type", [PreprocessRecipe, TrainRecipe, TranslateRecipe])
def test_every_text_without_choices_has_a_metavar(
    recipe_type: type[Recipe],
) -> None:
    for field in fields_of(recipe_type).values():
        is_free = field.kind in (str, tuple) and not field.choices
        assert field.metavar or not is_free, field.name


def completions(incomplete: str, *arguments: str) -> list[Any]:
    return ShellComplete(probe([]), {}, "probe", "_PROBE").get_completions(
        list(arguments), incomplete
    )


def test_completion_offers_flags_choices_and_files() -> None:
    assert [item.value for item in completions("--validate-m")] == ["--validate-metrics"]
    assert [item.value for item in completions("p", "--norm")] == ["post", "pre"]
    assert completions("p", "--heads") == []
    assert [item.type for item in completions("p", "--config")] == ["file"]


def test_completion_of_presets_ignores_case() -> None:
    for begun in ("table3-a1", "TABLE3-A1"):
        assert [item.value.lower() for item in completions(begun, "--preset")] == ["table3-a1"]
