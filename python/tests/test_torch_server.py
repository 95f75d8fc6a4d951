"""Training with a parameter server, by the pushes and pulls of the example."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import pathlib
import statistics
import sys
import time
import unittest
from typing import Any

import fake

try:
    import ranks
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader, TensorDataset
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed (Debian: apt-get install python3-torch)")

import test_torch_update as update
from test_torch_run import free_port, program

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "torch_parameter_server.py"


def example() -> Any:
    spec = importlib.util.spec_from_file_location("torch_parameter_server", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def together(rank: int, options: dict[str, Any]) -> Any:
    """As `update.alone`, with a server, rank 0; returns its weights, and samples and shares of each worker."""
    from cotenant.torch import Balancer

    script, model = example(), update.net(False)
    workers = list(range(1, dist.get_world_size()))
    group = dist.new_group(workers)
    if rank == script.SERVER:
        script.serve(model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), workers)
        return update.flat(model)
    x, y = update.data(False, options["length"]).tensors
    loader = DataLoader(TensorDataset(torch.arange(len(x)), x, y), batch_size=update.GLOBAL // len(workers), shuffle=True)
    model, loader = Balancer.prepare(
        model, loader, wrap=False, group=group, global_batch=update.GLOBAL, seed=7,
        minimum=options.get("minimum"), threshold=options.get("threshold"),
    )  # fmt: skip
    balancer = loader.balancer
    seen: list[list[int]] = []
    for _ in range(options["epochs"]):
        for which, x, y in loader:
            if options.get("wait_for_answers"):
                update.answered(balancer)
            with balancer.communication():
                script.pull(model)
            time.sleep(options.get("sleep", {}).get(rank, 0.0) * len(which))
            model.zero_grad()
            balancer.scale(torch.nn.functional.mse_loss(model(x), y)).backward()
            with balancer.communication():
                script.push(model)
            seen.append(which[: balancer.batch_size].tolist())
    script.pull(model)
    script.push(model, goes_on=False)
    balancer.close()
    return seen


class Server(unittest.TestCase):
    def check(self, workers: int, options: dict[str, Any], env: dict[str, str]) -> list[list[int]]:
        """Holds the server's weights to those of a single process; returns the workers' batch sizes."""
        ((want,),) = ranks.run(1, update.alone, options, group=False)
        got, *seen = ranks.run(workers + 1, together, options, env=env)
        self.assertLess(max(abs(a - b) for a, b in zip(got, want)), 1e-12)
        every = sorted(sample for worker in seen for batch in worker for sample in batch)
        self.assertEqual(every, sorted(list(range(options["length"])) * options["epochs"]))
        return [[len(batch) for batch in worker] for worker in seen]

    def wandering(self, minimum: int) -> list[list[int]]:
        coordinator = fake.FakeCoordinator(fake.wander(update.GLOBAL, 3, minimum, 1))
        self.addCleanup(coordinator.close)
        options = {"length": update.LENGTH, "epochs": 2, "minimum": minimum, "threshold": -1.0, "wait_for_answers": True}
        sizes = self.check(3, options, {"COTENANT_ADDRESS": coordinator.address})
        self.assertGreater(len(set(zip(*sizes))), 2, "the shares never changed")
        return sizes

    def test_the_update_is_that_of_one_process(self) -> None:
        self.wandering(1)

    def test_workers_without_samples(self) -> None:
        self.assertIn(0, sum(self.wandering(0), []))

    @unittest.skipUnless(program(), "the Go program is not built: make build, or set COTENANT_BINARY")
    def test_shares_go_by_speed(self) -> None:
        # Worker 2 takes three times as long a sample. All wait for it in the
        # server's answer, which must not count as their own work.
        options = {"length": 30 * update.GLOBAL, "epochs": 1, "sleep": {1: 0.006, 2: 0.018, 3: 0.006}}
        sizes = self.check(3, options, {"COTENANT_BINARY": program() or "", "COTENANT_ADDRESS": ""})
        self.assertEqual([worker[0] for worker in sizes], [8, 8, 8])
        # 24 x 3/7, 24 x 1/7, 24 x 3/7; the middle ones, since on a busy machine
        # any rank may be the slow one for a while.
        settled = [statistics.median(worker[15:]) for worker in sizes]
        for got, want in zip(settled, (10.3, 3.4, 10.3)):
            self.assertLess(abs(got - want), 2.0, sizes)


def whole(rank: int, arguments: list[str]) -> str:
    sys.argv = [str(EXAMPLE), *arguments]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        example().main()
    return out.getvalue()


def refused(rank: int) -> str:
    from cotenant.torch import Balancer

    group = dist.new_group([1])
    if rank == 1:
        return ""
    try:
        Balancer.prepare(update.net(False), DataLoader(update.data(False), batch_size=1), wrap=False, group=group)
    except ValueError as e:
        return str(e)
    return "taken"


class Script(unittest.TestCase):
    def test_the_example_learns(self) -> None:
        coordinator = fake.FakeCoordinator()
        self.addCleanup(coordinator.close)
        environment = {
            "COTENANT_ADDRESS": coordinator.address,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
        }
        arguments = ["--epochs", "2", "--samples", "1000", "--batch-size", "16"]
        server, first, second = ranks.run(3, whole, arguments, env=environment, group=False)
        self.assertEqual(server + second, "")
        losses = [float(line.split("loss ")[1].split()[0]) for line in first.splitlines()]
        self.assertEqual(len(losses), 2)
        self.assertLess(losses[1], losses[0])
        self.assertIn("over 1000 samples", first)

    def test_a_server_takes_no_batches(self) -> None:
        answer, _ = ranks.run(2, refused)
        self.assertIn("not in group=", answer)


if __name__ == "__main__":
    unittest.main()
