"""Whole runs: the real coordinator, and what is measured."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any

import fake

try:
    import clusters
    import numpy as np
    import tensorflow as tf
except ImportError:
    raise unittest.SkipTest("TensorFlow is not installed (pip install tensorflow-cpu)")

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def program() -> str | None:
    """The Go program, if it was built and can coordinate."""
    for path in (os.environ.get("COTENANT_BINARY"), str(ROOT / "bin" / "cotenant")):
        if path and os.path.exists(path):
            if subprocess.run([path, "serve", "balance", "--help"], capture_output=True).returncode == 0:
                return path
    return None


def steps(rank: int, options: dict[str, Any]) -> Any:
    """A short training whose rank 0 is three times as slow a sample."""
    from cotenant.tensorflow import Balancer

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        optimizer = tf.keras.optimizers.SGD(0.0)
    samples = np.arange(float(options["length"]), dtype=np.float32).reshape(-1, 1)
    optimizer, batches = Balancer.prepare(strategy, optimizer, samples, global_batch=24)

    @tf.function(reduce_retracing=True)  # type: ignore[untyped-decorator]
    def step(x: Any) -> None:
        def replica(x: Any) -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(x))
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

        strategy.run(replica, args=(x,))

    seen, shares = [], []
    session = batches.balancer.pace.session
    for i, x in enumerate(batches):
        session = batches.balancer.pace.session
        seen += x[: batches.balancer.batch_size, 0].numpy().tolist()
        shares.append(batches.balancer.shares)
        time.sleep(0.004 * len(x) * (3 if rank == 0 else 1))
        step(x)
        if rank == 0 and i == options.get("kill_coordinator"):
            while session.access.own is None:  # not started yet on a busy machine
                time.sleep(0.01)
            os.kill(session.access.own._process.pid, signal.SIGKILL)
    reported = session.reported if session else 0
    batches.balancer.close()
    return seen, shares, reported


@unittest.skipUnless(program(), "the Go program is not built: make build, or set COTENANT_BINARY")
class Real(unittest.TestCase):
    def run_steps(self, **options: Any) -> list[Any]:
        environment = {"COTENANT_BINARY": program() or "", "COTENANT_ADDRESS": ""}
        answers = clusters.run(3, steps, {"length": 24 * 30, **options}, env=environment)
        self.assertEqual(sorted(sum((seen for seen, *_ in answers), [])), list(range(24 * 30)))
        shares = [shares for _, shares, _ in answers]
        self.assertTrue(all(each == shares[0] for each in shares), "the ranks' shares differ")
        self.assertTrue(all(sum(each) == 24 for each in shares[0]))
        return answers

    def test_the_slow_rank_gets_less(self) -> None:
        answers = self.run_steps()
        # The least of it: on a busy machine any rank may be the slow one for a while.
        self.assertLess(min(shares[0] for shares in answers[0][1]), 7, answers[0][1])
        self.assertGreater(answers[0][2], 2, "reports that the coordinator took")

    def test_the_coordinators_death_is_survived(self) -> None:
        self.run_steps(kill_coordinator=10)


class Measures(unittest.TestCase):
    def test_compute_apart_from_waiting(self) -> None:
        coordinator = fake.FakeCoordinator()
        self.addCleanup(coordinator.close)
        answers = clusters.run(3, steps, {"length": 24 * 8}, env={"COTENANT_ADDRESS": coordinator.address})
        self.assertEqual(len(answers), 3)
        requests = [request for method, request in coordinator.requests if method == "Report"]
        self.assertGreater(len(requests), 3)
        for request in requests:
            slow, *others = request["reports"]
            # 12 ms a sample against 4; whoever waits for rank 0 does not count that as its own.
            self.assertGreater(slow["computeSeconds"], 0.012 * slow["batchSize"])
            self.assertLess(slow["computeSeconds"], 10)  # a step's tracing is never told
            self.assertGreater(min(r["computeSeconds"] / r["batchSize"] for r in others), 0.004)
        # A quick rank's least over the run: it would be 96 ms if waiting counted, not 32.
        quick = min(r["computeSeconds"] for request in requests for r in request["reports"][1:] if r["batchSize"] == 8)
        self.assertLess(quick, 0.080)


def unlimited() -> str:
    """Why processes can't be given quotas here; empty where they can."""
    sys.path.insert(0, str(ROOT / "python" / "bench"))
    from cgroups import Group

    try:
        group = Group(f"cotenant-test-{os.getpid()}")
        try:
            group.limit(0.5)
        finally:
            group.close()
    except OSError as e:
        return str(e)
    return ""


@unittest.skipUnless(program(), "the Go program is not built: make build, or set COTENANT_BINARY")
class Example(unittest.TestCase):
    def run_example(self, *arguments: str) -> list[str]:
        script = ROOT / "examples" / "tensorflow_train.py"
        environment = {**os.environ, "COTENANT_BINARY": program() or "", "COTENANT_ADDRESS": ""}
        environment["PYTHONPATH"] = str(ROOT / "python")
        command = [sys.executable, str(script), "--workers", "2", "--samples", "512", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return [line for line in done.stdout.splitlines() if line.startswith("epoch")]

    def test_a_checkpoint(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for epochs, want in ((1, "epoch 0: "), (2, "epoch 1: ")):
                (line,) = self.run_example("--checkpoint", folder, "--epochs", str(epochs))
                self.assertIn(want, line)
                self.assertIn("over 512 samples", line)

    def test_two_processes_with_different_quotas(self) -> None:
        reason = unlimited()
        if reason:
            self.skipTest(f"no CPU quotas for processes here (they want root and cgroups): {reason}")
        lines = self.run_example("--quotas", "1,0.3", "--epochs", "3")
        self.assertEqual(len(lines), 3)
        # No times are held against each other here: python/bench/quotas.py does that.
        for line in lines:
            self.assertIn("over 512 samples", line)


if __name__ == "__main__":
    unittest.main()
