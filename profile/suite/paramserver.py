"""Trains a small dense net: one worker and one parameter server.

The worker sends its gradients to the server over gloo, which applies them and
sends the weights back. The worker prints the line "iteration" after each. The
data are random: only the time counts here.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

SERVER, WORKER = 0, 1


def make_model() -> nn.Module:
    """A dense net with 0.35 million weights (1.4 MB each way)."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 384), nn.ReLU(), nn.Linear(384, 10)
    )


def serve() -> None:
    """Applies gradients as they come, for ever."""
    weights = parameters_to_vector(make_model().parameters()).detach()
    gradient = torch.empty_like(weights)
    while True:
        dist.recv(gradient, src=WORKER)
        weights.add_(gradient, alpha=-0.01)
        dist.send(weights, dst=WORKER)


def work(batch_size: int) -> None:
    """Computes gradients on its batch, for ever."""
    model = make_model()
    weights = parameters_to_vector(model.parameters()).detach()
    inputs = torch.randn(batch_size, 256)
    labels = torch.randint(0, 10, (batch_size,))
    while True:
        model.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        gradient = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
        dist.send(gradient, dst=SERVER)
        dist.recv(weights, src=SERVER)
        vector_to_parameters(weights, model.parameters())
        print("iteration", flush=True)


def main() -> None:
    """Forks the two roles, so that the library is loaded only once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    rank = SERVER if os.fork() else WORKER
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{args.port}", rank=rank, world_size=2
    )
    if rank == SERVER:
        serve()
    else:
        work(args.batch_size)


if __name__ == "__main__":
    main()
