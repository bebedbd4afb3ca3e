"""One update: the gradients of its slots, summed over all ranks, and what Adam makes of them.

Everything random follows from (seed, update, slot), or from (seed, update, pair), so it does not
matter which rank computes a slot, nor what was computed before.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from nmtkit.config.schema import TrainRecipe
from nmtkit.data.batch import Batch
from nmtkit.errors import DivergedError, LostRankError
from nmtkit.training.distributed import Ranks
from nmtkit.training.learner import Learner
from nmtkit.training.objective import Objective
from nmtkit.training.reading import Reading
from nmtkit.training.seeds import slot_seed
from nmtkit.training.slots import Slot
from nmtkit.training.stopping import StopRequest


@dataclass(frozen=True)
class Sums:
    """What an update came to, the same on every rank.

    Attributes:
        smoothed, nll: loss sums over the update's target tokens.
        num_source_tokens, num_target_tokens: that were read, end symbols counted.
        elapsed_s: seconds of training, by the clock of rank 0.
        gradient_norm: of the mean over target tokens, before clipping.
    """

    smoothed: float
    nll: float
    num_source_tokens: int
    num_target_tokens: int
    elapsed_s: float
    gradient_norm: float


class Updater:
    """Computes updates, on this rank together with the others."""

    def __init__(
        self,
        objective: Objective,
        learner: Learner,
        recipe: TrainRecipe,
        ranks: Ranks,
        stop: StopRequest,
    ) -> None:
        """Store the parts; the parameters of all ranks become those of rank 0."""
        self.objective = objective
        self.learner = learner
        self.recipe = recipe
        self.ranks = ranks
        self.stop = stop
        self._parallel = ranks.wrap(objective)

    def compute(self, reading: Reading, elapsed_s: Callable[[], float]) -> Sums | None:
        """Compute the gradients of an update, clipped.

        Args:
            reading: the update as this rank reads it.
            elapsed_s: tells the seconds of training so far.

        Returns:
            Its sums; None if some rank was asked to stop: then there are no gradients.

        Raises:
            LostRankError, ToldElsewhereError: see `Ranks.exchange`.
        """
        device = self.objective.model.output_weight.device
        losses = torch.zeros(2, dtype=torch.float64, device=device)
        num_tokens = np.zeros(2)
        when = f"in update {reading.number}"
        with self.ranks.exchange(when):
            for slot, batch in reading.slots:
                # The other ranks wait for the last pass, whatever becomes of the update.
                if not self.stop.is_requested or (slot.is_last and not self.ranks.is_alone):
                    losses += self._accumulate(batch, slot, reading.number)
                    num_tokens += slot.weight * np.array(batch.sizes)
            time = elapsed_s() if self.ranks.is_first else 0.0
            *requests, time, num_source, num_target = self.ranks.sum(
                torch.tensor([*self.stop.requests, time, *num_tokens], dtype=torch.float64)
            ).tolist()
            totals = self.ranks.sum(losses)
            norm = self._average_gradients(num_target)
            norm = norm.to(totals)  # without any gradient, as when asked to stop, a CPU's 0
            # The one point of an update where the host waits for the device.
            self.ranks.await_device(when)
            smoothed, nll, gradient_norm = torch.cat((totals, norm[None])).tolist()
        self.stop.note(requests)
        if any(requests):
            self.drop()
            return None
        return Sums(smoothed, nll, int(num_source), int(num_target), time, gradient_norm)

    def apply(self, number: int, learning_rate: float) -> None:
        """Have Adam use the gradients of an update, and clear them."""
        for group in self.learner.optimizer.param_groups:
            group["lr"] = learning_rate
        self.learner.optimizer.step()
        self.drop()
        if self.learner.average:
            self.learner.average.add(self.learner.model, number)

    def drop(self) -> None:
        """Clear the gradients."""
        self.learner.optimizer.zero_grad()

    def check_agreement(self, number: int) -> None:
        """Check after an update that all ranks hold the same weights.

        Raises:
            LostRankError, ToldElsewhereError: they do not; or see `Ranks.exchange`.
            DivergedError: they are finite on no rank.
        """
        if self.ranks.is_alone:
            return
        own = sum(float(p.detach().sum(dtype=torch.float64)) for p in self.objective.parameters())
        sums = self.ranks.gather(own)
        if not any(map(math.isfinite, sums)):
            raise self.ranks.told_once(
                DivergedError(
                    f"training diverged: the weights are not finite after update {number}; begin "
                    "again in another --out with a lower --learning-rate-scale, or with --clip-norm"
                )
            )
        is_equal = np.isclose(sums, sums[0], rtol=1e-9, atol=0, equal_nan=True)
        strays = np.flatnonzero(~is_equal).tolist()
        if strays:
            names = " and ".join(f"rank {rank}" for rank in strays)
            raise self.ranks.told_once(
                LostRankError(
                    f"the weights of {names} are not those of rank 0 after update {number}: a "
                    "device computes wrongly, or runs other software; mend it, and run the same "
                    "command again to go on from the last checkpoint"
                )
            )

    def _accumulate(self, batch: Batch, slot: Slot, number: int) -> Tensor:
        """Add the gradients of a slot's loss sum to those before; returns its loss sums (2,)."""
        torch.manual_seed(slot_seed(self.recipe.seed.seed, number, slot.number, slot.piece))
        with self._synchronised(slot.is_last):
            losses = self._parallel(batch)
            # Gradients of the ranks are summed and divided by W.
            share = slot.weight * self.ranks.size
            if slot.is_last:
                self.ranks.arrive()
            (losses.smoothed * share).backward()
        return torch.stack((losses.smoothed.detach(), losses.nll)).double() * slot.weight

    def _average_gradients(self, num_target_tokens: float) -> Tensor:
        """Divide the gradients of the loss sum by its tokens, and clip them.

        The tokens of an update are counted when all ranks have read theirs: a text that is cut
        anew has others than it is planned with.

        Returns:
            the norm () before clipping.
        """
        gradients = [p.grad for p in self.objective.parameters() if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients, foreach=True) / num_target_tokens
        largest = self.recipe.training.clip_norm or math.inf
        if gradients:
            scale = (largest / norm).clamp(max=1.0) / num_target_tokens
            torch._foreach_mul_(gradients, scale)
        return norm

    def _synchronised(self, is_last: bool) -> AbstractContextManager[None]:
        """Exchange gradients in the last pass of an update alone."""
        if is_last or not isinstance(self._parallel, DistributedDataParallel):
            return nullcontext()
        return self._parallel.no_sync()
