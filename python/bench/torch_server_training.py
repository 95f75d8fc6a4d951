"""What a rank of `quotas.py` does with a parameter server, which is one more process beside rank 0, without a quota."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time
from typing import Any

import rank_log
import torch
import torch.distributed as dist
from cgroups import Group
from torch import nn
from torch_training import context, dataset, meeting, net

__all__ = ["context", "meeting", "train"]

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "examples"))


def server(workers: int, store: str, width: int, seed: int) -> None:
    import torch_parameter_server as example

    torch.set_num_threads(1)
    join(0, workers, store)
    torch.manual_seed(seed)
    model = net(width)
    example.serve(model, torch.optim.SGD(model.parameters(), lr=0.05), list(range(1, workers + 1)))


def join(rank: int, workers: int, store: str) -> Any:
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=workers + 1)
    return dist.new_group(list(range(1, workers + 1)))


def train(
    rank: int, ranks: int, quota: Group | None, store: str, folder: str, balance: bool, args: argparse.Namespace, seed: int
) -> None:
    """A worker of one training; writes rank-N.json into the folder."""
    beside = context().Process(target=server, args=(ranks, store, args.width, seed), daemon=True)
    if rank == 0:
        beside.start()
    torch.set_num_threads(1)
    data = dataset(4096, seed)
    if quota is not None:
        quota.join()
    os.environ.update(LOCAL_RANK=str(rank), COTENANT_JOB=f"bench-{balance}-{seed}")
    group = join(rank + 1, ranks, store)
    import torch_parameter_server as example

    from cotenant.torch import Balancer

    loader = torch.utils.data.DataLoader(data, batch_size=args.global_batch // ranks, shuffle=True)
    model, loader = Balancer.prepare(
        net(args.width), loader, wrap=False, group=group, balance=balance, seed=seed, predictor=args.predictor
    )
    balancer = loader.balancer
    lines: list[Any] = []
    until = time.monotonic() + args.seconds
    done = torch.zeros(1)
    while not done.item():
        for images, labels in loader:
            with balancer.communication():
                example.pull(model)
            model.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            balancer.scale(loss).backward()
            with balancer.communication():
                example.push(model)
            lines.append((time.monotonic(), balancer.batch_size, loss.item(), balancer.shares))
            # Time is over for all workers when it is for the first, at the same iteration.
            if len(lines) % 4 == 0 or len(lines) >= args.iterations:
                done.fill_(float(len(lines) >= args.iterations or time.monotonic() > until))
                dist.broadcast(done, 1, group=group)
                if done.item():
                    break
    example.pull(model)
    example.push(model, goes_on=False)
    rank_log.write(folder, rank, lines, balancer)
    if rank == 0:
        beside.join()
