"""What each target would run is what the paper did."""

import re

import pytest

from nmtkit.config.schema import PreprocessRecipe, TrainRecipe
from nmtkit.config.toml import loads
from tests.architecture.test_readme import check
from tests.recipes import WMT14, dry_run

TARGETS = ["en-de-base", "en-de-big", "en-fr-base", "en-fr-big", "en-de-hour"]


def commands(target: str, *settings: str) -> dict[str, str]:
    """Return what a target would run, by the command of nmtkit, or fetch."""
    lines = dry_run(WMT14, target, *settings)
    found = {line.split()[1]: line for line in lines if line.startswith("nmtkit ")}
    (found["fetch"],) = (line for line in lines if "examples.wmt14.fetch" in line)
    return found


def train_recipe(target: str) -> TrainRecipe:
    name = target.rpartition("-")[2]
    return loads((WMT14 / f"{name}.toml").read_text("utf-8"), TrainRecipe, name)


@pytest.mark.parametrize("target", TARGETS)
def test_every_command_exists(target: str) -> None:
    found = commands(target)
    assert list(found) == [
        *("preprocess", "train", "average-checkpoints", "translate", "score", "fetch")
    ]
    for name, line in found.items():
        if name != "fetch":
            check(line)


@pytest.mark.parametrize(
    ("target", "updates", "dropout", "saved_every", "averaged"),
    [
        ("en-de-base", 100_000, 0.1, 1500, 5),
        ("en-fr-base", 100_000, 0.1, 1500, 5),
        ("en-de-big", 300_000, 0.3, 600, 20),
        ("en-fr-big", 300_000, 0.1, 600, 20),
    ],
)
def test_training_is_the_papers(
    target: str, updates: int, dropout: float, saved_every: int, averaged: int
) -> None:
    found, recipe = commands(target), train_recipe(target)
    flag = re.search(r"--dropout (\S+)", found["train"])
    assert float(flag[1] if flag else recipe.model.dropout) == dropout
    assert recipe.training.max_updates == updates
    assert (recipe.training.update_tokens, recipe.training.warmup_updates) == (25_000, 4000)
    assert recipe.training.label_smoothing == 0.1
    assert recipe.checkpoints.save_every == saved_every
    assert f"--last {averaged} " in found["average-checkpoints"]
    assert recipe.checkpoints.keep == averaged
    search = recipe.search
    assert (search.beam, search.length_penalty, search.stop_when) == (4, 0.6, "proved")
    flags = "--beam 4 --length-penalty 0.6 --max-length-offset 50 --stop-when proved"
    assert flags in found["translate"]
    assert (
        f"/{target.rpartition('-')[2]}.toml"
        in f"/{found['train'].split('--config ')[1].split()[0]}"
    )


def test_the_hour_trains_base_with_other_blocks() -> None:
    base, hour = (train_recipe(name) for name in ("base", "hour"))
    own = {"norm", "qk_norm", "positions", "activation", "feed_forward_size"}
    assert {n for n, one in vars(base.model).items() if vars(hour.model)[n] != one} == own
    assert hour.training.max_minutes == 60
    assert "--last 1 " in commands("en-de-hour")["average-checkpoints"]


def test_the_models_are_those_of_table_3() -> None:
    base, big = (train_recipe(name).model for name in ("base", "big"))
    shape = (base.encoder_layers, base.model_size, base.feed_forward_size, base.heads)
    assert shape == (6, 512, 2048, 8)
    shape = (big.encoder_layers, big.model_size, big.feed_forward_size, big.heads)
    assert shape == (6, 1024, 4096, 16)
    assert base.norm == big.norm == "post"


@pytest.mark.parametrize(("pair", "size"), [("en-de", 37_000), ("en-fr", 32_000)])
def test_vocabularies_are_as_large_as_the_papers(pair: str, size: int) -> None:
    # What the command line gives: languages and text.
    corpus = '[corpus]\nsource_lang = "en"\ntarget_lang = "x"\ntrain = ["x"]\nvalid = "x"\n'
    text = (WMT14 / f"{pair}.toml").read_text("utf-8")
    recipe = loads(corpus + text, PreprocessRecipe, pair)
    assert recipe.vocabulary.vocab_size == size
    assert not recipe.vocabulary.separate_vocabularies
    assert f"--config {pair}.toml" in commands(f"{pair}-base")["preprocess"]


@pytest.mark.parametrize(
    ("target", "settings", "corpora"),
    [
        ("en-de-base", [], "europarl-v7 commoncrawl news-commentary-v9"),
        ("en-de-big", ["NEWS_COMMENTARY=v11"], "europarl-v7 commoncrawl news-commentary-v11"),
        ("en-fr-big", [], "europarl-v7 commoncrawl news-commentary-v9 undoc.2000 giga-fren"),
    ],
)
def test_what_is_fetched_is_trained_on(target: str, settings: list[str], corpora: str) -> None:
    found = commands(target, *settings)
    assert f" {target[:5]} {corpora} newstest2013 newstest2014 " in found["fetch"]
    prefixes = re.findall(r"--train \S+/text/(\S+)", found["preprocess"])
    assert prefixes == corpora.split()
    assert re.search(r"--valid \S+/text/newstest2013 ", found["preprocess"])
    assert re.search(r"< \S+/text/newstest2014\.en >", found["translate"])
    assert f"/text/newstest2014.{target[3:5]} " in found["score"]
