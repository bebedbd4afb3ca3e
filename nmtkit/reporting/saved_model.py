"""A folder as `nmtkit info` describes it: a model, the run that made it, or a dataset.

model_summary.py has the figures of a model that is not trained yet, nmtkit/data/audit.py those of
a dataset.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmtkit.config.metrics import NLL, base_metric
from nmtkit.data.audit import describe as describe_dataset
from nmtkit.data.binary import FORMAT as DATASET_FORMAT
from nmtkit.decoding.quality import stored_calibration
from nmtkit.errors import ConfigError, DamagedError
from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import TrainingRecord, ValidationRecord, plain_scores
from nmtkit.reporting.model_summary import aligned, shape_text
from nmtkit.storage.disk import disk_errors
from nmtkit.storage.durable import format_of, read_manifest
from nmtkit.storage.json_data import encode
from nmtkit.storage.manifest import MANIFEST, Json, load
from nmtkit.storage.model_description import (
    FORMAT,
    Description,
    ancestors,
    describe_model,
    identify,
    stored_aligning_attention,
)
from nmtkit.storage.run_folder import RunFolder, find_model, is_run
from nmtkit.text.codec import TextCodec
from nmtkit.text.vocabulary import Vocabulary
from nmtkit.units import duration, printable

_SHOWN_DIGITS = 12
"""Digits of the hash of another model or dataset."""


@dataclass(frozen=True)
class SavedRun:
    """The checkpoints of a run and their validations.

    Attributes:
        checkpoints: the updates after which they were saved, in order.
        best, last: the updates of `best` and `last`; None = no checkpoint was validated.
        validations: the newest validation of each update.
        elapsed_s: seconds of training in all sessions; None without training records.
    """

    checkpoints: Sequence[int]
    best: int | None
    last: int
    validations: Mapping[int, ValidationRecord]
    elapsed_s: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the figures for `encode`; a validation has the names of metrics.jsonl."""
        return {
            "checkpoints": self.checkpoints,
            "best": None if self.best is None else self._checkpoint(self.best),
            "last": self._checkpoint(self.last),
            "elapsed_s": self.elapsed_s,
        }

    def lines(self) -> Iterator[str]:
        """Yield the figures, a line per property."""
        first, last = self.checkpoints[0], self.checkpoints[-1]
        span = f"update {first:,}" if first == last else f"updates {first:,} to {last:,}"
        yield aligned("checkpoints", f"{len(self.checkpoints)}, {span}")
        yield aligned("best", "none" if self.best is None else self._validated(self.best))
        yield from self._directions()
        yield aligned("last", self._validated(self.last))
        if self.elapsed_s is not None:
            yield aligned("training time", duration(self.elapsed_s))

    def _checkpoint(self, update: int) -> dict[str, Any]:
        found = self.validations.get(update)
        return {"update": update} if found is None else vars(found)

    def _validated(self, update: int) -> str:
        if update not in self.validations:
            return f"update {update:,}, not validated"
        return f"update {update:,}, {plain_scores(self._scores(update)[''], ' ', ', ')}"

    def _directions(self) -> Iterator[str]:
        """Yield the scores of the best checkpoint, a line per direction."""
        if self.best is not None and self.best in self.validations:
            for direction, scores in self._scores(self.best).items():
                if direction:
                    yield aligned(f"  {direction}", plain_scores(scores, " ", ", "))

    def _scores(self, update: int) -> dict[str, dict[str, float]]:
        """Return the nll and the other scores of each direction; "" has those of all."""
        found = self.validations[update]
        scores = {"": {NLL: found.nll}}
        for name in sorted(found.scores, key=lambda one: base_metric(one) != NLL):
            metric, _, direction = name.partition(":")
            scores.setdefault(direction, {})[metric] = found.scores[name]
        return scores


def describe_folder(path: Path, check: bool, as_json: bool) -> Iterable[str]:
    """Return lines that describe a dataset, a model or a run; every file of a model is checked.

    Args:
        path: the folder of any of them, or `best` or `last` of a run.
        check: compare every file of a dataset with its hash.
        as_json: describe a model in one line of JSON: the content of its manifest.json, config.toml
            and codec.json, and the attention that `nmtkit align --choose-layer` stored.

    Raises:
        ConfigError: `check` or `as_json` has no effect on the folder.
        DamagedError: there is no such folder, or it is damaged; or a run has no checkpoint.
        ResourceError: no permission, or a failing disk.
    """
    if format_of(path) == DATASET_FORMAT:
        if as_json:
            raise ConfigError("--json has no effect on a dataset; leave it out")
        return describe_dataset(path, check)
    if check:
        raise ConfigError(
            "--check has no effect on a model, whose files are always checked; leave it out"
        )
    with disk_errors(path):
        return _describe_model_or_run(path, as_json)


def _describe_model_or_run(path: Path, as_json: bool) -> list[str]:
    """Describe a model and, for a run, its checkpoints; nothing is returned of a damaged one."""
    folder = find_model(path)
    _check_format(folder)
    described = describe_model(folder)
    identity = identify(folder, described.manifest)
    run = _read_run(RunFolder(path)) if is_run(path) else None
    num_layers = described.recipe.model.decoder_layers
    stored = stored_aligning_attention(folder, num_layers)
    calibration = stored_calibration(folder)
    if as_json:
        content = {
            "run": run and run.to_json(),
            "path": str(folder),
            "manifest": described.manifest,
            "config": described.recipe,
            "codec": described.codec.description,
            "aligning_attention": stored
            and {"layer": stored.layer + 1, "is_shifted": stored.is_shifted},
            "calibration": calibration,
        }
        return [json.dumps(encode({key: one for key, one in content.items() if one is not None}))]
    of_run = [] if run is None else [*run.lines(), aligned("model", printable(str(folder)))]
    of_model = [*_model_lines(described, str(identity["sha256"]))]
    if stored:
        step = "reads" if stored.is_shifted else "predicts"
        where = f"layer {stored.layer + 1} of {num_layers}, by the step that {step} a word"
        of_model.append(aligned("alignments", f"decoder {where}, as align --choose-layer stored"))
    if calibration:
        beam, lines = calibration.settings["beam"], f"{calibration.num_lines:,} lines"
        of_model.append(aligned("calibrated", f"for --quality with beam {beam}, on {lines}"))
    return [*of_run, *of_model]


def _check_format(folder: Path) -> None:
    """Refuse a folder that is not of a model; `describe_model` reports a missing or damaged one."""
    found = format_of(folder)
    if found is None and folder.is_dir() and not (folder / MANIFEST).exists():
        raise DamagedError(
            f"{folder}: has no {MANIFEST}, so it is no dataset, model or run of nmtkit; give one "
            "of these (`nmtkit import` makes a model of another library's)"
        )
    if found not in (None, FORMAT):
        manifest = read_manifest(folder, str(found), load(folder)["version"])
        origins = ancestors(manifest)
        advice = (
            f"give the model it was made from, {_origin(origins[0])}" if origins else "give one"
        )
        raise DamagedError(f"{folder}: is of format {found!r}, no dataset, model or run; {advice}")


def _read_run(run: RunFolder) -> SavedRun:
    """Read the figures of a run that has a checkpoint."""
    best, last = run.best(), run.last()
    assert last is not None, run.path
    records = list(MetricsLog(run.metrics_path).records())
    elapsed = [record.elapsed_s for record in records if isinstance(record, TrainingRecord)]
    return SavedRun(
        checkpoints=[int(folder.name) for folder in run.model_dirs()],
        best=None if best is None else int(best.name),
        last=int(last.name),
        validations={one.update: one for one in records if isinstance(one, ValidationRecord)},
        elapsed_s=elapsed[-1] if elapsed else None,
    )


def _model_lines(described: Description, sha256: str) -> Iterator[str]:
    manifest, codec, model = described.manifest, described.codec, described.recipe.model
    yield aligned("languages", f"{codec.source_lang} to {codec.target_lang}")
    if codec.directions:
        yield aligned("directions", ", ".join(codec.directions))
    yield aligned("vocabulary", _vocabulary(codec))
    embeddings = "tied" if model.tie_embeddings else "separate"
    yield aligned("shape", f"{shape_text(model)}, {embeddings} embeddings")
    yield aligned("parameters", f"{manifest['parameters']:,}")
    yield aligned("update", f"{manifest['update']:,}")
    yield from _provenance_lines(manifest)
    yield aligned("written by", f"nmtkit {manifest['nmtkit']}")
    yield aligned("weights", f"sha256 {sha256}")
    num_bytes = sum(entry["bytes"] for entry in manifest["files"].values())
    yield aligned("on disk", f"{num_bytes} bytes in {len(manifest['files'])} files")
    yield aligned("checked", "every file matches its hash")


def _vocabulary(codec: TextCodec) -> str:
    """Describe a codec, such as "8000 entries, shared, moses and sentencepiece"."""
    sizes = [codec.source.size] if codec.is_shared else [codec.source.size, codec.target.size]
    kinds = " to ".join(dict.fromkeys(map(_side, (codec.source, codec.target))))
    shared = "shared" if codec.is_shared else "one per language"
    marks = f", {codec.num_marks} marks" if codec.num_marks else ""
    return f"{' and '.join(map(str, sizes))} entries, {shared}, {kinds}{marks}"


def _side(vocabulary: Vocabulary) -> str:
    """Describe the codec of a side, such as "unescape, nfc, moses and words"."""
    steps = vocabulary.steps.names
    return f"{', '.join(steps)} and {vocabulary.kind}" if steps else vocabulary.kind


def _provenance_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about training data, averaged models and ancestors, as far as recorded."""
    provenance = manifest.get("provenance", {})
    if "dataset" in provenance:
        pairs = provenance.get("validation_pairs")
        validated = "" if pairs is None else f", validated on {pairs:,} pairs"
        yield aligned("trained on", f"dataset {provenance['dataset'][:_SHOWN_DIGITS]}{validated}")
    yield from _listed("averaged from", [_origin(one) for one in manifest.get("sources", [])])
    origins = [_origin(one) for one in ancestors(manifest)]
    yield from _listed("descends from", origins or ["no other model: trained from random weights"])


def _listed(name: str, values: Sequence[str]) -> Iterator[str]:
    """Yield a line per value; only the first has the name."""
    for index, value in enumerate(values):
        yield aligned("" if index else name, value)


def _origin(one: Mapping[str, Json]) -> str:
    """Describe another model, such as "en-de base, update 3,000, sha256 0123456789ab"."""
    words = [one.get("languages"), one["name"], f"({one['imported']})" if "imported" in one else ""]
    named = printable(" ".join(str(word) for word in words if word))
    update = one.get("update")
    updates = [f"update {update:,}"] if isinstance(update, int) else []
    return ", ".join([named, *updates, f"sha256 {str(one['sha256'])[:_SHOWN_DIGITS]}"])
