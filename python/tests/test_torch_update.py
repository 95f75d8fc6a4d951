"""The update of unequal batches is the update of the whole global batch."""

from __future__ import annotations

import contextlib
import time
import unittest
from typing import Any

import fake

try:
    import ranks
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed (Debian: apt-get install python3-torch)")

LENGTH, GLOBAL = 150, 24  # the last batch has 6


def data(dyadic: bool, length: int = LENGTH) -> Any:
    generator = torch.Generator().manual_seed(3)
    if dyadic:  # multiples of 1/8 in [-2, 2): sums and products of a few are exact
        x = torch.randint(-16, 16, (length, 4), generator=generator).double() / 8
        y = torch.randint(-16, 16, (length, 1), generator=generator).double() / 8
    else:
        x = torch.randn(length, 4, generator=generator, dtype=torch.float64)
        y = torch.randn(length, 1, generator=generator, dtype=torch.float64)
    return torch.utils.data.TensorDataset(x, y)


def net(dyadic: bool) -> nn.Module:
    torch.manual_seed(5)
    if dyadic:
        model: nn.Module = nn.Linear(4, 1).double()
        with torch.no_grad():
            for p in model.parameters():
                p.copy_((p * 8).round() / 8)
        return model
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()


def flat(model: nn.Module) -> list[float]:
    return torch.cat([p.detach().flatten() for p in model.parameters()]).tolist()


def gradients(model: nn.Module) -> list[float]:
    return torch.cat([p.grad.flatten() for p in model.parameters()]).tolist()


def alone(rank: int, options: dict[str, Any]) -> list[list[float]]:
    """The reference: one process, plain PyTorch, DistributedSampler's order."""
    dyadic, accumulate = options.get("dyadic", False), options.get("accumulate", 1)
    length, size = options.get("length", LENGTH), options.get("global", GLOBAL)
    dataset, model = data(dyadic, length), net(dyadic)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.0 if dyadic else 0.9)
    result = []
    for epoch in range(options.get("epochs", 2)):
        optimizer.zero_grad()
        order = torch.randperm(length, generator=torch.Generator().manual_seed(7 + epoch))
        for i, begin in enumerate(range(0, length, size)):
            x, y = dataset[order[begin : begin + size]]
            (loss(model(x), y, options) / accumulate).backward()
            if (i + 1) % accumulate == 0:
                if dyadic:
                    result.append(gradients(model))
                else:
                    optimizer.step()
                optimizer.zero_grad()
    return result or [flat(model)]


def loss(output: torch.Tensor, y: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
    return nn.functional.mse_loss(output, y, reduction="sum" if options.get("sum_losses") else "mean")


def answered(balancer: Any) -> None:
    """Waits on rank 0 for the coordinator, as slow iterations would, so that shares change at any load."""
    session = balancer.pace.session
    until = time.monotonic() + 10
    while session is not None and not session.idle and time.monotonic() < until:
        time.sleep(0.001)


def together(rank: int, options: dict[str, Any]) -> Any:
    """The same, as one of several ranks: two lines more."""
    from cotenant.torch import Balancer

    dyadic, accumulate = options.get("dyadic", False), options.get("accumulate", 1)
    length, size = options.get("length", LENGTH), options.get("global", GLOBAL)
    dataset, model = data(dyadic, length), net(dyadic)
    loader = torch.utils.data.DataLoader(dataset, batch_size=1, shuffle=True)
    if options.get("own_hook"):
        model = DistributedDataParallel(model)
        import torch.distributed.algorithms.ddp_comm_hooks.default_hooks as hooks

        model.register_comm_hook(None, hooks.allreduce_hook)
    model, loader = Balancer.prepare(
        model,
        loader,
        global_batch=size,
        seed=7,
        accumulate=accumulate,
        minimum=options.get("minimum"),
        sum_losses=options.get("sum_losses", False),
        threshold=-1.0,
        wrap=not options.get("manual", False),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.0 if dyadic else 0.9)
    scale = options.get("scale", 1.0)  # as AMP's GradScaler does
    result, sizes = [], []
    for _ in range(options.get("epochs", 2)):
        optimizer.zero_grad()
        for i, (x, y) in enumerate(loader):
            last = (i + 1) % accumulate == 0
            answered(loader.balancer)
            sizes.append(loader.balancer.batch_size)
            with contextlib.nullcontext() if last or options.get("manual") else model.no_sync():
                value = loss(model(x), y, options) * scale / accumulate
                (loader.balancer.scale(value) if options.get("manual") else value).backward()
            if options.get("manual"):  # as with a parameter server
                loader.balancer.ready()
                for p in model.parameters():
                    torch.distributed.all_reduce(p.grad)
                    p.grad.div_(loader.balancer.workers)
                loader.balancer.done()
            if last:
                for p in model.parameters():
                    p.grad.div_(scale)
                if dyadic:
                    result.append(gradients(model))
                else:
                    optimizer.step()
                optimizer.zero_grad()
    loader.balancer.close()
    return result or [flat(model)], sizes


class Update(unittest.TestCase):
    def check(self, workers: int, exact: bool = False, seed: int = 1, **options: Any) -> list[Any]:
        coordinator = fake.FakeCoordinator(fake.wander(GLOBAL, workers, options.get("minimum", 1), seed))
        self.addCleanup(coordinator.close)
        (want,) = ranks.run(1, alone, options, group=False)
        answers = ranks.run(workers, together, options, env={"COTENANT_ADDRESS": coordinator.address})
        for got, _ in answers:
            self.assertEqual(len(got), len(want))
            for a, b in zip(got, want):
                if exact:
                    self.assertEqual(a, b)
                    continue
                top = max(map(abs, b))
                self.assertLess(max(abs(x - y) for x, y in zip(a, b)) / top, 1e-12)
        sizes = [sizes for _, sizes in answers]
        self.assertEqual(sum(map(sum, sizes)), options.get("epochs", 2) * options.get("length", LENGTH))
        self.assertGreater(len(set(zip(*sizes))), 2, "the shares never changed")
        return sizes

    def test_float64(self) -> None:
        self.check(3)

    def test_dyadic_data_exactly_whatever_the_number_of_ranks(self) -> None:
        # The loss is a sum, so every gradient is a sum of products of dyadic
        # numbers, and stays one.
        self.check(3, exact=True, dyadic=True, sum_losses=True)

    def test_ranks_without_samples(self) -> None:
        sizes = self.check(4, minimum=0, seed=4)
        self.assertIn(0, sum(sizes, []))

    def test_accumulation(self) -> None:
        self.check(2, accumulate=2)

    def test_accumulation_with_a_last_batch_of_another_weight(self) -> None:
        # Two iterations an epoch; only the whole one is reported.
        self.check(2, accumulate=4, length=7 * GLOBAL + 6, epochs=5)

    def test_loss_scaled_as_for_half_precision(self) -> None:
        self.check(2, scale=1024.0)

    def test_gradients_that_the_script_averages(self) -> None:
        self.check(3, manual=True)

    def test_beside_a_hook_of_the_script(self) -> None:
        self.check(3, own_hook=True, accumulate=2)


class Dyadic(unittest.TestCase):
    def test_means_exactly(self) -> None:
        # Shares that are powers of two: the ranks' means are dyadic as well.
        coordinator = fake.FakeCoordinator(self.powers)
        self.addCleanup(coordinator.close)
        options = {"dyadic": True, "length": 128, "global": 32}
        (want,) = ranks.run(1, alone, options, group=False)
        for got, _ in ranks.run(3, together, options, env={"COTENANT_ADDRESS": coordinator.address}):
            self.assertEqual(got, want)

    @staticmethod
    def powers(method: str, request: dict[str, Any]) -> Any:
        sizes = [16, 8, 8] if int(request.get("iteration", 0)) % 2 else [8, 16, 8]
        shares = {"generation": "1", "iteration": str(int(request.get("iteration", 0)) + 2), "batchSizes": sizes}
        return {"generation": "1", "shares": shares} if method in ("Open", "Report") else None


if __name__ == "__main__":
    unittest.main()
