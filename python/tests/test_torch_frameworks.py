"""Under Hugging Face Accelerate and Lightning, where those are installed."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import unittest
from typing import Any

import fake

try:
    import ranks
    import torch
    from torch import nn
    from torch.utils.data import DataLoader
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed (Debian: apt-get install python3-torch)")

import test_torch_update as update
from test_torch_run import free_port


def accelerated(rank: int, accumulate: int, length: int) -> Any:
    """The usual loop of Accelerate; its model, our loader."""
    from accelerate import Accelerator

    from cotenant.torch import Balancer

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulate)
    model = update.net(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(update.data(False, length), batch_size=1, shuffle=True)
    model, optimizer = accelerator.prepare(model, optimizer)
    model, loader = Balancer.prepare(
        model, loader, global_batch=update.GLOBAL, seed=7, accumulate=accumulate, threshold=-1.0
    )
    sizes = []
    for _ in range(2):
        optimizer.zero_grad()
        for i, (x, y) in enumerate(loader):
            update.answered(loader.balancer)
            sizes.append(loader.balancer.batch_size)
            with accelerator.accumulate(model):
                accelerator.backward(nn.functional.mse_loss(model(x), y))
                optimizer.step()
                optimizer.zero_grad()
    loader.balancer.close()
    return update.flat(accelerator.unwrap_model(model)), sizes, accelerator.num_processes


def lightning() -> Any:
    """Lightning, by the name that it has here; None where it is not installed."""
    name = next((n for n in ("lightning.pytorch", "pytorch_lightning") if importlib.util.find_spec(n.split(".")[0])), None)
    if name is None:
        return None
    # PyTorch 1.13 can't import this part of its own under Python 3.11, which wants
    # the defaults of dataclasses to have a hash. Lightning imports it.
    plain: Any = dataclasses.dataclass

    def hashed(cls: Any = None, **options: Any) -> Any:
        if cls is None:
            return lambda cls: hashed(cls, **options)
        return plain(cls, **(options if "__hash__" in cls.__dict__ else {"unsafe_hash": True, **options}))

    if torch.__version__.startswith("1."):
        dataclasses.dataclass = hashed
    try:
        importlib.import_module("torch.distributed.fsdp")
    finally:
        dataclasses.dataclass = plain
    return importlib.import_module(name)


def lit(rank: int) -> Any:
    """The usual module of Lightning, and the three lines."""
    pl = lightning()

    from cotenant.torch import Balancer

    sizes = []

    class Net(pl.LightningModule):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = update.net(False)

        def train_dataloader(self) -> Any:
            loader = DataLoader(update.data(False), batch_size=1, shuffle=True)
            _, self.loader = Balancer.prepare(
                self, loader, wrap=False, global_batch=update.GLOBAL, seed=7, threshold=-1.0
            )
            return self.loader

        def on_train_start(self) -> None:
            self.loader.balancer.attach(self.trainer.strategy.model)

        def training_step(self, batch: Any, i: int) -> torch.Tensor:
            update.answered(self.loader.balancer)
            sizes.append(self.loader.balancer.batch_size)
            return nn.functional.mse_loss(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)

    model = Net()
    trainer = pl.Trainer(
        max_epochs=2, accelerator="cpu", devices=3, strategy="ddp", use_distributed_sampler=False, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(model)
    model.loader.balancer.close()
    return update.flat(model.net), sizes, trainer.world_size


class Frameworks(unittest.TestCase):
    def check(self, function: Any, *args: Any, accumulate: int = 1, length: int = update.LENGTH) -> None:
        coordinator = fake.FakeCoordinator(fake.wander(update.GLOBAL, 3, 1, 1))
        self.addCleanup(coordinator.close)
        ((want,),) = ranks.run(1, update.alone, {"accumulate": accumulate, "length": length}, group=False)
        environment = {
            "COTENANT_ADDRESS": coordinator.address,
            "TORCHELASTIC_RUN_ID": "frameworks",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
        }
        for got, sizes, processes in ranks.run(3, function, *args, env=environment):
            self.assertEqual(processes, 3)
            self.assertGreater(len(set(sizes)), 2, "the shares never changed")
            self.assertLess(max(abs(a - b) for a, b in zip(got, want)), 1e-12)

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "Hugging Face Accelerate is not installed")
    def test_accelerate(self) -> None:
        self.check(accelerated, 1, update.LENGTH)

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "Hugging Face Accelerate is not installed")
    def test_accelerate_accumulates(self) -> None:
        # Accelerate counts on over the end of an epoch, so it has an even number of batches.
        self.check(accelerated, 2, 6 * update.GLOBAL, accumulate=2, length=6 * update.GLOBAL)

    @unittest.skipUnless(
        importlib.util.find_spec("lightning") or importlib.util.find_spec("pytorch_lightning"), "Lightning is not installed"
    )
    def test_lightning(self) -> None:
        self.check(lit)


if __name__ == "__main__":
    unittest.main()
