import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtkit.errors import DamagedError
from nmtkit.parsing.vocabulary import TreeTokens
from nmtkit.symbols import BOS_ID, EOS_ID
from nmtkit.text.closed_words import Words
from nmtkit.text.codec import KINDS, TextCodec
from nmtkit.text.subword import Subword
from nmtkit.text.vocabulary import Steps
from tests.messages import refuses
from tests.tiny import tiny_codec

LINES = ["the cat sat on the mat", "the dog ran to the cat", "dogs and cats ran and sat"]


@cache
def subword_codec() -> TextCodec:
    source = Subword.train(LINES, "bpe", 290, "x")
    target = Subword.train([line.upper() for line in LINES], "bpe", 295, "x")
    return TextCodec("en", "de", source, target, is_shared=False)


def mixed_codec() -> TextCodec:
    """Return a codec whose sides have different kinds, with a tokeniser."""
    return TextCodec(
        "en",
        "de",
        Subword.train(LINES, "bpe", 290, "x").with_steps(Steps(moses_lang="en")),
        Words(["a", "B", ",", "c"]).with_steps(Steps(moses_lang="de")),
        is_shared=False,
    )


def shared_codec() -> TextCodec:
    """Return a codec with a shared vocabulary and a tokeniser for each side."""
    words = Words(["a", "b", ",", "l", "'", "'s", "l'"])
    source, target = (words.with_steps(Steps(moses_lang=lang)) for lang in ("en", "fr"))
    return TextCodec("en", "fr", source, target, is_shared=True)


def words_codec(*words: str) -> TextCodec:
    return TextCodec("en", "de", Words(["x", *words]), Words(["y", *words]), is_shared=False)


CODECS = [tiny_codec(), subword_codec(), words_codec("a"), mixed_codec(), shared_codec()]
SIDE = {"lang": "en", "kind": "words", "tokenizer": "none", "unescape": False, "normalize": "none"}


def saved(codec: TextCodec, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    codec.save(folder)
    return folder


@given(st.text())
def test_a_target_line_decodes_to_the_normalized_line(line: str) -> None:
    codec = subword_codec()
    assert codec.decode_target(codec.encode_target(line)) == codec.target.normalize(line)


@pytest.mark.parametrize("codec", CODECS)
def test_encoding_ends_with_one_end_symbol(codec: TextCodec) -> None:
    for ids in (codec.encode_source("a </s> b"), codec.encode_target("a </s> b")):
        assert ids[-1] == EOS_ID
        assert not {BOS_ID, EOS_ID}.intersection(ids[:-1])
        assert len(ids) > 1


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("line", ["", " ", "\t\u00a0"])
def test_a_blank_line_is_the_end_symbol(codec: TextCodec, line: str) -> None:
    assert codec.encode_source(line) == codec.encode_target(line) == [EOS_ID]


def test_sides_use_their_own_vocabularies() -> None:
    codec = words_codec("a")
    assert codec.encode_source("x y a") == [3, 0, 4, EOS_ID]
    assert codec.encode_target("x y a") == [0, 3, 4, EOS_ID]
    assert codec.decode_target([BOS_ID, 3, 4, EOS_ID]) == "y a"


@pytest.mark.parametrize("codec", CODECS)
def test_a_loaded_codec_equals_the_saved_one(codec: TextCodec, tmp_path: Path) -> None:
    loaded = TextCodec.load(saved(codec, tmp_path / "codec"))
    assert loaded.fingerprint == codec.fingerprint
    assert loaded.source_lang == codec.source_lang == "en"
    assert loaded.target_lang == codec.target_lang
    assert loaded.is_shared == codec.is_shared
    for line in (*LINES, "a B c x y", "l'a, b's a."):
        assert loaded.encode_source(line) == codec.encode_source(line)
        assert loaded.encode_target(line) == codec.encode_target(line)


def test_a_shared_vocabulary_is_one_file(tmp_path: Path) -> None:
    shared = saved(tiny_codec(), tmp_path / "shared")
    separate = saved(subword_codec(), tmp_path / "separate")
    assert sorted(path.name for path in shared.iterdir()) == ["codec.json", "shared.txt"]
    assert sorted(path.name for path in separate.iterdir()) == [
        "codec.json",
        "source.model",
        "target.model",
    ]


def test_only_trees_have_a_target_type_other_than_text() -> None:
    assert {name: kind.target_type for name, kind in KINDS.items()} == {
        "sentencepiece": "text",
        "words": "text",
        "marian": "text",
        "trees": "trees",
        "in-order-trees": "trees",
    }
    trees = replace(words_codec("a"), target=TreeTokens(["(S", ")S"]))
    assert trees.target_type == "trees"
    assert mixed_codec().target_type == "text"


def test_parts_are_joined_by_spaces_if_their_text_has_them() -> None:
    subword, words = subword_codec(), words_codec("\u6211", "\u4f60")
    moses = replace(words, target=Words(["\u6211"]).with_steps(Steps(moses_lang="zh")))
    for codec, between in ((subword, ""), (words, " "), (moses, "")):
        assert codec.join_target(["\u6211", "", "\u4f60"]) == f"\u6211{between}\u4f60"
        assert codec.join_target(iter(["a", "b"])) == "a b"


def test_different_codecs_have_different_fingerprints() -> None:
    words = Words(["y", "a", "b"])
    base = words_codec("a", "b")
    swapped = replace(base, source=base.target, target=base.source)
    different = [base, words_codec("b", "a"), words_codec("a"), swapped, tiny_codec()]
    assert len({codec.fingerprint for codec in different}) == len(different)
    assert words_codec("a", "b").fingerprint == base.fingerprint
    assert replace(base, source_lang="fr").fingerprint == base.fingerprint
    moses = [words.with_steps(Steps(moses_lang=lang)) for lang in ("de", "fr")]
    codecs = [replace(base, target=target) for target in (base.target, *moses)]
    assert len({codec.fingerprint for codec in codecs}) == 3


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({"format": "other"}, "codec.json format nmtkit-codec"),
        ({"version": 0}, "codec.json 3 4 0"),
        ({"version": "3"}, "codec.json version"),
        ({"version": 5}, "codec.json 3 4 5"),
        ({"source": {}}, "codec.json source.kind"),
        ({"source": {**SIDE, "kind": []}}, "codec.json source.kind"),
        ({"source": {**SIDE, "kind": "letters"}}, "codec.json source.kind"),
        ({"target": {**SIDE, "lang": None}}, "codec.json target.lang"),
        ({"source": {**SIDE, "unescape": 1}}, "codec.json source"),
        ({"source": {**SIDE, "normalize": "nfd"}}, "codec.json source"),
        ({"source": {**SIDE, "normalize": None}}, "codec.json source"),
        ({"target": {**SIDE, "kind": "trees", "tokenizer": "moses"}}, "codec.json target.kind"),
        ({"target": {**SIDE, "tokenizer": "13a"}}, "codec.json target.tokenizer moses"),
        ({"target": {**SIDE, "kind": "sentencepiece"}}, "codec.json is_shared"),
        ({"target": {**SIDE, "tokenizer": "moses"}}, "codec.json is_shared"),
        ({"target": []}, "codec.json target"),
        ({"version": 2}, "codec.json 3 4 2"),
    ],
)
def test_a_wrong_description_is_an_error(tmp_path: Path, change: dict[str, Any], keys: str) -> None:
    path = saved(tiny_codec(), tmp_path) / "codec.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with refuses(DamagedError, keys):
        TextCodec.load(tmp_path)


@pytest.mark.parametrize(
    ("codec", "name", "change", "keys"),
    [
        (tiny_codec(), "codec.json", lambda _: b"[" * 100_000, "codec.json JSON"),
        (tiny_codec(), "shared.txt", lambda data: data + b"a\n", "shared.txt:20 a"),
        (subword_codec(), "target.model", lambda data: data[:50], "target.model SentencePiece"),
        (tiny_codec(), "codec.json", None, "codec.json"),
        (subword_codec(), "source.model", None, "source.model"),
    ],
    ids=["description", "words", "model", "no description", "no model"],
)
def test_a_damaged_or_missing_file_is_named(
    codec: TextCodec,
    name: str,
    change: Callable[[bytes], bytes] | None,
    keys: str,
    tmp_path: Path,
) -> None:
    path = saved(codec, tmp_path) / name
    data = path.read_bytes()
    path.unlink()
    if change is not None:
        path.write_bytes(change(data))
    with refuses(DamagedError, keys):
        TextCodec.load(tmp_path)
