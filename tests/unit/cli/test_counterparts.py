from nmtkit_cli.counterparts import TOOLKITS, Row


def test_names_are_those_of_the_toolkits_that_have_some() -> None:
    row = Row("--beam", fairseq="--beam", huggingface="--num_beams --beams")
    assert row.names() == {"fairseq": ["--beam"], "Hugging Face": ["--num_beams", "--beams"]}
    assert {*row.names()} <= {*TOOLKITS.values()}
