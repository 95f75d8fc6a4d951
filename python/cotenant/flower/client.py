"""What runs at a client: which samples are next, and how long they took."""

from __future__ import annotations

import random
import time
from typing import Any, Callable, Iterable

from flwr.app import ConfigRecord, Context, Message

from cotenant.machine import Machine

#: Names of what travels: the server's number in the config of a message, the
#: client's measurements as a record of the reply (and its place in its data as
#: one of its state).
ASKED = "cotenant-samples"
RECORD = "cotenant"


def asked(message: Message) -> int | None:
    """How many samples the server asks for; None where it leaves that to the client."""
    records: Iterable[Any] = message.content.config_records.values()
    for record in records:
        if ASKED in record:
            return int(record[ASKED])
    return None


def next_samples(message: Message, context: Context, data: int, seed: int = 0) -> list[int]:
    """The samples to train on in this round: indices into the client's own data.

    As many as the server asks for, at most ``data``; all, where it does not
    ask. They go through the data in a shuffled order, round by round, and begin
    another when one ends, so every sample is seen as often as any other, but for
    one. The place is kept in ``context.state``.

    The work is timed from here on (:func:`measure`): load the data before.

    Parameters
    ----------
    message : that of the server
    context : the client's
    data : how many samples the client has; told to the server, and nothing else of them
    seed : of the orders
    """
    if data < 0:
        raise ValueError(f"data {data}: a client has no fewer samples than 0")
    want = asked(message)
    want = data if want is None else min(max(want, 0), data)
    state: Any = context.state.config_records.get(RECORD)
    turn, offset = 0, 0
    if state is not None and state.get("data") == data:
        turn, offset = int(state["turn"]), int(state["offset"])
    picked: list[int] = []
    while len(picked) < want:
        order = list(range(data))
        random.Random(f"{seed}/{turn}").shuffle(order)
        more = order[offset : offset + want - len(picked)]
        picked += more
        offset += len(more)
        if offset == data:
            turn, offset = turn + 1, 0
    place: dict[str, Any] = {"turn": turn, "offset": offset, "data": data, "samples": len(picked), "began": time.monotonic()}
    context.state[RECORD] = ConfigRecord(place)
    return picked


def measure(message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
    """A Flower mod, ``ClientApp(mods=[measure])``: tells the server how long the work took.

    Adds a record to the reply where the server asked for a number of samples:
    the seconds since :func:`next_samples`, what that was given and gave, and how
    busy the client's machine was.
    """
    if asked(message) is None:
        return call_next(message, context)
    before = context.state.config_records.get(RECORD)
    machine = Machine()
    machine.use()
    reply = call_next(message, context)
    state: Any = context.state.config_records.get(RECORD)
    if reply.has_error() or state is None or state is before:
        return reply  # next_samples was not called: there is nothing to tell
    seconds = time.monotonic() - float(state["began"])
    cpu, memory = machine.use()
    told = {"seconds": seconds, "samples": state["samples"], "data": state["data"], "cpu": cpu, "memory": memory}
    reply.content[RECORD] = ConfigRecord(told)
    return reply
