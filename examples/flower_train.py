"""Trains a small net on clients that need not be equally fast, with Flower.

    pip install flwr numpy
    pip install --no-deps bin/cotenant-*.whl
    python examples/flower_train.py --clients 3 --rounds 5

As a program it runs a whole federation on this machine: a SuperLink, and a
SuperNode for each client. ``server`` and ``client`` are the app itself, as the
``pyproject.toml`` of an app of your own would name them; the lines about
cotenant are all that makes it balanced.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Iterator

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg

from cotenant.flower import Balanced, measure, next_samples

CLASSES, FEATURES = 10, 784

client = ClientApp(mods=[measure])
server = ServerApp()


def dataset(part: int, samples: int) -> tuple[Any, Any]:
    """Ten patterns under noise; each client has samples of its own."""
    patterns = np.random.default_rng(1).normal(size=(CLASSES, FEATURES))
    random = np.random.default_rng([2, part])
    labels = random.integers(CLASSES, size=samples)
    images = 0.25 * patterns[labels] + random.normal(size=(samples, FEATURES))
    return images.astype(np.float32), labels


def initial(width: int) -> list[Any]:
    """Weights of a net with one hidden layer."""
    random = np.random.default_rng(3)
    first = random.normal(size=(FEATURES, width)) / np.sqrt(FEATURES)
    second = random.normal(size=(width, CLASSES)) / np.sqrt(width)
    return [w.astype(np.float32) for w in (first, np.zeros(width), second, np.zeros(CLASSES))]


def loss_and_gradients(weights: list[Any], images: Any, labels: Any) -> tuple[float, list[Any]]:
    """Mean cross entropy, and its gradients."""
    first, bias1, second, bias2 = weights
    hidden = np.maximum(images @ first + bias1, 0)
    scores = hidden @ second + bias2
    scores -= scores.max(axis=1, keepdims=True)
    odds = np.exp(scores)
    odds /= odds.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = float(-np.log(odds[rows, labels] + 1e-9).mean())
    odds[rows, labels] -= 1
    odds /= len(labels)
    back = (odds @ second.T) * (hidden > 0)
    return loss, [images.T @ back, back.sum(axis=0), hidden.T @ odds, odds.sum(axis=0)]


@client.train()
def train(message: Message, context: Context) -> Message:
    """Trains on as many of its own samples as the server asks for, in batches of 32."""
    own = int(context.node_config.get("samples", context.run_config["samples"]))
    images, labels = dataset(int(context.node_config["partition-id"]), own)
    indices = next_samples(message, context, own)
    weights = message.content.array_records["arrays"].to_numpy_ndarrays()
    total = 0.0
    passes = int(context.run_config["passes"])
    for at in [*range(0, len(indices), 32)] * passes:
        batch = indices[at : at + 32]
        loss, gradients = loss_and_gradients(weights, images[batch], labels[batch])
        total += loss * len(batch) / passes
        weights = [w - 0.05 * g for w, g in zip(weights, gradients)]
    metrics = MetricRecord({"num-examples": len(indices), "loss": total / max(1, len(indices))})
    return Message(RecordDict({"arrays": ArrayRecord(weights), "metrics": metrics}), reply_to=message)


@server.main()
def serve(grid: Any, context: Context) -> None:
    """Trains, and writes what each round was like."""
    config = context.run_config
    clients = int(config["clients"])
    strategy = Balanced(
        FedAvg(fraction_evaluate=0.0, min_train_nodes=clients, min_available_nodes=clients),
        samples=int(config["round-samples"]),
        balance=bool(config["balance"]),
    )
    weights = ArrayRecord(initial(int(config["width"])))
    result = strategy.start(grid, weights, num_rounds=int(config["rounds"]), timeout=float(config["timeout"]))
    if not config["out"]:
        return
    names = ("number", "samples", "trips", "computing", "missed", "seconds")
    rounds = [{name: getattr(r, name) for name in names} for r in strategy.rounds]
    for r in rounds:
        r["loss"] = result.train_metrics_clientapp.get(r["number"], {}).get("loss")
    pathlib.Path(str(config["out"])).write_text(json.dumps(rounds))


APP = """[project]
name = "flower-train"
description = "A small net on clients that need not be equally fast"
version = "1.0.0"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "cotenant"

[tool.flwr.app.components]
serverapp = "flower_train:server"
clientapp = "flower_train:client"

[tool.flwr.app.config]
clients = 2
rounds = 3
samples = 4096
round-samples = 2048
timeout = 600.0
passes = 1
width = 64
balance = true
out = ""
"""


class Federation:
    """A SuperLink and its SuperNodes on loopback; all end with it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        home = folder / "home"
        home.mkdir()
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:{self.port}"\ninsecure = true\n'
        )
        here = pathlib.Path(sys.executable).parent
        self.environment = {
            **os.environ,
            "PATH": f"{here}{os.pathsep}{os.environ.get('PATH', '')}",
            "FLWR_HOME": str(home),
            # Nothing leaves this machine.
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        app = folder / "app"
        app.mkdir()
        (app / "pyproject.toml").write_text(APP)
        shutil.copy(__file__, app / "flower_train.py")

    def open(self) -> None:
        """Starts the SuperLink and waits until it listens."""
        command = ["flower-superlink", "--insecure", "--host", "127.0.0.1", "--port", str(self.port)]
        link = self.start("superlink", command)
        until = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            if link.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the SuperLink did not start:\n" + self.words())
            time.sleep(0.1)

    def start(self, name: str, command: list[str], first: Callable[[], None] | None = None) -> subprocess.Popen[bytes]:
        """Starts a process in a session of its own; ``first`` runs in it before."""
        program = shutil.which(command[0], path=self.environment["PATH"])
        if program is None:
            raise RuntimeError(f"{command[0]} not found beside {sys.executable}; pip install flwr")
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                [program, *command[1:]], env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True, preexec_fn=first,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def node(self, part: int, samples: int | None = None, first: Callable[[], None] | None = None) -> subprocess.Popen[bytes]:
        """Starts a client; ``samples`` that it owns."""
        config = f"partition-id={part}" + ("" if samples is None else f" samples={samples}")
        command = ["flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{self.port}", "--port", str(free_port())]
        return self.start(f"node-{part}", [*command, "--node-config", config], first)

    def run(self, timeout: float, meanwhile: Callable[[], None] = lambda: None, **config: Any) -> list[dict[str, Any]]:
        """Runs the app; returns its rounds. ``meanwhile`` is called when it has begun."""
        out = self.folder / f"rounds-{len(self.processes)}.json"
        words = [f"{k.replace('_', '-')}={json.dumps(v)}" for k, v in {**config, "out": str(out)}.items()]
        run = self.start("run", ["flwr", "run", str(self.folder / "app"), "here", "--stream", "--run-config", " ".join(words)])
        meanwhile()
        try:
            run.wait(timeout)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"the run took more than {timeout} s:\n{self.words()}") from None
        if not out.exists():
            raise RuntimeError(f"the run failed:\n{self.words()}")
        rounds: list[dict[str, Any]] = json.loads(out.read_text())
        return rounds

    def words(self) -> str:
        """The ends of all logs."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"== {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in logs)

    def close(self) -> None:
        """Ends all its processes, and those that they started."""
        for process in reversed(self.processes):
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kills a process with its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def federation() -> Iterator[Federation]:
    """A federation in a folder of its own, which is removed."""
    with tempfile.TemporaryDirectory(prefix="flower-") as folder:
        made = Federation(pathlib.Path(folder))
        try:
            made.open()
            yield made
        finally:
            made.close()


def main() -> None:
    """Runs a federation and prints its rounds."""
    parser = argparse.ArgumentParser(description="trains a small net on several clients")
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=4096, help="that each client owns")
    parser.add_argument("--round-samples", type=int, default=2048, help="of all clients in a round")
    parser.add_argument("--passes", type=int, default=1, help="over a round's samples")
    parser.add_argument("--width", type=int, default=64, help="of the hidden layer")
    args = parser.parse_args()
    with federation() as made:
        for part in range(args.clients):
            made.node(part)
        for row in made.run(600.0, balance=True, **vars(args)):
            print(f"round {row['number']}: {row['seconds']:.1f} s, loss {row['loss']:.4f}, samples {sorted(row['samples'].values())}")


if __name__ == "__main__":
    main()
