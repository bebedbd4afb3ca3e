"""What a training run will take, said before it begins: size, operations, memory, disk, time.

Some updates are done on this machine and thrown away; the rest follows from the shape, the dataset
and the settings. Nothing is written.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.sampler import Sampler
from nmtkit.model.estimate.cost import Parameters, count_parameters
from nmtkit.model.estimate.memory import FLOAT32_BYTES, NUM_MOMENTS
from nmtkit.runtime.memory import peak_memory
from nmtkit.storage.run_folder import NUM_WITH_STATE
from nmtkit.training.trainer import Trainer
from nmtkit.units import SECONDS_A_MINUTE, duration, prefixed

WARM_UP_UPDATES = 3
TIMED_UPDATES = 20
MEASURED_S = 60.0
"""No further update is done after so long; on a CPU one of a large model may take minutes."""

SAMPLED_SHARDS = 4
"""Updates an epoch are counted in so many shards, which are even samples of the corpus."""

PRODUCT_SIZES = {"cpu": 2048, "cuda": 8192}
"""Rows and columns of the matrices whose product tells the machine's peak."""

PRODUCT_REPEATS = 5

SHORTEST_S = 1e-9
"""A time that a clock cannot resolve."""


@dataclass(frozen=True)
class Measured:
    """What the updates that were done came to.

    Attributes:
        updates, seconds: how many, and the time of all.
        target_tokens, operations: of all, the latter floating-point operations.
        peak_rate: floating-point operations a second of large matrix products on this device.
        paper_rate: the same as the paper would take the device to sustain; None if unknown.
        peak_memory: bytes needed at most.
    """

    updates: int
    seconds: float
    target_tokens: int
    operations: float
    peak_rate: float
    paper_rate: float | None
    peak_memory: int


@dataclass(frozen=True)
class Plan:
    """A run that is to be, and what is known of it."""

    recipe: TrainRecipe
    parameters: Parameters
    updates_an_epoch: float
    device: torch.device
    measured: Measured

    def lines(self) -> Iterator[str]:
        """Yield what to tell, a line a fact."""
        measured = self.measured
        an_update = measured.operations / measured.updates
        rate = measured.updates / measured.seconds
        updates = self._updates(rate)
        seconds = updates / rate
        part = self.parameters
        yield _line(
            "parameters",
            f"{part.total:,} (embeddings and output {part.embeddings:,}, "
            f"encoder {part.encoder:,}, decoder {part.decoder:,})",
        )
        yield _line("an update", f"{prefixed(an_update)}FLOP, forward and backward")
        yield _line(
            "an epoch",
            f"{self.updates_an_epoch:,.0f} updates; the run is "
            f"{updates / self.updates_an_epoch:,.1f} epochs",
        )
        yield _line("a checkpoint", self._disk())
        yield _line(
            "memory", f"{prefixed(measured.peak_memory)}B at most on {self.device} while measuring"
        )
        yield _line(
            "speed",
            f"{measured.target_tokens / measured.seconds:,.0f} target tokens/s, "
            f"{rate:.3g} updates/s in {measured.updates} updates on one device",
        )
        yield _line(
            "of the peak",
            f"{measured.operations / measured.seconds / measured.peak_rate:.0%} of "
            f"{prefixed(measured.peak_rate)}FLOP/s, which matrix products reach here",
        )
        yield _line(
            "the run",
            f"{updates:,.0f} updates in {duration(seconds)} on one device, without "
            f"validation; {prefixed(an_update * updates)}FLOP",
        )
        yield _line("as the paper counts", self._paper_cost(seconds))

    def _updates(self, rate: float) -> float:
        """Return how many updates the run will do, whatever ends it first.

        Args:
            rate: updates a second on one device.
        """
        training = self.recipe.training
        limits = [
            training.max_epochs * self.updates_an_epoch,
            training.max_minutes * SECONDS_A_MINUTE * rate,
        ]
        return min([training.max_updates, *(limit for limit in limits if limit)])

    def _paper_cost(self, seconds: float) -> str:
        """Tell the cost of so much time on one device, as in the paper's table 2."""
        rate = self.measured.paper_rate
        if rate is None:
            return (
                f"- (time x devices x what one sustains, of which there is none for {self.device})"
            )
        return f"{prefixed(seconds * rate)}FLOP: time x devices x {prefixed(rate)}FLOP/s"

    def _disk(self) -> str:
        """Tell the size of a checkpoint, and of all that are kept at the same time."""
        model = self.parameters.total * FLOAT32_BYTES
        state = model * (NUM_MOMENTS + bool(self.recipe.training.average_decay))
        checkpoints = self.recipe.checkpoints
        # The newest scheduled ones, the best, one by time, and the one that is being written.
        models = checkpoints.keep + checkpoints.keep_best + 2
        whole = models * model + (NUM_WITH_STATE + 1) * state
        return (
            f"{prefixed(model)}B, with {prefixed(state)}B to go on from; "
            f"the run needs up to {prefixed(whole)}B of disk"
        )


def make_plan(trainer: Trainer) -> Plan:
    """Run some updates, and measure what the run will take.

    Args:
        trainer: of the run, at its beginning; its model changes.
    """
    context = trainer.context
    recipe, dataset = context.recipe, context.dataset
    codec = dataset.codec
    sampler = Sampler(dataset.train, recipe.training.update_tokens, recipe.seed.seed)
    parameters = count_parameters(
        recipe.model, codec.source.size, codec.target.size, codec.is_shared
    )
    shards = [number for number, pairs in enumerate(dataset.train) if len(pairs)]
    counted = shards[:SAMPLED_SHARDS]
    num_updates = sum(len(sampler.plan(0, shard)) for shard in counted)
    return Plan(
        recipe=recipe,
        parameters=parameters,
        updates_an_epoch=num_updates * len(shards) / len(counted),
        device=context.device,
        measured=_measure(trainer),
    )


def _measure(trainer: Trainer) -> Measured:
    context, meter = trainer.context, trainer.meter
    device, precision, clock = context.device, context.execution.precision, context.clock
    times = [clock()]
    for number in range(1, WARM_UP_UPDATES + TIMED_UPDATES + 1):
        trainer.update()
        _wait(device)
        times.append(clock())
        if times[-1] - times[0] > MEASURED_S:
            break
        if number == WARM_UP_UPDATES:
            meter.clear(trainer.train_state.progress)
    warm_up = len(times) - 1 - meter.num_updates
    record = meter.record(trainer.train_state.progress, learning_rate=0.0)
    return Measured(
        updates=meter.num_updates,
        seconds=times[-1] - times[warm_up],
        target_tokens=record.num_target_tokens,
        operations=record.operations or 0.0,
        peak_rate=product_rate(device, precision, clock),
        paper_rate=meter.costs.device_rate,
        peak_memory=peak_memory(device),
    )


def product_rate(
    device: torch.device, precision: torch.dtype | None, clock: Callable[[], float]
) -> float:
    """Measure the floating-point operations a second of the product of two large matrices."""
    size = PRODUCT_SIZES[device.type]
    left = torch.randn(size, size, device=device, dtype=precision)
    torch.mm(left, left)
    rates = []
    for _ in range(PRODUCT_REPEATS):
        _wait(device)
        start = clock()
        torch.mm(left, left)
        _wait(device)
        rates.append(2 * size**3 / max(clock() - start, SHORTEST_S))
    return max(rates)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _line(name: str, value: str) -> str:
    return f"{name:<20} {value}"
