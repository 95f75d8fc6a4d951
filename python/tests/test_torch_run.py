"""Whole runs: ranks that hang, coordinators that die, the real program."""

from __future__ import annotations

import datetime
import multiprocessing
import os
import pathlib
import signal
import socket
import subprocess
import time
import unittest
from typing import Any

import fake

try:
    import ranks
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed (Debian: apt-get install python3-torch)")

PACKAGE = pathlib.Path(__file__).resolve().parent.parent


def program() -> str | None:
    """The Go program, if it was built and can coordinate."""
    for path in (os.environ.get("COTENANT_BINARY"), str(PACKAGE.parent / "bin" / "cotenant")):
        if path and os.path.exists(path):
            if subprocess.run([path, "serve", "balance", "--help"], capture_output=True).returncode == 0:
                return path
    return None


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def steps(rank: int, options: dict[str, Any]) -> Any:
    """A short training whose rank 0 is three times as slow a sample."""
    from cotenant.torch import Balancer

    dataset = TensorDataset(torch.arange(float(options["length"])).reshape(-1, 1))
    model, loader = Balancer.prepare(nn.Linear(1, 1), DataLoader(dataset, batch_size=8, shuffle=True), seed=1)
    seen, shares = [], []
    for i, (x,) in enumerate(loader):
        seen += x[: loader.balancer.batch_size, 0].tolist()
        shares.append(loader.balancer.shares)
        time.sleep(0.004 * len(x) * (3 if rank == 0 else 1))
        model(x).mean().backward()
        if rank == 0 and i == options.get("kill_coordinator"):
            session = loader.balancer.pace.session
            while session.access.own is None:  # not started yet on a busy machine
                time.sleep(0.01)
            os.kill(session.access.own._process.pid, signal.SIGKILL)
    pace = loader.balancer.pace
    pid = pace.session.access.own._process.pid if rank == 0 and pace.session.access.own else 0
    reported = pace.session.reported if rank == 0 else 0
    loader.balancer.close()
    return seen, shares, reported, pid


@unittest.skipUnless(program(), "the Go program is not built: make build, or set COTENANT_BINARY")
class Real(unittest.TestCase):
    def run_steps(self, **options: Any) -> list[Any]:
        environment = {"COTENANT_BINARY": program() or "", "COTENANT_ADDRESS": ""}
        return ranks.run(3, steps, {"length": 24 * 30, **options}, env=environment, timeout=180)

    def check(self, answers: list[Any]) -> None:
        self.assertEqual(sorted(sum((seen for seen, *_ in answers), [])), list(range(24 * 30)))
        shares = [shares for _, shares, *_ in answers]
        self.assertTrue(all(each == shares[0] for each in shares), "the ranks' shares differ")
        self.assertTrue(all(sum(each) == 24 for each in shares[0]))

    def test_the_slow_rank_gets_less(self) -> None:
        answers = self.run_steps()
        self.check(answers)
        # The least of it: on a busy machine any rank may be the slow one for a while.
        self.assertLess(min(shares[0] for shares in answers[0][1]), 7, answers[0][1])
        self.assertGreater(answers[0][2], 2, "reports that the coordinator took")
        until = time.monotonic() + 30
        while pathlib.Path(f"/proc/{answers[0][3]}").exists():
            self.assertLess(time.monotonic(), until, "the coordinator outlives its job")
            time.sleep(0.05)

    def test_the_coordinators_death_is_survived(self) -> None:
        answers = self.run_steps(kill_coordinator=10)
        self.check(answers)


def refused(rank: int, options: dict[str, Any]) -> str:
    """Why a training does not begin."""
    from cotenant.torch import Balancer

    loader = DataLoader(TensorDataset(torch.zeros(100, 1)), batch_size=5)
    layers = [nn.Linear(1, 1)] + [nn.BatchNorm1d(1)] * options.pop("normalised", False)
    try:
        model, loader = Balancer.prepare(nn.Sequential(*layers), loader, **options)
        for (x,) in loader:
            model(x).mean().backward()
    except ValueError as e:
        return str(e)
    return ""


class Refusal(unittest.TestCase):
    """What can't be is an error on every rank, not an outage."""

    @unittest.skipUnless(program(), "the Go program is not built: make build, or set COTENANT_BINARY")
    def test_in_the_coordinators_words(self) -> None:
        environment = {"COTENANT_BINARY": program() or "", "COTENANT_ADDRESS": ""}
        for options, why in (
            ({"predictor": "nrax"}, 'the coordinator refuses the job: invalid: predictor: "nrax" is none of'),
            ({"allocator": "GPU"}, 'the coordinator refuses the job: invalid: allocator: "GPU" is none of'),
            ({"maximum": 3}, "the largest sizes of the workers sum to 9, less than the global batch 15"),
            ({"buckets": [4]}, "the largest sizes of the workers sum to 12, less than the global batch 15"),
        ):
            answers = ranks.run(3, refused, options, env=environment)
            self.assertEqual(len(set(answers)), 1, answers)
            self.assertIn(why, answers[0])

    def test_without_a_coordinator_limits_are_an_error_on_every_rank(self) -> None:
        environment = {"COTENANT_ADDRESS": f"127.0.0.1:{free_port()}"}
        answers = ranks.run(2, refused, {"maximum": 3}, env=environment)
        self.assertEqual(len(set(answers)), 1, answers)
        self.assertIn("no coordinator answers, and an equal share of 5 is not within the limits", answers[0])
        answers = ranks.run(2, refused, {"maximum": 3, "balance": False}, env=environment)
        self.assertEqual(len(set(answers)), 1, answers)
        self.assertRegex(answers[0], "^an equal share of 5 is not within the limits")

    def test_minima_that_cannot_hold_together(self) -> None:
        for options, why in (
            ({"minimum": 6}, "prepare: the ranks' minimum= [6, 6] sum to more than the global batch 10"),
            ({"normalised": True, "global_batch": 3}, "batch normalisation needs 2 samples; raise the batch size"),
        ):
            answers = ranks.run(2, refused, options, env={"COTENANT_ADDRESS": f"127.0.0.1:{free_port()}"})
            self.assertEqual(len(set(answers)), 1, answers)
            self.assertIn(why, answers[0])

    def test_a_missing_token_is_an_outage(self) -> None:
        for answer in ((401, "unauthenticated", "no token"), (403, "permission_denied", "no"), (500, "internal", "oops")):
            coordinator = fake.FakeCoordinator(lambda method, request, answer=answer: answer)
            self.addCleanup(coordinator.close)
            self.assertEqual(ranks.run(2, refused, {}, env={"COTENANT_ADDRESS": coordinator.address}), ["", ""])


def stalled(rank: int, port: int, told: Any) -> str:
    """Rank 1 hangs until rank 0 has learnt of it."""
    from cotenant.torch import Balancer

    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    loader = DataLoader(TensorDataset(torch.zeros(100, 1)), batch_size=2)
    model, loader = Balancer.prepare(nn.Linear(1, 1), loader, timeout=datetime.timedelta(seconds=8))
    try:
        for i, (x,) in enumerate(loader):
            if rank == 1 and i == 5:
                return "hung" if told.wait(100) else "rank 0 never learnt"
            model(x).mean().backward()
    except RuntimeError:
        told.set()
        return "an error"
    return "no error"


class Stall(unittest.TestCase):
    def test_a_rank_that_hangs_ends_the_others_by_the_timeout(self) -> None:
        coordinator = fake.FakeCoordinator()
        self.addCleanup(coordinator.close)
        told = multiprocessing.get_context("fork").Event()
        environment = {"COTENANT_ADDRESS": coordinator.address}
        answers = ranks.run(2, stalled, free_port(), told, env=environment, group=False, timeout=150)
        self.assertEqual(answers, ["an error", "hung"])


if __name__ == "__main__":
    unittest.main()
