"""What a rank of `quotas.py` does, with PyTorch: the script of a user, and a log of its iterations."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from typing import Any

import rank_log
import torch
import torch.distributed as dist
from cgroups import Group
from torch import nn


def context() -> Any:
    """How ranks are started: forked, so that the library is loaded once."""
    return multiprocessing.get_context("fork")


def meeting(folder: str, ranks: int) -> str:
    """Where ranks meet."""
    return f"file://{folder}/store"


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


def train(
    rank: int, ranks: int, group: Group | None, store: str, folder: str, balance: bool, args: argparse.Namespace, seed: int
) -> None:
    """A rank of one training; writes rank-N.json into the folder."""
    torch.set_num_threads(1)
    data = dataset(4096, seed)
    if args.world == "cost":
        # Epochs of more iterations than are measured: at the beginning of one
        # ranks wait for each other, and 16 iterations are no epoch.
        data = torch.utils.data.ConcatDataset([data] * 64)
    if group is not None:
        group.join()
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), COTENANT_JOB=f"bench-{balance}-{seed}")
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=ranks)
    from cotenant.torch import Balancer

    torch.manual_seed(seed)
    loader = torch.utils.data.DataLoader(data, batch_size=args.global_batch // ranks, shuffle=True)
    model, loader = Balancer.prepare(net(args.width), loader, balance=balance, seed=seed, predictor=args.predictor)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    balancer = loader.balancer
    lines = []
    since = rank_log.spent(balancer)
    until = time.monotonic() + args.seconds
    done = torch.zeros(1)
    while not done.item():
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            if args.world == "cost":  # as long as a rank computes, but the processor is free
                time.sleep(0.3 * len(images) / (args.global_batch / ranks))
            loss.backward()
            optimizer.step()
            lines.append((time.monotonic(), balancer.batch_size, loss.item(), balancer.shares))
            if args.world == "cost" and len(lines) == args.warm_up:
                since = rank_log.spent(balancer)
            # Time is over for all ranks when it is for rank 0, at the same iteration.
            done.fill_(float(len(lines) >= args.iterations or time.monotonic() > until) if rank == 0 else 0.0)
            if len(lines) % 4 == 0 or len(lines) >= args.iterations:
                dist.broadcast(done, 0)
                if done.item():
                    break
            else:
                done.zero_()
    rank_log.write(folder, rank, lines, balancer, since)
