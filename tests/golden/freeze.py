"""Freeze one example of each format as this version writes it: `python -m tests.golden.freeze`.

Run once for each new version of a format; earlier examples stay, for every version must go on to
be read. `formats-1` holds a dataset, a run with its checkpoints and training state, translations
by its last checkpoint, and the losses of its updates.
"""

import json
import shutil
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import torch

from nmtkit.config.schema import SearchConfig, TrainRecipe, TranslateRecipe
from nmtkit.decoding.translator import Translator
from nmtkit.storage.model_folder import load_model
from nmtkit.training.run import train
from tests.tiny import TRAIN_LINES, tiny_dataset, tiny_train_recipe

FROZEN = Path(__file__).parent / "formats-1"
NUM_UPDATES = 600
SAVE_EVERY = 300


def recipe(max_updates: int) -> TrainRecipe:
    tiny = tiny_train_recipe(max_updates=max_updates, dropout=0.1)
    return replace(
        tiny,
        checkpoints=replace(tiny.checkpoints, save_every=SAVE_EVERY),
        validation=replace(tiny.validation, validate_every=SAVE_EVERY),
    )


def translations(run: Path) -> list[str]:
    """Translate the training lines with the last checkpoint of a run."""
    loaded = load_model(run / "last", torch.device("cpu"))
    recipe = TranslateRecipe(search=SearchConfig(max_length_offset=4))
    translator = Translator([loaded.model], loaded.codec, recipe, print)
    return list(translator.translate(TRAIN_LINES))


def losses(run: Path) -> list[float]:
    """Read the smoothed loss of each update from a run's metrics."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").split("\n")
    records = [json.loads(line) for line in lines if line]
    return [record["loss"] for record in records if record["event"] == "training"]


def main() -> None:
    """Write the examples; what stands there is an error."""
    FROZEN.mkdir()
    with chdir(FROZEN):  # so that the manifest holds no path of this machine
        shutil.move(tiny_dataset(Path()), "dataset")
    for path in FROZEN.glob("*.*"):
        path.unlink()
    train(recipe(NUM_UPDATES), FROZEN / "dataset", FROZEN / "run")
    expected = {
        "translations": translations(FROZEN / "run"),
        "losses": losses(FROZEN / "run"),
    }
    text = json.dumps(expected, indent=1, ensure_ascii=False) + "\n"
    (FROZEN / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
