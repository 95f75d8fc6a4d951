"""Trains a small convolutional net on two ranks; gloo all-reduces gradients.

Rank 0 prints the line "iteration" after each. The data are random: only the
time counts here.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank: int, ranks: int, port: int, batch_size: int) -> None:
    """Iterates for ever as one of the ranks."""
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks
    )
    model = DistributedDataParallel(
        nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Linear(512, 256),
            nn.ReLU(),
            nn.Linear(256, 10),
        )
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(batch_size, 3, 32, 32)
    labels = torch.randint(0, 10, (batch_size,))
    while True:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        if rank == 0:
            print("iteration", flush=True)


def main() -> None:
    """Forks the ranks, so that the library is loaded only once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    rank = 0 if os.fork() else 1
    train(rank, 2, args.port, args.batch_size)


if __name__ == "__main__":
    main()
