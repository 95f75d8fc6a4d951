"""Runs a function in several processes, the ranks of a job."""

from __future__ import annotations

import os
import time
import traceback
from typing import Any, Callable, Sequence


def run(
    context: Any,
    ranks: int,
    enter: Callable[[int, int, Any], None],
    where: Any,
    function: Callable[..., Any],
    args: Sequence[Any],
    env: dict[str, str],
    timeout: float,
) -> list[Any]:
    """Calls ``function(rank, *args)`` in each of ``ranks`` processes, after ``enter(rank, ranks, where)``.

    Returns what they return; one that raised fails the call with its
    traceback. No process outlives the call. ``context`` is multiprocessing's.
    """
    ends, processes = [], []
    for rank in range(ranks):
        here, there = context.Pipe(duplex=False)
        process = context.Process(
            target=_rank, args=(rank, ranks, enter, where, function, args, env, there), daemon=False
        )
        process.start()
        there.close()
        ends.append(here)
        processes.append(process)
    results: list[Any] = [None] * ranks
    failed: list[str] = []
    until = time.monotonic() + timeout
    try:
        for rank, end in enumerate(ends):
            if not end.poll(max(0.0, until - time.monotonic())):
                failed.append(f"rank {rank}: nothing within {timeout} s")
                continue
            try:
                good, value = end.recv()
            except EOFError:
                failed.append(f"rank {rank}: died")
                continue
            if good:
                results[rank] = value
            else:
                failed.append(f"rank {rank}:\n{value}")
        for process in processes:
            process.join(5 if not failed else 0.1)
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
            process.join()
    if failed:
        raise AssertionError("\n".join(failed))
    return results


def _rank(
    rank: int, ranks: int, enter: Any, where: Any, function: Callable[..., Any], args: Any, env: Any, pipe: Any
) -> None:
    os.environ.update(env)
    try:
        enter(rank, ranks, where)
        pipe.send((True, function(rank, *args)))
    except BaseException:
        pipe.send((False, traceback.format_exc()))
    pipe.close()
