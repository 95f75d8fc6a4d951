import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from cotenant.doctor import judge, report

SCRIPT = """
import os, time, torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
for step in range(1000):
    y = model(torch.ones(2, 4)).sum()
    time.sleep(0.06 if rank else 0.02)
    y.backward()
"""


class Judge(unittest.TestCase):
    def test_unequal_ranks(self) -> None:
        # 100, 50, 33.3 and 33.3 ms at equal batches: 4 / (10 + 20 + 30 + 30) = 44.4 ms balanced.
        compute = [[0.1] * 10, [0.05] * 10, [1 / 30] * 10, [1 / 30] * 10]
        wait = [[0.01 + 0.1 - row[0]] * 10 for row in compute]
        verdict = judge(compute, wait)
        self.assertAlmostEqual(verdict["iteration_s"], 0.11)
        self.assertAlmostEqual(verdict["balanced_iteration_s"], 0.01 + 4 / 90)
        self.assertIn("2.02 times as fast", report(verdict))

    def test_equal_ranks(self) -> None:
        self.assertIn("less than 5 %", report(judge([[0.1] * 5] * 3, [[0.02] * 5] * 3)))

    def test_ranks_whose_speed_is_chance_gain_nothing(self) -> None:
        verdict = judge([[0.1, 0.2] * 5, [0.2, 0.1] * 5], [[0.1, 0.0] * 5, [0.0, 0.1] * 5])
        self.assertLess(verdict["gain"], 1.0)


class Doctor(unittest.TestCase):
    def test_watches_a_script_that_knows_nothing_of_it(self) -> None:
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("PyTorch is not installed (Debian: apt-get install python3-torch)")
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "script.py")
            script.write_text(SCRIPT)
            package = str(pathlib.Path(__file__).resolve().parent.parent)
            environment = {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1"}
            command = [sys.executable, "-m", "cotenant.doctor", "--ranks", "2", "--iterations", "4", "--warm-up", "1", str(script)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("4 iterations of 2 ranks", done.stdout)
            self.assertIn("rank 1: computes", done.stdout)

    def test_what_it_cannot_watch(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).resolve().parent.parent)}
        for script, isolated, want in (("absent.py", False, "absent.py is no file"), (__file__, True, "has no PyTorch")):
            # Isolated from all packages but the standard library and ours.
            command = [sys.executable, *(["-S"] if isolated else []), "-m", "cotenant.doctor", "--ranks", "2", script]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
            self.assertEqual(done.returncode, 2)
            self.assertIn(want, done.stderr)

    def test_one_process(self) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "RANK"}
        environment["PYTHONPATH"] = str(pathlib.Path(__file__).resolve().parent.parent)
        done = subprocess.run(
            [sys.executable, "-m", "cotenant.doctor", "x.py"], capture_output=True, text=True, env=environment
        )
        self.assertEqual(done.returncode, 2)
        self.assertIn("--ranks", done.stderr)


if __name__ == "__main__":
    unittest.main()
