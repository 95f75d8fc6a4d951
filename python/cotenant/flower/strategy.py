"""The strategy that sizes each client's work."""

from __future__ import annotations

import logging
import math
import os
from typing import Any, Callable, Iterable

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import Strategy

from cotenant.coordinator import Coordinator
from cotenant.flower.client import ASKED, RECORD
from cotenant.flower.grid import Round, Sent, TimedGrid
from cotenant.flower.rounds import Measured, Rounds

# Flower's own logger: `flwr run --stream` shows it.
log = logging.getLogger("flwr")

#: A client that did not answer is left out of 1, 2, 4, ... rounds, at most so many.
MOST_ABSENT = 8


class Balanced(Strategy):
    """Gives each client the work that it does in the time the others need.

    Wraps any strategy that trains by messages; whom to ask and how to put
    updates together stays its business. The messages it makes get a number of
    samples each, in their config, and the sum is the same in every round.

    Parameters
    ----------
    strategy : the one to wrap
    samples : that all clients of a round train on together
    minimum : samples of a client, where there are enough for all
    patience : a client whose speed is known is waited for this many times as
        long as the slowest that is done (and at least 10 s longer), once half
        of all are; 0 waits for Flower's timeout
    predictor, threshold, seed : how the coordinator decides
    balance : False for equal shares, all else alike; by default COTENANT_BALANCE
        is not 0
    connect : makes the connection to the coordinator; by default to
        COTENANT_ADDRESS, or to one that is started here

    Attributes
    ----------
    rounds : of :class:`cotenant.flower.grid.Round`, those so far
    """

    def __init__(
        self,
        strategy: Strategy,
        samples: int,
        *,
        minimum: int = 1,
        patience: float = 5.0,
        predictor: str = "auto",
        threshold: float | None = None,
        seed: int = 0,
        balance: bool | None = None,
        connect: Callable[[], Coordinator] | None = None,
    ) -> None:
        if not isinstance(strategy, Strategy):
            raise TypeError(
                f"strategy {type(strategy).__name__}: want one of flwr.serverapp.strategy; "
                "those of flwr.server.strategy know no messages"
            )
        if not (math.isfinite(patience) and (patience == 0 or patience >= 1)):
            raise ValueError(f"patience {patience}: want at least 1, or 0 to wait for the timeout")
        self.strategy = strategy
        self.samples = samples
        self.rounds: list[Round] = []
        options: dict[str, Any] = {"predictor": predictor, "seed": str(seed)}
        if threshold is not None:
            options["threshold"] = threshold
        balance = os.environ.get("COTENANT_BALANCE") != "0" if balance is None else balance
        self._plans = Rounds(samples, "", minimum, options, balance, connect)
        self._patience = patience
        self._grid: TimedGrid | None = None
        self._known: set[str] = set()  # clients whose speed is
        self._absent: dict[str, tuple[int, int]] = {}  # times, and the round that asks again
        self._said: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        # What users set on their own strategy and read back.
        if name == "strategy":
            raise AttributeError(name)
        return getattr(self.strategy, name)

    def summary(self) -> None:
        """The wrapped strategy's."""
        self.strategy.summary()

    def start(self, grid: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs all rounds: as the wrapped strategy's ``start``."""
        self._grid = TimedGrid(grid, self._patience, self._take_late)
        # The strategy's own loop, which may be its author's, with these two steps in it.
        inner: Any = self.strategy
        self._configure, self._aggregate = inner.configure_train, inner.aggregate_train
        inner.configure_train, inner.aggregate_train = self.configure_train, self.aggregate_train
        well = False
        try:
            log.info("Balanced: %d samples a round", self.samples)
            result = inner.start(self._grid, *args, **kwargs)
            well = True
            return result
        finally:
            del inner.configure_train, inner.aggregate_train
            self._configure = self._aggregate = self._grid = None
            self._plans.stop(forget=well)

    # The strategy's own steps while `start` has replaced them.
    _configure: Callable[..., Any] | None = None
    _aggregate: Callable[..., Any] | None = None

    def configure_train(self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Any) -> Iterable[Message]:
        """The wrapped strategy's messages, each with its number of samples.

        Clients that did not answer lately, and those that own nothing or whose
        number is 0, get none.
        """
        configure = self._configure or self.strategy.configure_train
        messages = list(configure(server_round, arrays, config, grid))
        present = [m for m in messages if self._absent.get(_client(m), (0, 0))[1] <= server_round]
        if present:  # where all are late, better late ones than none
            messages = present
        if not self._plans.job:
            self._plans.job = _job(grid)
        samples = self._plans.plan(server_round, [_client(m) for m in messages])
        messages = [m for m in messages if samples[_client(m)] > 0]
        for message in messages:
            _ask(message, samples[_client(message)])
        self.rounds.append(Round(server_round, samples, frozenset(self._known)))
        if self._grid is not None:
            self._grid.time(self.rounds[-1])
        log.info("configure_train: samples %s", " ".join(f"{name}: {n}" for name, n in samples.items()) or "of nobody")
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Learns from the replies how long each client took, and hands them on.

        A reply counts for at most the samples its client was asked for; one that
        claims a number of samples that is none is left out.
        """
        aggregate = self._aggregate or self.strategy.aggregate_train
        now = self.rounds[-1] if self.rounds else Round(server_round, {})
        good: list[Message] = []
        measured: dict[str, Measured] = {}
        for reply in replies:
            client = str(reply.metadata.src_node_id)
            if reply.has_error():
                good.append(reply)  # the strategy logs them
                continue
            self._absent.pop(client, None)
            asked = now.samples.get(client, 0)
            done, why = self._read(client, reply, asked, now.trips.get(client))
            if why:
                self._say(f"{client}'s times are left out: {why}")
            elif done is not None:
                measured[client] = done
                now.computing[client] = done.seconds
            if why := _weigh(reply, self._weight_key(), asked):
                self._say(f"{client}'s update is left out: {why}")
            else:
                good.append(reply)
        self._learn(server_round, measured)
        for client in now.missed:
            times = min(self._absent.get(client, (0, 0))[0] + 1, MOST_ABSENT.bit_length())
            self._absent[client] = times, server_round + 1 + 2 ** (times - 1)
            self._say(f"{client} did not answer in round {server_round}; the round goes on without it")
        arrays, metrics = aggregate(server_round, good)
        return arrays, metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Any
    ) -> Iterable[Message]:
        """The wrapped strategy's."""
        messages: Iterable[Message] = self.strategy.configure_evaluate(server_round, arrays, config, grid)
        return messages

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """The wrapped strategy's."""
        return self.strategy.aggregate_evaluate(server_round, replies)

    # What was learned.

    def _weight_key(self) -> str:
        return str(getattr(self.strategy, "weighted_by_key", "num-examples"))

    def _read(self, client: str, reply: Message, asked: int, trip: float | None) -> tuple[Measured | None, str]:
        """What a client measured, or why that can't be."""
        record: Any = reply.content.pop(RECORD, None)
        if record is None:
            return None, "it tells none; its ClientApp wants mods=[measure] and next_samples, both of cotenant.flower"
        try:
            owned, samples, seconds = int(record["data"]), int(record["samples"]), float(record["seconds"])
            cpu, memory = float(record["cpu"]), float(record["memory"])
        except (KeyError, TypeError, ValueError, OverflowError) as e:
            return None, f"{type(e).__name__} {e} in {dict(record)}"
        done = Measured(samples, seconds, seconds if trip is None else trip, cpu, memory)
        if why := done.wrong(asked):
            return None, why
        if owned < samples:
            return None, f"data {owned}: it trained on {samples}"
        self._plans.owns(client, owned)
        return done, ""

    def _learn(self, number: int, measured: dict[str, Measured]) -> None:
        refused = self._plans.report(number, measured)
        for client, reason in refused.items():
            self._say(f"{client}'s times are left out: {reason}")
        self._known.update(measured.keys() - refused.keys())

    def _take_late(self, sent: Sent, reply: Message, trip: float) -> None:
        """A reply to a round before: its update is stale, its times are not."""
        self._absent.pop(sent.client, None)
        if reply.has_error():
            return
        done, _ = self._read(sent.client, reply, sent.samples, trip)
        if done is not None:
            self._plans.report_late(sent.client, done)

    def _say(self, what: str) -> None:
        # A client says the same nonsense every round; a warning a client and kind is enough.
        kind = what[:60]
        if kind not in self._said and len(self._said) < 100:
            self._said.add(kind)
            log.warning("cotenant: client %s", what)


def _client(message: Message) -> str:
    return str(message.metadata.dst_node_id)


def _job(grid: Any) -> str:
    """``COTENANT_JOB``, or by Flower's run id."""
    try:
        run = f"flower-{grid.run.run_id}"
    except (AttributeError, TypeError):
        run = f"flower-{os.getpid()}"
    return os.environ.get("COTENANT_JOB") or run


def _ask(message: Message, samples: int) -> None:
    """Writes the number into a message, whose records others may share."""
    records: dict[str, Any] = dict(message.content)
    name = next(iter(message.content.config_records), "config")
    records[name] = ConfigRecord({**records.get(name, {}), ASKED: samples})
    message.content = RecordDict(records)


def _weigh(reply: Message, key: str, asked: int) -> str:
    """Bounds the samples that an update counts for; says why it can count for none."""
    for record in reply.content.metric_records.values():
        if key not in record:
            continue
        claim = record[key]
        if isinstance(claim, list) or not math.isfinite(claim) or claim <= 0:
            return f"{key} {claim} is no number of samples"
        if claim > asked and key == "num-examples":
            record[key] = asked
    return ""
