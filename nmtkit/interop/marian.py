"""Hugging Face's Marian: the format that OPUS-MT models are published in.

Its Transformer is ours with LayerNorm after each sub-layer and fixed sinusoids, ours again. Its
decoder begins with the symbol for padding, which is never generated: what `<s>` is here. So an
exported model calls `<s>` its padding, and one that is imported (see marian_reading.py) has
Marian's padding at the id of `<s>`.
Source: transformers, models/marian/{configuration,modeling,tokenization}_marian.py.
"""

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmtkit.config.problems import Problem
from nmtkit.config.training import ModelConfig
from nmtkit.interop.formats import (
    NUM_POSITIONS,
    attention_limits,
    choice_limits,
    refusal,
    sentencepiece_model,
    write_sentencepiece,
)
from nmtkit.interop.parity import Pair, Peer, import_extra, name_of
from nmtkit.storage.model_folder import LoadedModel, save_tensors
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.codec import TextCodec, Vocabulary
from nmtkit.text.tokenised import Tokenised

CONFIG = "config.json"
TENSORS = "model.safetensors"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
TOKENIZER = "tokenizer_config.json"
BIAS = "final_logits_bias"
NORM_EPSILON = 1e-5
"""That of its LayerNorm, which is no setting there."""

ACTIVATIONS = {"relu": "relu", "silu": "silu"}
"""Its name of each of our activations."""

_LIBRARY = "transformers"
_EXTRA = "huggingface"
_GENERATION = "generation_config.json"
_LONGEST_GENERATED = 512
"""What OPUS-MT models have."""

_ENCODER_LAYER = {
    "self_attention.query_key_value": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention.output": ("self_attn.out_proj",),
    "residuals.0.norm": ("self_attn_layer_norm",),
    "feed_forward.inner": ("fc1",),
    "feed_forward.outer": ("fc2",),
    "residuals.1.norm": ("final_layer_norm",),
}
_DECODER_LAYER = {
    **_ENCODER_LAYER,
    "residuals.1.norm": ("encoder_attn_layer_norm",),
    "memory_attention.query": ("encoder_attn.q_proj",),
    "memory_attention.key_value": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "memory_attention.output": ("encoder_attn.out_proj",),
    "residuals.2.norm": ("final_layer_norm",),
}


def layer_names(config: ModelConfig) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield our name of each parameter of the layers, and Marian's of its parts, equally large."""
    for stack, num_layers, parameters in (
        ("encoder", config.encoder_layers, _ENCODER_LAYER),
        ("decoder", config.decoder_layers, _DECODER_LAYER),
    ):
        for layer in range(num_layers):
            for own, parts in parameters.items():
                for kind in ("weight", "bias"):
                    yield (
                        f"{stack}.{layer}.{own}.{kind}",
                        tuple(f"model.{stack}.layers.{layer}.{part}.{kind}" for part in parts),
                    )


def embedding_names(is_shared: bool, is_tied: bool) -> dict[str, tuple[str, ...]]:
    """Return Marian's names of our three embeddings, for each the stored one first.

    Args:
        is_shared: source and target have one matrix.
        is_tied: the target's is the output projection as well.
    """
    source, target = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
    output = "lm_head.weight"
    names: tuple[tuple[str, ...], ...] = ((source,), (target,), (output,))
    if is_tied:
        names = ((source,), (target, output), (target, output))
    if is_shared:
        names = 3 * (("model.shared.weight", source, target, output),)
    parameters = ("source_embedding.tokens", "target_embedding.tokens", "projection")
    return {f"{name}.weight": stored for name, stored in zip(parameters, names, strict=True)}


def refusals(loaded: LoadedModel) -> Iterator[Problem]:
    """Yield what Marian cannot hold of a model."""
    config = loaded.model.config
    only = {"norm": "post", "positions": "sinusoidal", "norm_epsilon": NORM_EPSILON}
    for name, value in only.items():
        found = vars(config)[name]
        if found != value:
            yield refusal(name, found, str(value))
    yield from choice_limits(config, "activation", ACTIVATIONS)
    yield from attention_limits(config)
    for side, vocabulary in (("source", loaded.codec.source), ("target", loaded.codec.target)):
        if sentencepiece_model(vocabulary) is None:
            kind = "tokenised text" if isinstance(vocabulary, Tokenised) else vocabulary.kind
            yield Problem(
                ("kind",),
                f"the {side} vocabulary (of {kind}) must be SentencePiece's, over plain text",
            )


def write(loaded: LoadedModel, folder: Path) -> None:
    """Write a model that nothing is refused of into an empty folder."""
    config, codec = loaded.model.config, loaded.codec
    save_tensors(_tensors(loaded), folder / TENSORS)
    _write_json(folder / CONFIG, _description(config, codec))
    _write_json(folder / _GENERATION, _generation())
    _write_json(folder / TOKENIZER, _tokenizer(codec))
    _write_json(folder / VOCABULARY, _ids_of_pieces(codec.source))
    if not codec.is_shared:
        _write_json(folder / TARGET_VOCABULARY, _ids_of_pieces(codec.target))
    write_sentencepiece(codec, folder)


def open_peer(folder: Path, codec: TextCodec) -> Peer:  # noqa: ARG001
    """Load a folder of the format; text becomes ids by its own vocabularies.

    Raises:
        ConfigError: the library is not installed.
    """
    library = import_extra(_LIBRARY, _EXTRA)
    library.logging.set_verbosity_error()
    library.logging.disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends sacremoses, and does not use it
        tokenizer = library.MarianTokenizer.from_pretrained(str(folder), local_files_only=True)
    model = library.MarianMTModel.from_pretrained(
        str(folder), local_files_only=True, use_safetensors=True
    )
    model = model.float().eval()

    @torch.inference_mode()
    def score(pairs: Sequence[Pair]) -> list[float]:
        return [_score_pair(model, tokenizer, pair) for pair in pairs]

    return Peer(name_of(_LIBRARY), model.config.max_position_embeddings, score)


def _score_pair(model: Any, tokenizer: Any, pair: Pair) -> float:
    """Score one pair, alone, so that nothing depends on how padding is hidden."""
    source = torch.tensor([tokenizer(pair.source).input_ids])
    target = torch.tensor([tokenizer(text_target=pair.target).input_ids])
    start = torch.full((1, 1), model.config.decoder_start_token_id)
    inputs = torch.cat([start, target[:, :-1]], 1)
    logits = model(input_ids=source, decoder_input_ids=inputs, use_cache=False).logits
    return float(logits.log_softmax(-1).gather(2, target[:, :, None]).sum(dtype=torch.float64))


def _tensors(loaded: LoadedModel) -> dict[str, Tensor]:
    """Return the parameters under Marian's names, those that are shared once."""
    config, codec = loaded.model.config, loaded.codec
    own = loaded.model.state_dict()
    tensors: dict[str, Tensor] = {}
    for name, parts in layer_names(config):
        tensors.update(zip(parts, own[name].chunk(len(parts)), strict=True))
    names = embedding_names(_shares(config, codec), config.tie_embeddings)
    tensors.update({stored: own[name] for name, (stored, *_) in names.items()})
    bias = own.get("output_bias", torch.zeros(codec.target.size))
    return {**tensors, BIAS: bias[None]}


def _shares(config: ModelConfig, codec: TextCodec) -> bool:
    return config.tie_embeddings and codec.is_shared


def _description(config: ModelConfig, codec: TextCodec) -> dict[str, object]:
    """Return config.json, by the names that transformers and its earlier versions read."""
    sizes = {
        "attention_heads": config.heads,
        "ffn_dim": config.feed_forward_size,
        "layerdrop": 0.0,
    }
    stacks = {
        f"{stack}_{name}": value
        for stack in ("encoder", "decoder")
        for name, value in sizes.items()
    }
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "d_model": config.model_size,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        **stacks,
        "activation_function": ACTIVATIONS[config.activation],
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "max_position_embeddings": NUM_POSITIONS,
        "static_position_embeddings": True,
        "scale_embedding": True,
        "normalize_before": False,
        "vocab_size": codec.source.size,
        "decoder_vocab_size": codec.target.size,
        "share_encoder_decoder_embeddings": _shares(config, codec),
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": EOS_ID,
        "pad_token_id": BOS_ID,
        "decoder_start_token_id": BOS_ID,
        "forced_eos_token_id": EOS_ID,
    }


def _generation() -> dict[str, object]:
    """Return generation_config.json: padding is no candidate, and the last token is the end."""
    return {
        "decoder_start_token_id": BOS_ID,
        "pad_token_id": BOS_ID,
        "bad_words_ids": [[BOS_ID]],
        "eos_token_id": EOS_ID,
        "forced_eos_token_id": EOS_ID,
        "max_length": _LONGEST_GENERATED,
        "num_beams": 4,
    }


def _tokenizer(codec: TextCodec) -> dict[str, object]:
    return {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": codec.source_lang,
        "target_lang": codec.target_lang,
        "unk_token": codec.target.piece(UNK_ID),
        "pad_token": codec.target.piece(BOS_ID),
        "eos_token": codec.target.piece(EOS_ID),
        "separate_vocabs": not codec.is_shared,
        "model_max_length": NUM_POSITIONS,
    }


def _ids_of_pieces(vocabulary: Vocabulary) -> dict[str, int]:
    return {vocabulary.piece(index): index for index in range(vocabulary.size)}


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")
