"""Hugging Face Marian as a peer: `MarianMTModel` in transformers, of the shapes of nmtkit.

python -m benchmarks.peers.marian train --corpus CORPUS
"""

import torch.nn.functional as F
from torch import Tensor
from transformers import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    MarianConfig,
    MarianMTModel,
)

from benchmarks.peers.workload import (
    BOS,
    DROPOUT,
    EOS,
    NUM_POSITIONS,
    PAD,
    SHAPES,
    SMOOTHING,
    read_options,
    run,
)


def main() -> None:
    """Train or decode by Hugging Face Marian."""
    options = read_options()
    shape = SHAPES[options.shape]
    sides = ("encoder", "decoder")
    model = MarianMTModel(
        MarianConfig(
            vocab_size=shape.vocabulary,
            decoder_vocab_size=shape.vocabulary,
            d_model=shape.model_size,
            **{f"{side}_layers": shape.layers for side in sides},
            **{f"{side}_attention_heads": shape.heads for side in sides},
            **{f"{side}_ffn_dim": shape.feed_forward for side in sides},
            dropout=DROPOUT,
            attention_dropout=0.0,
            activation_dropout=0.0,
            activation_function="relu",
            max_position_embeddings=NUM_POSITIONS,
            static_position_embeddings=True,
            scale_embedding=True,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            decoder_start_token_id=EOS,
            forced_eos_token_id=None,
            attn_implementation="sdpa",
        )
    )

    def loss(source: Tensor, inputs: Tensor, outputs: Tensor) -> Tensor:
        mask = (source != PAD).long()
        found = model(
            input_ids=source, attention_mask=mask, decoder_input_ids=inputs, use_cache=False
        )
        return F.cross_entropy(
            found.logits.flatten(0, 1),
            outputs.flatten(),
            label_smoothing=SMOOTHING,
            ignore_index=PAD,
        )

    def search(source: Tensor) -> object:
        return model.generate(
            input_ids=source,
            attention_mask=(source != PAD).long(),
            num_beams=options.beam,
            min_new_tokens=options.length + 1,
            max_new_tokens=options.length + 1,
            do_sample=False,
            early_stopping=False,
        )

    run("Hugging Face Marian", options, model, loss, search)


if __name__ == "__main__":
    main()
