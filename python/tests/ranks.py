"""Runs a function as the ranks of a process group on loopback, each a process."""

from __future__ import annotations

import datetime
import multiprocessing
import os
import tempfile
import time
import traceback
from typing import Any, Callable

import torch
import torch.distributed as dist


def run(
    ranks: int,
    function: Callable[..., Any],
    *args: Any,
    env: dict[str, str] | None = None,
    timeout: float = 180.0,
    group: bool = True,
) -> list[Any]:
    """Calls ``function(rank, *args)`` in each of ``ranks`` processes.

    Returns what they return; one that raised fails the call with its
    traceback. Processes are forked: the library is loaded once. None outlives
    the call.
    """
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        ends, processes = [], []
        for rank in range(ranks):
            here, there = context.Pipe(duplex=False)
            process = context.Process(
                target=_rank, args=(rank, ranks, folder, function, args, env or {}, there, group), daemon=False
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
    rank: int, ranks: int, folder: str, function: Callable[..., Any], args: Any, env: Any, pipe: Any, group: bool
) -> None:
    os.environ.update({"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)})
    os.environ.update(env)
    torch.set_num_threads(1)
    try:
        if group:
            dist.init_process_group(
                "gloo",
                init_method=f"file://{folder}/store",
                rank=rank,
                world_size=ranks,
                timeout=datetime.timedelta(seconds=90),
            )
        pipe.send((True, function(rank, *args)))
    except BaseException:
        pipe.send((False, traceback.format_exc()))
    pipe.close()
