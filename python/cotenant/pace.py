"""What happens between iterations: measure, tell the others, agree on shares.

At the end of iteration k every rank starts one small sum over all ranks, which
carries what each measured and what rank 0 proposes, and waits for the one of
iteration k-1, which has long been there. So nobody waits for the balancing, and
all ranks learn of new shares at the end of the same iteration. How the sum
travels is the framework's: see :class:`Link`.
"""

from __future__ import annotations

import atexit
import dataclasses
import sys
import time
from typing import Any, Protocol, Sequence

from cotenant import agreement, sampling
from cotenant.agreement import Agreement, Report, Shares
from cotenant.clock import Clock, Stopwatch, WallClock
from cotenant.machine import Machine
from cotenant.sampling import Draw
from cotenant.session import Session, Worker, job_name

#: Seconds that the first iteration waits for the coordinator to open the job.
OPENING = 5.0


class Exchange(Protocol):
    """The sum over all ranks that one iteration starts."""

    def wait(self, begin: int = 0) -> list[float] | None:
        """The summed message from a position on; may be waited for in two threads.

        None where no gradients were summed that it could ride with (see
        :class:`Link`): then on no rank.

        Raises
        ------
        RuntimeError
            A rank is gone.
        """


class Link(Protocol):
    """How ranks talk to each other; every rank calls the same in the same order."""

    #: The sum travels with the next iteration's gradients, not by itself, so
    #: there is nothing to wait for before that.
    rides: bool

    def gather(self, mine: Any) -> list[Any]:
        """What each rank says, in the order of ranks: numbers, strings, lists, None.

        Tuples may come back as lists.
        """

    def sum(self, row: list[float]) -> Exchange:
        """Starts the sum of all ranks' rows, float64."""


class Pace:
    """A rank's place in the training, and the shares of all.

    Parameters
    ----------
    link : to the other ranks; None where there is no other
    ahead : iterations whose data may be drawn before the one that trains
    accumulate : batches in an iteration
    balance : False: equal shares for ever, and nothing is exchanged
    job : its name; by default :func:`cotenant.session.job_name`
    """

    def __init__(
        self,
        rank: int,
        workers: Sequence[Worker],
        global_batch: int,
        link: Link | None,
        options: dict[str, Any],
        clock: Clock | None = None,
        ahead: int = 0,
        accumulate: int = 1,
        balance: bool = True,
        job: str | None = None,
    ) -> None:
        self.rank = rank
        self.workers = list(workers)
        self.global_batch = global_batch
        self.session: Session | None = None
        self.watch: Stopwatch | None = None
        #: CPU seconds of this rank's training thread, and seconds it was
        #: blocked, for the balancing; and in how many iterations.
        self.cpu = self.blocked = 0.0
        self.iterations = 0
        #: This rank's batch of the iteration did not fit into memory.
        self.out_of_memory = False
        self._link = link
        self._job = job
        self._options = options
        self._clock = clock or WallClock()
        self._ahead = ahead
        self._accumulate = accumulate
        self._exchanges = balance and link is not None and len(self.workers) > 1
        self._machine = Machine()
        self._agreement: Agreement | None = None
        self._restored: tuple[Shares, list[str]] | None = None
        self._measured: list[tuple[Stopwatch, int, int, bool]] = []
        self._pending: tuple[int, Exchange] | None = None

    @property
    def latest(self) -> Shares | None:
        """The shares agreed last; before the first iteration, those restored."""
        if self._agreement is not None:
            return self._agreement.latest
        return self._restored[0] if self._restored else None

    def restore(self, shares: Shares, workers: list[str]) -> None:
        """Takes shares that were agreed before a restart; before the first iteration."""
        self._restored = shares, workers

    def shares(self, iteration: int) -> tuple[int, ...]:
        """The shares of an iteration, the same on every rank."""
        assert self._agreement is not None, "no epoch has begun"
        return self._agreement.at(iteration)

    # Once an epoch.

    def begin_epoch(self, iteration: int, position: tuple[int, int]) -> None:
        """Before any data of an epoch is drawn; every rank, with the same numbers.

        Raises
        ------
        ValueError
            The ranks stand at different places; or, on all ranks, rank 0 found
            that what they ask for can't be.
        """
        if self._link is not None and not self._link.rides:
            self._settle()
        first: Any = None
        if self._agreement is None and self.rank == 0:
            try:
                first = dataclasses.astuple(self._open(iteration))
            except ValueError as e:
                # Shared, since the others wait for this rank, and would see only that it is gone.
                first = str(e)
                self.close()
        mine = iteration, position, first
        everybody: list[Any] = [mine] if self._link is None else self._link.gather(mine)
        places = [(at, tuple(where)) for at, where, _ in everybody]
        if any(place != places[0] for place in places):
            raise ValueError(
                "the ranks stand at different (iteration, (epoch, offset)): "
                f"{places}; load the same state on every rank, and leave epochs early on all or none"
            )
        if self._agreement is None:
            first = everybody[0][2]
            if isinstance(first, str):
                raise ValueError(first)
            generation, at, sizes, answered = first
            self._agreement = Agreement(Shares(generation, at, tuple(sizes), answered))

    def _open(self, iteration: int) -> Shares:
        restored, names = self._restored or (None, [])
        if self._exchanges:
            self.session = Session(
                self._job or job_name(), self.workers, self.global_batch, self._options, iteration, restored, names
            )
            self.session.start()
            atexit.register(self.close)
            opened = self.session.opened(OPENING)
            if opened is not None:
                return Shares(opened.generation, iteration, opened.batch_sizes, opened.answered)
            if self.session.refusal:
                raise ValueError(f"the coordinator refuses the job: {self.session.refusal}")
        if restored and len(restored.batch_sizes) == len(self.workers) and sum(restored.batch_sizes) == self.global_batch:
            return restored
        return Shares(0, iteration, self._equal())

    def _equal(self) -> tuple[int, ...]:
        sizes = sampling.equal(self.global_batch, len(self.workers))
        for worker, size in zip(self.workers, sizes):
            allowed = not worker.buckets or size in worker.buckets
            if size < worker.minimum or 0 < worker.maximum < size or not allowed:
                why = "no coordinator answers, and " if self.session is not None else ""
                raise ValueError(
                    f"{why}an equal share of {size} is not within the limits of {worker.name} "
                    f"(minimum {worker.minimum}, maximum {worker.maximum}, buckets {worker.buckets})"
                )
        return sizes

    def close(self) -> None:
        """Ends the talk with the coordinator; the job is over unless an exception ends it."""
        if self.session is not None:
            self.session.stop(forget=not hasattr(sys, "last_type"))
            self.session = None

    # Once an iteration.

    def begin(self) -> None:
        """Before the iteration's data is fetched, which is part of its work."""
        self.watch = Stopwatch(self._clock)

    def end(self, iteration: int, draw: Draw | None) -> None:
        """After the iteration; ``draw`` None where it was not a whole one."""
        cpu = time.thread_time()
        watch, self.watch = self.watch, None
        if self._exchanges and watch is not None:
            watch.stop()
            # A smaller batch at the end of an epoch tells nothing that can be compared.
            size = draw.load(self.rank) if draw is not None and draw.whole else 0
            self._measured.append((watch, iteration, size, self.out_of_memory))
            self._exchange(iteration)
        self.cpu += time.thread_time() - cpu
        self.out_of_memory = False
        self.iterations += 1

    def _exchange(self, iteration: int) -> None:
        report = None
        if len(self._measured) > self._clock.lag:
            watch, measured, size, out = self._measured.pop(0)
            if size > 0:  # a batch of 0 was a stand-in, whose time tells nothing
                compute, communicate = watch.read()
                cores, memory = self._machine.use()
                report = Report(measured, size, compute / self._accumulate, communicate, cores, memory, out)
        proposal = None
        if self.session is not None and self._agreement is not None:
            newest = self.session.proposal()
            held = self._agreement.latest
            if newest is not None and (newest.batch_sizes, newest.generation) != (held.batch_sizes, held.generation):
                # All ranks read this at the end of the next iteration, and have
                # drawn data for `ahead` more by then.
                first = max(newest.iteration, iteration + 2 + self._ahead)
                proposal = Shares(newest.generation, first, newest.batch_sizes, newest.answered)
        row = [0.0] * agreement.length(len(self.workers))
        agreement.write(row, self.rank, report, proposal)
        assert self._link is not None
        exchange = self._link.sum(row)
        self._settle()
        self._pending = iteration, exchange
        if not self._link.rides:
            self._hand_over(iteration, exchange)

    def _settle(self) -> None:
        """Waits for the sum that the iteration before started, and agrees on what it brought."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        iteration, exchange = pending
        begin, cpu = time.perf_counter(), time.thread_time()
        tail = exchange.wait(len(self.workers) * len(agreement.FIELDS))
        self.blocked += max(0.0, time.perf_counter() - begin - (time.thread_time() - cpu))
        if tail is None:
            return
        if self._link is not None and self._link.rides:
            self._hand_over(iteration, exchange)
        shares = agreement.proposed(tail, 0)
        if shares is None:
            return
        assert self._agreement is not None
        if self._agreement.accept(shares) and self.session is not None:
            self.session.agree(shares)

    def _hand_over(self, iteration: int, exchange: Exchange) -> None:
        """Gives the session what an iteration's sum brings, to wait for in its own thread."""
        if self.session is not None:
            self.session.submit(lambda: self._reports(iteration, exchange))

    def _reports(self, iteration: int, exchange: Exchange) -> tuple[int, Sequence[float] | None]:
        return iteration - self._clock.lag, exchange.wait()
