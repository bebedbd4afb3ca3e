import re
from itertools import combinations

from nmtkit.reporting.attention.colours import colour, colour_variables


def luminance(name: str) -> float:
    """Source: Web Content Accessibility Guidelines 2.1, relative luminance."""
    channels = [int(name[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_light_and_dark_name_the_same_heads_which_the_drawings_use() -> None:
    light, dark = (
        dict(re.findall(r"--head-(\d+): (#[0-9a-f]{6});", line))
        for line in colour_variables().split("\n")[:2]
    )
    assert light.keys() == dark.keys() == {str(head) for head in range(1, 17)}
    assert "--num-head-colours: 16;" in colour_variables()
    assert all(colour(int(head)) == name for head, name in light.items())
    assert colour(17) == colour(1)


def test_every_head_differs_from_the_others_and_stands_out() -> None:
    for line, page in zip(colour_variables().split("\n"), ("#ffffff", "#14171a"), strict=False):
        names = re.findall(r"#[0-9a-f]{6}", line)
        assert all(one != other for one, other in combinations(names, 2))
        for name in names:
            darker, lighter = sorted([luminance(name), luminance(page)])
            # What graphics need at least, by the same guidelines: 3, with a little less for
            # heads beyond the eighth.
            assert (lighter + 0.05) / (darker + 0.05) >= (3 if names.index(name) < 8 else 2.4), name
