"""Times of an iteration: compute apart from communication.

An iteration's marks are set where things begin and end. On a CPU a mark is a
reading of the clock; on a GPU it is an event in the stream, since there the
program runs ahead of the device and wall-clock times mean nothing.
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


class CudaClock:
    """For CUDA, by events.

    Measurements are read one iteration late. By then the events have come, or
    the program is a whole iteration ahead of the device, and waiting for them
    does not slow the device.

    Parameters
    ----------
    events : ``torch.cuda.Event``, or what behaves like it
    """

    lag = 1

    def __init__(self, events: Any = None) -> None:
        if events is None:
            import torch

            events = torch.cuda.Event
        self._events = events

    def mark(self) -> Any:
        event = self._events(enable_timing=True)
        event.record()
        return event

    def seconds(self, begin: Any, end: Any) -> float:
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1000.0


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

    def ready(self) -> None:
        """This worker has all its gradients; a later call overrides."""
        self._ready = self._clock.mark()

    def done(self) -> None:
        """The sum over all workers is there; a later call overrides."""
        self._done = self._clock.mark()

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
        waited = sum(self._clock.seconds(a, b) for a, b in self._waits)
        compute = self._clock.seconds(self._begin, self._ready) - waited
        communicate = waited
        if self._done is not None:
            communicate += self._clock.seconds(self._ready, self._done)
        return max(0.0, compute), max(0.0, communicate)
