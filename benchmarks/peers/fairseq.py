"""fairseq as a peer, by its commands: the shapes, batches and searches of the other peers.

    python -m benchmarks.peers.fairseq train --corpus CORPUS

The interpreter's environment has the commands of fairseq 0.12.2, which need Python before 3.11, pip
before 24.1, and a torch of 2022. The first half of the updates are the warm-up. Its BLEU in
docs/experiments.md is of the same commands with --lr 1e-3 --lr-scheduler inverse_sqrt,
--warmup-updates 2000, --max-tokens 1024 and text of joint BPE, and of a search without --min-len.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.peers.workload import (
    BATCH_TOKENS,
    CLIP_NORM,
    DROPOUT,
    LEARNING_RATE,
    SHAPES,
    SMOOTHING,
    print_speed,
    read_options,
)


def main() -> None:
    """Train or decode by fairseq."""
    options = read_options()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data")
        for name in ("test.src", "test.tgt"):
            lines = (options.corpus / name).read_text("utf-8").splitlines(keepends=True)
            Path(folder, name).write_text("".join(lines[: options.sentences]), "utf-8")
        texts = {"train": options.corpus, "valid": options.corpus, "test": Path(folder)}
        corpus = [f"--{part}pref={place / part}" for part, place in texts.items()]
        run("preprocess", *corpus, "-s=src", "-t=tgt", "--joined-dictionary", f"--destdir={data}")
        if options.mode == "train":
            log = train(options, data, 2 * options.updates)
            speeds = re.findall(r"\| train_inner \| (\{.*\})", log)
            rate, unit = float(json.loads(speeds[-1])["wps"]), "tgt tok/s"
        else:
            train(options, data, 1)
            rate, unit = decode(options, data), "sent/s"
    print_speed("fairseq", options, rate, unit)


def train(options: argparse.Namespace, data: Path, num_updates: int) -> str:
    """Train, and return what is logged; speeds after every half of the updates."""
    shape = SHAPES[options.shape]
    sizes = [
        f"--{side}-{name}={value}"
        for side in ("encoder", "decoder")
        for name, value in {
            "layers": shape.layers,
            "embed-dim": shape.model_size,
            "ffn-embed-dim": shape.feed_forward,
            "attention-heads": shape.heads,
        }.items()
    ]
    return run(
        *("train", data, "--cpu", "--arch=transformer", "--share-all-embeddings", *sizes),
        *("--criterion=label_smoothed_cross_entropy", f"--label-smoothing={SMOOTHING}"),
        *("--optimizer=adam", "--adam-betas=(0.9, 0.98)", f"--lr={LEARNING_RATE}"),
        *(f"--dropout={DROPOUT}", f"--clip-norm={CLIP_NORM}", f"--max-tokens={BATCH_TOKENS}"),
        *(f"--max-update={num_updates}", f"--log-interval={max(1, num_updates // 2)}"),
        *("--log-format=json", "--disable-validation", f"--save-dir={data}"),
    )


def decode(options: argparse.Namespace, data: Path) -> float:
    """Return the sentences per second of a search."""
    length = f"--min-len={options.length}", "--max-len-a=0", f"--max-len-b={options.length}"
    log = run(
        *(
            "generate",
            data,
            "--cpu",
            f"--path={data}/checkpoint_last.pt",
            f"--beam={options.beam}",
            *length,
        ),
        f"--batch-size={options.batch_size}",
    )
    return float(re.findall(r"([\d.]+) sentences/s", log)[-1])


def run(command: object, *arguments: object) -> str:
    """Run a command of fairseq; return all that it prints."""
    program = Path(sys.executable).parent / f"fairseq-{command}"
    done = subprocess.run(
        [program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{program} failed:\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    main()
