"""Runs a function as the ranks of a process group on loopback, each a process."""

from __future__ import annotations

import datetime
import multiprocessing
import os
import tempfile
from typing import Any, Callable

import processes
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
    """Calls ``function(rank, *args)`` in each of ``ranks`` processes; see :func:`processes.run`.

    Processes are forked: the library is loaded once.
    """
    with tempfile.TemporaryDirectory() as folder:
        where = folder if group else None
        return processes.run(multiprocessing.get_context("fork"), ranks, _enter, where, function, args, env or {}, timeout)


def _enter(rank: int, ranks: int, folder: str | None) -> None:
    os.environ.update({"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)})
    torch.set_num_threads(1)
    if folder is not None:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{folder}/store",
            rank=rank,
            world_size=ranks,
            timeout=datetime.timedelta(seconds=90),
        )
