"""Placeholders: examples of each kind and script, laws, and hostile lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import ConfigError
from nmtkit.spans.placeholders import PLACEHOLDERS, compile_patterns, find_placeholders
from tests.messages import refuses

NAMES = [*PLACEHOLDERS]
ARABIC = "\u0661\u0662\u0663 \u0665\u066b\u0665"
PARTS = st.sampled_from(
    [
        *(
            "{name}",
            "{",
            "}",
            "{n, plural, one {# file} other {}}",
            "{{x}}",
            "$",
            "%",
            "%s",
            "%1$s",
        ),
        *("http://", "www.", "a.org", "(b)", ".", ",", "@", "x", "12", "1,234.5", " ", "\u00a0"),
        *("5%", "d", "\u4e2d", "\u0e01", "\u0967", "\u0663", "-", "[", ":", "_", "\uac1c"),
    ]
)
LINES = st.lists(PARTS, max_size=12).map("".join) | st.text(max_size=30)
PATTERNS = st.lists(st.sampled_from([r"x+", r"\d", r"\s*", r"(?<=x)1", r"[a-z]+\d?", "$"]))


def found(text: str, *names: str, patterns: tuple[str, ...] = ()) -> list[str]:
    spans = find_placeholders(text, names, compile_patterns(patterns))
    return [text[start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{name} {0} {} {{name}} ${name} %{name}", "{name} {0} {} {{name}} ${name} %{name}"),
        (
            "{x:.2f} {0!r} {0,-10:N2} {user.name} {a[0]}",
            "{x:.2f} {0!r} {0,-10:N2} {user.name} {a[0]}",
        ),
        ("{{{raw}}}{{/if}}", "{{{raw}}} {{/if}}"),
        ("a {b} {c", "{b}"),
        ("}{a}{", "{a}"),
        ("{n, plural, one {# file} {y}", "{y}"),
        ("\u4f60\u597d{name}\uff0c", "{name}"),
    ],
)
def test_names_in_braces(text: str, expected: str) -> None:
    assert found(text, "braces") == expected.split()


@pytest.mark.parametrize(
    "text", ["{a, b, c}", "{two words}", "{#}", "{", "}{", "{n, plural, one {# a}"]
)
def test_other_braces_are_text(text: str) -> None:
    assert found(text, "braces") == []


@pytest.mark.parametrize(
    "message",
    [
        "{count, number}",
        "{day, date, short}",
        "{n, plural, one {# file} other {# files}}",
        "{sex,select,female {her {n, plural, =0 {{x}} other {files}}} other {it}}",
        "{n, selectordinal, one {#st} other {#th}}",
        "{{ user.name | upper }}",
    ],
)
def test_messages_of_icu_and_templates_are_one_placeholder(message: str) -> None:
    assert found(f"See {message}: {{x}}", "braces") == [message, "{x}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "%s %d %1$s %-5.2f %@ %lld %(name)s %% %05d %*d %.*f",
            "%s %d %1$s %-5.2f %@ %lld %(name)s %% %05d %*d %.*f",
        ),
        ("page 1 %s of v%d: %dpx", "%s %d %d"),
        ("%d%%", "%d %%"),
        ("100 % done, 5% d, 50% die, 50%discount, %20a, %50'si", ""),
        ("100%ige und 100 %ige L\u00f6sung", ""),
        ("\u0e42\u0e2b\u0e25\u0e14%s\u0e41\u0e25\u0e49\u0e27", "%s"),
    ],
)
def test_conversions_of_printf(text: str, expected: str) -> None:
    assert found(text, "printf") == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See (https://en.wikipedia.org/wiki/A_(b)).", "https://en.wikipedia.org/wiki/A_(b)"),
        ("www.x.org, HTTP://X.Y/z?d=e&f=g#h!", "www.x.org HTTP://X.Y/z?d=e&f=g#h"),
        ("[a](ftp://h/i), <http://z>.", "ftp://h/i http://z"),
        ("\u8bbf\u95eehttps://example.com\u3002\u8c22\u8c22", "https://example.com"),
        ("\u0e14\u0e39http://a.b/c\u0e04\u0e23\u0e31\u0e1a", "http://a.b/c"),
        ("\u0627\u0646\u0638\u0631 https://a.b\u060c \u0648", "https://a.b"),
        ("https://de.wikipedia.org/wiki/K\u00f6ln", "https://de.wikipedia.org/wiki/K\u00f6ln"),
        ("http://... www. xhttp://a.b", ""),
    ],
)
def test_addresses_of_pages(text: str, expected: str) -> None:
    assert found(text, "url") == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("me@x.org. <a.b+c@d-e.co.uk>", "me@x.org a.b+c@d-e.co.uk"),
        ("\u8bf7\u8054\u7cfbme@x.org\u5427, info@b\u00fccher.de", "me@x.org info@b\u00fccher.de"),
        ("x@y, @a.b, a@.b", ""),
    ],
)
def test_addresses_of_people(text: str, expected: str) -> None:
    assert found(text, "email") == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1, 2. -5 50% 1,234.5 1.234,5 1'234", "1 2 5 50 1,234.5 1.234,5 1'234"),
        ("2024-01-31 31/01/2024 12:30:05 1.2.3", "2024-01-31 31/01/2024 12:30:05 1.2.3"),
        ("1 234 3/4 2010-2015 COVID-19", "1 234 3 4 2010 2015 19"),
        ("x86 86x 3rd v1.2 1.2.3beta 10\u00a0000km a_1", ""),
        (ARABIC, ARABIC),
        ("\u096b\u0966 \uff15\uff10 \u0e55\u0e50", "\u096b\u0966 \uff15\uff10 \u0e55\u0e50"),
        ("2024\u5e745\u6708 5\uc6d4 \u0e215\u0e27\u0e31\u0e19", "2024 5 5 5"),
        ("\u0e55\u0e50x \u096b\u0935\u0940\u0902", ""),
    ],
)
def test_numbers(text: str, expected: str) -> None:
    assert found(text, "number") == expected.split()


@pytest.mark.parametrize("space", ["\u00a0", "\u2009", "\u202f"])
def test_narrow_and_no_break_spaces_group_digits(space: str) -> None:
    number = f"1{space}234{space}567,89"
    assert found(f"EUR {number}.", "number") == [number]
    assert found(f"2024{space}300", "number") == ["2024", "300"]


def test_the_leftmost_counts_and_then_the_longest() -> None:
    text = "http://a.b/{id}/12 me12@x.org {0}"
    assert found(text, *NAMES) == ["http://a.b/{id}/12", "me12@x.org", "{0}"]
    assert found("aab", patterns=("a", "aa", "ab")) == ["aa"]
    assert found("aab", patterns=("a", "ab")) == ["a", "ab"]


def test_a_pattern_continues_after_the_match_of_another_one() -> None:
    """`cd|d` matches inside of `abc`, and again after it."""
    assert found("abcd", patterns=("abc", "cd|d")) == ["abc", "d"]


@given(LINES, st.sets(st.sampled_from(NAMES)), PATTERNS)
def test_placeholders_are_parts_in_order(text: str, names: set[str], patterns: list[str]) -> None:
    spans = find_placeholders(text, sorted(names), compile_patterns(patterns))
    rebuilt, last = "", 0
    for start, end in spans:
        assert last <= start < end <= len(text)
        rebuilt += text[last:start] + text[start:end]
        last = end
    assert rebuilt + text[last:] == text


@given(LINES, PATTERNS)
def test_placeholders_are_the_longest_at_each_place(text: str, patterns: list[str]) -> None:
    """Brute force: try all kinds at each place."""
    compiled = compile_patterns(patterns)
    searches = [PLACEHOLDERS[name](text) for name in NAMES]
    expected, place = [], 0
    while place < len(text):
        spans = [span for search in searches if (span := search(place)) and span[0] == place]
        spans += [match.span() for one in compiled if (match := one.match(text, place))]
        longest = max((end for _, end in spans), default=place)
        if longest > place:
            expected.append((place, longest))
        place = max(place + 1, longest)
    assert find_placeholders(text, NAMES, compiled) == expected


@given(LINES)
def test_a_found_placeholder_is_one_without_the_text_around_it(text: str) -> None:
    for one in found(text, "braces", "url", "email"):
        assert found(one, "braces", "url", "email") == [one]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "part",
    [
        *("{", "}", "{}", "{{", "{ ", "{a,", "{a, plural, ", "{n, plural, one {", "%", "%0", "%1$"),
        *("%(", "1.", "1", "12/", "1-", "1\u00a0", "\u0e55", "a@", "a@a.", "a.", "a-", "www."),
        *("http://", "http://a)", "(", " ", "$"),
    ],
)
def test_hostile_lines_end(part: str) -> None:
    """Quadratic time would be minutes."""
    for text in (part * 10_000, "(" + part * 10_000 + "x", "http://a" + part * 10_000):
        find_placeholders(text, NAMES, [])


@pytest.mark.parametrize("pattern", ["(", "[a", "a{99999999999999999999}", "(?<=a+)b"])
def test_a_malformed_pattern_is_named(pattern: str) -> None:
    with refuses(ConfigError, "--placeholder-pattern; backslash"):
        compile_patterns(["ok", pattern])
