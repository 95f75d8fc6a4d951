"""What a rank of `quotas.py` leaves behind."""

from __future__ import annotations

import json
import pathlib
from typing import Any


def write(folder: str, rank: int, lines: list[Any], balancer: Any) -> None:
    """Writes what a rank logged, and what the balancing cost it."""
    pace = balancer.pace
    own = {
        "lines": lines,
        "cpu_ms": 1e3 * pace.cpu / max(1, pace.iterations),
        "blocked_ms": 1e3 * pace.blocked / max(1, pace.iterations),
        "thread_cpu_ms": 1e3 * pace.session.cpu / max(1, pace.iterations) if pace.session else 0.0,
        "reported": pace.session.reported if pace.session else 0,
    }
    balancer.close()
    pathlib.Path(folder, f"rank-{rank}.json").write_text(json.dumps(own))
