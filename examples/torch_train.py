"""Trains a small net on several ranks that need not be equally fast.

    pip install --no-deps bin/cotenant-*.whl
    torchrun --nproc-per-node 4 examples/torch_train.py --epochs 2

The two lines about cotenant are all that makes it balanced; without them, and
with a DistributedSampler, it is an ordinary script. Killed, and started again
with the same --checkpoint, it goes on where it was, with as many ranks as there
are then. ``python -m cotenant.doctor --ranks 4 examples/torch_train.py`` tells
whether it gains.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn

from cotenant.torch import Balancer


def dataset(samples: int) -> torch.utils.data.TensorDataset:
    """Ten patterns under noise."""
    generator = torch.Generator().manual_seed(1)
    patterns = torch.randn(10, 3, 16, 16, generator=generator)
    labels = torch.randint(0, 10, (samples,), generator=generator)
    images = 0.25 * patterns[labels] + torch.randn(samples, 3, 16, 16, generator=generator)
    return torch.utils.data.TensorDataset(images, labels)


def main() -> None:
    """Trains and prints the loss of each epoch."""
    parser = argparse.ArgumentParser(description="trains a small net on several ranks")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--batch-size", type=int, default=32, help="of a rank, before balancing")
    parser.add_argument("--checkpoint", default="")
    args = parser.parse_args()
    torch.manual_seed(1)
    model: nn.Module = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)
    )
    loader = torch.utils.data.DataLoader(dataset(args.samples), batch_size=args.batch_size, shuffle=True)

    model, loader = Balancer.prepare(model, loader)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    if args.checkpoint and os.path.exists(args.checkpoint):
        saved = torch.load(args.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
    first = not dist.is_initialized() or dist.get_rank() == 0
    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        total = torch.zeros(2)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            # batch_size is 0 where a rank has no samples and works on a stand-in.
            size = loader.balancer.batch_size
            total += torch.tensor([size * loss.item(), size])
        if dist.is_initialized():
            dist.all_reduce(total)
        if first:
            print(f"epoch {epoch}: loss {total[0] / total[1]:.4f} over {int(total[1])} samples, batch sizes {loader.balancer.shares}", flush=True)
            if args.checkpoint:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
                torch.save(state, args.checkpoint + ".new")
                os.replace(args.checkpoint + ".new", args.checkpoint)


if __name__ == "__main__":
    main()
