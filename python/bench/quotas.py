"""Four ranks under unequal CPU quotas: equal batches against balanced ones.

::

    python3 python/bench/quotas.py static --seconds 40
    python3 python/bench/quotas.py swap --seconds 75          # quotas rotate every 30 s
    python3 python/bench/quotas.py cotenant --seconds 75      # a busy neighbour of the last, 30 s on, 30 s off
    python3 python/bench/quotas.py loss --seeds 4 --iterations 60 --width 8
    python3 python/bench/quotas.py static --framework tensorflow
    python3 python/bench/quotas.py static --framework torch_server # with a parameter server
    python3 python/bench/quotas.py cost --ranks 2 --width 1 --warm-up 60 # ranks that sleep: what does balancing itself cost?

Each rank is a process in a cgroup of its own with .2, .4, .6 and .6 of a core;
the neighbour runs inside the last's. The model is a small convolutional net whose
work is all compute; the ranks meet on loopback. Needs root, the framework, a
quiet machine, and the Go program (COTENANT_BINARY, the wheel's, or on PATH).
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time
from typing import Any

from cgroups import Group

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
QUOTAS = (0.2, 0.4, 0.6, 0.6)


def burn() -> None:
    while True:
        pass


def run(args: argparse.Namespace, balance: bool, seed: int = 1) -> dict[str, Any]:
    """One training; what the world does to it meanwhile is by args.world."""
    training = importlib.import_module(f"{args.framework}_training")
    context = training.context()
    limited = args.world not in ("loss", "cost")
    groups = [Group(f"cotenant-bench-{os.getpid()}-{rank}") for rank in range(args.ranks)] if limited else []
    neighbour: Any = None
    with tempfile.TemporaryDirectory() as folder:
        try:
            for group, cores in zip(groups, QUOTAS):
                group.limit(cores)
            meeting = training.meeting(folder, args.ranks)
            ranks = [
                context.Process(
                    target=training.train,
                    args=(rank, args.ranks, groups[rank] if limited else None, meeting, folder, balance, args, seed),
                )
                for rank in range(args.ranks)
            ]
            for process in ranks:
                process.start()
            began, turn = time.monotonic(), 0
            while any(process.is_alive() for process in ranks):
                ranks[0].join(0.25)
                # The world changes half an interval in, so that both its states count alike.
                now = int((time.monotonic() - began + args.every / 2) // args.every)
                if now > turn:
                    turn = now
                    if args.world == "swap":
                        for rank, group in enumerate(groups):
                            group.limit(QUOTAS[(rank + turn) % len(QUOTAS)])
                    elif args.world == "cotenant" and turn % 2 == 1:
                        neighbour = multiprocessing.get_context("fork").Process(target=beside, args=(groups[-1],))
                        neighbour.start()
                    elif neighbour is not None:
                        neighbour.kill()
                        neighbour.join()
                        neighbour = None
                if any(process.exitcode for process in ranks):
                    raise SystemExit("a rank failed")
            rows = [json.loads(pathlib.Path(folder, f"rank-{rank}.json").read_text()) for rank in range(args.ranks)]
        finally:
            if neighbour is not None:
                neighbour.kill()
            for group in groups:
                group.close()
    return summary(rows, args)


def beside(group: Group) -> None:
    group.join()
    burn()


def summary(rows: list[dict[str, Any]], args: argparse.Namespace) -> dict[str, Any]:
    times = [line[0] for line in rows[0]["lines"]]
    steps = [b - a for a, b in zip(times, times[1:])]
    settled = steps[args.warm_up :]
    lines = list(zip(*(row["lines"] for row in rows)))
    losses = [sum(size * loss for _, size, loss, _ in line) / sum(size for _, size, *_ in line) for line in lines]
    return {
        "iterations": len(times),
        "iteration_ms": 1e3 * statistics.mean(settled),
        "median_ms": 1e3 * statistics.median(settled),
        "shares": [line[3] for line in rows[0]["lines"]][:: max(1, len(times) // 12)],
        "losses": losses,
        "cpu_ms": [round(row["cpu_ms"], 3) for row in rows],
        "blocked_ms": [round(row["blocked_ms"], 3) for row in rows],
        "thread_cpu_ms": round(rows[0]["thread_cpu_ms"], 3),
        "reported": rows[0]["reported"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("world", choices=("static", "swap", "cotenant", "loss", "cost"))
    parser.add_argument("--framework", choices=("torch", "torch_server", "tensorflow"), default="torch")
    parser.add_argument("--seconds", type=float, default=40.0, help="of each of the two trainings")
    parser.add_argument("--every", type=float, default=30.0, help="seconds between changes of the world")
    parser.add_argument("--iterations", type=int, default=10**9)
    parser.add_argument("--warm-up", type=int, default=8, help="first iterations, which do not count in either")
    parser.add_argument("--global-batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--ranks", type=int, choices=range(1, len(QUOTAS) + 1), default=len(QUOTAS))
    parser.add_argument("--predictor", default="auto")
    parser.add_argument("--seeds", type=int, default=4, help="of `loss`")
    args = parser.parse_args()
    if args.world == "loss":
        args.seconds = 1e9
        ends: dict[bool, list[float]] = {False: [], True: []}
        apart = 0.0
        for seed in range(1, args.seeds + 1):
            both = [run(args, balance, seed) for balance in (False, True)]
            for balance, one in zip((False, True), both):
                ends[balance].append(statistics.mean(one["losses"][-5:]))
            apart = max(apart, abs(ends[True][-1] - ends[False][-1]))
        print(json.dumps({"equal": ends[False], "balanced": ends[True], "apart_at_most": apart, "sd_of_seeds": statistics.stdev(ends[False])}))
        return
    if args.world == "cost":
        one = run(args, True)
        print(json.dumps({name: one[name] for name in ("iterations", "iteration_ms", "cpu_ms", "blocked_ms", "thread_cpu_ms", "reported")}))
        return
    result: dict[str, Any] = {"world": args.world, "framework": args.framework}
    for name, balance in (("equal", False), ("balanced", True)):
        result[name] = run(args, balance)
    for name in ("iteration_ms", "median_ms"):
        result[f"gain_{name}"] = result["equal"][name] / result["balanced"][name]
    both = zip(result["equal"].pop("losses"), result["balanced"].pop("losses"))
    result["losses_apart_at_most"] = max(abs(a - b) for a, b in both)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
