"""Named sets of values for `nmtkit train`: differences from the schema's defaults.

Presets of the paper list their differences from base, or from another preset of the paper. The
key and value sizes in rows A and C of table 3 equal the schema's default, model_size / heads.

small is for two CPU cores: about 2400 updates in half an hour with 8000 vocabulary entries. Small
updates, pre-norm, which allows a high learning rate, and newer methods learn most in that time.
"""

from nmtkit.config.schema import Values

# The paper saved a checkpoint every ten minutes; this is about as many updates on its machine.
BASE: Values = {"save_every": 1500, "validate_every": 1500}
BIG: Values = {
    **BASE,
    "model_size": 1024,
    "feed_forward_size": 4096,
    "heads": 16,
    "dropout": 0.3,
    "max_updates": 300_000,
    "save_every": 600,
    "validate_every": 600,
    "keep": 20,
}
# Section 6.3 changes only these settings of base. It does not give the dropout and learning rate
# that were chosen on section 22; these are from the first releases of tensor2tensor, which have six
# layers (dropout: parsing_base_dr6 of 1.0.0; learning rate: parsing_base of 1.0.4).
WSJ: Values = {
    **BASE,
    "encoder_layers": 4,
    "decoder_layers": 4,
    "model_size": 1024,
    "dropout": 0.2,
    "attention_dropout": 0.2,
    "learning_rate_scale": 0.5,
    "warmup_updates": 16_000,
    "beam": 21,
    "length_penalty": 0.3,
    "max_length_offset": 300,
}
SMALL: Values = {
    "encoder_layers": 3,
    "decoder_layers": 3,
    "model_size": 256,
    "feed_forward_size": 1024,
    "heads": 4,
    "norm": "pre",
    "update_tokens": 1024,
    "max_tokens": 1024,
    "warmup_updates": 1000,
    "save_every": 250,
    "validate_every": 500,
    "keep": 8,
}
NEWER_METHODS: Values = {
    "positions": "rotary",
    "qk_norm": True,
    "activation": "swiglu",
    # Training may end at any update: nobody plans the end of a first run.
    "schedule": "schedule-free",
    "learning_rate": 0.0025,
    "adam_beta2": 0.9955,
    "warmup_updates": 200,
}
"""Blocks and training that learn more from few updates than the paper's; docs/experiments.md."""

# SwiGLU has three matrices instead of two, so two thirds of the inner size.
_NEWER_SMALL: Values = {**SMALL, **NEWER_METHODS, "feed_forward_size": 672}

_ROWS: dict[str, Values] = {
    "A1": {**BASE, "heads": 1},
    "A2": {**BASE, "heads": 4},
    "A3": {**BASE, "heads": 16},
    "A4": {**BASE, "heads": 32},
    "B1": {**BASE, "key_size": 16},
    "B2": {**BASE, "key_size": 32},
    "C1": {**BASE, "encoder_layers": 2, "decoder_layers": 2},
    "C2": {**BASE, "encoder_layers": 4, "decoder_layers": 4},
    "C3": {**BASE, "encoder_layers": 8, "decoder_layers": 8},
    "C4": {**BASE, "model_size": 256},
    "C5": {**BASE, "model_size": 1024},
    "C6": {**BASE, "feed_forward_size": 1024},
    "C7": {**BASE, "feed_forward_size": 4096},
    "D1": {**BASE, "dropout": 0.0},
    "D2": {**BASE, "dropout": 0.2},
    "D3": {**BASE, "label_smoothing": 0.0},
    "D4": {**BASE, "label_smoothing": 0.2},
    "E": {**BASE, "positions": "learned"},
}

PRESETS_HELP = (
    "base, big, big-en-fr: the paper's models; table3-A1 to -A4, -B1, -B2, -C1 to -C7, -D1 to -D4, "
    "-E: the rows of its table 3; wsj, wsj-semi: its parsers; small: 3+3 layers of 256, for a CPU; "
    "student-6-1, student-3-1: as small, with 6 or 3 encoder layers and one decoder layer; "
    "fine-tune: for training that begins --from a model"
)
PRESETS: dict[str, Values] = {
    "base": BASE,
    "big": BIG,
    "big-en-fr": {**BIG, "dropout": 0.1},
    **{f"table3-{row}": values for row, values in _ROWS.items()},
    "wsj": WSJ,
    # A thousand times more sentences: less overfitting, so the dropout of base.
    "wsj-semi": {**WSJ, "dropout": 0.1, "attention_dropout": 0.1},
    "small": _NEWER_SMALL,
    # A decoder layer costs time at each step of a search, an encoder layer once per line: Kasai et
    # al. 2021, https://arxiv.org/abs/2006.10369.
    "student-6-1": {**_NEWER_SMALL, "encoder_layers": 6, "decoder_layers": 1},
    "student-3-1": {**_NEWER_SMALL, "decoder_layers": 1},
    # Small updates at a low, constant rate: few pairs, and weights that are good already. From 20
    # updates per epoch on, such as 1500 pairs of 14 tokens, warm-up is at most a tenth of the run.
    "fine-tune": {
        "schedule": "constant",
        "learning_rate": 1e-4,
        "warmup_updates": 10,
        "update_tokens": 1024,
        "max_tokens": 1024,
        "max_epochs": 5,
        "every_epoch": True,
        "log_every": 20,
    },
}
WITHOUT_SHAPE = {"fine-tune"}
"""Presets for any model; the others have a shape, of which they list what is not the default."""

PRESET_OF_ROW = {"base": "base", **{row: f"table3-{row}" for row in _ROWS}, "big": "big"}
"""The preset of each row of table 3, in the order of the table."""
