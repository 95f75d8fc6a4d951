"""Sends the messages of a round and notes when each reply is there.

Flower's own ``send_and_receive`` looks for replies every three seconds and
gives them back together, so it can't tell how long a client took.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Callable, Iterable, Mapping

from flwr.app import Message

from cotenant.flower.client import asked

#: Seconds that a client is waited for at least, after the slowest that is done.
GRACE = 10.0

#: Rounds after which nobody waits for a late reply any more.
FORGET = 16


@dataclasses.dataclass(frozen=True)
class Sent:
    """A message that awaits its reply."""

    client: str
    round: int
    at: float
    samples: int


@dataclasses.dataclass
class Round:
    """What was sent, and how long the replies took, by client.

    ``samples`` asked for, ``known`` clients whose speed is known, ``trips`` in
    seconds and ``computing`` of that, ``missed`` clients that did not answer in
    time, ``seconds`` that the round took.
    """

    number: int
    samples: dict[str, int]
    known: frozenset[str] = frozenset()
    trips: dict[str, float] = dataclasses.field(default_factory=dict)
    computing: dict[str, float] = dataclasses.field(default_factory=dict)
    missed: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0


class TimedGrid:
    """A Flower grid whose training messages are timed; all else is as it was.

    Parameters
    ----------
    grid : Flower's
    patience : a client whose speed is known is waited for this many times as
        long as the slowest that is done, once half of all are; 0 waits for the
        timeout
    late : called with replies to messages of rounds before
    """

    def __init__(
        self,
        grid: Any,
        patience: float,
        late: Callable[[Sent, Message, float], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._grid = grid
        self._patience = patience
        self._late = late
        self._clock = clock
        self._sleep = sleep
        self._round: Round | None = None
        self._outstanding: dict[str, Sent] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)

    def time(self, round: Round) -> None:
        """The next messages are those of this round."""
        self._round = round

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """As Flower's, but the replies to training are timed."""
        messages = list(messages)  # may be a generator, whose end says which round it is
        round, self._round = self._round, None
        if round is None or not any(asked(m) for m in messages):
            return list(self._grid.send_and_receive(messages, timeout=timeout))
        begin = self._clock()
        clients = [str(m.metadata.dst_node_id) for m in messages]
        ids = list(self._grid.push_messages(messages))
        del messages
        waiting: dict[str, Sent] = {}
        for client, identity in zip(clients, ids):
            if identity:  # None: it could not be sent
                waiting[identity] = Sent(client, round.number, begin, round.samples.get(client, 0))
        replies: list[Message] = []
        while waiting:
            replies += self._pull(waiting, round)
            now = self._clock()
            if not waiting or timeout is not None and now - begin >= timeout or self._over(waiting, round, now - begin):
                break
            # Often enough to be a hundredth off, seldom enough to cost nothing.
            pause = min(1.0, max(0.02, (now - begin) / 50))
            self._sleep(pause if timeout is None else min(pause, begin + timeout - now))
        unsent = [client for client, identity in zip(clients, ids) if not identity] + clients[len(ids) :]
        round.missed = sorted([*unsent, *(sent.client for sent in waiting.values())])
        round.seconds = self._clock() - begin
        self._outstanding.update(waiting)
        for identity, sent in list(self._outstanding.items()):
            if sent.round <= round.number - FORGET:
                del self._outstanding[identity]
        return replies

    def _pull(self, waiting: dict[str, Sent], round: Round) -> list[Message]:
        replies = []
        for reply in self._grid.pull_messages([*waiting, *self._outstanding]):
            identity = reply.metadata.reply_to_message_id
            now = self._clock()
            if (sent := waiting.pop(identity, None)) is not None:
                if not reply.has_error():  # which takes no time
                    round.trips[sent.client] = now - sent.at
                replies.append(reply)
            elif (sent := self._outstanding.pop(identity, None)) is not None:
                self._late(sent, reply, now - sent.at)
        return replies

    def _over(self, waiting: Mapping[str, Sent], round: Round, elapsed: float) -> bool:
        if not self._patience or not round.trips or len(round.trips) < len(waiting):
            return False
        if any(sent.client not in round.known for sent in waiting.values()):
            return False  # it may just be slow
        slowest = max(round.trips.values())
        return elapsed > max(self._patience * slowest, slowest + GRACE)
