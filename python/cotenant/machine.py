"""CPU and memory in use on this machine, by anybody, from /proc.

What a worker's neighbours take is what its next speed depends on; the
coordinator's predictors read both.
"""

from __future__ import annotations

import os
import time


class Machine:
    """Reads /proc at most twice a second: reading costs more than all the rest of an iteration."""

    def __init__(self, proc: str = "/proc") -> None:
        self._files: tuple[int, int] | None = None
        self._last: tuple[float, float] | None = None
        self._use = (0.0, 0.0)
        try:
            self._files = (os.open(f"{proc}/stat", os.O_RDONLY), os.open(f"{proc}/meminfo", os.O_RDONLY))
            self._cores = os.cpu_count() or 1
            self._tick = 1.0 / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, AttributeError):
            self._files = None  # not Linux: both are 0 throughout, "not measured"

    def use(self, now: float | None = None) -> tuple[float, float]:
        """Shares of all cores (since the last reading) and of memory in use, 0..1.

        (0, 0) where unknown.
        """
        if self._files is None:
            return self._use
        now = time.monotonic() if now is None else now
        if self._last is not None and now - self._last[0] < 0.5:
            return self._use
        try:
            busy = self._busy(os.pread(self._files[0], 256, 0))
            memory = self._memory(os.pread(self._files[1], 256, 0))
        except (OSError, ValueError, LookupError, ZeroDivisionError):
            return self._use
        share = 0.0
        if self._last is not None:
            ticks = (now - self._last[0]) / self._tick * self._cores
            share = min(1.0, max(0.0, (busy - self._last[1]) / ticks))
        self._last = (now, busy)
        self._use = (share, memory)
        return self._use

    @staticmethod
    def _busy(stat: bytes) -> float:
        # "cpu user nice system idle iowait irq softirq steal ...", in ticks of all cores
        fields = [int(f) for f in stat.split(b"\n", 1)[0].split()[1:9]]
        return float(sum(fields) - fields[3] - fields[4])

    @staticmethod
    def _memory(meminfo: bytes) -> float:
        kib = {}
        for line in meminfo.split(b"\n")[:4]:
            name, _, rest = line.partition(b":")
            if rest.endswith(b"kB"):
                kib[name] = int(rest.split()[0])
        return 1.0 - kib[b"MemAvailable"] / kib[b"MemTotal"]
