"""What ranks tell each other before they train, and what follows from it."""

from __future__ import annotations

from typing import Any, Sequence

from cotenant.agreement import Shares
from cotenant.pace import Pace
from cotenant.sampling import Place
from cotenant.session import Worker


def same(everybody: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    """Raises ValueError where ranks differ in what has to be the same."""
    for what in names:
        values = [each[what] for each in everybody]
        if any(v != values[0] for v in values):
            raise ValueError(f"prepare: the ranks' {what} differ: {values}; they must be the same on every rank")


def workers(everybody: Sequence[dict[str, Any]], global_batch: int) -> list[Worker]:
    """The workers, by the ranks' ``worker`` (a name) and ``limits`` (minimum, maximum, buckets).

    Those that say the ``class`` of their node or device are kept apart by it in
    what is learned of speeds. Where a minimum is None, it is the rank's ``least``.

    Raises
    ------
    ValueError
        The minima are more than the global batch.
    """
    names = [each["worker"] for each in everybody]
    if len(set(names)) < len(names):  # two jobs' ranks in one, or no local ranks given
        names = [f"{name}#{rank}" for rank, name in enumerate(names)]
    asked = [each["limits"][0] for each in everybody]
    minima = [each["least"] if least is None else least for least, each in zip(asked, everybody)]
    if sum(minima) > global_batch:
        if sum(least or 0 for least in asked) > global_batch:
            raise ValueError(
                f"prepare: the ranks' minimum= {asked} sum to more than the global batch {global_batch}; "
                "lower them, or raise the global batch"
            )
        if any(least is None and each["least"] > 1 for least, each in zip(asked, everybody)):
            raise ValueError(
                f"prepare: the ranks' least batches {minima} sum to more than the global batch {global_batch}, and batch "
                "normalisation needs 2 samples; raise the batch size, or train on fewer ranks"
            )
        # More workers than samples: somebody has none.
        minima = [least or 0 for least in asked]
    return [
        Worker(name, least, each["limits"][1], tuple(each["limits"][2]), name.split("/")[0], each.get("class", ""))
        for name, least, each in zip(names, minima, everybody)
    ]


def state(place: Place, pace: Pace, seed: int, length: int | None) -> dict[str, Any]:
    """Where a training stands, in plain numbers, strings and lists; the same on every rank."""
    latest = pace.latest
    return {
        "version": 1,
        "epoch": place.epoch,
        "offset": place.offset,
        "iteration": place.iteration,
        "seed": seed,
        "length": length,
        "generation": latest.generation if latest else 0,
        "answered": latest.answered if latest else 0,
        "shares": list(latest.batch_sizes) if latest else [],
        "workers": [w.name for w in pace.workers],
    }


def resume(state: dict[str, Any], place: Place, pace: Pace, length: int | None) -> int:
    """Goes on where `state` was taken, with as many ranks as there are; returns the order's seed."""
    if state.get("version") != 1:
        raise ValueError(f"state of version {state.get('version')!r}: this reads version 1")
    if state["length"] != length:
        raise ValueError(f"state of a data set of {state['length']} samples; this one has {length}")
    place.resume(int(state["epoch"]), int(state["offset"]), int(state["iteration"]))
    sizes = tuple(int(n) for n in state["shares"])
    if sizes:
        restored = Shares(int(state["generation"]), int(state["iteration"]), sizes, int(state["answered"]))
        pace.restore(restored, list(state["workers"]))
    return int(state["seed"])
