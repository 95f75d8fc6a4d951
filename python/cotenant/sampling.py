"""Who takes which samples: one order of all samples for all ranks, cut by shares.

An epoch is one order of the data set, the same on every rank. An iteration
takes the next ``global_batch`` samples of it and every rank a consecutive part,
as long as its share. So every sample is seen exactly once an epoch whatever
the shares, and where an epoch stands is one number.
"""

from __future__ import annotations

import array
import bisect
import dataclasses
import itertools
from typing import Callable, Iterable, Sequence


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
    """One batch of all ranks: positions ``[begin, end)`` of the epoch's order.

    ``loads`` are each rank's tokens, where load is counted in tokens; else the
    samples are the load. ``whole``: no smaller than other batches are.
    """

    iteration: int
    begin: int
    end: int
    sizes: tuple[int, ...]
    loads: tuple[int, ...] = ()
    whole: bool = True

    def part(self, rank: int) -> tuple[int, int]:
        """The positions ``[from, to)`` that a rank takes."""
        begin = self.begin + sum(self.sizes[:rank])
        return begin, begin + self.sizes[rank]

    @property
    def total(self) -> int:
        """Samples of all ranks together."""
        return self.end - self.begin

    def load(self, rank: int) -> int:
        """What a rank's batch weighs: its tokens, or its samples."""
        return (self.loads or self.sizes)[rank]

    @property
    def total_load(self) -> int:
        """What all ranks' batches weigh together."""
        return sum(self.loads) if self.loads else self.total


class Course:
    """Walks through epochs, batch by batch.

    Parameters
    ----------
    length : samples in an epoch; None for a stream, whose end shows itself
    global_batch : samples of all ranks in a batch; or tokens, see `measure`
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
        # Tokens of the epoch's samples before each position, where load is tokens.
        self._before: array.array[int] | None = None

    def measure(self, tokens: Iterable[int]) -> None:
        """Counts load in tokens from now on: those of each sample, in the epoch's order.

        A batch is then as many of the next samples as have at most
        ``global_batch`` tokens, at least one: the same ones whatever the shares
        are, which only say where it is cut, between two samples.
        """
        self._before = array.array("q", itertools.accumulate(tokens, initial=0))
        self.length = len(self._before) - 1

    def tokens(self, begin: int, end: int) -> list[int]:
        """Tokens of each sample at these positions; 1 each where load is samples."""
        if self._before is None:
            return [1] * (end - begin)
        return [self._before[i + 1] - self._before[i] for i in range(begin, end)]

    def batches(self, offset: int) -> int:
        """How many batches an epoch still has from a position on; needs a length."""
        if self.length is None:
            raise TypeError("a stream has no length")
        if self._before is not None:
            found = 0
            while offset < self.length and ((end := self._end(offset)) < self.length or not self.drop_last):
                offset, found = end, found + 1
            return found
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
            if self._before is not None:
                return self._draw_tokens(iteration, offset, self.length)
            available = max(0, self.length - offset)
        total = min(self.global_batch, available)
        if total == 0 or (self.drop_last and total < self.global_batch):
            return None
        sizes = portion(total, self.shares(iteration), self.minimum)
        return Draw(iteration, offset, offset + total, sizes, whole=total == self.global_batch)

    def _end(self, offset: int) -> int:
        assert self._before is not None
        end = bisect.bisect_right(self._before, self._before[offset] + self.global_batch, offset) - 1
        return max(end, offset + 1)

    def _draw_tokens(self, iteration: int, offset: int, length: int) -> Draw | None:
        before = self._before
        assert before is not None
        if offset >= length or (self.drop_last and self._end(offset) == length):
            return None
        end = self._end(offset)
        tokens, shares = before[end] - before[offset], self.shares(iteration)
        cuts, share = [offset], 0
        for each in shares:
            share += each
            aim = before[offset] + tokens * share / self.global_batch
            cut = bisect.bisect_left(before, aim, cuts[-1], end)
            # The nearer of the two ends of the sample that the cut falls into.
            if cut > cuts[-1] and aim - before[cut - 1] < before[cut] - aim:
                cut -= 1
            cuts.append(cut)
        cuts[-1] = end
        if shares[-1] == 0:  # the last sample of the batch goes to who takes part
            last = max(i for i, each in enumerate(shares) if each > 0)
            cuts[last + 1 :] = [end] * (len(cuts) - last - 1)
        sizes = tuple(b - a for a, b in zip(cuts, cuts[1:]))
        loads = tuple(before[b] - before[a] for a, b in zip(cuts, cuts[1:]))
        return Draw(iteration, offset, end, sizes, loads, whole=end < length)


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
