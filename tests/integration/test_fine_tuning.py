"""A model is adapted to another domain by the preset fine-tune, by the commands of the manual.

The parent learns four kinds of sentences of the demonstration's grammar. The domain has the
timetables and prices of a company that uses other German words.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from examples.demo.corpus import distinct, write
from examples.demo.grammar import Grammar
from examples.demo.lexicon import Phrase, load_lexicon
from nmtkit.config.presets import PRESETS
from nmtkit.config.schema import TrainRecipe
from nmtkit.config.toml import build
from nmtkit.storage.checkpoint import list_checkpoints
from nmtkit.storage.run_folder import RunFolder
from tests.commands import nmtkit_in_text
from tests.training import logged

pytestmark = pytest.mark.thorough

SEED = 1
HOUSE_WORDS = {
    "von Gleis": "ab Bahnsteig",
    "kostet": "macht",
    "kosten": "machen",
    "Euro": "EUR",
}
PARENT = (
    "--encoder-layers 1 --decoder-layers 1 --model-size 128 --feed-forward-size 256 --heads 2 "
    "--norm pre --schedule inverse-sqrt --learning-rate 0.004 --warmup-updates 30 "
    "--update-tokens 1000 --max-tokens 1000 --max-updates 160 --save-every 160 "
    "--validate-every 0 --log-every 100"
)


def draw(kinds: Sequence[str], seed: int, sizes: dict[str, int]) -> dict[str, list[Phrase]]:
    """Draw distinct pairs of some kinds of sentences."""
    grammar = Grammar(load_lexicon(), seed)
    grammar.weights = {getattr(grammar, kind): 1 for kind in kinds}
    pairs = distinct(grammar.sentences())
    return {name: list(islice(pairs, size)) for name, size in sizes.items()}


def in_house_words(pair: Phrase) -> Phrase:
    german = pair.german
    for word, used in HOUSE_WORDS.items():
        german = german.replace(word, used)
    return replace(pair, german=german)


def nmtkit(*arguments: object, stdin: str = "") -> str:
    done = nmtkit_in_text(*arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a parent, the text of a domain, and the run that adapts the parent."""
    folder = tmp_path_factory.mktemp("domain")
    general = ("age", "distance", "price", "departure")
    write(draw(general, SEED, {"train": 2000, "valid": 50}), folder / "general")
    own = draw(("departure", "price"), SEED + 1, {"mine": 1600, "mine-dev": 40, "test": 100})
    write({name: [*map(in_house_words, pairs)] for name, pairs in own.items()}, folder / "own")
    languages = ("preprocess", "-s", "en", "-t", "de")
    text = ("--train", folder / "general/train", "--valid", folder / "general/valid")
    nmtkit(*languages, *text, "--vocab-size", 600, "--out", folder / "general/data")
    cpu = ("--device", "cpu")
    nmtkit("train", folder / "general/data", "--out", folder / "parent", *PARENT.split(), *cpu)

    text = ("--train", folder / "own/mine", "--valid", folder / "own/mine-dev")
    nmtkit(*languages, *text, "--vocabulary-of", folder / "parent", "--out", folder / "data")
    origin = ("--from", folder / "parent", "--preset", "fine-tune")
    nmtkit("train", folder / "data", "--out", folder / "run", *origin, *cpu)
    return folder


def test_the_rate_is_reached_early_and_kept(folder: Path) -> None:
    training = build(TrainRecipe, PRESETS["fine-tune"]).training
    updates = logged(folder / "run", "training")
    last = updates[-1]["update"]
    assert 10 * training.warmup_updates <= last
    rates = [one["learning_rate"] for one in updates if one["update"] >= training.warmup_updates]
    assert {*rates} == {training.learning_rate}
    assert len(rates) > 4


def test_every_epoch_is_validated_and_saved(folder: Path) -> None:
    run = folder / "run"
    epochs = {one["epoch"] for one in logged(run, "training")}
    validated = [one["update"] for one in logged(run, "validation")]
    assert validated[0] == 0
    assert len(validated) - 1 == len(epochs) == 5
    saved = {one.update for one in list_checkpoints(RunFolder(run)) if one.is_scheduled}
    assert saved == {*validated[1:]}


def test_the_adapted_model_is_better_than_its_parent_on_the_domain(folder: Path) -> None:
    losses = [one["nll"] for one in logged(folder / "run", "validation")]
    assert min(losses) < losses[0] - 1.5
    source = (folder / "own/test.en").read_text("utf-8")
    parent, adapted = (
        nmtkit("translate", folder / model, "--device", "cpu", stdin=source)
        for model in ("parent", "run")
    )
    assert bleu(adapted, folder) > bleu(parent, folder)
    assert share_in_house_words(parent) < 0.05
    assert share_in_house_words(adapted) > 0.2


def bleu(translations: str, folder: Path) -> float:
    score = nmtkit("score", "--reference", folder / "own/test.de", "--json", stdin=translations)
    found: float = json.loads(score)["BLEU"]["score"]
    return found


def share_in_house_words(translations: str) -> float:
    lines = translations.splitlines()
    return sum(any(word in line for word in HOUSE_WORDS.values()) for line in lines) / len(lines)
