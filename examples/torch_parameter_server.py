"""Trains a small net with a parameter server: rank 0 has the weights, and all
others, which need not be equally fast, push gradients to it.

    pip install --no-deps bin/cotenant-*.whl
    torchrun --nproc-per-node 4 examples/torch_parameter_server.py --epochs 2

Synchronous: the server waits for the gradients of all workers, then makes a step.
What makes it balanced are the lines of `main` and `work` with a balancer in them;
the server does not know of it.
"""

import argparse
from typing import Sequence

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from cotenant.torch import Balancer

SERVER = 0


def serve(model: nn.Module, optimizer: torch.optim.Optimizer, workers: Sequence[int]) -> None:
    """The server: hands out weights and applies the mean of the gradients, until a worker says that it is done."""
    weights = parameters_to_vector(model.parameters()).detach()
    pushed = [torch.empty(len(weights) + 1, dtype=weights.dtype) for _ in workers]
    while True:
        for worker in workers:
            dist.send(weights, worker)
        for worker, row in zip(workers, pushed):
            dist.recv(row, worker)
        mean = torch.stack(pushed).mean(0)
        if mean[-1] < 1:
            return
        for parameter, gradient in zip(model.parameters(), mean.split([*(p.numel() for p in model.parameters()), 1])):
            parameter.grad = gradient.view_as(parameter)
        optimizer.step()
        weights = parameters_to_vector(model.parameters()).detach()


def pull(model: nn.Module) -> None:
    """Takes the server's weights; waits until all workers' gradients are in them."""
    weights = parameters_to_vector(model.parameters()).detach()
    dist.recv(weights, SERVER)
    vector_to_parameters(weights, model.parameters())


def push(model: nn.Module, goes_on: bool = True) -> None:
    """Gives the server the gradients, and tells whether more will follow."""
    rows = [p.grad.flatten() if p.grad is not None else torch.zeros_like(p).flatten() for p in model.parameters()]
    dist.send(torch.cat([*rows, rows[0].new_tensor([float(goes_on)])]), SERVER)


def work(model: nn.Module, loader: torch.utils.data.DataLoader, epochs: int, group: dist.ProcessGroup) -> None:
    """A worker: pulls, computes, pushes; the first prints the loss of each epoch."""
    balancer = loader.balancer
    for epoch in range(epochs):
        total = torch.zeros(2)
        for images, labels in loader:
            with balancer.communication():
                pull(model)
            model.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            balancer.scale(loss).backward()
            with balancer.communication():
                push(model)
            # batch_size is 0 where a rank has no samples and works on a stand-in.
            total += torch.tensor([balancer.batch_size * loss.item(), balancer.batch_size])
        dist.all_reduce(total, group=group)
        if balancer.rank == 0:
            print(f"epoch {epoch}: loss {total[0] / total[1]:.4f} over {int(total[1])} samples, batch sizes {balancer.shares}", flush=True)
    pull(model)
    push(model, goes_on=False)


def dataset(samples: int) -> torch.utils.data.TensorDataset:
    """Ten patterns under noise."""
    generator = torch.Generator().manual_seed(1)
    patterns = torch.randn(10, 3, 16, 16, generator=generator)
    labels = torch.randint(0, 10, (samples,), generator=generator)
    images = 0.25 * patterns[labels] + torch.randn(samples, 3, 16, 16, generator=generator)
    return torch.utils.data.TensorDataset(images, labels)


def main() -> None:
    """Rank 0 serves, the others train."""
    parser = argparse.ArgumentParser(description="trains a small net with a parameter server")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--batch-size", type=int, default=32, help="of a worker, before balancing")
    parser.add_argument("--checkpoint", default="", help="the server writes the trained weights there")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    workers = [rank for rank in range(dist.get_world_size()) if rank != SERVER]
    group = dist.new_group(workers)  # every rank takes part in making it, the server too
    torch.manual_seed(1)
    model: nn.Module = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)
    )
    if dist.get_rank() == SERVER:
        serve(model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), workers)
        if args.checkpoint:
            torch.save(model.state_dict(), args.checkpoint)
        return
    loader = torch.utils.data.DataLoader(dataset(args.samples), batch_size=args.batch_size, shuffle=True)

    model, loader = Balancer.prepare(model, loader, wrap=False, group=group)

    work(model, loader, args.epochs, group)


if __name__ == "__main__":
    main()
