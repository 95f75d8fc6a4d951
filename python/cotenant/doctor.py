"""Would this script gain? Watches a few iterations of it, as it is.

::

    torchrun --nproc-per-node 4 -m cotenant.doctor script.py args...
    python -m cotenant.doctor --ranks 4 script.py args...       # the same

The script is not changed. DistributedDataParallel is watched: how long each
rank computes until its gradients are there, and how long it then waits. After
``--iterations`` rank 0 says how unequal the ranks are and what balancing would
bring, and all ranks end.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, Sequence


#: Names the file that says that there was a verdict.
TOLD = "COTENANT_DOCTOR_TOLD"


def judge(compute: Sequence[Sequence[float]], wait: Sequence[Sequence[float]]) -> dict[str, Any]:
    """What the times say; a row a rank, a column an iteration, in seconds.

    With equal batches an iteration lasts as long as its slowest rank. With
    batches proportional to speed all ranks last as long as the harmonic mean of
    their times at equal batches: W / sum(1 / t_i) (LB-BSP, batch sizes for CPU
    clusters). Communication is what even the last to arrive waits.
    """
    ranks, iterations = len(compute), len(compute[0])
    typical = [sorted(row)[iterations // 2] for row in compute]
    sending = sorted(min(row[i] for row in wait) for i in range(iterations))[iterations // 2]
    now = sum(max(row[i] for row in compute) for i in range(iterations)) / iterations + sending
    # Each iteration by the speeds of the one before: what a balancer can know.
    balanced = 0.0
    for i in range(1, iterations):
        speeds = [1.0 / max(row[i - 1], 1e-9) for row in compute]
        whole = sum(speeds)
        balanced += max(ranks * v / whole * row[i] for v, row in zip(speeds, compute))
    balanced = balanced / max(1, iterations - 1) + sending
    return {
        "ranks": ranks,
        "iterations": iterations,
        "compute_s": typical,
        "communicate_s": sending,
        "iteration_s": now,
        "balanced_iteration_s": balanced,
        "gain": now / balanced if balanced > 0 else 1.0,
    }


def report(verdict: dict[str, Any]) -> str:
    """The verdict in words."""
    slowest = max(verdict["compute_s"])
    lines = [f"cotenant doctor: {verdict['iterations']} iterations of {verdict['ranks']} ranks"]
    for rank, seconds in enumerate(verdict["compute_s"]):
        lines.append(
            f"  rank {rank}: computes {1e3 * seconds:8.1f} ms an iteration, "
            f"waits {100 * (1 - seconds / slowest) if slowest else 0:3.0f} % of the slowest rank's time"
        )
    lines.append(f"  communication: {1e3 * verdict['communicate_s']:.1f} ms")
    gain = verdict["gain"]
    if gain >= 1.05:
        lines.append(
            f"  Balanced, an iteration would take about {1e3 * verdict['balanced_iteration_s']:.0f} ms instead of "
            f"{1e3 * verdict['iteration_s']:.0f} ms: {gain:.2f} times as fast."
        )
        lines.append("  To balance: model, loader = cotenant.torch.Balancer.prepare(model, loader)")
        if min(verdict["compute_s"]) < 0.05:
            lines.append("  Ranks this quick gain less where CPU quotas slow them: a quota's period is 100 ms.")
    else:
        lines.append("  The ranks are about equally fast: balancing would bring less than 5 %.")
    lines.append("  (GPUs take small batches in steps: where they are slow to fill, the gain is smaller.)")
    return "\n".join(lines)


class Watch:
    """Takes the times of one DistributedDataParallel model, and ends the script."""

    def __init__(self, iterations: int, warm_up: int) -> None:
        self.iterations, self.warm_up = iterations, warm_up
        self.times: list[tuple[float, float]] = []
        self._clock: Any = None
        self._hooked = False
        self._last: Any = None
        self._ready: Any = None
        self._marks: list[tuple[Any, Any, Any]] = []
        self.told = False

    def attach(self, model: Any) -> None:
        """Watches a model that has just been wrapped."""
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        from cotenant.clock import WallClock
        from cotenant.torch.clock import CudaClock
        from cotenant.torch.collective import GradBucket

        cuda = any(p.is_cuda for p in model.parameters())
        self._clock = CudaClock() if cuda else WallClock()
        register = model.register_comm_hook

        def watched(state: Any, theirs: Any) -> None:
            def hook(state: Any, bucket: Any) -> Any:
                last = bucket.is_last()
                if last:
                    self._ready = self._clock.mark()
                future = theirs(state, bucket)
                return future.then(lambda f: self._done(f.value())) if last else future

            # DistributedDataParallel looks at a hook's annotations.
            hook.__annotations__ = {"bucket": GradBucket}
            register(state, hook)
            self._hooked = True

        def before(*_: Any) -> None:
            if not self._hooked:  # the script registered none of its own
                watched(model.process_group, default_hooks.allreduce_hook)
            if len(self._marks) >= self.iterations + self.warm_up:
                self.end()

        model.register_comm_hook = watched
        model.register_forward_pre_hook(before)

    def _done(self, value: Any) -> Any:
        now = self._clock.mark()
        if self._last is not None:
            self._marks.append((self._last, self._ready, now))
        self._last = now
        return value

    def end(self) -> None:
        """Tells the verdict, on rank 0, and ends this rank."""
        from cotenant.torch.collective import dist

        if self.told:  # the script caught what was to end it
            raise SystemExit(0)
        self.told = True
        taken = self._marks[self.warm_up :]
        mine = [(self._clock.seconds(a, b), self._clock.seconds(b, c)) for a, b, c in taken]
        everybody: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(everybody, mine)
        if dist.get_rank() == 0:
            verdict = judge([[c for c, _ in row] for row in everybody], [[w for _, w in row] for row in everybody])
            print(report(verdict), flush=True)
            if TOLD in os.environ:
                open(os.environ[TOLD], "w").close()
        dist.barrier()
        raise SystemExit(0)


def start(ranks: int, arguments: Sequence[str]) -> int:
    """Starts Python in some ranks on this machine, as torchrun does; waits for all.

    When one fails, the others end too. Returns the first exit code that is not 0.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    started: list[subprocess.Popen[bytes]] = []
    failed: tuple[int, int] | None = None  # rank and code of the first
    with tempfile.TemporaryDirectory() as folder:
        told = os.path.join(folder, "told")
        try:
            for rank in range(ranks):
                place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
                environment = {**os.environ, **{k: str(v) for k, v in place.items()}, "MASTER_ADDR": "127.0.0.1"}
                environment.update({"MASTER_PORT": str(port), TOLD: told})
                environment.setdefault("OMP_NUM_THREADS", "1")
                started.append(subprocess.Popen([sys.executable, *arguments], env=environment))
            codes: list[int | None] = [None]
            while failed is None and None in codes:
                time.sleep(0.05)
                codes = [process.poll() for process in started]
                failed = next(((rank, code) for rank, code in enumerate(codes) if code), None)
        finally:
            end(started)
            signal.signal(signal.SIGTERM, before)
        silent = not os.path.exists(told)
    if silent:
        why = "the script ended" if failed is None else f"rank {failed[0]} failed first, with exit code {failed[1]}; what it said is above"
        print(f"cotenant doctor: {why}; there is no verdict", file=sys.stderr)
    return failed[1] if failed else int(silent)


def end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ends processes: asks them first, and kills those that are there 5 s later."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    late = time.monotonic() + 5
    for process in processes:
        try:
            process.wait(max(0.0, late - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m cotenant.doctor", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--iterations", type=int, default=20, help="iterations to watch")
    parser.add_argument("--warm-up", type=int, default=3, help="iterations before, which do not count")
    parser.add_argument("--ranks", type=int, default=0, help="start the script in that many ranks on this machine")
    parser.add_argument("script")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    if given.iterations < 2 or given.warm_up < 0:
        parser.error("want --iterations of at least 2 and --warm-up of at least 0")
    if not os.path.isfile(given.script):
        parser.error(f"{given.script} is no file; give the script that trains")
    if importlib.util.find_spec("torch") is None:
        parser.error(
            f"it watches PyTorch's DistributedDataParallel, and {sys.executable} has no PyTorch; with TensorFlow or "
            "Flower, time the script with COTENANT_BALANCE=0 and without"
        )
    if "RANK" not in os.environ:
        if given.ranks < 2:
            parser.error("one process has nothing to balance; give --ranks N, or start this with torchrun")
        own = ["--iterations", str(given.iterations), "--warm-up", str(given.warm_up)]
        return start(given.ranks, ["-m", "cotenant.doctor", *own, given.script, *given.args])

    import torch.nn.parallel as parallel

    watch = Watch(given.iterations, given.warm_up)
    wrapped: Any = parallel.DistributedDataParallel
    begin = wrapped.__init__
    os.environ["COTENANT_BALANCE"] = "0"  # a script that balances already is watched without

    def init(model: Any, *args: Any, **kwargs: Any) -> None:
        begin(model, *args, **kwargs)
        if watch._clock is None:
            watch.attach(model)

    wrapped.__init__ = init
    sys.argv = [given.script, *given.args]
    sys.path.insert(0, os.path.dirname(os.path.abspath(given.script)))
    started = time.monotonic()
    code: Any = None
    try:
        runpy.run_path(given.script, run_name="__main__")
    except SystemExit as e:
        code = e.code
    if watch.told:
        return 0
    if os.environ["RANK"] == "0":
        why = f"after {time.monotonic() - started:.0f} s and {len(watch._marks)} iterations; give fewer --iterations, or a script that trains for longer"
        if watch._clock is None:
            why = "and made no DistributedDataParallel model, so there is nothing to judge (parameter servers are not watched)"
        print(f"cotenant doctor: the script ended {why}", file=sys.stderr)
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
    if not code and TOLD in os.environ:
        return 0  # no rank failed; who started them all says that there is no verdict
    return code if isinstance(code, int) and code else 1


if __name__ == "__main__":
    sys.exit(main())
