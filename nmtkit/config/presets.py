"""Named sets of values for `nmtkit train`: differences from the schema's defaults.

base and big follow the paper's table 3; its base model is what the schema's defaults describe.
small is for two CPU cores, which do some 4500 of its updates in half an hour with 8000 entries.
Small updates and pre-norm, which bears a high learning rate, learn most in so short a time.
"""

from nmtkit.config.fields import Values

PRESETS_HELP = "base, big: the paper's models; small: 3+3 layers of 256, for a CPU"
PRESETS: dict[str, Values] = {
    "base": {
        "save_every": 1500,
        "validate_every": 1500,
    },
    "big": {
        "model_size": 1024,
        "feed_forward_size": 4096,
        "heads": 16,
        "dropout": 0.3,
        "max_updates": 300_000,
        "save_every": 600,
        "validate_every": 600,
        "keep": 20,
    },
    "small": {
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
    },
}
