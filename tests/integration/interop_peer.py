"""What the tests of conversions ask of the real libraries: run by an interpreter that has them.

python -m tests.integration.interop_peer make-marian FOLDER ACTIVATION shared|separate
python -m tests.integration.interop_peer encode-marian FOLDER
python -m tests.integration.interop_peer translate-marian|translate-ctranslate2 FOLDER OFFSET

It reads lines and prints a JSON list.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from tests.conversions import LINES, SHAPE

LANGUAGE = ">>deu<<"


def make_marian(folder: Path) -> list[str]:
    """Write a random model as OPUS-MT publishes them; returns the names of its files."""
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    folder.mkdir()
    activation, is_shared = sys.argv[3], sys.argv[4] == "shared"
    pieces = [
        _write_sentencepiece(folder / f"{name}.spm", lines)
        for name, lines in (("source", LINES), ("target", [line.upper() for line in LINES]))
    ]
    if is_shared:
        listed = {"vocab": ["</s>", "<unk>", *pieces[0], *pieces[1], LANGUAGE, "<pad>"]}
    else:
        source, target = (["</s>", "<unk>", "<pad>", *own] for own in pieces)
        listed = {"vocab": [*source, LANGUAGE], "target_vocab": target}
    ids = {name: {one: i for i, one in enumerate(dict.fromkeys(of))} for name, of in listed.items()}
    for name, entries in ids.items():
        (folder / f"{name}.json").write_text(json.dumps(entries), encoding="utf-8")
    vocabulary, *others = ids.values()
    padding = vocabulary["<pad>"]
    torch.manual_seed(1)
    marian = MarianMTModel(
        MarianConfig(
            vocab_size=len(vocabulary),
            decoder_vocab_size=len(others[0] if others else vocabulary),
            share_encoder_decoder_embeddings=is_shared,
            d_model=SHAPE["model_size"],
            encoder_layers=SHAPE["encoder_layers"],
            decoder_layers=SHAPE["decoder_layers"],
            encoder_attention_heads=SHAPE["heads"],
            decoder_attention_heads=SHAPE["heads"],
            encoder_ffn_dim=SHAPE["feed_forward_size"],
            decoder_ffn_dim=SHAPE["feed_forward_size"],
            activation_function=activation,
            scale_embedding=True,
            max_position_embeddings=512,
            pad_token_id=padding,
            decoder_start_token_id=padding,
            eos_token_id=0,
            forced_eos_token_id=0,
            init_std=0.5,
        )
    )
    torch.nn.init.normal_(marian.final_logits_bias)
    marian.generation_config.bad_words_ids = [[padding]]
    marian.save_pretrained(folder)
    files = (
        folder / name for name in ("source.spm", "target.spm", *(f"{one}.json" for one in ids))
    )
    MarianTokenizer(
        *map(str, files), source_lang="eng", target_lang="deu", separate_vocabs=not is_shared
    ).save_pretrained(folder)
    return sorted(path.name for path in folder.iterdir())


def _write_sentencepiece(path: Path, lines: Sequence[str]) -> list[str]:
    """Learn a model from lines; returns its pieces without special symbols."""
    with path.open("wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=stream,
            model_type="unigram",
            vocab_size=30,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    model = sentencepiece.SentencePieceProcessor(str(path))
    return [model.id_to_piece(index) for index in range(3, model.get_piece_size())]


def encode_marian(folder: Path) -> list[list[str]]:
    """Return the entries that each line of standard input becomes."""
    tokenizer = marian_tokenizer(folder)
    return [tokenizer.convert_ids_to_tokens(tokenizer(line).input_ids) for line in standard_input()]


def translate_marian(folder: Path) -> list[str]:
    """Translate lines by greedy search, one at a time."""
    from transformers import MarianMTModel

    tokenizer, model = marian_tokenizer(folder), MarianMTModel.from_pretrained(folder)
    translations = []
    for line in standard_input():
        source = torch.tensor([tokenizer(line).input_ids])
        limit = source.shape[1] + int(sys.argv[3])
        found = model.generate(source, num_beams=1, do_sample=False, max_length=1 + limit)
        translations.append(tokenizer.decode(found[0], skip_special_tokens=True))
    return translations


def translate_ctranslate2(folder: Path) -> list[str]:
    """Translate lines by greedy search, with the SentencePiece models of the exported folder."""
    import ctranslate2

    translator = ctranslate2.Translator(str(folder), device="cpu")
    source, target = (
        sentencepiece.SentencePieceProcessor(str(folder / name))
        for name in ("source.spm", "target.spm")
    )
    begin = json.loads((folder / "config.json").read_bytes())["decoder_start_token"]
    translations = []
    for line in standard_input():
        text = line.removeprefix(LANGUAGE)
        symbols = [LANGUAGE] if text != line else []
        pieces = [*symbols, *source.encode_as_pieces(text)]
        limit = len(pieces) + int(sys.argv[3])
        (found,) = translator.translate_batch(
            [pieces],
            beam_size=1,
            max_decoding_length=limit,
            suppress_sequences=[[begin]],
        )
        translations.append(target.decode_pieces(found.hypotheses[0]))
    return translations


def marian_tokenizer(folder: Path) -> Any:
    from transformers import MarianTokenizer

    return MarianTokenizer.from_pretrained(folder)


def standard_input() -> list[str]:
    return sys.stdin.read().split("\n")[:-1]


ACTIONS = {
    "make-marian": make_marian,
    "encode-marian": encode_marian,
    "translate-marian": translate_marian,
    "translate-ctranslate2": translate_ctranslate2,
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(ACTIONS[sys.argv[1]](Path(sys.argv[2]))))
