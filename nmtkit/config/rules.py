"""Rules across settings; a setting without effect is an error too."""

import re
from collections.abc import Iterator
from dataclasses import fields
from itertools import chain

from nmtkit.config.corpora import corpus_problems
from nmtkit.config.fields import values_of
from nmtkit.config.metric_commands import metric_command_problems
from nmtkit.config.metrics import (
    METRICS,
    NONE,
    TYPE_SETTINGS,
    TuningConfig,
    metric_names,
    unknown_metrics,
)
from nmtkit.config.preprocessing import (
    LEARNING_SETTINGS,
    MIN_ENTRIES,
    SEGMENTATIONS,
    SENTENCEPIECE,
    VocabularyConfig,
    is_shared,
    segmentations,
)
from nmtkit.config.problems import Problem, suggestion, without_effect
from nmtkit.config.rerank_rules import rerank_problems
from nmtkit.config.schema import (
    LENGTH_PENALTIES,
    SEARCH_SETTINGS,
    AttentionRecipe,
    PreprocessRecipe,
    Recipe,
    RerankRecipe,
    ScoreRecipe,
    SearchConfig,
    TrainRecipe,
    TranslateRecipe,
)
from nmtkit.config.training_rules import training_problems
from nmtkit.config.translation import OUTPUT_FORMATS, SamplingConfig

SAMPLING_SETTINGS = tuple(one.name for one in fields(SamplingConfig) if one.name != "sample")
SELECTION = ("sentence", "attention", "layer", "heads", "word", "drawing", "join_subwords")


def contradictions(recipe: Recipe) -> Iterator[Problem]:
    """Yield the contradictions among settings that are valid by themselves."""
    if isinstance(recipe, PreprocessRecipe):
        yield from _filters(recipe)
        yield from corpus_problems(recipe.corpus)
        yield from _vocabulary(recipe)
    if isinstance(recipe, TrainRecipe):
        yield from training_problems(recipe)
    if isinstance(recipe, TranslateRecipe):
        yield from _translation(recipe)
    if isinstance(recipe, ScoreRecipe):
        yield from _metrics(recipe)
        yield from _languages(recipe.metrics, recipe.metrics.test_set)
        yield from _significance(recipe)
    if isinstance(recipe, RerankRecipe):
        commands = [*metric_command_problems(recipe.metrics.metric_command)]
        yield from commands or rerank_problems(recipe)
        yield from _languages(recipe.metrics, "")
    if isinstance(recipe, AttentionRecipe):
        yield from _attention(recipe)


def _translation(recipe: TranslateRecipe) -> Iterator[Problem]:
    output, search = recipe.output, recipe.search
    yield from _output_format(recipe)
    if recipe.sampling.sample:
        names = ("beam", "stop_when")
        yield from without_effect(recipe, names, "with --sample, which draws --n-best")
    else:
        yield from without_effect(recipe, (*SAMPLING_SETTINGS, "seed"), "without --sample")
        if output.n_best > search.beam:
            yield Problem(
                ("n_best", "beam"),
                f"n_best ({output.n_best}) must be at most beam ({search.beam}); give a larger "
                "--beam [output.n_best]",
            )
    fewest, most = recipe.constraints.min_length_offset, recipe.constraints.max_output_length
    if 0 < most < fewest:
        yield Problem(
            ("min_length_offset", "max_output_length"),
            f"min_length_offset ({fewest}) is above max_output_length ({most}), so no length is "
            "permitted; change one of them [constraints.min_length_offset]",
        )
    if output.token_scores and recipe.translation.shortlist:
        yield Problem(
            ("token_scores", "shortlist"),
            "token_scores (True) need scores of the whole vocabulary, and a shortlist restricts "
            "them to its candidates; leave out --token-scores or --shortlist "
            "[output.token_scores]",
        )
    if recipe.translation.compile == "on" and recipe.translation.devices != 1:
        yield Problem(
            ("compile", "devices"),
            "compile ('on') is for one process, which translates line by line; leave out "
            "--compile or --devices [translation.compile]",
        )
    if recipe.translation.stream:
        yield from without_effect(recipe, ("chunk_lines", "devices"), "with --stream")
    yield from _search(recipe, search)


def _output_format(recipe: TranslateRecipe) -> Iterator[Problem]:
    """Yield the settings that have no effect in the output format."""
    has_effect = OUTPUT_FORMATS[recipe.output.output_format]
    for name in dict.fromkeys(chain.from_iterable(OUTPUT_FORMATS.values())):
        if name not in has_effect:
            others = [other for other, settings in OUTPUT_FORMATS.items() if name in settings]
            when = f"without --output-format {' or '.join(others)}"
            yield from without_effect(recipe, (name,), when, "output_format")


def _search(recipe: Recipe, search: SearchConfig) -> Iterator[Problem]:
    form = search.length_penalty_form
    if not LENGTH_PENALTIES[form]:
        when = f"with --length-penalty-form {form}"
        yield from without_effect(recipe, ("length_penalty",), when)
    if search.beam == 1:
        yield from without_effect(recipe, ("stop_when",), "with --beam 1, greedy search")


def _attention(recipe: AttentionRecipe) -> Iterator[Problem]:
    selection = recipe.selection
    if not re.fullmatch(r"(0*[1-9]\d*(,0*[1-9]\d*)*)?", selection.heads, re.ASCII):
        yield Problem(
            ("heads",),
            f"heads ({selection.heads!r}) must be comma-separated positive numbers, such as 5,6 "
            "[selection.heads]",
        )
    if recipe.view.format == "json":
        yield from without_effect(recipe, SELECTION, "in json, which contains everything")
    if selection.drawing == "matrix":
        yield from without_effect(recipe, ("word",), "on a matrix, which shows all words")
    if recipe.view.translate:
        yield from _search(recipe, recipe.search)
    else:
        yield from without_effect(recipe, SEARCH_SETTINGS, "without --translate")


def _filters(recipe: PreprocessRecipe) -> Iterator[Problem]:
    ratio = recipe.filters.max_ratio
    if 0 < ratio < 1:
        yield Problem(
            ("max_ratio",),
            f"max_ratio ({ratio}) must be at least 1, or 0 to keep all pairs: it is the length of "
            "the longer side divided by that of the shorter [filters.max_ratio]",
        )


def _vocabulary(recipe: PreprocessRecipe) -> Iterator[Problem]:
    vocabulary = recipe.vocabulary
    if vocabulary.vocabulary_of:
        yield from without_effect(recipe, LEARNING_SETTINGS, "with --vocabulary-of")
        return
    target = SEGMENTATIONS[segmentations(vocabulary)[1]]
    is_given = (bool(vocabulary.source_vocabulary), bool(vocabulary.target_vocabulary))
    for names, when in _vocabulary_settings_without_effect(vocabulary):
        yield from without_effect(recipe, names, when)
    for name in ("tokenizer", "unescape", "normalize"):
        value = vars(vocabulary)[name]
        if target.no_tokenizer and value not in (False, "none"):
            yield Problem(
                (name, "target_segmentation"),
                f"{name} ({value!r}): {target.no_tokenizer} [vocabulary.{name}]",
            )
    if any(is_given) and not all(is_given) and is_shared(vocabulary):
        given, other = ("source", "target") if is_given[0] else ("target", "source")
        yield Problem(
            ("source_vocabulary", "target_vocabulary"),
            f"{given}_vocabulary is given without {other}_vocabulary; give both (the same file for "
            "a shared vocabulary), or --separate-vocabularies to learn the other "
            f"[vocabulary.{other}_vocabulary]",
        )
    if 0 < vocabulary.target_vocab_size < MIN_ENTRIES:
        yield Problem(
            ("target_vocab_size",),
            f"target_vocab_size ({vocabulary.target_vocab_size}) must be at least {MIN_ENTRIES}, "
            f"or same: that of the source [vocabulary.target_vocab_size]",
        )


def _vocabulary_settings_without_effect(
    vocabulary: VocabularyConfig,
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield names of settings that have no effect here, and the reason for the message."""
    names = segmentations(vocabulary)
    source, target = (SEGMENTATIONS[name] for name in names)
    learns_source = not vocabulary.source_vocabulary
    learns_target = not vocabulary.target_vocabulary
    learnt = {
        name for name, learns in zip(names, (learns_source, learns_target), strict=True) if learns
    }
    settings = {setting for name in learnt for setting in SEGMENTATIONS[name].settings}
    sizes_target = learns_target and "vocab_size" in target.settings
    if "sample_lines" not in settings:
        yield ("sample_lines", "whole_tokens"), "where no SentencePiece vocabulary is learnt"
    if "min_count" not in settings:
        yield ("min_count",), "where no vocabulary of words is learnt"
    if not (learns_source or (sizes_target and not vocabulary.target_vocab_size)):
        yield ("vocab_size",), "where no vocabulary of this size is learnt"
    if is_shared(vocabulary) or not sizes_target:
        yield ("target_vocab_size",), "where no separate vocabulary of the target is learnt"
    if names[0] != names[1] or not (learns_source or learns_target):
        yield (
            ("separate_vocabularies",),
            "where the vocabularies are separate anyway, or both are given",
        )
    if learnt == {*names} <= {"bpe", "unigram"} and vocabulary.tokenizer == "none":
        yield ("normalize",), "where SentencePiece vocabularies are learnt, which have nfkc already"
    # A given SentencePiece model defines the segmentation itself.
    if source.vocabulary == SENTENCEPIECE and names[0] not in learnt:
        yield ("segmentation",), "where the vocabulary is given"
    if source.vocabulary == target.vocabulary == SENTENCEPIECE and not learns_target:
        yield ("target_segmentation",), "where the target's vocabulary is given"


def _metrics(recipe: ScoreRecipe) -> Iterator[Problem]:
    names = metric_names(recipe.metrics.metric)
    unknown = unknown_metrics(names)
    for name in unknown:
        text = f"no metric {name!r}; {suggestion(name, METRICS)} [metrics.metric]"
        yield Problem(("metric",), text)
    yield from metric_command_problems(recipe.metrics.metric_command)
    if not (names or recipe.metrics.metric_command):
        yield Problem(
            ("metric", "metric_command"),
            f"metric ({NONE!r}) needs --metric-command; name a metric or a program "
            "[metrics.metric]",
        )
    if unknown or not names:
        return
    compared = {METRICS[name].compares for name in names}
    if len(compared) > 1:
        kinds = ", others ".join(sorted(compared, reverse=True))
        yield Problem(
            ("metric",),
            f"metric ({recipe.metrics.metric!r}): some metrics compare {kinds}; score each kind "
            "with a separate command [metrics.metric]",
        )
        return
    if "text" not in compared:
        yield from without_effect(recipe, ("metric_command",), f"on {', '.join(names)}", "metric")
    settings = chain(*(info.settings for info in METRICS.values()), *TYPE_SETTINGS.values())
    used = chain(
        *(METRICS[name].settings for name in names), *(TYPE_SETTINGS[one] for one in compared)
    )
    unused = {*settings} - {*used}
    in_order = tuple(name for name in values_of(recipe) if name in unused)
    yield from without_effect(recipe, in_order, f"on {', '.join(names)}")


def _languages(metrics: TuningConfig, test_set: str) -> Iterator[Problem]:
    pair = metrics.language_pair
    needy = [
        f"metric {name}"
        for name in metric_names(metrics.metric)
        if name in METRICS and METRICS[name].needs_languages
    ]
    if test_set:
        needy.append("test_set")
    if pair and not re.fullmatch("[^-]+-[^-]+", pair):
        yield Problem(
            ("language_pair",),
            f"language_pair ({pair!r}) must be two languages and a hyphen, such as en-de "
            "[metrics.language_pair]",
        )
    elif needy and not pair:
        yield Problem(
            ("language_pair", "metric", "test_set"),
            f"{needy[0]} needs the languages; give --language-pair, such as en-de "
            "[metrics.language_pair]",
        )


def _significance(recipe: ScoreRecipe) -> Iterator[Problem]:
    wanted = recipe.significance
    if wanted.paired_bs and wanted.paired_ar:
        yield Problem(
            ("paired_bs", "paired_ar"),
            "paired_bs and paired_ar exclude each other; give one of them [significance.paired_bs]",
        )
    if wanted.paired_bs:
        when = "with --paired-bs, which prints intervals anyway"
        yield from without_effect(recipe, ("confidence",), when)
    if not wanted.paired_ar:
        yield from without_effect(recipe, ("trials",), "without --paired-ar")
    if not (wanted.confidence or wanted.paired_bs):
        when = "without --confidence or --paired-bs"
        yield from without_effect(recipe, ("resamples",), when)
    if recipe.breakdown.sentence_level:
        names = ("confidence", "paired_bs", "paired_ar", "by_length", "by_frequency")
        yield from without_effect(recipe, names, "with --sentence-level")
