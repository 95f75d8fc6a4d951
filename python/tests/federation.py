"""A federation in virtual time: Flower's own strategies and messages, no processes."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import types
from typing import Any, Callable, Iterable, Iterator
from unittest import mock

import numpy as np
from flwr.app import ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from cotenant.flower import client as code
from cotenant.flower import grid as timed
from cotenant.flower import next_samples


def program() -> str | None:
    """The Go program, if it was built and can coordinate."""
    built = pathlib.Path(__file__).resolve().parents[2] / "bin" / "cotenant"
    for path in (os.environ.get("COTENANT_BINARY"), str(built)):
        if path and os.path.exists(path):
            if subprocess.run([path, "serve", "balance", "--help"], capture_output=True).returncode == 0:
                return path
    return None


@dataclasses.dataclass
class Client:
    """A client of a federation.

    ``speed`` in samples a second, ``link`` in seconds there and back, ``data``
    in samples. ``behave(round, reply)`` may change the reply, give another, or
    None for silence; it may set ``self.speed`` as well. It is there from round
    ``joins`` on, and until before round ``leaves``.
    """

    speed: float
    link: float = 0.0
    data: int = 10_000
    behave: Callable[[int, Message], Message | None] = lambda number, reply: reply
    joins: int = 0
    leaves: int = 10**9
    seen: list[int] = dataclasses.field(default_factory=list)
    done: list[int] = dataclasses.field(default_factory=list)
    mods: bool = True


class World:
    """Flower's grid, and the clients behind it, with a clock of their own."""

    def __init__(self, clients: dict[int, Client]) -> None:
        self.clients = clients
        self.now = 0.0
        self.round = 0
        self.run = types.SimpleNamespace(run_id=7)
        self.pushed: list[Message] = []
        self._contexts: dict[int, Context] = {}
        self._ready: dict[str, tuple[float, Message]] = {}
        self._local = 0.0

    # Flower's grid.

    def get_node_ids(self) -> list[int]:
        return [n for n, c in self.clients.items() if c.joins <= self.round + 1 < c.leaves]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        self.round += 1
        ids = []
        for message in messages:
            ids.append(f"message-{len(self.pushed)}")
            message.metadata.__dict__["_message_id"] = ids[-1]
            self.pushed.append(message)
            self._serve(ids[-1], message)
        return ids

    def pull_messages(self, ids: Iterable[str]) -> list[Message]:
        due = [i for i in ids if i in self._ready and self._ready[i][0] <= self.now]
        return [self._ready.pop(i)[1] for i in due]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        assert not list(messages), "training goes by push and pull"
        return []

    # The clients.

    def _serve(self, identity: str, message: Message) -> None:
        node = message.metadata.dst_node_id
        c = self.clients[node]
        context = self._contexts.setdefault(node, Context(7, node, {}, RecordDict(), {}))
        self._local = self.now + c.link / 2
        app = ClientApp(mods=[code.measure] if c.mods else [])

        @app.train()
        def train(message: Message, context: Context) -> Message:
            indices = next_samples(message, context, c.data)
            c.seen += indices
            c.done.append(len(indices))
            self._local += len(indices) / c.speed
            weights = [w + len(indices) for w in message.content.array_records["arrays"].to_numpy_ndarrays()]
            metrics = MetricRecord({"num-examples": len(indices), "node": float(node)})
            return Message(RecordDict({"arrays": ArrayRecord(weights), "metrics": metrics}), reply_to=message)

        reply: Message | None = app(message, context)
        reply = c.behave(self.round, reply)  # type: ignore[arg-type]
        if reply is not None:
            self._ready[identity] = (self._local + c.link / 2, reply)

    @contextlib.contextmanager
    def clock(self) -> Iterator[None]:
        """Everybody's clock is this one's."""

        def sleep(seconds: float) -> None:
            assert seconds > 0
            self.now += seconds
            assert self.now < 1e6, "waits for ever"

        before = timed.TimedGrid.__init__

        def init(made: Any, grid: Any, patience: float, late: Any) -> None:
            before(made, grid, patience, late, lambda: self.now, sleep)

        identify()
        with (
            mock.patch.object(code, "time", types.SimpleNamespace(monotonic=lambda: self._local)),
            mock.patch.object(timed.TimedGrid, "__init__", init),
        ):
            yield


def identify() -> None:
    """Messages say which run they are of; a process of Flower's is told by the SuperLink."""
    with contextlib.suppress(ImportError):
        from flwr.supercore.task_identity import TaskIdentity

        TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 7


def start(world: World, strategy: Any, rounds: int, **more: Any) -> Any:
    """Runs a strategy in a world, from the weights (0, 0)."""
    with world.clock():
        return strategy.start(world, ArrayRecord([np.zeros(2)]), num_rounds=rounds, **more)


def failure(reply: Message) -> Message:
    """An error in the place of a reply."""
    failed = Message(RecordDict(), dst_node_id=reply.metadata.src_node_id, message_type="train")
    failed.metadata.__dict__["_message_id"] = reply.metadata.reply_to_message_id
    return Message(Error(1, "out of luck"), reply_to=failed)
