"""Ranks that die under torchrun: all start again from the last checkpoint."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import fake

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed (Debian: apt-get install python3-torch)")

from test_torch_run import PACKAGE

SCRIPT = pathlib.Path(__file__).resolve().parent / "elastic.py"


class Elastic(unittest.TestCase):
    def test_a_rank_that_dies_costs_no_sample_and_repeats_none(self) -> None:
        coordinator = fake.FakeCoordinator()
        self.addCleanup(coordinator.close)
        with tempfile.TemporaryDirectory() as folder:
            environment = {
                **os.environ,
                "PYTHONPATH": str(PACKAGE),
                "COTENANT_ADDRESS": coordinator.address,
                "OMP_NUM_THREADS": "1",
            }
            command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
            # As --standalone does, but that meets at one port of the machine, whoever else is there.
            command += ["--rdzv_backend", "c10d", "--rdzv_id", "elastic", "--rdzv_endpoint", "localhost:0"]
            command += ["--rdzv_conf", "read_timeout=300", "--monitor_interval", "0.2"]
            # Two ranks die; the port that torchrun chooses for the ranks to meet
            # at may be taken by the time they do, and then it starts them again.
            command += ["--max_restarts", "8"]
            # Debian's PyTorch 1.13 can't read torchrun's own defaults of these under Python 3.11.
            command += ["--redirects", "1", "--tee", "1", "--log_dir", folder, str(SCRIPT), folder]
            done = subprocess.run(command, capture_output=True, text=True, timeout=800, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            saved = json.loads(pathlib.Path(folder, "checkpoint.json").read_text())
            deaths = len(list(pathlib.Path(folder).glob("died-*")))
        self.assertEqual(deaths, 2)
        # What the checkpoints committed, over all restarts.
        for epoch in ("0", "1"):
            seen = [s for at, samples in saved["seen"] if str(at) == epoch for s in samples]
            self.assertEqual(sorted(seen), list(range(200)), f"epoch {epoch}")
        opened = [request for method, request in coordinator.requests if method == "Open"]
        self.assertGreaterEqual(len(opened), 3)
        self.assertEqual({request["job"] for request in opened}, {opened[0]["job"]})
        self.assertIn("agreed", opened[-1])


if __name__ == "__main__":
    unittest.main()
