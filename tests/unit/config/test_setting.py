"""Files keep the settings that commands share in the sections where they were."""

from nmtkit.config.schema import ScoreRecipe, TrainRecipe, TranslateRecipe
from nmtkit.config.toml import loads


def test_files_have_the_settings_in_sections_of_the_command() -> None:
    text = '[{}]\nprecision = "bfloat16"\n'
    assert loads(text.format("engine"), TrainRecipe, "").engine.precision == "bfloat16"
    batch = text + "max_tokens = 7\n"
    translation = loads(batch.format("translation"), TranslateRecipe, "").translation
    scoring = loads(batch.format("scoring"), ScoreRecipe, "").scoring
    for section in (translation, scoring):
        assert (section.precision, section.max_tokens) == ("bfloat16", 7)
