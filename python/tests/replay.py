"""Has real processes go through the random schedules of ``sim/balance``.

::

    PYTHONPATH=python python3 python/tests/replay.py                   # all 500
    PYTHONPATH=python python3 python/tests/replay.py --seeds 17,18 --keep /tmp/replay

``sim/balance.TestRandomSchedules`` plays 10,000 schedules in virtual time. Here
the first 500 of them happen to the real client (PyTorch's DistributedDataParallel
over gloo) and the real coordinator: ranks are killed, stopped and go on, join and
leave; the coordinator is killed, and comes back with its state or without; the
network before it loses and delays. All start again from the last checkpoint, as
under torchrun, when one is gone. Time is 15 times shorter than the virtual one.

Each job's logs are then checked (``replay_check``): no hang, no sample lost or
repeated, the global batch size constant, the same shares on all ranks.
Needs PyTorch and the Go program (COTENANT_BINARY, or ``make build``).
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from typing import Any, Iterator

import replay_check
import replay_rank
from replay_world import World

SCHEDULES = pathlib.Path(__file__).resolve().parents[2] / "sim" / "balance" / "testdata" / "schedules.jsonl"
#: Seconds here for a second of virtual time, whose collectives have a timeout of 30 s.
SCALE = 1 / 15
#: Seconds without any progress, beyond what the schedule stops, that are a hang.
HANG = 40.0


@dataclasses.dataclass
class Event:
    """A line of a schedule: what happens when; see sim/balance.Event."""

    generation: int
    iteration: int
    what: str
    rank: int = 0
    seconds: float = 0.0

    @staticmethod
    def read(text: str) -> Event:
        generation, iteration, what, *rest = text.split()
        event = Event(int(generation), int(iteration), what)
        if what in ("crash", "stall"):
            event.rank = int(rest.pop(0))
        if rest:
            event.seconds = float(rest[0])
        return event


class Job:
    """One schedule's job, and whoever starts its processes anew."""

    def __init__(self, schedule: dict[str, Any], folder: pathlib.Path, program: str) -> None:
        self.schedule, self.folder, self.program = schedule, folder, program
        self.seed: int = schedule["seed"]
        self.events = collections.deque(Event.read(e) for e in schedule["events"])
        self.timeout = schedule["timeout"] * SCALE
        self.draw = random.Random(self.seed)
        self.count: collections.Counter[str] = collections.Counter()
        self.attempts: list[tuple[int, int]] = []
        self.names = [f"rank{i}" for i in range(schedule["ranks"])]
        self.named = len(self.names)
        self.pids: dict[int, int] = {}  # rank to process
        self.later: list[tuple[float, Any]] = []
        # Every fifth job has a coordinator of its own, which rank 0 starts.
        self.own = self.seed % 5 == 0
        self.progress = multiprocessing.RawArray("q", 64)
        self.world: World | None = None

    def run(self) -> dict[str, Any]:
        """Goes through the schedule; what happened, in numbers."""
        begin = time.monotonic()
        if not self.own:
            port = multiprocessing.RawArray("q", 1)
            self.world = World(self.program, self.folder, self.seed, self.schedule["lose"], 2 * SCALE, port)
        try:
            while True:
                self.attempts.append((len(self.names), self.reached()))
                if self.reached() >= self.schedule["iterations"]:
                    break
                if len(self.attempts) > 60:
                    raise AssertionError(f"60 starts, and iteration {self.reached()} only: {self.attempts}")
                self.attempt()
        finally:
            self.end_all()
            if self.world is not None:
                self.world.close()
        self.nobody_left()
        self.attempts[-1] = (0, self.reached())
        found = replay_check.check(
            self.folder, self.attempts, self.seed, self.schedule["data"], self.schedule["global_batch"]
        )
        return {**found, **self.count, "attempts": len(self.attempts) - 1, "seconds": time.monotonic() - begin}

    def reached(self) -> int:
        """The iteration of the last checkpoint."""
        file = self.folder / "checkpoint.json"
        return int(json.loads(file.read_text())["loader"]["iteration"]) if file.exists() else 0

    def attempt(self) -> None:
        """Starts all ranks; returns when they are done, or one is gone and all have ended."""
        attempt = len(self.attempts) - 1
        for rank in range(len(self.progress)):
            self.progress[rank] = 0
        environment = {"COTENANT_BINARY": self.program, "COTENANT_ADDRESS": self.world.address if self.world else ""}
        started = tuple(self.names)
        for rank in range(len(started)):
            part = replay_rank.Part(
                rank, started, attempt, self.folder, self.seed, self.schedule["global_batch"], self.schedule["data"],
                self.schedule["iterations"], self.schedule["allocator"], self.timeout, SCALE, environment,
            )  # fmt: skip
            self.pids[rank] = fork(part, self.progress)
        generation = self.events[0].generation if self.events else 0
        gone: set[str] = set()
        joins, over, last, moved = 0, False, 0, time.monotonic()
        ended_at = 0.0
        while self.pids:
            time.sleep(0.002)
            if self.world is not None:
                self.world.look()
            now = time.monotonic()
            for at, action in [each for each in self.later if each[0] <= now]:
                self.later.remove((at, action))
                action()
            for rank, code in list(self.reap()):
                if code not in (0, replay_rank.PEER, -signal.SIGKILL, -signal.SIGTERM):
                    raise AssertionError(f"rank {rank} of attempt {attempt}: exit code {code}:\n{self.words(attempt, rank)}")
                if code != 0 and not over:
                    over, ended_at = True, now
            reached = max(self.progress)
            if reached != last:
                last, moved = reached, now
            while not over and self.events and self.events[0].generation == generation and reached > self.events[0].iteration:
                event = self.events.popleft()
                if event.what == "join":
                    joins += 1
                elif event.what == "crash" or event.seconds > self.schedule["timeout"] and event.what == "stall":
                    gone.add(started[event.rank % len(started)])
                self.happen(event)
            if joins and not over and not self.later:
                # Somebody waits to join: torchrun ends all, and starts them with one more.
                over, ended_at = True, now
                for pid in self.pids.values():
                    os.kill(pid, signal.SIGTERM)
            if over and self.pids:
                # torchrun kills who is left; half of the jobs let them find out.
                patience = 0.0 if self.seed % 2 else self.timeout + HANG
                stopped = [pid for pid in self.pids.values() if state(pid) == "T"]
                if joins or now - ended_at > patience or len(stopped) == len(self.pids):
                    if patience and not joins and now - ended_at > patience:
                        self.hang(attempt, "ranks that don't learn that another is gone")
                    for pid in self.pids.values():
                        os.kill(pid, signal.SIGKILL)
            elif now - moved > HANG:
                self.hang(attempt, f"no progress at iteration {last}")
        self.later = [each for each in self.later if each[1] == self.restart]
        self.names = [name for name in self.names if name not in gone or not over]
        for _ in range(joins or not self.names):
            if len(self.names) < self.schedule["global_batch"]:
                self.names.append(f"rank{self.named}")
                self.named += 1

    def happen(self, event: Event) -> None:
        """Makes an event happen, at some time of the iteration."""
        at = time.monotonic() + self.draw.uniform(0, 0.6) * SCALE
        self.count[event.what] += 1
        if event.what in ("crash", "stall"):
            pid = self.pids.get(event.rank % max(1, len(self.pids)))
            if pid is None:
                return
            if event.what == "crash":
                self.later.append((at, lambda: self.send(pid, signal.SIGKILL)))
                return
            self.later.append((at, lambda: self.send(pid, signal.SIGSTOP)))
            goes_on = at + event.seconds * SCALE
            if event.seconds > self.schedule["timeout"] and len(self.pids) == 1:
                self.later.append((goes_on, lambda: self.send(pid, signal.SIGKILL)))  # nobody else can tell
            else:
                self.later.append((goes_on, lambda: self.send(pid, signal.SIGCONT)))
        elif event.what in ("outage", "amnesia"):
            if self.world is None:
                self.later.append((at, self.kill_own))
            elif self.restart not in [action for _, action in self.later]:
                world, forget = self.world, event.what == "amnesia"
                self.later.append((at, lambda: world.kill(forget)))
                self.later.append((at + event.seconds * SCALE, self.restart))

    def restart(self) -> None:
        """The coordinator comes back."""
        assert self.world is not None
        self.world.kill(False)
        self.world.start()

    def kill_own(self) -> None:
        """Kills the coordinator that rank 0 started."""
        if 0 in self.pids:
            for pid in coordinators({self.pids[0]}):
                self.send(pid, signal.SIGKILL)

    @staticmethod
    def send(pid: int, sent: signal.Signals) -> None:
        try:
            os.kill(pid, sent)
        except ProcessLookupError:
            pass  # it was faster

    def reap(self) -> Iterator[tuple[int, int]]:
        """Ranks that ended, and their exit codes."""
        for rank, pid in list(self.pids.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self.pids[rank]
                yield rank, os.waitstatus_to_exitcode(status)

    def hang(self, attempt: int, what: str) -> None:
        """Fails, with what all threads of all ranks are doing."""
        for pid in self.pids.values():
            self.send(pid, signal.SIGCONT)
            self.send(pid, signal.SIGUSR1)
        time.sleep(1)
        raise AssertionError(f"attempt {attempt}: {what}:\n" + "\n".join(self.words(attempt, rank) for rank in self.pids))

    def words(self, attempt: int, rank: int) -> str:
        """What a rank printed."""
        return f"rank {rank}: " + (self.folder / f"out-{attempt}-{rank}").read_text(errors="replace")[-4000:]

    def end_all(self) -> None:
        """Kills what is left of the ranks."""
        for pid in self.pids.values():
            self.send(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.pids.clear()

    def nobody_left(self) -> None:
        """A coordinator that a rank started ends when the rank does, however that ended."""
        until = time.monotonic() + 20
        while left := coordinators(None, str(self.folder)):
            if time.monotonic() > until:
                raise AssertionError(f"coordinators {left} outlive their job")
            time.sleep(0.05)


def fork(part: replay_rank.Part, progress: Any) -> int:
    """Starts a rank; the libraries are loaded already."""
    pid = os.fork()
    if pid:
        return pid
    code = replay_rank.WRONG
    try:
        out = os.open(part.folder / f"out-{part.attempt}-{part.rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        # Where its coordinator keeps its files, so that it can be found.
        tempfile.tempdir = str(part.folder)
        code = replay_rank.run(part, progress)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def state(pid: int) -> str:
    """R, S, D, T (stopped), Z: of a process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def coordinators(parents: set[int] | None, folder: str = "") -> list[int]:
    """Coordinators that these processes started, or any that has its files in a folder."""
    found = []
    for each in pathlib.Path("/proc").iterdir():
        if not each.name.isdigit():
            continue
        try:
            words = (each / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--parent" not in words or b"--ready-file" not in words or state(int(each.name)) == "Z":
            continue
        parent, ready = words[words.index(b"--parent") + 1], words[words.index(b"--ready-file") + 1]
        if (int(parent) in parents) if parents is not None else ready.decode().startswith(folder + "/"):
            found.append(int(each.name))
    return found


def play(schedule: dict[str, Any], program: str, keep: pathlib.Path | None = None) -> dict[str, Any]:
    """Goes through one schedule; its numbers, or ``broken``: what was wrong."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"replay-{schedule['seed']}-", dir=keep))
    try:
        result = {"seed": schedule["seed"], **Job(schedule, folder, program).run()}
    except BaseException as e:
        text = str(e) if isinstance(e, AssertionError) else traceback.format_exc()
        result = {"seed": schedule["seed"], "broken": text}
    if keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def replay(schedules: list[dict[str, Any]], program: str, parallel: int = 6, keep: pathlib.Path | None = None) -> Iterator[dict[str, Any]]:
    """Goes through schedules, several at once, each with a process of its own to look after it."""
    waiting = collections.deque(schedules)
    running: dict[int, Any] = {}
    with tempfile.TemporaryDirectory() as results:
        while waiting or running:
            while waiting and len(running) < parallel:
                schedule = waiting.popleft()
                pid = os.fork()
                if pid == 0:
                    try:
                        text = json.dumps(play(schedule, program, keep))
                        pathlib.Path(results, str(schedule["seed"])).write_text(text)
                    finally:
                        os._exit(0)
                running[pid] = schedule
            pid, _ = os.wait()
            if pid in running:
                schedule = running.pop(pid)
                file = pathlib.Path(results, str(schedule["seed"]))
                yield json.loads(file.read_text()) if file.exists() else {"seed": schedule["seed"], "broken": "no result"}


def read(count: int = 500) -> list[dict[str, Any]]:
    """The first schedules of the file."""
    return [json.loads(line) for line in SCHEDULES.read_text().splitlines()[:count]]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="real processes go through random schedules")
    parser.add_argument("--schedules", type=int, default=500)
    parser.add_argument("--seeds", default="", help="only these, such as 17,18")
    parser.add_argument("--parallel", type=int, default=3 * (os.cpu_count() or 1))
    parser.add_argument("--keep", type=pathlib.Path, help="keep the logs, in folders there")
    args = parser.parse_args()
    program = os.environ.get("COTENANT_BINARY") or str(SCHEDULES.parents[3] / "bin" / "cotenant")
    if not os.path.exists(program):
        raise SystemExit(f"{program} is not there: make build, or set COTENANT_BINARY")
    schedules = read(args.schedules)
    if args.seeds:
        schedules = [schedules[int(seed)] for seed in args.seeds.split(",")]
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    begin, total, broken = time.monotonic(), collections.Counter[str](), 0
    for i, result in enumerate(replay(schedules, program, args.parallel, args.keep)):
        if "broken" in result:
            broken += 1
            print(f"BROKEN {json.dumps(result)}", flush=True)
        else:
            total.update({k: v for k, v in result.items() if k != "seed"})
        if (i + 1) % 10 == 0 or i + 1 == len(schedules):
            print(f"{i + 1} of {len(schedules)} schedules, {broken} broken, {time.monotonic() - begin:.0f} s", file=sys.stderr)
    total["seconds"] = round(total["seconds"])
    print(json.dumps({"schedules": len(schedules), "broken": broken, "wall_seconds": round(time.monotonic() - begin), **total}))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
