from nmtkit.evaluation.breakdown import MIN_DIFFERENCE
from nmtkit.reporting.systems.page import page_data
from tests.unit.reporting.systems.builders import (
    GOOD,
    MIDDLING,
    POOR,
    REFERENCE,
    SYSTEMS,
    comparison,
)

LABELS = ["good", "poor", "middling"]


def test_the_data_are_texts_and_numbers() -> None:
    compared = comparison()
    data = page_data(compared, LABELS)
    assert data["systems"] == LABELS
    assert (data["metric"], data["is_higher_better"]) == ("BLEU", True)
    assert data["reference"] == REFERENCE
    assert data["translations"] == [GOOD, POOR, MIDDLING]
    assert data["source"] is None
    rounded = [[round(one, 2) for one in scores] for scores in compared.line_scores]
    assert data["scores"] == rounded
    assert [data["lengths"][one] for one in data["length_of"]] == ["1-10", "1-10", "11-20", "1-10"]
    assert data["min_difference"] == MIN_DIFFERENCE


def test_an_ngram_has_its_matches_and_its_occurrences() -> None:
    data = page_data(comparison(), LABELS)
    assert ("so", 1, [12, 2, 6, 12]) in data["ngrams"]
    assert ("so so so so", 4, [9, 0, 3, 9]) in data["ngrams"]


def test_the_first_system_is_compared_with_the_best_other_one() -> None:
    def second(metric: str, *names: str) -> int:
        systems = {name: SYSTEMS[name] for name in names}
        found: int = page_data(comparison(systems, metric=metric), names)["second"]
        return found

    good, poor, middling = SYSTEMS
    assert second("bleu", good, poor, middling) == 2
    assert second("ter", good, poor, middling) == 2
    assert second("ter", poor, good, middling) == 1
    assert second("bleu", good) == 1, "the reference"
