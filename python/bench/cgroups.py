"""CPU quotas for processes of this machine: cgroups of version 1 or 2."""

from __future__ import annotations

import errno
import os
import pathlib
import time


def own() -> tuple[pathlib.Path, int]:
    """The folder of this process's CPU cgroup, and the version."""
    groups = {}
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            groups[name] = path.lstrip("/")
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, at, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(",") and "cpu" in groups:
            return pathlib.Path(at) / groups["cpu"], 1
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, at, kind, *_ = line.split()
        if kind == "cgroup2" and "" in groups:
            return pathlib.Path(at) / groups[""], 2
    raise OSError("no cgroup hierarchy with a CPU controller is mounted")


def hand_on(parent: pathlib.Path, controller: str) -> None:
    """Lets groups below a group of version 2 have a controller.

    A group that hands one on may have no processes itself, so they move into a
    group below it.
    """
    if controller in (parent / "cgroup.subtree_control").read_text().split():
        return
    if controller not in (parent / "cgroup.controllers").read_text().split():
        raise OSError(f"{parent} has no {controller} controller to hand on; run under systemd-run --scope -p Delegate=yes")
    try:
        (parent / "cgroup.subtree_control").write_text(f"+{controller}")
    except OSError as e:
        if e.errno != errno.EBUSY:
            raise
        rest = parent / "cotenant-bench-rest"
        rest.mkdir(exist_ok=True)
        for pid in (parent / "cgroup.procs").read_text().split():
            try:
                (rest / "cgroup.procs").write_text(pid)
            except ProcessLookupError:
                pass  # it has ended
        (parent / "cgroup.subtree_control").write_text(f"+{controller}")


class Group:
    """A cgroup with a quota in cores, in periods of 100 ms as Kubernetes has them."""

    PERIOD = 100_000

    def __init__(self, name: str) -> None:
        parent, self.version = own()
        if self.version == 2:
            hand_on(parent, "cpu")
        self.folder = parent / name
        self.folder.mkdir()
        # The quota is to decide, not what else happens to run: eight times the
        # usual weight, for as long as the benchmark lasts.
        weight = ("cpu.weight", "800") if self.version == 2 else ("cpu.shares", "8192")
        (self.folder / weight[0]).write_text(weight[1])

    def limit(self, cores: float) -> None:
        """Sets the quota."""
        quota = int(cores * self.PERIOD)
        if self.version == 2:
            (self.folder / "cpu.max").write_text(f"{quota} {self.PERIOD}")
        else:
            (self.folder / "cpu.cfs_period_us").write_text(str(self.PERIOD))
            (self.folder / "cpu.cfs_quota_us").write_text(str(quota))

    def join(self) -> None:
        """Moves this process into it; its children follow."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def close(self) -> None:
        """Kills what is in it, and removes it."""
        until = time.monotonic() + 10
        while True:
            for pid in (self.folder / "cgroup.procs").read_text().split():
                os.kill(int(pid), 9)
            try:
                self.folder.rmdir()
                return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
