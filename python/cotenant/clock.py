"""Times of an iteration: compute apart from communication.

An iteration's marks are set where things begin and end. On a CPU a mark is a
reading of the clock; a device that the program runs ahead of has a clock of its
own (:mod:`cotenant.torch.clock`).
"""

from __future__ import annotations

import time
from typing import Any, Protocol


class Clock(Protocol):
    """Sets marks; the time between two is read later."""

    #: Iterations that a measurement may come late.
    lag: int

    def mark(self) -> Any:
        """Now."""

    def seconds(self, begin: Any, end: Any) -> float:
        """Between two marks; waits for the later one where it has not come yet."""


class WallClock:
    """For CPUs."""

    lag = 0

    def mark(self) -> float:
        return time.perf_counter()

    def seconds(self, begin: float, end: float) -> float:
        return end - begin


class Stopwatch:
    """The marks of one iteration, which may hold several batches (accumulation).

    begin, then for each forward pass ``waits`` around the broadcast of buffers,
    then ``ready`` when the last gradient of this worker is there, then ``done``
    when all gradients are summed.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begin: Any = clock.mark()
        self._ready: Any = None
        self._done: Any = None
        self._waits: list[tuple[Any, Any]] = []

    def ready(self, at: Any = None) -> None:
        """This worker has all its gradients, now or at a mark; a later call overrides."""
        self._ready = self._clock.mark() if at is None else at

    def done(self, at: Any = None) -> None:
        """The sum over all workers is there, now or at a mark; a later call overrides."""
        self._done = self._clock.mark() if at is None else at

    def begin_wait(self) -> Any:
        """Begins communication within the compute phase."""
        return self._clock.mark()

    def end_wait(self, begun: Any) -> None:
        """Ends what `begin_wait` began."""
        self._waits.append((begun, self._clock.mark()))

    def stop(self) -> None:
        """The iteration ends; where nobody said `ready`, all of it was compute."""
        if self._ready is None:
            self.ready()

    def read(self) -> tuple[float, float]:
        """Seconds of compute, and of communication with the waiting for others."""
        waited = 0.0
        for begin, end in self._waits:
            waited += self._clock.seconds(begin, end)
        compute = self._clock.seconds(self._begin, self._ready) - waited
        communicate = waited
        if self._done is not None:
            communicate += self._clock.seconds(self._ready, self._done)
        return max(0.0, compute), max(0.0, communicate)
