"""What must hold of a job that was replayed, from its logs."""

from __future__ import annotations

import functools
import json
import pathlib
from typing import Any, Sequence

import torch


class Broken(AssertionError):
    """A promise that was not kept."""


def lines(file: pathlib.Path) -> list[dict[str, Any]]:
    """A rank's log; the last line may be cut off by its death."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]]


def check(folder: pathlib.Path, attempts: Sequence[tuple[int, int]], seed: int, data: int, total: int) -> dict[str, int]:
    """Checks a job's logs.

    Parameters
    ----------
    attempts : for each start of the job's processes, how many there were and
        the iteration of the checkpoint that they loaded; then (0, the last
        checkpoint's)

    Returns
    -------
    Counts of what happened: iterations and those done in vain, moves, reports.

    Raises
    ------
    Broken
        Ranks with different shares, shares of another sum, a sample that was
        lost or repeated.
    """
    seen: dict[int, list[int]] = {}
    iterations = in_vain = moves = reported = 0
    before: list[int] = []
    for attempt, ((ranks, begin), (_, end)) in enumerate(zip(attempts, attempts[1:])):
        logs = [lines(folder / f"log-{attempt}-{rank}") for rank in range(ranks)]
        reported += max([line["reported"] for line in logs[0]] or [0])
        by_iteration: dict[int, list[dict[str, Any] | None]] = {}
        for rank, log in enumerate(logs):
            for i, line in enumerate(log):
                if line["iteration"] != begin + i:
                    raise Broken(f"attempt {attempt}, rank {rank}: iteration {line['iteration']} where {begin + i} was due")
                by_iteration.setdefault(line["iteration"], [None] * ranks)[rank] = line
        for iteration, rows in sorted(by_iteration.items()):
            where = f"attempt {attempt}, iteration {iteration}"
            batch = agreed(where, rows, total)
            if batch is not None:
                whole(where, batch, rows, seed, data)
            if iteration >= end:
                in_vain += 1
                continue
            if batch is None:
                raise Broken(f"{where}: it counts, but a rank has not taken part")
            iterations += 1
            shares = list(batch["shares"])
            moves += shares != before
            before = shares
            seen.setdefault(batch["epoch"], []).extend(s for row in rows if row for s in row["samples"])
        if end > begin and (end - 1) not in by_iteration:
            raise Broken(f"attempt {attempt}: the checkpoint of iteration {end} counts what nobody logged")
    counts = [0] * data
    for epoch, samples in sorted(seen.items()):
        want = order(seed, epoch, data)[: None if epoch < max(seen) else len(samples)]
        if samples != want:
            raise Broken(
                f"epoch {epoch}: {len(samples)} samples, {len(set(samples))} different ones, "
                f"lost {sorted(set(want) - set(samples))[:5]}, of {len(want)}"
            )
        for s in samples:
            counts[s] += 1
    saved = json.loads((folder / "checkpoint.json").read_text())["counts"]
    off = [i for i, (a, b) in enumerate(zip(saved, counts, strict=True)) if abs(a - b) > 1e-9]
    if off:
        raise Broken(f"the model counted sample {off[0]} {saved[off[0]]} times, handed out {counts[off[0]]} times")
    return {"iterations": iterations, "in_vain": in_vain, "moves": moves - 1, "reported": reported}


@functools.lru_cache(64)
def order(seed: int, epoch: int, data: int) -> list[int]:
    """DistributedSampler's order."""
    generator = torch.Generator()
    generator.manual_seed(seed + epoch)
    result: list[int] = torch.randperm(data, generator=generator).tolist()
    return result


def agreed(where: str, rows: Sequence[dict[str, Any] | None], total: int) -> dict[str, Any] | None:
    """One vector, of the right sum, on all ranks that were handed the batch; None unless all were."""
    present = [row for row in rows if row is not None]
    first = present[0]
    for row in present:
        for what in ("epoch", "end", "shares"):
            if row[what] != first[what]:
                raise Broken(f"{where}: {what} {[r and r[what] for r in rows]} of the ranks")
    if sum(first["shares"]) != total or len(first["shares"]) != len(rows) or min(first["shares"]) < 0:
        raise Broken(f"{where}: shares {first['shares']} of {len(rows)} ranks are none of {total}")
    return first if len(present) == len(rows) else None


def whole(where: str, batch: dict[str, Any], rows: Sequence[dict[str, Any] | None], seed: int, data: int) -> None:
    """All ranks together were handed the next part of the epoch's order, each as much as its share."""
    samples = [s for row in rows if row for s in row["samples"]]
    sizes = [len(row["samples"]) for row in rows if row]
    if len(samples) == sum(batch["shares"]) and sizes != list(batch["shares"]):
        raise Broken(f"{where}: sizes {sizes} for the shares {batch['shares']}")
    if len(samples) < sum(batch["shares"]) and batch["end"] != data:
        raise Broken(f"{where}: {len(samples)} samples within an epoch")
    if samples != order(seed, batch["epoch"], data)[batch["end"] - len(samples) : batch["end"]]:
        raise Broken(f"{where}: not the next samples of the order")
