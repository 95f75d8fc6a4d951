"""Who takes which samples: one order of all samples for all ranks, cut by shares.

An epoch is one order of the data set, the same on every rank. An iteration
takes the next ``global_batch`` samples of it and every rank a consecutive part,
as long as its share. So every sample is seen exactly once an epoch whatever
the shares, and where an epoch stands is one number.
"""

from __future__ import annotations

import dataclasses
from typing import Callable, Sequence


def equal(total: int, workers: int) -> tuple[int, ...]:
    """Equal shares; the first ``total % workers`` workers take one more."""
    each, more = divmod(total, workers)
    return tuple(each + (rank < more) for rank in range(workers))


def portion(total: int, shares: Sequence[int], minimum: int = 1) -> tuple[int, ...]:
    """Cuts ``total`` samples in proportion to ``shares``, losing none.

    For the last batch of an epoch, which is smaller than the shares' sum.
    A worker gets 0 or at least ``minimum`` samples (batch normalisation needs
    2), unless ``total`` itself is less.
    """
    if total == sum(shares):
        return tuple(shares)
    takers = [i for i, share in enumerate(shares) if share > 0]
    while True:
        whole = sum(shares[i] for i in takers)
        sizes = [0] * len(shares)
        for i in takers:
            sizes[i] = total * shares[i] // whole
        by_remainder = sorted(takers, key=lambda i: (-(total * shares[i] % whole), i))
        for i in by_remainder[: total - sum(sizes)]:
            sizes[i] += 1
        short = [i for i in takers if 0 < sizes[i] < minimum]
        if not short or len(takers) == 1:
            return tuple(sizes)
        takers.remove(min(short, key=lambda i: (sizes[i], shares[i], -i)))


@dataclasses.dataclass(frozen=True)
class Draw:
    """One batch of all ranks: positions ``[begin, end)`` of the epoch's order."""

    iteration: int
    begin: int
    end: int
    sizes: tuple[int, ...]

    def part(self, rank: int) -> tuple[int, int]:
        """The positions ``[from, to)`` that a rank takes."""
        begin = self.begin + sum(self.sizes[:rank])
        return begin, begin + self.sizes[rank]

    @property
    def total(self) -> int:
        """Samples of all ranks together."""
        return self.end - self.begin


class Course:
    """Walks through epochs, batch by batch.

    Parameters
    ----------
    length : samples in an epoch; None for a stream, whose end shows itself
    global_batch : samples of all ranks in a batch
    shares : the shares that hold for an iteration, by its number
    minimum : see :func:`portion`
    drop_last : leave out the last batch of an epoch where it is smaller
    accumulate : batches in an iteration (gradient accumulation): they have
        the same shares
    """

    def __init__(
        self,
        length: int | None,
        global_batch: int,
        shares: Callable[[int], Sequence[int]],
        minimum: int = 1,
        drop_last: bool = False,
        accumulate: int = 1,
    ) -> None:
        self.length = length
        self.global_batch = global_batch
        self.shares = shares
        self.minimum = minimum
        self.drop_last = drop_last
        self.accumulate = accumulate

    def batches(self, offset: int) -> int:
        """How many batches an epoch still has from a position on; needs a length."""
        if self.length is None:
            raise TypeError("a stream has no length")
        left = max(0, self.length - offset)
        return left // self.global_batch if self.drop_last else -(-left // self.global_batch)

    def draw(self, iteration: int, offset: int, available: int | None = None) -> Draw | None:
        """The batch at a position of the order, or None where the epoch ends.

        ``available`` is how many samples a stream still gave, at most one
        global batch.
        """
        if available is None:
            if self.length is None:
                raise TypeError("a stream has to say how many samples it gave")
            available = max(0, self.length - offset)
        total = min(self.global_batch, available)
        if total == 0 or (self.drop_last and total < self.global_batch):
            return None
        return Draw(iteration, offset, offset + total, portion(total, self.shares(iteration), self.minimum))


class Place:
    """Where a rank stands: the epoch, the position in its order, the iteration."""

    def __init__(self) -> None:
        self.epoch = 0
        self.offset = 0
        self.iteration = 0
        self._resumed = False

    def set_epoch(self, epoch: int) -> None:
        """Goes to the beginning of an epoch, unless that is where it is."""
        if epoch != self.epoch:
            self.epoch, self.offset = epoch, 0

    def resume(self, epoch: int, offset: int, iteration: int) -> None:
        """The next pass begins there."""
        self.epoch, self.offset, self.iteration = epoch, offset, iteration
        self._resumed = True

    def start(self) -> None:
        """A pass begins: at the epoch's beginning, unless resumed within it.

        An epoch that was left early begins anew, as with any loader.
        """
        if not self._resumed:
            self.offset = 0
        self._resumed = False
