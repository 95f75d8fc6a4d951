"""Real federations: SuperLink, SuperNodes and the example, processes on loopback."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import subprocess
import sys
import time
import unittest
from typing import Any
from unittest import mock

try:
    import flwr  # noqa: F401
except ImportError:
    raise unittest.SkipTest("Flower is not installed (pip install flwr numpy)")

PYTHON = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PYTHON / "bench"), str(PYTHON.parent / "examples")]

import cgroups  # noqa: E402
import federation  # noqa: E402
import flower_train  # noqa: E402

PROGRAM = federation.program()
VERSION = tuple(int(n) for n in importlib.metadata.version("flwr").split(".")[:2])


@unittest.skipIf(VERSION < (1, 42), "the example starts a SuperLink as Flower 1.42 does")
@unittest.skipUnless(PROGRAM, "the Go program is not built: make build, or set COTENANT_BINARY")
class Runs(unittest.TestCase):
    def setUp(self) -> None:
        environment = {
            "COTENANT_BINARY": PROGRAM or "",
            "COTENANT_ADDRESS": "",
            "PYTHONPATH": os.pathsep.join([str(PYTHON), os.environ.get("PYTHONPATH", "")]),
        }
        patch = mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)

    def quota(self, name: str, cores: float) -> Any:
        """What a process calls to be held to a share of a core."""
        try:
            group = cgroups.Group(f"cotenant-test-{os.getpid()}-{name}")
        except OSError as e:
            self.skipTest(f"no cgroup can be made here ({e}); CI runs it as root")
        self.addCleanup(group.close)
        group.limit(cores)
        return group.join

    def test_clients_with_unlike_quotas(self) -> None:
        first = [self.quota("slow", 0.3), self.quota("fast", 0.9)]
        with flower_train.federation() as made:
            for part in (0, 1):
                made.node(part, first=first[part])
            rounds = made.run(400.0, clients=2, rounds=3, samples=4000, round_samples=4000, passes=20, width=256)
        self.assertEqual([r["number"] for r in rounds], [1, 2, 3])
        for r in rounds:
            self.assertEqual(sum(r["samples"].values()), 4000, r)
            self.assertEqual(len(r["trips"]), 2, r)
        self.assertEqual(sorted(rounds[0]["samples"].values()), [2000, 2000])
        self.assertNotEqual(rounds[-1]["samples"], rounds[0]["samples"], "what was measured had no effect")
        slower = max(rounds[0]["trips"], key=rounds[0]["trips"].__getitem__)
        self.assertLess(rounds[1]["samples"][slower], 2000, rounds)
        self.assertLess(rounds[-1]["loss"], rounds[0]["loss"])

    def test_a_client_is_killed_in_a_round_and_another_comes(self) -> None:
        with flower_train.federation() as made:
            nodes = [made.node(part) for part in (0, 1)]
            log = made.folder / "node-1.log"

            def kill() -> None:
                until = time.monotonic() + 300
                while log.read_text(errors="replace").count("Receiving: train") < 2:
                    self.assertLess(time.monotonic(), until, made.words())
                    time.sleep(0.05)
                flower_train.end(nodes[1])
                made.node(2)

            rounds = made.run(400.0, meanwhile=kill, clients=2, rounds=4, samples=2000, round_samples=2000)
        self.assertEqual([r["number"] for r in rounds], [1, 2, 3, 4])
        for r in rounds:
            self.assertEqual(sum(r["samples"].values()), 2000, r)
            self.assertIsNotNone(r["loss"])
        dead = set(rounds[0]["trips"]) - set(rounds[1]["trips"])
        self.assertEqual(len(dead), 1, rounds)
        # Either the strategy's patience ends, or Flower tells that the node is gone, after a minute.
        self.assertTrue(set(rounds[1]["missed"]) <= dead, rounds)
        self.assertLess(rounds[1]["seconds"], 240, "nobody waits for the dead for long")
        new = {name for r in rounds[2:] for name in r["samples"]} - set(rounds[0]["samples"])
        self.assertEqual(len(new), 1, rounds)
        self.assertTrue(new <= set(rounds[-1]["trips"]), rounds)

    def test_the_example_is_a_program(self) -> None:
        script = str(PYTHON.parent / "examples" / "flower_train.py")
        command = [sys.executable, script, "--rounds", "1", "--samples", "256", "--round-samples", "256"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"round 1: .* s, loss .*, samples \[128, 128\]")


if __name__ == "__main__":
    unittest.main()
