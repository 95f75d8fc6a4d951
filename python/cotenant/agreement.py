"""Which shares hold when: the same answer on every rank.

Every rank owns an :class:`Agreement` and feeds it the same :class:`Shares` at
the end of the same iterations, so all answer the same; shares start to hold
only at an iteration that no rank has drawn data for yet.
"""

from __future__ import annotations

import dataclasses
from typing import Sequence


@dataclasses.dataclass(frozen=True)
class Shares:
    """Batch sizes of all workers, from an iteration on.

    ``answered`` is the iteration that the coordinator gave them. They may begin
    to hold later, since data for it was drawn already; to the coordinator they
    go by its own number.
    """

    generation: int
    iteration: int
    batch_sizes: tuple[int, ...]
    answered: int = 0


class Agreement:
    """The shares that hold now, and those that are agreed for later.

    Parameters
    ----------
    first : what holds at the beginning; its sum is the global batch size, which
        never changes
    """

    def __init__(self, first: Shares) -> None:
        self._agreed = [first]
        self.global_batch = sum(first.batch_sizes)

    @property
    def latest(self) -> Shares:
        """What was agreed last, whether it holds yet or not."""
        return self._agreed[-1]

    def accept(self, shares: Shares) -> bool:
        """Agrees on shares; False where they are none for this job, or no news.

        Whoever proposed them, shares of another number of workers, with a
        negative size or another sum never hold.
        """
        last = self.latest
        if shares.batch_sizes == last.batch_sizes and shares.generation == last.generation:
            return False
        if (
            len(shares.batch_sizes) != len(last.batch_sizes)
            or min(shares.batch_sizes) < 0
            or sum(shares.batch_sizes) != self.global_batch
            or shares.iteration < last.iteration
        ):
            return False
        self._agreed.append(shares)
        return True

    def at(self, iteration: int) -> tuple[int, ...]:
        """The shares of an iteration; never asked again for an earlier one."""
        while len(self._agreed) > 1 and self._agreed[1].iteration <= iteration:
            del self._agreed[0]
        return self._agreed[0].batch_sizes


#: Numbers that each worker tells in an iteration, in this order.
FIELDS = ("valid", "iteration", "batch_size", "compute", "communicate", "cpu", "memory", "out_of_memory")


@dataclasses.dataclass(frozen=True)
class Report:
    """What one worker measured in one iteration; times in seconds.

    ``cpu`` and ``memory`` are how much of its machine is in use, 0..1.
    """

    iteration: int
    batch_size: int
    compute: float
    communicate: float
    cpu: float = 0.0
    memory: float = 0.0
    out_of_memory: bool = False


def length(workers: int) -> int:
    """Numbers in a message: a row a worker, then the shares that rank 0 proposes."""
    return workers * len(FIELDS) + 4 + workers


def write(row: list[float], rank: int, report: Report | None, proposal: Shares | None) -> None:
    """Writes a rank's part of a message into ``row``, which is all zeros.

    The message is the sum over all ranks. Each number is written by one rank
    only, so the sum is exact, and the same on every rank.
    """
    if report is not None:
        at = rank * len(FIELDS)
        row[at : at + len(FIELDS)] = [
            1.0,
            float(report.iteration),
            float(report.batch_size),
            report.compute,
            report.communicate,
            report.cpu,
            report.memory,
            float(report.out_of_memory),
        ]
    if proposal is not None:
        tail = len(row) - 4 - len(proposal.batch_sizes)
        head = 1, proposal.generation, proposal.iteration, proposal.answered
        row[tail:] = map(float, (*head, *proposal.batch_sizes))


def read(message: Sequence[float], workers: int) -> tuple[list[Report | None], Shares | None]:
    """Reads a message: what each worker measured, and the shares proposed."""
    width = len(FIELDS)
    reports: list[Report | None] = []
    for rank in range(workers):
        valid, iteration, size, compute, communicate, cpu, memory, oom = message[rank * width : (rank + 1) * width]
        reports.append(
            Report(int(iteration), int(size), compute, communicate, cpu, memory, oom > 0) if valid > 0 else None
        )
    return reports, proposed(message, workers)


def proposed(message: Sequence[float], workers: int) -> Shares | None:
    """Reads only the shares that rank 0 proposed."""
    valid, generation, iteration, answered, *sizes = map(int, message[workers * len(FIELDS) :])
    return Shares(generation, iteration, tuple(sizes), answered) if valid else None
