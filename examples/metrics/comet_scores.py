"""COMET as a metric (Rei et al. 2020, https://arxiv.org/abs/2009.09025), by its own package.

    nmtkit score --reference test.de --source test.en \
      --metric-command comet='comet-env/bin/python comet_scores.py' < test.out.de

NOT TESTED HERE: the package and its models, gigabytes that it downloads at the first use, are no
part of nmtkit. README.md has the commands that make an environment of its own.

Its name is not comet.py, because Python would import that instead of the package.

It reads lines of source, translation and references, separated by tabs, and writes 100 x the score
of each. Models without references ignore them; of several references, the first is used.
"""

import argparse
import sys


def main() -> None:
    """Score segments from standard input to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="Unbabel/wmt22-comet-da")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--gpus", type=int, default=0)
    options = parser.parse_args()
    sys.stdin.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    columns = [line.removesuffix("\n").split("\t") for line in sys.stdin]
    data = [{"src": one[0], "mt": one[1], "ref": one[2]} for one in columns]
    output, sys.stdout = sys.stdout, sys.stderr  # the package writes its progress there
    from comet import download_model, load_from_checkpoint  # type: ignore[import-not-found]

    model = load_from_checkpoint(download_model(options.model))
    scores = model.predict(data, batch_size=options.batch_size, gpus=options.gpus).scores
    output.writelines(f"{100 * float(score)}\n" for score in scores)
    output.flush()


if __name__ == "__main__":
    main()
