import pytest

from nmtkit.config.preprocessing import VocabularyConfig, is_shared, segmentations


@pytest.mark.parametrize(
    ("target", "expected"), [("same", ("words", "words")), ("bpe", ("words", "bpe"))]
)
def test_a_target_is_segmented_as_the_source_unless_it_says_otherwise(
    target: str, expected: tuple[str, str]
) -> None:
    config = VocabularyConfig(segmentation="words", target_segmentation=target)
    assert segmentations(config) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (VocabularyConfig(), True),
        (VocabularyConfig(separate_vocabularies=True), False),
        (VocabularyConfig(source_vocabulary="a", target_vocabulary="b/../a"), True),
        (VocabularyConfig(source_vocabulary="a", target_vocabulary="b"), False),
        (VocabularyConfig(segmentation="bpe", target_segmentation="unigram"), False),
    ],
)
def test_sides_share_a_vocabulary_unless_a_setting_separates_them(
    config: VocabularyConfig, expected: bool
) -> None:
    assert is_shared(config) == expected


def test_the_same_file_is_not_shared_by_sides_that_are_segmented_differently() -> None:
    config = VocabularyConfig(
        segmentation="words",
        target_segmentation="bpe",
        source_vocabulary="one",
        target_vocabulary="one",
    )
    assert not is_shared(config)
