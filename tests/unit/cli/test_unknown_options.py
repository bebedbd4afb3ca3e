import pytest

from nmtkit_cli import command_line
from tests.messages import check_errors


def check_answer(line: str, keys: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.run(line.split()) == 2
    errors = capsys.readouterr().err
    check_errors(errors, 2, keys)
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        (
            "train d --lr 3",
            "--lr; fairseq's --learning-rate noam --schedule paper --learning-rate-scale",
        ),
        ("train d --arch transformer_wmt_en_de", "--arch; transformer_wmt_en_de --preset base"),
        ("train d --arch=lstm", "--arch; fairseq's --preset"),
        (
            "train d --optimizer adam",
            "--optimizer; fairseq's Marian's Sockeye's --adam-beta1 --adam-beta2 --adam-epsilon",
        ),
        ("train d --bpe sentencepiece", "--bpe; fairseq's --segmentation nmtkit preprocess"),
        ("train d --vocab-size 9", "--vocab-size; --vocab-size nmtkit preprocess info"),
        (
            "train d -decay_method noam -learning_rate 2",
            "-decay_method -learning_rate; OpenNMT-py's noam --schedule paper --learning-rate",
        ),
        ("train d --batch 2", "--batch; --batch-size --max-tokens --update-tokens"),
        ("translate m --overwrit", "--overwrit; --overwrite"),
        ("train d --max 3", "--max; --max-tokens"),
        ("train d --clip_norm 0.1", "--clip_norm; --clip-norm"),
        ("translate m --extra-length 3", "--extra-length"),
        ("attention m --out d", "--out; preprocess train average-checkpoints shortlist"),
        ("preprocess -train_src a", "-train_src; OpenNMT-py's --train PREFIX.SOURCE -s -t"),
        ("info d --lr 3", "--lr; fairseq's --learning-rate nmtkit train"),
        ("train d --qwertyui", "--qwertyui"),
        (
            "train d --lr 3 --max-epoch=4 --qwertyui",
            "--lr --max-epoch --qwertyui; --learning-rate --learning-rate-scale --max-epochs",
        ),
        (
            "train d --save-dir r --lr 3 --optimizer adam --update-freq 4",
            "--save-dir --lr --optimizer --update-freq; --out --learning-rate --update-tokens",
        ),
        ("train d --resume", "--resume; same command resumes --out --from"),
        ("translate m -beam_size 9", "-beam_size; OpenNMT-py's -beam_size --beam"),
    ],
)
def test_an_unknown_option_is_answered_in_the_words_of_its_toolkit(
    line: str, keys: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_answer(line, keys, capsys)


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("train d --learning-rat 3", "--learning-rat; --learning-rate"),
        ("train d --no-tie-embedings", "--no-tie-embedings; --no-tie-embeddings"),
        ("translate m --nbst 3", "--nbst; --n-best"),
        ("train d --update-feq 3", "--update-feq; --update-freq --update-tokens"),
    ],
)
def test_the_nearest_name_answers_a_typo(
    line: str, keys: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_answer(line, keys, capsys)


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
    assert command_line.run(line.split()) == 2
    assert "no option" not in capsys.readouterr().err


def test_of_many_unknown_options_the_first_are_answered(capsys: pytest.CaptureFixture[str]) -> None:
    line = "train " + " ".join(f"--qwertyui{number}" for number in range(12))
    names = " ".join(f"--qwertyui{number}" for number in range(10))
    check_answer(line, f"{names}; 2", capsys)


def test_completion_does_not_stop_at_an_unknown_option() -> None:
    context = command_line.group.make_context("nmtkit", ["train"], resilient_parsing=True)
    command = command_line.group.get_command(context, "train")
    assert command is not None
    assert command.make_context("train", ["--lr"], resilient_parsing=True).args == []


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("preprocess --shard 1/2", "--shard; nmtkit preprocess"),
        ("join a b", "join; nmtkit preprocess"),
        ("translate m --draft x", "--draft; docs/experiments.md"),
        ("average-checkpoints r --try", "--try; --data"),
        ("score --contrastive", "--contrastive; --model --json examples/contrastive"),
        ("rerank --restarts 3", "--restarts"),
        ("rerank --test-set wmt17", "--test-set; --tune"),
        ("rerank --n-best 3", "--n-best; --output-format json"),
        ("export m ctranslate2 o --source a", "--source; nmtkit score"),
        ("trees draw", "draw; nmtkit trees clean"),
        ("attention m --format png", "format png; svg"),
    ],
)
def test_what_has_left_is_answered_by_what_replaces_it(
    line: str, keys: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_answer(line, keys, capsys)
