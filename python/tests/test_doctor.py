import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from cotenant.doctor import judge, report

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).resolve().parent.parent)}

with_torch = unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed (Debian: apt-get install python3-torch)")

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
    @with_torch
    def test_watches_a_script_that_knows_nothing_of_it(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "script.py")
            script.write_text(SCRIPT)
            environment = {**ENVIRONMENT, "OMP_NUM_THREADS": "1"}
            command = [sys.executable, "-m", "cotenant.doctor", "--ranks", "2", "--iterations", "4", "--warm-up", "1", str(script)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("4 iterations of 2 ranks", done.stdout)
            self.assertIn("rank 1: computes", done.stdout)

    def test_what_it_cannot_watch(self) -> None:
        for script, isolated, want in (("absent.py", False, "absent.py is no file"), (__file__, True, "has no PyTorch")):
            # Isolated from all packages but the standard library and ours.
            command = [sys.executable, *(["-S"] if isolated else []), "-m", "cotenant.doctor", "--ranks", "2", script]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
            self.assertEqual(done.returncode, 2)
            self.assertIn(want, done.stderr)

    @with_torch
    def test_scripts_that_end_otherwise(self) -> None:
        for text, code, want in (
            ("import os; os._exit(0)", 1, "the script ended; there is no verdict"),
            ("pass", 1, "the script ended; there is no verdict"),
            ("pass", 1, "made no DistributedDataParallel model, so there is nothing to judge"),
            ("import sys; sys.exit('no data')", 1, "no data"),
            ("import sys; sys.exit(3)", 3, "failed first, with exit code 3"),
            ("import os, time\nif os.environ['RANK'] == '0': time.sleep(60)\nraise ValueError('boom')", 1, "rank 1 failed first, with exit code 1"),
        ):
            with self.subTest(text), tempfile.TemporaryDirectory() as folder:
                script = pathlib.Path(folder, "script.py")
                script.write_text(text)
                command = [sys.executable, "-m", "cotenant.doctor", "--ranks", "2", str(script)]
                done = subprocess.run(command, capture_output=True, text=True, timeout=50, env=ENVIRONMENT)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(want, done.stderr)
                if text == "pass":
                    self.assertNotIn("failed first", done.stderr)

    @with_torch
    def test_its_end_is_that_of_its_ranks(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "script.py")
            script.write_text("import os, sys, time\nopen(os.path.join(sys.argv[1], str(os.getpid())), 'w').close()\ntime.sleep(300)")
            ranks = pathlib.Path(folder, "ranks")
            ranks.mkdir()
            doctor = subprocess.Popen([sys.executable, "-m", "cotenant.doctor", "--ranks", "2", str(script), str(ranks)], env=ENVIRONMENT)
            started = time.monotonic()
            while len(list(ranks.iterdir())) < 2 and time.monotonic() < started + 60:
                time.sleep(0.1)
            doctor.terminate()
            self.assertEqual(doctor.wait(30), 128 + signal.SIGTERM)
            pids = [int(p.name) for p in ranks.iterdir()]
            self.assertEqual(len(pids), 2)
            for pid in pids:
                with self.assertRaises(ProcessLookupError):
                    os.kill(pid, 0)

    def test_one_process(self) -> None:
        environment = {k: v for k, v in ENVIRONMENT.items() if k != "RANK"}
        done = subprocess.run(
            [sys.executable, "-m", "cotenant.doctor", "x.py"], capture_output=True, text=True, env=environment
        )
        self.assertEqual(done.returncode, 2)
        self.assertIn("--ranks", done.stderr)


if __name__ == "__main__":
    unittest.main()
