"""Times on a GPU: by events in its stream, since the program runs ahead of it
and wall-clock times mean nothing there."""

from __future__ import annotations

from typing import Any


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
