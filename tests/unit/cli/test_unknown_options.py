import pytest

from nmtkit_cli import command_line


def answer(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert command_line.run(line.split()) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message.removeprefix("nmtkit: error: ").rpartition(" (see `nmtkit ")[0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "train d --lr 3",
            "no option --lr here; fairseq's --lr is --learning-rate (the peak; the factor of noam, "
            "which is --schedule paper, is --learning-rate-scale)",
        ),
        (
            "train d --arch transformer_wmt_en_de",
            "no option --arch here; fairseq's --arch transformer_wmt_en_de is --preset base",
        ),
        ("train d --arch=lstm", "no option --arch here; fairseq's --arch is --preset"),
        (
            "train d --optimizer adam",
            "no option --optimizer here; leave out fairseq's, Marian's and Sockeye's --optimizer: "
            "Adam is the only optimizer; --adam-beta1, --adam-beta2 and "
            "--adam-epsilon set it",
        ),
        (
            "train d --bpe sentencepiece",
            "no option --bpe here; fairseq's --bpe is --segmentation of `nmtkit preprocess` "
            "(preprocess learns SentencePiece; translations are plain text again)",
        ),
        (
            "train d --vocab-size 9",
            "no option --vocab-size here; --vocab-size is an option of `nmtkit preprocess` and "
            "`nmtkit info`",
        ),
        (
            "train d -decay_method noam -learning_rate 2",
            "no options -decay_method, -learning_rate here; OpenNMT-py's -decay_method noam is "
            "--schedule paper; -learning_rate: write --learning-rate (the peak; the factor of "
            "noam, which is --schedule paper, is --learning-rate-scale)",
        ),
        (
            "train d --gpus 2",
            "no option --gpus here; did you mean --devices?",
        ),
        (
            "train d --batch 2",
            "no option --batch here; fairseq's and Sockeye's --batch-size is --max-tokens (the "
            "largest micro-batch, in tokens; --update-tokens sets the batch of an update)",
        ),
        (
            "translate m --overwrit",
            "no option --overwrit here; did you mean --overwrite?",
        ),
        (
            "attention m --out d",
            "no option --out here; --out is an option of `nmtkit preprocess`, `nmtkit join`, "
            "`nmtkit train`, `nmtkit average-checkpoints` and `nmtkit shortlist`",
        ),
        ("train d --max_updates 9", "no option --max_updates here; write --max-updates"),
        (
            "train d -train_steps 9",
            "no option -train_steps here; OpenNMT-py's -train_steps is --max-updates",
        ),
        (
            "preprocess -train_src a",
            "no option -train_src here; OpenNMT-py's -train_src is --train (a prefix: PREFIX.SOURCE"
            " and PREFIX.TARGET, the suffixes of -s and -t)",
        ),
        (
            "info d --lr 3",
            "no option --lr here; fairseq's --lr is --learning-rate of `nmtkit train` (the peak; "
            "the factor of noam, which is --schedule paper, is --learning-rate-scale)",
        ),
        ("train d --qwertyui", "no option --qwertyui here"),
        (
            "train d --lr 3 --max-epoch=4 --qwertyui",
            "no options --lr, --max-epoch, --qwertyui here; fairseq's --lr is --learning-rate (the "
            "peak; the factor of noam, which is --schedule paper, is --learning-rate-scale); "
            "fairseq's --max-epoch is --max-epochs",
        ),
        (
            "train d --save-dir r --lr 3 --optimizer adam --update-freq 4",
            "no options --save-dir, --lr, --optimizer, --update-freq here; fairseq's --save-dir is "
            "--out; fairseq's --lr is --learning-rate; leave out fairseq's, Marian's and Sockeye's "
            "--optimizer; fairseq's --update-freq is --update-tokens",
        ),
        (
            "train d --resume",
            "no option --resume here; leave out Hugging Face's --resume_from_checkpoint: the same "
            "command resumes a run; another --out begins a new one",
        ),
        (
            "translate m -beam_size 9",
            "no option -beam_size here; OpenNMT-py's -beam_size is --beam",
        ),
    ],
)
def test_an_unknown_option_is_answered_in_the_words_of_its_toolkit(
    line: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(line, capsys) == expected


@pytest.mark.parametrize(
    ("line", "nearest"),
    [
        ("train d --learning-rat 3", "did you mean --learning-rate?"),
        ("translate m --baem 3", "did you mean --beam?"),
        ("train d --no-tie-embedings", "did you mean --no-tie-embeddings?"),
        (
            "translate m --nbst 3",
            "fairseq's --nbest is --n-best (with --output-format moses or json",
        ),
        ("train d --update-feq 3", "fairseq's --update-freq is --update-tokens (the tokens of a "),
    ],
)
def test_the_nearest_name_answers_a_typo(
    line: str, nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nearest in answer(line, capsys)


@pytest.mark.parametrize(
    "line",
    [
        "preprocess --out -src --vocab-size 9 --train x",  # the value of an option
        "preprocess -sen -tde --train x",  # values that are attached
        "preprocess -s -lr -t=-tgt --train x",
        "train --dropout=-lr -- --lr",
    ],
)
def test_values_and_arguments_are_not_taken_for_options(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no option" not in answer(line, capsys)


def test_of_many_unknown_options_the_first_are_answered(capsys: pytest.CaptureFixture[str]) -> None:
    line = "train " + " ".join(f"--lr{number}" for number in range(12))
    names = ", ".join(f"--lr{number}" for number in range(10))
    text = answer(line, capsys)
    assert text.startswith(f"no options {names} here; ")
    assert text.endswith("; and 2 more")


def test_completion_does_not_stop_at_an_unknown_option() -> None:
    context = command_line.group.make_context("nmtkit", ["train"], resilient_parsing=True)
    command = command_line.group.get_command(context, "train")
    assert command is not None
    assert command.make_context("train", ["--lr"], resilient_parsing=True).args == []
