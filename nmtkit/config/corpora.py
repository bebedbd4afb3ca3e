"""Texts from the settings: prefix, weight and tag."""

from collections.abc import Iterator
from dataclasses import dataclass

from nmtkit.config.preprocessing import CorpusConfig
from nmtkit.config.problems import Problem
from nmtkit.symbols import SPECIAL_WORDS

SMALLEST_WEIGHT, LARGEST_WEIGHT = 0.001, 1000.0


@dataclass(frozen=True)
class TrainingText:
    """A training text.

    Attributes:
        prefix: path of its files without the languages' suffixes.
        weight: mean number of times that an epoch has each pair.
        tag: a token at the beginning of its source lines, or "".
    """

    prefix: str
    weight: float
    tag: str


def training_texts(config: CorpusConfig) -> list[TrainingText]:
    """Return the training texts in the order of --train."""
    tags = dict(map(_split_tag, config.tag))
    weighted = map(_split_weight, config.train)
    return [TrainingText(prefix, weight, tags.get(prefix, "")) for prefix, weight in weighted]


def valid_tag(config: CorpusConfig) -> str:
    """Return the tag of the validation text, or ""."""
    return dict(map(_split_tag, config.tag)).get(config.valid, "")


def tags_of(config: CorpusConfig) -> list[str]:
    """Return the distinct tags of all texts."""
    tags = [*(text.tag for text in training_texts(config)), valid_tag(config)]
    return [tag for tag in dict.fromkeys(tags) if tag]


def corpus_problems(config: CorpusConfig) -> Iterator[Problem]:
    """Yield the problems of languages, weights and tags."""
    language = config.source_lang
    if language and language == config.target_lang:
        yield Problem(
            ("source_lang", "target_lang"),
            f"source_lang and target_lang are both {language!r}, so both sides are the same file; "
            "give two languages [corpus.target_lang]",
        )
    prefixes = []
    for prefix, weight in map(_split_weight, config.train):
        prefixes.append(prefix)
        if not SMALLEST_WEIGHT <= weight <= LARGEST_WEIGHT:
            yield Problem(
                ("train",),
                f"train ({prefix}={weight:g}): a weight must be from {SMALLEST_WEIGHT:g} to "
                f"{LARGEST_WEIGHT:g} [corpus.train]",
            )
    for entry in config.tag:
        prefix, tag = _split_tag(entry)
        if prefix not in (*prefixes, config.valid) or not tag or tag.split() != [tag]:
            yield Problem(
                ("tag",),
                f"tag ({entry!r}) must be PREFIX=TAG, with the prefix of a text as --train or "
                "--valid has it, and a tag without white space, such as bt=<bt> [corpus.tag]",
            )
        elif tag in SPECIAL_WORDS:
            yield Problem(
                ("tag",),
                f"tag ({entry!r}): {tag} is a special symbol of every vocabulary; choose another "
                "tag, such as <bt> [corpus.tag]",
            )


def _split_weight(entry: str) -> tuple[str, float]:
    """Split PREFIX=WEIGHT; an equals sign that no number follows is part of the path."""
    prefix, _, text = entry.rpartition("=")
    try:
        return (prefix, float(text)) if prefix else (entry, 1.0)
    except ValueError:
        return entry, 1.0


def _split_tag(entry: str) -> tuple[str, str]:
    prefix, _, tag = entry.rpartition("=")
    return prefix, tag
