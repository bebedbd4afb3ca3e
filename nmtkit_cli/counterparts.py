"""An option, and its counterparts in other toolkits: a row of the table of `other_toolkits.py`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields


@dataclass(frozen=True)
class Row:
    """An option, and its names in other toolkits.

    Attributes:
        here: the option or options, or an argument in upper case; "" = leave the other one out.
        note: what differs, or what happens without the option.
        values: what to write for values of the other option.
        fairseq, opennmt, marian, sockeye, joeynmt, huggingface, sacrebleu, ctranslate2: the names
            of each toolkit as it writes them, separated by spaces.
    """

    here: str
    note: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    fairseq: str = ""
    opennmt: str = ""
    marian: str = ""
    sockeye: str = ""
    joeynmt: str = ""
    huggingface: str = ""
    sacrebleu: str = ""
    ctranslate2: str = ""

    def names(self) -> dict[str, list[str]]:
        """Return the names by toolkit, without toolkits that have none."""
        return {
            title: vars(self)[name].split() for name, title in TOOLKITS.items() if vars(self)[name]
        }


TOOLKITS = {
    "fairseq": "fairseq",
    "opennmt": "OpenNMT-py",
    "marian": "Marian",
    "sockeye": "Sockeye",
    "joeynmt": "JoeyNMT",
    "huggingface": "Hugging Face",
    "sacrebleu": "sacreBLEU",
    "ctranslate2": "CTranslate2",
}
assert [*TOOLKITS] == [one.name for one in fields(Row)][3:]
