import math
from dataclasses import replace

from nmtkit.reporting.plots import MAX_POINTS, plots
from tests.unit.reporting.builders import run_of, training, validated


def test_training_loss_dev_nll_bleu_speed_and_learning_rate_are_drawn() -> None:
    run = run_of("a", validated([3.0, 2.0], [None, 20.0]))
    drawn = {plot.title.split(",")[0]: plot for plot in plots([run])}
    assert list(drawn) == ["Training loss", "Dev nll", "Dev BLEU", "Speed", "Learning rate"]
    updates = [record.update for record in run.training]
    (loss,), (speed,), (rate,) = (
        drawn[name].curves for name in ("Training loss", "Speed", "Learning rate")
    )
    assert loss.points == [(update, 4.0) for update in updates]
    assert speed.points == [(update, 1000.0) for update in updates]
    assert rate.points == [(update, 1e-4) for update in updates]
    assert drawn["Dev nll"].curves[0].points == [(100, 3.0), (200, 2.0)]
    assert drawn["Dev BLEU"].curves[0].finite == [(200, 20.0)]
    assert [plot.title.split(",")[0] for plot in plots([run]) if plot.from_zero] == [
        "Speed",
        "Learning rate",
    ]


def test_every_run_has_its_place_in_every_plot() -> None:
    runs = [run_of("a"), run_of("b", validated([3.0], [20.0]))]
    for plot in plots(runs):
        assert [curve.name for curve in plot.curves] == ["a", "b"]


def test_what_no_run_has_is_not_drawn() -> None:
    infinite = replace(run_of(), training=[training(1, math.inf)])
    assert [plot.title.split(",")[0] for plot in plots([infinite])] == ["Speed", "Learning rate"]


def test_long_curves_are_thinned() -> None:
    run = replace(run_of(), training=[training(update) for update in range(1, 5000)])
    sizes = [len(plot.curves[0].points) for plot in plots([run])]
    assert max(sizes) <= MAX_POINTS == 500
