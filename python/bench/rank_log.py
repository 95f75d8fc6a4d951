"""What a rank of `quotas.py` leaves behind."""

from __future__ import annotations

import json
import pathlib
from typing import Any


def spent(balancer: Any) -> tuple[float, float, float, int]:
    """What the balancing cost a rank so far: CPU, blocked and thread, in seconds, and iterations."""
    pace = balancer.pace
    return pace.cpu, pace.blocked, pace.session.cpu if pace.session else 0.0, pace.iterations


def write(
    folder: str, rank: int, lines: list[Any], balancer: Any, since: tuple[float, float, float, int] = (0.0, 0.0, 0.0, 0)
) -> None:
    """Writes what a rank logged, and what the balancing cost it from a moment on."""
    pace = balancer.pace
    cpu, blocked, thread, iterations = (now - then for now, then in zip(spent(balancer), since))
    own = {
        "lines": lines,
        "cpu_ms": 1e3 * cpu / max(1, iterations),
        "blocked_ms": 1e3 * blocked / max(1, iterations),
        "thread_cpu_ms": 1e3 * thread / max(1, iterations),
        "reported": pace.session.reported if pace.session else 0,
    }
    balancer.close()
    pathlib.Path(folder, f"rank-{rank}.json").write_text(json.dumps(own))
