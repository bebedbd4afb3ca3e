"""Write the pictures of the documents after `make demo`: `python docs/make_images.py demo`.

Each picture is a page of HTML that Chromium draws. Three show the demo: a frame of the live display
of training, from the records of the run; the page of `nmtkit score --html`; and the page of
`nmtkit attention`. The fourth is the calibration curve of a table in docs/experiments.md.
"""

import io
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from nmtkit.progress.metrics_log import MetricsLog
from nmtkit.progress.records import TrainingRecord, ValidationRecord
from nmtkit.progress.reporter import TerminalReporter
from nmtkit.reporting.page import package_file
from nmtkit.reporting.svg import Curve, Plot
from nmtkit.reporting.svg import draw as draw_plot

TARGET = Path("docs/images")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SCALE = 1.5
"""Pixels of a picture per pixel of a page, for screens of high resolution."""

FRAME = 950
"""Update of the live display's frame."""

SENTENCE = "Yesterday, the teacher bought a red car in Vienna."
TERMINAL = """\
<body style="margin: 0; padding: 16px; background: {background}; color: {foreground}">
<pre style="margin: 0; font: 14px/20px 'DejaVu Sans Mono', monospace">{code}</pre>
"""


@dataclass(frozen=True)
class Picture:
    """A page, and the size of its part from the top left corner, in pixels of the page."""

    name: str
    page: str
    width: int
    height: int


def live_display(demo: Path) -> str:
    """Return a page with the terminal that showed the display after update `FRAME`."""
    reporter = TerminalReporter(io.StringIO())
    records = list(MetricsLog(demo / "run/metrics.jsonl").records())
    reporter.start(max(record.update for record in records), 0, [])
    for record in (record for record in records if record.update <= FRAME):
        if isinstance(record, TrainingRecord):
            reporter.update(record)
        elif isinstance(record, ValidationRecord):
            reporter.validation(record)
    console = Console(file=io.StringIO(), record=True, force_terminal=True, width=100)
    command = "nmtkit train demo/data --out demo/run --config examples/demo/recipe.toml"
    console.print(f"$ {command}", highlight=False)
    console.print(reporter)
    return console.export_html(theme=MONOKAI, code_format=TERMINAL, inline_styles=True)


def score_page(demo: Path, folder: Path) -> str:
    """Return the page that compares the oldest checkpoint of the run with the model."""
    oldest = min((demo / "run/checkpoints").iterdir())
    checkpoint, model = folder / f"checkpoint-{int(oldest.name)}.de", folder / "average.de"
    text = (demo / "corpus/test.en").read_text("utf-8")
    checkpoint.write_text(nmtkit("translate", oldest, text=text), "utf-8")
    model.write_text(nmtkit("translate", demo / "model", text=text), "utf-8")
    page = folder / "score.html"
    texts = ("--reference", demo / "corpus/test.de", "--source", demo / "corpus/test.en")
    tests = ("--confidence", "--paired-ar", "--html", page)
    nmtkit("score", *texts, *tests, checkpoint, model)
    return page.read_text("utf-8")


def attention_page(demo: Path) -> str:
    """Return the page of the cross-attention of a sentence."""
    view = ("--attention", "memory", "--layer", "2", "--drawing", "matrix", "--join-subwords")
    return nmtkit("attention", demo / "model", "--translate", *view, text=SENTENCE + "\n")


def calibration_curve() -> str:
    """Return a page that plots the chrF of groups of lines by their expected chrF."""
    text = Path("docs/experiments.md").read_text("utf-8")
    table = text.partition("\n### Expected quality\n")[2].partition("\nMore signals")[0]
    points = [
        (float(expected), float(chrf))
        for expected, chrf in re.findall(r"^\| ([0-9.]+) \| ([0-9.]+) \|", table, re.MULTILINE)
    ]
    equal = [(expected, expected) for expected, _ in points]
    plot = Plot(
        "mean chrF of fifths of the lines",
        [Curve("measured", points), Curve("as expected", equal)],
        from_zero=True,
        x_label="expected chrF",
    )
    style = "".join(package_file("nmtkit.reporting", name) for name in ("base.css", "plot.css"))
    return f"<style>{style}</style>{draw_plot(plot)}"


def nmtkit(*arguments: str | Path, text: str = "") -> str:
    """Run a command with a text as its input, and return its output."""
    command = [sys.executable, "-m", "nmtkit_cli", *map(str, arguments)]
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    return done.stdout


def draw(picture: Picture, browser: str, folder: Path) -> None:
    """Write a picture of a page to `TARGET`."""
    page = folder / "page.html"
    page.write_text(picture.page, "utf-8")
    subprocess.run(
        [
            *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            f"--force-device-scale-factor={SCALE}",
            f"--window-size={picture.width},{picture.height}",
            f"--screenshot={(TARGET / picture.name).resolve()}",
            page.as_uri(),
        ],
        stderr=subprocess.DEVNULL,
        check=True,
    )


if __name__ == "__main__":
    demo = Path(sys.argv[1])
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("no Chromium: pictures are drawn by it; sudo apt install chromium")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for picture in (
            Picture("training.png", live_display(demo), 880, 152),
            Picture("scores.png", score_page(demo, folder), 1040, 890),
            Picture("attention.png", attention_page(demo), 900, 700),
            Picture("calibration.png", calibration_curve(), 560, 400),
        ):
            draw(picture, browser, folder)
