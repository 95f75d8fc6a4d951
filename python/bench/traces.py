"""Records speeds of training processes beside programs that come and go.

::

    python3 python/bench/traces.py > sim/balance/testdata/speeds.csv

Each worker trains a small convolutional network on one thread and sleeps for a
while after each iteration, as if it waited for others. Beside it run stress-ng
(integer, cache, memory), redis-benchmark with its server, and a C compiler, in
turns drawn from the seed. Sessions: one worker that never waits; two that do.
Prints CSV: worker, speed (samples a second of computing), and the CPU and
memory in use on the machine, as cotenant.machine measures them, a row for each
iteration. Needs torch, stress-ng, redis-server, redis-benchmark and cc.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from cotenant.machine import Machine  # noqa: E402

BATCH = 32
SOURCE = "".join(
    f"double f{i}(double *a, int n) {{ double s = {i}; for (int j = 0; j < n; j++) {{ a[j] = s * a[j] + j % {i + 2}; s += a[j]; }} return s; }}\n"
    for i in range(2000)
)


def work(name: str, wait: float, seconds: float, out: Any) -> None:
    """Trains, and sends (name, speed, cpu, memory) of each iteration."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 24, 3), torch.nn.ReLU(), torch.nn.Conv2d(24, 24, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(24 * 28 * 28, 10)
    )
    step = torch.optim.SGD(model.parameters(), lr=0.001)
    x, y = torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))
    machine = Machine()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        begun = time.monotonic()
        for _ in range(4):
            step.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            step.step()
        took = time.monotonic() - begun
        cpu, memory = machine.use()
        out.put((name, 4 * BATCH / took, cpu, memory))
        time.sleep(wait * took)
    out.put(None)


def cotenants(folder: str) -> list[list[str]]:
    """The programs beside it, each running until it is killed."""
    source, port = pathlib.Path(folder, "many.c"), "16391"
    source.write_text(SOURCE)
    redis = f"redis-server --port {port} --save '' --dir {folder} >/dev/null & sleep .5; redis-benchmark -p {port} -c 20 -d 512 -l -q -t set,get,lpush"
    return [
        ["stress-ng", "--quiet", "--matrix", "1"],
        ["stress-ng", "--quiet", "--cache", "1"],
        ["stress-ng", "--quiet", "--stream", "1"],
        ["stress-ng", "--quiet", "--vm", "1", "--vm-bytes", "400m"],
        ["stress-ng", "--quiet", "--cpu", "2", "--cpu-load", "60"],
        ["sh", "-c", redis],
        ["sh", "-c", f"while cc -O2 -c {source} -o {folder}/many.o; do :; done"],
    ]


def session(names: list[str], wait: float, seconds: float, rng: random.Random) -> list[tuple[str, float, float, float]]:
    """Rows of workers that run at the same time."""
    out: Any = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(n, wait, seconds, out)) for n in names]
    for w in workers:
        w.start()
    with tempfile.TemporaryDirectory() as folder:
        programs = cotenants(folder)
        beside: list[subprocess.Popen[bytes]] = []
        rows, left, change = [], len(names), time.monotonic() + 8
        while left:
            if time.monotonic() > change:
                change = time.monotonic() + rng.uniform(3, 12)
                if beside and rng.random() < 0.6:
                    end(beside.pop(rng.randrange(len(beside))))
                elif len(beside) < 2:
                    beside.append(
                        subprocess.Popen(rng.choice(programs), start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    )
            try:
                row = out.get(timeout=0.2)
            except Exception:  # noqa: BLE001, S112: the queue's own Empty
                continue
            if row is None:
                left -= 1
            else:
                rows.append(row)
        for program in beside:
            end(program)
    for w in workers:
        w.join()
    return rows


def end(program: subprocess.Popen[bytes]) -> None:
    """Ends a program and all that it started."""
    os.killpg(program.pid, signal.SIGKILL)
    program.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=150.0, help="of each of the two sessions")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    print("worker,speed,cpu,memory")
    for names, wait in ((["alone"], 0.0), (["first", "second"], 0.5)):
        for name, speed, cpu, memory in session(names, wait, args.seconds, rng):
            print(f"{name},{speed:.2f},{cpu:.4f},{memory:.4f}", flush=True)


if __name__ == "__main__":
    main()
