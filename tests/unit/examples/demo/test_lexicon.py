"""The lexicon: compounds, and what the rules rely on."""

from itertools import chain

from examples.demo.lexicon import load_lexicon

LEXICON = load_lexicon()


def test_a_compound_is_two_words_of_english_and_one_of_german_with_its_head_s_gender() -> None:
    openings = {noun.english: noun for noun in LEXICON.compounds["openings"]}
    door = openings["kitchen door"]
    assert (door.german, door.german_plural, door.gender) == ("Küchentür", "Küchentüren", "f")
    assert door.english_plural == "kitchen doors"
    for noun in chain.from_iterable(LEXICON.compounds.values()):
        assert len(noun.english.split()) == 2
        assert len(noun.german.split()) == 1


def test_no_english_noun_stands_for_two_german_ones() -> None:
    families = (*LEXICON.nouns.values(), *LEXICON.compounds.values())
    nouns = list(chain.from_iterable(families))
    forms = {noun.english for noun in nouns} | {noun.english_plural for noun in nouns}
    assert len(forms) == 2 * len(nouns)


def test_a_past_differs_from_the_present_it_could_be_taken_for() -> None:
    for verb in chain.from_iterable(LEXICON.verbs.values()):
        assert verb.english_past not in (verb.english, verb.english_third)


def test_verbs_and_prepositions_name_classes_of_nouns_that_there_are() -> None:
    known = set(LEXICON.nouns) | {"cities"}
    for verb in chain.from_iterable(LEXICON.verbs.values()):
        assert set(verb.objects) <= known, verb
    assert set(LEXICON.prepositions) | set(LEXICON.compounds) <= known
    assert set(LEXICON.adjectives) == set(LEXICON.nouns)


def test_every_auxiliary_and_modal_verb_has_finite_forms() -> None:
    auxiliaries = {verb.auxiliary for verb in chain.from_iterable(LEXICON.verbs.values())}
    assert auxiliaries | {"will", "can", "must", "should", "want to"} <= set(LEXICON.finite_forms)
