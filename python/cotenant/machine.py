"""CPU and memory in use on this machine, by anybody, from /proc.

What a worker's neighbours take is what its next speed depends on; the
coordinator's predictors read both.
"""

from __future__ import annotations

import os
import time


class Machine:
    """Reads /proc at most ten times a second: the kernel counts in ticks of 10 ms."""

    def __init__(self, proc: str = "/proc") -> None:
        self._files: tuple[int, int] | None = None
        self._last: tuple[float, float] | None = None
        self._use = (0.0, 0.0)
        try:
            self._files = (os.open(f"{proc}/stat", os.O_RDONLY), os.open(f"{proc}/meminfo", os.O_RDONLY))
            self._tick = 1.0 / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, AttributeError):
            self._files = None  # not Linux: both are 0 throughout, "not measured"

    def use(self, now: float | None = None) -> tuple[float, float]:
        """Cores in use since the last reading, and bytes in use; (0, 0) where unknown."""
        if self._files is None:
            return self._use
        now = time.monotonic() if now is None else now
        if self._last is not None and now - self._last[0] < 0.1:
            return self._use
        try:
            busy = self._busy(os.pread(self._files[0], 256, 0))
            memory = self._memory(os.pread(self._files[1], 256, 0))
        except (OSError, ValueError, KeyError):
            return self._use
        cores = 0.0
        if self._last is not None:
            cores = max(0.0, (busy - self._last[1]) * self._tick / (now - self._last[0]))
        self._last = (now, busy)
        self._use = (cores, memory)
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
        return 1024.0 * (kib[b"MemTotal"] - kib[b"MemAvailable"])
