"""Runs a function as the workers of a TensorFlow cluster on loopback, each a process."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
from typing import Any, Callable

# Before TensorFlow is loaded, here and in the processes: it says much, and looks for GPUs.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import processes  # noqa: E402
import tensorflow as tf  # noqa: E402


def run(
    ranks: int, function: Callable[..., Any], *args: Any, env: dict[str, str] | None = None, timeout: float = 180.0
) -> list[Any]:
    """Calls ``function(rank, *args)`` in each of ``ranks`` processes; see :func:`processes.run`.

    They are forked from a server that has loaded the library and done nothing
    else; a process in which it has computed can't be forked.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tensorflow"])
    return processes.run(context, ranks, _enter, addresses(ranks), function, args, env or {}, timeout)


def addresses(ranks: int) -> list[str]:
    """Addresses on loopback that were free just now."""
    sockets = [socket.socket() for _ in range(ranks)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    finally:
        for s in sockets:
            s.close()


def _enter(rank: int, ranks: int, workers: list[str]) -> None:
    cluster = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
    os.environ["TF_CONFIG"] = json.dumps(cluster if ranks > 1 else {})
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
