"""Flower clients under unequal CPU quotas: equal samples against balanced ones.

::

    python3 python/bench/flower_quotas.py --rounds 8

Each client is a SuperNode in a cgroup of its own with .2, .4, .6 or .6 of a
core; SuperLink and ServerApp have what is left. The app is
examples/flower_train.py. Needs root, flwr, numpy, a quiet machine, and the Go
program (COTENANT_BINARY, the wheel's, or on PATH). Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
from typing import Any

from cgroups import Group

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples")]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])

from flower_train import federation  # noqa: E402


def train(quotas: list[float], timeout: float, **config: Any) -> list[dict[str, Any]]:
    """The rounds of a federation whose clients have these shares of a core."""
    groups: list[Group] = []
    try:
        with federation() as made:
            for part, cores in enumerate(quotas):
                groups.append(Group(f"cotenant-flower-{os.getpid()}-{part}"))
                groups[-1].limit(cores)
                made.node(part, first=groups[-1].join)
            return made.run(timeout, clients=len(quotas), **config)
    finally:
        for group in groups:
            group.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quotas", default="0.2,0.4,0.6,0.6")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--warm-up", type=int, default=2, help="first rounds, which do not count in either")
    parser.add_argument("--round-samples", type=int, default=8000)
    parser.add_argument("--samples", type=int, default=4000, help="that each client owns")
    parser.add_argument("--passes", type=int, default=30, help="over a round's samples; a client's start costs 2 s of a core")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds of each of the two trainings")
    args = parser.parse_args()
    quotas = [float(q) for q in args.quotas.split(",")]
    config = {"rounds": args.rounds, "round_samples": args.round_samples, "samples": args.samples, "passes": args.passes, "width": args.width}
    result: dict[str, Any] = {"quotas": quotas, **config}
    for name, balance in (("equal", False), ("balanced", True)):
        rounds = train(quotas, args.timeout, balance=balance, **config)
        result[name] = {
            "round_s": statistics.mean(r["seconds"] for r in rounds[args.warm_up :]),
            "rounds_s": [round(r["seconds"], 2) for r in rounds],
            "clients": [
                {"samples": [r["samples"][c] for r in rounds], **{k: [round(r[k].get(c, 0), 1) for r in rounds] for k in ("trips", "computing")}}
                for c in rounds[0]["samples"]
            ],
            "loss": rounds[-1]["loss"],
        }
    result["gain"] = result["equal"]["round_s"] / result["balanced"]["round_s"]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
