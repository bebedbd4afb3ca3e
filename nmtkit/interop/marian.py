"""Export to Hugging Face's Marian, the format in which OPUS-MT models are published.

Its Transformer is nmtkit's with post-norm and the same fixed sinusoids. Its decoder begins with the
padding symbol, which is never generated, as `<s>` here. So an exported model declares `<s>` its
padding. An imported model (see marian_reading.py) has Marian's padding at the id of `<s>`.
Source: transformers, models/marian/{configuration,modeling,tokenization}_marian.py.
"""

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmtkit.config.model import ModelConfig
from nmtkit.config.problems import Problem
from nmtkit.interop.parity import (
    NUM_POSITIONS,
    Pair,
    Peer,
    import_extra,
    name_of,
    sentencepiece_model,
    unsupported_attention,
    unsupported_choice,
    unsupported_value,
    write_sentencepiece,
)
from nmtkit.storage.model_folder import LoadedModel, save_tensors
from nmtkit.symbols import BOS_ID, EOS_ID, UNK_ID
from nmtkit.text.codec import TextCodec
from nmtkit.text.vocabulary import Vocabulary

CONFIG = "config.json"
TENSORS = "model.safetensors"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
TOKENIZER = "tokenizer_config.json"
BIAS = "final_logits_bias"
NORM_EPSILON = 1e-5
"""Epsilon of LayerNorm in Marian, where it is not a setting."""

ACTIVATIONS = {"relu": "relu", "silu": "silu", "squared-relu": "relu2"}
"""Marian's name of each activation."""

_LIBRARY = "transformers"
_EXTRA = "huggingface"
_GENERATION = "generation_config.json"
_LONGEST_GENERATED = 512
"""The value of OPUS-MT models."""

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
    """Yield the name of each layer parameter, and Marian's names of its equal parts."""
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
    """Return Marian's names of each embedding and the output projection, the stored one first.

    Args:
        is_shared: source and target share one matrix.
        is_tied: the target embedding is also the output projection.
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


def unsupported(config: ModelConfig, codec: TextCodec) -> Iterator[Problem]:
    """Yield the properties of a model that Marian does not support."""
    only = {"norm": "post", "positions": "sinusoidal", "norm_epsilon": NORM_EPSILON}
    for name, value in only.items():
        found = vars(config)[name]
        if found != value:
            yield unsupported_value(name, found, str(value))
    yield from unsupported_choice(config, "activation", ACTIVATIONS)
    yield from unsupported_attention(config)
    for side, vocabulary in (("source", codec.source), ("target", codec.target)):
        if sentencepiece_model(vocabulary) is None:
            names = vocabulary.steps.names
            kind = f"text after {', '.join(names)}" if names else vocabulary.kind
            yield Problem(
                ("kind",),
                f"the {side} vocabulary (of {kind}) must be SentencePiece's, over plain text",
            )


def write(loaded: LoadedModel, folder: Path) -> None:
    """Write a model that Marian supports into an empty folder."""
    config, codec = loaded.model.config, loaded.codec
    save_tensors(_tensors(loaded), folder / TENSORS)
    _write_json(folder / CONFIG, _config(config, codec))
    _write_json(folder / _GENERATION, _generation_config())
    _write_json(folder / TOKENIZER, _tokenizer_config(codec))
    _write_json(folder / VOCABULARY, _token_ids(codec.source))
    if not codec.is_shared:
        _write_json(folder / TARGET_VOCABULARY, _token_ids(codec.target))
    write_sentencepiece(codec, folder)


def open_peer(folder: Path, codec: TextCodec) -> Peer:  # noqa: ARG001
    """Load a folder of the format with transformers, which uses the folder's own vocabularies.

    Raises:
        ConfigError: the library is not installed.
    """
    library = import_extra(_LIBRARY, _EXTRA)
    library.logging.set_verbosity_error()
    library.logging.disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # recommends sacremoses, which it does not use
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
    """Score one pair alone, so that padding cannot change the score."""
    source = torch.tensor([tokenizer(pair.source).input_ids])
    target = torch.tensor([tokenizer(text_target=pair.target).input_ids])
    start = torch.full((1, 1), model.config.decoder_start_token_id)
    inputs = torch.cat([start, target[:, :-1]], 1)
    logits = model(input_ids=source, decoder_input_ids=inputs, use_cache=False).logits
    return float(logits.log_softmax(-1).gather(2, target[:, :, None]).sum(dtype=torch.float64))


def _tensors(loaded: LoadedModel) -> dict[str, Tensor]:
    """Return the parameters under Marian's names; shared ones once."""
    config, codec = loaded.model.config, loaded.codec
    own = loaded.model.state_dict()
    tensors: dict[str, Tensor] = {}
    for name, parts in layer_names(config):
        tensors.update(zip(parts, own[name].chunk(len(parts)), strict=True))
    names = embedding_names(_is_shared(config, codec), config.tie_embeddings)
    tensors.update({stored: own[name] for name, (stored, *_) in names.items()})
    bias = own.get("output_bias", torch.zeros(codec.target.size))
    return {**tensors, BIAS: bias[None]}


def _is_shared(config: ModelConfig, codec: TextCodec) -> bool:
    return config.tie_embeddings and codec.is_shared


def _config(config: ModelConfig, codec: TextCodec) -> dict[str, object]:
    """Return config.json, with the names of current and earlier versions of transformers."""
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
        "share_encoder_decoder_embeddings": _is_shared(config, codec),
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": EOS_ID,
        "pad_token_id": BOS_ID,
        "decoder_start_token_id": BOS_ID,
        "forced_eos_token_id": EOS_ID,
    }


def _generation_config() -> dict[str, object]:
    """Return generation_config.json: padding is never generated, the last token is the end."""
    return {
        "decoder_start_token_id": BOS_ID,
        "pad_token_id": BOS_ID,
        "bad_words_ids": [[BOS_ID]],
        "eos_token_id": EOS_ID,
        "forced_eos_token_id": EOS_ID,
        "max_length": _LONGEST_GENERATED,
        "num_beams": 4,
    }


def _tokenizer_config(codec: TextCodec) -> dict[str, object]:
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


def _token_ids(vocabulary: Vocabulary) -> dict[str, int]:
    return {vocabulary.piece(index): index for index in range(vocabulary.size)}


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")
