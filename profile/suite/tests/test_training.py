"""The training workloads train: they print iterations, and end when killed."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import unittest
from pathlib import Path

SUITE = Path(__file__).resolve().parent.parent


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@unittest.skipUnless(
    importlib.util.find_spec("torch"), "PyTorch is absent (Debian: python3-torch)"
)
class Training(unittest.TestCase):
    def iterate(self, script: str) -> None:
        """Reads three iterations of a script, then kills its whole group."""
        process = subprocess.Popen(
            [sys.executable, str(SUITE / script), "--port", str(free_port()), "--batch-size", "2"],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            lines = [process.stdout.readline().strip() for _ in range(3)]
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        self.assertEqual(lines, ["iteration"] * 3)

    def test_all_reduce(self) -> None:
        self.iterate("allreduce.py")

    def test_parameter_server(self) -> None:
        self.iterate("paramserver.py")


if __name__ == "__main__":
    unittest.main()
