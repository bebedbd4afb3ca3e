"""Made-up text for aligners: its links are a one-to-one dictionary, and orders differ."""

from pathlib import Path

from examples.alignment.word_for_word import NUM_WORDS, PARTICLE, write_corpus
from nmtkit.text.lines import read_lines
from nmtkit.text.links import parse_links


def test_each_source_word_is_linked_to_its_translation_and_a_particle_to_nothing(
    tmp_path: Path,
) -> None:
    write_corpus(tmp_path, {"test": 300})
    files = (read_lines(tmp_path / f"test.{suffix}") for suffix in ("en", "fr", "links"))
    dictionary, num_reordered, num_particles = set(), 0, 0
    for source, target, links in zip(*files, strict=True):
        sources, targets = source.split(), target.split()
        pairs = sorted(parse_links(links, first=1).sure)
        assert [one for one, _ in pairs] == [*range(len(sources))]
        unlinked = {*range(len(targets))} - {other for _, other in pairs}
        assert {targets[other] for other in unlinked} <= {PARTICLE}
        dictionary |= {(sources[one], targets[other]) for one, other in pairs}
        num_particles += len(unlinked)
        num_reordered += any(one != other for one, other in pairs)
    assert len(dictionary) == NUM_WORDS
    assert all(len({pair[side] for pair in dictionary}) == NUM_WORDS for side in (0, 1))
    assert 0 < num_particles < 300
    assert 0 < num_reordered < 300
