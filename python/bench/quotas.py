"""Four ranks under unequal CPU quotas: equal batches against balanced ones.

::

    python3 python/bench/quotas.py static --seconds 40
    python3 python/bench/quotas.py swap --seconds 75          # quotas rotate every 30 s
    python3 python/bench/quotas.py cotenant --seconds 75      # a busy neighbour of rank 3, 30 s on, 30 s off
    python3 python/bench/quotas.py loss --seeds 4 --iterations 60 --width 8

Each rank is a process in a cgroup of its own with .2, .4, .6 and .6 of a core;
the neighbour runs inside rank 3's. The model is a small convolutional net whose
work is all compute; the ranks meet over gloo on loopback. Needs root, PyTorch,
a quiet machine, and the Go program (COTENANT_BINARY, the wheel's, or on PATH).
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time
from typing import Any

import torch
import torch.distributed as dist
from cgroups import Group
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
QUOTAS = (0.2, 0.4, 0.6, 0.6)


def net(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * width, 10),
    )


def dataset(samples: int, seed: int) -> Any:
    """Ten patterns under noise: learnable, and nothing to download."""
    generator = torch.Generator().manual_seed(seed)
    patterns = torch.randn(10, 3, 32, 32, generator=generator)
    labels = torch.randint(0, 10, (samples,), generator=generator)
    images = 0.25 * patterns[labels] + torch.randn(samples, 3, 32, 32, generator=generator)
    return torch.utils.data.TensorDataset(images, labels)


def train(rank: int, group: Group | None, folder: str, data: Any, balance: bool, args: argparse.Namespace, seed: int) -> None:
    """A rank: the script of a user, and a log of its iterations."""
    if group is not None:
        group.join()
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(len(QUOTAS)), COTENANT_JOB=f"bench-{balance}-{seed}")
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=len(QUOTAS))
    from cotenant.torch import Balancer

    torch.manual_seed(seed)
    loader = torch.utils.data.DataLoader(data, batch_size=args.global_batch // len(QUOTAS), shuffle=True)
    model, loader = Balancer.prepare(net(args.width), loader, balance=balance, seed=seed, predictor=args.predictor)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    balancer = loader.balancer
    lines = []
    until = time.monotonic() + args.seconds
    done = torch.zeros(1)
    while not done.item():
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            lines.append((time.monotonic(), balancer.batch_size, loss.item(), balancer.shares))
            # Time is over for all ranks when it is for rank 0, at the same iteration.
            done.fill_(float(len(lines) >= args.iterations or time.monotonic() > until) if rank == 0 else 0.0)
            if len(lines) % 4 == 0 or len(lines) >= args.iterations:
                dist.broadcast(done, 0)
                if done.item():
                    break
            else:
                done.zero_()
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


def burn() -> None:
    while True:
        pass


def run(args: argparse.Namespace, data: Any, balance: bool, seed: int = 1) -> dict[str, Any]:
    """One training; what the world does to it meanwhile is by args.world."""
    context = multiprocessing.get_context("fork")
    limited = args.world != "loss"
    groups = [Group(f"cotenant-bench-{os.getpid()}-{rank}") for rank in range(len(QUOTAS))] if limited else []
    neighbour: Any = None
    with tempfile.TemporaryDirectory() as folder:
        try:
            for group, cores in zip(groups, QUOTAS):
                group.limit(cores)
            ranks = [
                context.Process(target=train, args=(rank, groups[rank] if limited else None, folder, data, balance, args, seed))
                for rank in range(len(QUOTAS))
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
                        neighbour = context.Process(target=beside, args=(groups[3],))
                        neighbour.start()
                    elif neighbour is not None:
                        neighbour.kill()
                        neighbour.join()
                        neighbour = None
                if any(process.exitcode for process in ranks):
                    raise SystemExit("a rank failed")
            rows = [json.loads(pathlib.Path(folder, f"rank-{rank}.json").read_text()) for rank in range(len(QUOTAS))]
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
    parser.add_argument("world", choices=("static", "swap", "cotenant", "loss"))
    parser.add_argument("--seconds", type=float, default=40.0, help="of each of the two trainings")
    parser.add_argument("--every", type=float, default=30.0, help="seconds between changes of the world")
    parser.add_argument("--iterations", type=int, default=10**9)
    parser.add_argument("--warm-up", type=int, default=8, help="first iterations, which do not count in either")
    parser.add_argument("--global-batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--predictor", default="auto")
    parser.add_argument("--seeds", type=int, default=4, help="of `loss`")
    args = parser.parse_args()
    if args.world == "loss":
        args.seconds = 1e9
        ends: dict[bool, list[float]] = {False: [], True: []}
        apart = 0.0
        for seed in range(1, args.seeds + 1):
            data = dataset(4096, seed)
            both = [run(args, data, balance, seed) for balance in (False, True)]
            for balance, one in zip((False, True), both):
                ends[balance].append(statistics.mean(one["losses"][-5:]))
            apart = max(apart, abs(ends[True][-1] - ends[False][-1]))
        print(json.dumps({"equal": ends[False], "balanced": ends[True], "apart_at_most": apart, "sd_of_seeds": statistics.stdev(ends[False])}))
        return
    data = dataset(4096, 1)
    result: dict[str, Any] = {"world": args.world}
    for name, balance in (("equal", False), ("balanced", True)):
        result[name] = run(args, data, balance)
    for name in ("iteration_ms", "median_ms"):
        result[f"gain_{name}"] = result["equal"][name] / result["balanced"][name]
    both = zip(result["equal"].pop("losses"), result["balanced"].pop("losses"))
    result["losses_apart_at_most"] = max(abs(a - b) for a, b in both)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
