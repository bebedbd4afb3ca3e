"""References by name: the test sets that sacreBLEU knows, and fetches when they are needed."""

from dataclasses import replace
from pathlib import Path

from nmtkit.config.problems import suggestion
from nmtkit.errors import ConfigError, ResourceError
from nmtkit.evaluation.texts import Text, read_text


def read_test_set(test_set: str, language_pair: str) -> list[Text]:
    """Read the references of a test set.

    sacreBLEU keeps what it has fetched in the folder that the environment's SACREBLEU names, or
    else in ~/.sacrebleu.

    Args:
        test_set: sacreBLEU's name of it, such as wmt17.
        language_pair: such as en-de.

    Returns:
        The references, one or more, each of as many lines.

    Raises:
        ConfigError: there is no such test set, or not for these languages.
        ResourceError: it is not here, and cannot be fetched.
    """
    from sacrebleu.dataset import DATASETS

    if test_set not in DATASETS:
        raise ConfigError(
            f"no test set {test_set!r}; {suggestion(test_set, DATASETS)} [metrics.test_set]"
        )
    pairs = DATASETS[test_set].langpairs
    if language_pair not in pairs:
        raise ConfigError(
            f"test set {test_set} has no languages {language_pair!r}; "
            f"{suggestion(language_pair, pairs)} [metrics.language_pair]"
        )
    try:
        paths: list[str] = DATASETS[test_set].get_reference_files(language_pair)
    # sacreBLEU exits where a certificate or a check sum is wrong.
    except (OSError, SystemExit) as error:
        raise ResourceError(
            f"test set {test_set} cannot be fetched ({error}); "
            "try again with a network, or give its files as --reference"
        ) from error
    return [replace(read_text(Path(path)), name=test_set) for path in paths]
