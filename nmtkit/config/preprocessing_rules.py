"""Rules across the settings of `nmtkit preprocess`."""

from collections.abc import Collection, Iterator

from nmtkit.config.preprocessing import (
    AUTO,
    LEARNING_SETTINGS,
    SEGMENTATIONS,
    SENTENCEPIECE,
    CorpusConfig,
    TextEntry,
    VocabularyConfig,
    directions_of,
    is_shared,
    segmentations,
    split_direction,
    split_tag,
    split_weight,
    training_texts,
    valid_texts,
    vocabulary_kinds,
)
from nmtkit.config.problems import Problem, named_twice, without_effect
from nmtkit.config.schema import PreprocessRecipe
from nmtkit.symbols import SPECIAL_WORDS

SMALLEST_WEIGHT, LARGEST_WEIGHT = 0.001, 1000.0
"""Of a training text."""


def preprocessing_problems(recipe: PreprocessRecipe) -> Iterator[Problem]:
    """Yield the contradictions among settings that are valid by themselves."""
    yield from _files_of_texts(recipe)
    yield from _corpus(recipe.corpus)
    yield from _directions(recipe)
    yield from _vocabulary(recipe)


def _files_of_texts(recipe: PreprocessRecipe) -> Iterator[Problem]:
    """Yield the problems of settings that have a file for each training text."""
    corpus, num_texts = recipe.corpus, len(recipe.corpus.train)
    files = {
        "scores": recipe.filters.scores,
        "alignments": corpus.alignments,
        "alignment_text": corpus.alignment_text,
    }
    for name, given in files.items():
        if len(given) not in (0, num_texts):
            yield Problem(
                (name, "train"),
                f"{name}: {len(given)} files for {num_texts} texts; give one for each --train, in "
                "the same order",
            )


def _corpus(config: CorpusConfig) -> Iterator[Problem]:
    """Yield the problems of languages, weights and tags."""
    language = config.source_lang
    if language and language == config.target_lang:
        yield Problem(
            ("target_lang", "source_lang"),
            f"source_lang and target_lang are both {language!r}, so both sides are the same file; "
            "give two languages",
        )
    names = [*config.valid]
    for prefix, weight in map(split_weight, config.train):
        names.append(prefix)
        if not SMALLEST_WEIGHT <= weight <= LARGEST_WEIGHT:
            yield Problem(
                ("train",),
                f"train ({prefix}={weight:g}): a weight must be from {SMALLEST_WEIGHT:g} to "
                f"{LARGEST_WEIGHT:g}; after a path that ends so, write =1",
            )
    for entry in config.tag:
        prefix, tag = split_tag(entry)
        if prefix not in names or tag.split() != [tag]:
            yield Problem(
                ("tag",),
                f"tag ({entry!r}) must be PREFIX=TAG, with the prefix of a text as --train or "
                "--valid has it, and a tag without white space, such as bt=<bt>",
            )
        elif tag in SPECIAL_WORDS:
            yield Problem(
                ("tag",), f"tag ({entry!r}): {tag} is a special symbol; give another, such as <bt>"
            )


def _directions(recipe: PreprocessRecipe) -> Iterator[Problem]:
    """Yield the problems of texts that name a direction, or of those that should."""
    corpus, vocabulary = recipe.corpus, recipe.vocabulary
    if not directions_of(corpus):
        for name in ("source_lang", "target_lang"):
            if not getattr(corpus, name):
                flag = f"--{name.replace('_', '-')}"
                yield Problem(
                    (name,), f"{name} is missing; give {flag}, or texts as PREFIX:SRC-TGT"
                )
        if len(corpus.valid) > 1:
            yield Problem(
                ("valid",),
                f"valid: {len(corpus.valid)} texts for one direction; concatenate them, or name "
                "directions, as in ted:en-sv",
            )
        idle = ("source_symbols", "vocabulary_temperature")
        yield from without_effect(recipe, idle, "without directions, as in --train ted:en-sv")
        return
    when = "with directions, which name the languages"
    yield from without_effect(recipe, ("source_lang", "target_lang"), when, "train")
    held_out = [split_direction(entry) for entry in recipe.filters.held_out]
    for text, option in (
        *((one, "train") for one in training_texts(corpus)),
        *((one, "valid") for one in valid_texts(corpus)),
        *((TextEntry(prefix, 1.0, "", one), "held_out") for prefix, one in held_out),
    ):
        source, _, target = text.direction.partition("-")
        if not text.direction:
            yield Problem(
                (option,),
                f"{option} ({text.prefix}): other texts name a direction; give this one, too, as "
                f"{text.prefix}:SRC-TGT",
            )
        elif source == target:
            same = f"{option} ({text.name}): both languages are {source}; name two"
            yield Problem((option,), same)
    yield from named_twice("train", [one.name for one in training_texts(corpus)])
    yield from named_twice("valid", [one.direction for one in valid_texts(corpus)])
    yield from _one_vocabulary(recipe, vocabulary)


def _one_vocabulary(recipe: PreprocessRecipe, vocabulary: VocabularyConfig) -> Iterator[Problem]:
    """Yield the settings that contradict one joint vocabulary of all languages."""
    if not vocabulary.vocabulary_of and not is_shared(vocabulary):
        yield Problem(
            ("separate_vocabularies", "target_segmentation", "target_vocabulary"),
            "with directions, all languages have one joint vocabulary; leave out "
            "--separate-vocabularies and --target-segmentation, and give both sides the same file",
        )
    when = "with directions: Moses' rules are of one language"
    yield from without_effect(recipe, ("tokenizer",), when)
    when = "with directions: links are of one direction"
    yield from without_effect(recipe, ("valid_alignments",), when)


def _vocabulary(recipe: PreprocessRecipe) -> Iterator[Problem]:
    vocabulary = recipe.vocabulary
    if vocabulary.vocabulary_of:
        yield from without_effect(recipe, LEARNING_SETTINGS, "with --vocabulary-of")
        return
    kinds = {*vocabulary_kinds(vocabulary)}
    if vocabulary.marks and (kinds != {SENTENCEPIECE} or vocabulary.tokenizer != "none"):
        yield Problem(
            ("marks", "segmentation", "target_segmentation", "tokenizer"),
            f"marks ({vocabulary.marks}) are for raw text that SentencePiece segments; leave them "
            "out, or use --segmentation bpe or unigram without --tokenizer",
        )
    target = SEGMENTATIONS[segmentations(vocabulary)[1]]
    is_given = (bool(vocabulary.source_vocabulary), bool(vocabulary.target_vocabulary))
    for names, when in _vocabulary_settings_without_effect(vocabulary):
        yield from without_effect(recipe, names, when)
    for name in ("tokenizer", "unescape", "normalize"):
        value = vars(vocabulary)[name]
        if target.no_tokenizer and value not in (False, "none", AUTO):
            yield Problem(
                (name, "target_segmentation"), f"{name} ({value!r}): {target.no_tokenizer}"
            )
    if any(is_given) and not all(is_given) and is_shared(vocabulary):
        given, other = ("source", "target") if is_given[0] else ("target", "source")
        yield Problem(
            (f"{other}_vocabulary", f"{given}_vocabulary"),
            f"{given}_vocabulary is given without {other}_vocabulary; give both (the same file for "
            "a shared vocabulary), or --separate-vocabularies to learn the other",
        )


def _vocabulary_settings_without_effect(
    vocabulary: VocabularyConfig,
) -> Iterator[tuple[Collection[str], str]]:
    """Yield names of settings that have no effect here, and the reason for the message."""
    names = segmentations(vocabulary)
    source, target = (SEGMENTATIONS[name] for name in names)
    learns_source = not vocabulary.source_vocabulary
    learns_target = not vocabulary.target_vocabulary
    sizes_target = learns_target and "vocab_size" in target.settings
    is_learnt = zip(names, (learns_source, learns_target), strict=True)
    learnt = [name for name, learns in is_learnt if learns]
    used = {setting for name in learnt for setting in SEGMENTATIONS[name].settings}
    if vocabulary.target_vocab_size and not learns_source:
        used.discard("vocab_size")
    known = {name for one in SEGMENTATIONS.values() for name in one.settings}
    yield known - used, "where no vocabulary that is learnt uses it"
    if is_shared(vocabulary) or not sizes_target:
        yield ("target_vocab_size",), "where no separate vocabulary of the target is learnt"
    if names[0] != names[1] or not (learns_source or learns_target):
        yield (
            ("separate_vocabularies",),
            "where the vocabularies are separate anyway, or both are given",
        )
    # A given SentencePiece model defines the segmentation itself.
    if source.vocabulary == SENTENCEPIECE and names[0] not in learnt:
        yield ("segmentation",), "where the vocabulary is given"
    if source.vocabulary == target.vocabulary == SENTENCEPIECE and not learns_target:
        yield ("target_segmentation",), "where the target's vocabulary is given"
