import unittest
from typing import Any

from cotenant.clock import Stopwatch, WallClock

try:
    from cotenant.torch.clock import CudaClock
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed (Debian: apt-get install python3-torch)")


class Event:
    """torch.cuda.Event on a device whose time is counted here, in milliseconds."""

    now = 0.0
    waited: list["Event"] = []

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing
        self.at: float | None = None

    def record(self) -> None:
        self.at = Event.now

    def synchronize(self) -> None:
        Event.waited.append(self)

    def elapsed_time(self, other: "Event") -> float:
        assert self.at is not None and other.at is not None
        return other.at - self.at


class Cuda(unittest.TestCase):
    def test_times_are_the_devices(self) -> None:
        Event.now, Event.waited = 0.0, []
        watch = Stopwatch(CudaClock(Event))
        Event.now = 10
        begun = watch.begin_wait()
        Event.now = 15
        watch.end_wait(begun)
        Event.now = 105
        watch.ready()
        Event.now = 135
        watch.done()
        watch.stop()
        self.assertEqual(Event.waited, [], "nothing waits for the device within the iteration")
        compute, communicate = watch.read()
        self.assertAlmostEqual(compute, 0.100)
        self.assertAlmostEqual(communicate, 0.035)
        self.assertTrue(Event.waited)

    def test_comes_an_iteration_late(self) -> None:
        self.assertEqual((CudaClock(Event).lag, WallClock.lag), (1, 0))


class Wall(unittest.TestCase):
    def test_without_communication_all_is_compute(self) -> None:
        times: list[float] = [1.0, 3.0]

        class Clock(WallClock):
            def mark(self) -> Any:
                return times.pop(0)

        watch = Stopwatch(Clock())
        watch.stop()
        self.assertEqual(watch.read(), (2.0, 0.0))


if __name__ == "__main__":
    unittest.main()
