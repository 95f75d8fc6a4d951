"""The quotas of the benchmarks, on cgroups of version 2."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench"
sys.path.insert(0, str(BENCH))

import cgroups  # noqa: E402


def mounted() -> pathlib.Path | None:
    """Where version 2 is mounted and this process may make groups."""
    try:
        for line in pathlib.Path("/proc/mounts").read_text().splitlines():
            _, at, kind, *_ = line.split()
            if kind == "cgroup2" and os.access(at, os.W_OK) and os.getuid() == 0:
                return pathlib.Path(at)
    except OSError:
        pass
    return None


class Version2(unittest.TestCase):
    def test_limit(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            parent = pathlib.Path(name)
            (parent / "cgroup.subtree_control").write_text("")
            (parent / "cgroup.controllers").write_text("cpuset cpu io")
            with mock.patch.object(cgroups, "own", lambda: (parent, 2)):
                group = cgroups.Group("g")
                self.assertEqual((parent / "cgroup.subtree_control").read_text(), "+cpu")
                group.limit(0.4)
                self.assertEqual((parent / "g" / "cpu.max").read_text(), "40000 100000")
                self.assertEqual((parent / "g" / "cpu.weight").read_text(), "800")
                (parent / "cgroup.subtree_control").write_text("io")
                (parent / "cgroup.controllers").write_text("io")
                with self.assertRaisesRegex(OSError, "no cpu controller"):
                    cgroups.Group("h")

    def test_the_kernels_rule_of_no_processes_inside(self) -> None:
        at = mounted()
        controllers = (at / "cgroup.controllers").read_text().split() if at else []
        # A container's root is no root to the kernel: the test would have to move its processes.
        if at is None or not controllers or (at / "cgroup.type").exists():
            self.skipTest("no cgroup hierarchy of version 2 that this process may change, with a controller")
        before = (at / "cgroup.subtree_control").read_text().split()
        controller = "cpu" if "cpu" in controllers else controllers[0]
        group = at / f"cotenant-test-{os.getpid()}"
        cgroups.hand_on(at, controller)
        group.mkdir()
        program = (
            "import os, pathlib, cgroups\n"
            f"group = pathlib.Path({str(group)!r})\n"
            "(group / 'cgroup.procs').write_text(str(os.getpid()))\n"
            f"cgroups.hand_on(group, {controller!r})\n"
            "print((group / 'cgroup.subtree_control').read_text(), pathlib.Path('/proc/self/cgroup').read_text())\n"
        )
        try:
            done = subprocess.run([sys.executable, "-c", program], cwd=BENCH, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(controller, done.stdout)
            self.assertIn("cotenant-bench-rest", done.stdout)
        finally:
            for folder in (group / "cotenant-bench-rest", group):
                if folder.exists():
                    folder.rmdir()
            if controller not in before:
                (at / "cgroup.subtree_control").write_text(f"-{controller}")


if __name__ == "__main__":
    unittest.main()
