"""A rank of a job that is replayed: a training that counts its own samples.

The model's one parameter holds a number for each sample of the data set, and
the update adds 1 to those of the batch. So the parameter says how often each
sample really counted, whoever died meanwhile. Every rank also logs each batch
that it was handed, before it trains on it.
"""

from __future__ import annotations

import dataclasses
import datetime
import faulthandler
import functools
import json
import os
import pathlib
import signal
import time
import traceback
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from cotenant.session import Session
from cotenant.torch import Balancer

#: Exit codes: a peer is gone, as the collectives say; anything else that went wrong.
PEER, WRONG = 3, 1


@dataclasses.dataclass(frozen=True)
class Part:
    """What a rank's process is told."""

    rank: int
    names: tuple[str, ...]
    attempt: int
    folder: pathlib.Path
    seed: int
    global_batch: int
    data: int
    iterations: int
    allocator: str
    timeout: float
    scale: float  # seconds here for a second of virtual time
    environment: dict[str, str]


def run(part: Part, progress: Any) -> int:
    """Trains until the job is done; tells the exit code."""
    faulthandler.register(signal.SIGUSR1)  # where it hangs, if it does
    os.environ.update(part.environment)
    os.environ.update(
        RANK=str(part.rank),
        LOCAL_RANK=str(part.rank),
        WORLD_SIZE=str(len(part.names)),
        COTENANT_JOB=f"replay-{part.seed}",
        COTENANT_WORKER=part.names[part.rank],
    )
    torch.set_num_threads(1)
    # Time is shorter here than in life.
    Session.__init__ = functools.partialmethod(Session.__init__, retry=0.1)  # type: ignore[assignment]
    balancer: Balancer | None = None
    try:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{part.folder}/store-{part.attempt}",
            rank=part.rank,
            world_size=len(part.names),
            timeout=datetime.timedelta(seconds=part.timeout),
        )
        balancer = Balancer(
            global_batch=part.global_batch,
            seed=part.seed,
            sum_losses=part.seed % 2 == 0,
            allocator=part.allocator,
            predictor="ema",
            timeout=datetime.timedelta(seconds=part.timeout),
        )
        train(part, balancer, progress)
        balancer.close()
        return 0
    except RuntimeError as e:
        # What a script does that does not catch it: it ends, and says why.
        print(e, flush=True)
        if balancer is not None and getattr(balancer, "pace", None) and balancer.pace.session is not None:
            balancer.pace.session.stop(forget=False)
        return PEER
    except BaseException:
        traceback.print_exc()
        return WRONG


def train(part: Part, balancer: Balancer, progress: Any) -> None:
    """The script of a user, with a checkpoint every few iterations and a log."""
    dataset = TensorDataset(torch.arange(part.data))
    embedding = nn.Embedding(part.data, 1).double()
    nn.init.zeros_(embedding.weight)
    wrapped, loader = balancer.prepare(embedding, DataLoader(dataset, batch_size=1, shuffle=True))
    optimizer = torch.optim.SGD(embedding.parameters(), lr=1.0)
    checkpoint = part.folder / "checkpoint.json"
    if checkpoint.exists():
        saved = json.loads(checkpoint.read_text())
        loader.load_state_dict(saved["loader"])
        with torch.no_grad():
            embedding.weight.copy_(torch.tensor(saved["counts"], dtype=torch.float64).reshape(-1, 1))
    # Samples a second, by name, as long as the job lives; another node's are another's.
    speed = 20 + 180 * torch.rand(1, generator=torch.Generator().manual_seed(hash_of(part))).item()
    log = os.open(part.folder / f"log-{part.attempt}-{part.rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    every = 1 + part.seed % 4
    while True:
        for (ids,) in loader:
            state = loader.state_dict()
            iteration = state["iteration"] - 1
            progress[part.rank] = iteration + 1
            mine = ids[: loader.balancer.batch_size].tolist()
            session = balancer.pace.session
            line = {
                "iteration": iteration,
                "epoch": state["epoch"],
                "end": state["offset"],
                "shares": balancer.pace.shares(iteration),
                "samples": mine,
                "generation": state["generation"],
                "reported": session.reported if session else 0,
            }
            os.write(log, (json.dumps(line) + "\n").encode())  # whole, even if the next thing is SIGKILL
            time.sleep(part.scale * (len(ids) / speed + 0.01))
            optimizer.zero_grad()
            output = wrapped(ids)
            loss = -output.sum() if part.seed % 2 == 0 else -output.mean() * balancer.weights.total
            loss.backward()
            optimizer.step()
            done = iteration + 1 >= part.iterations
            if part.rank == 0 and (done or iteration % every == 0):
                text = json.dumps({"loader": loader.state_dict(), "counts": embedding.weight.flatten().tolist()})
                (part.folder / "new").write_text(text)
                os.replace(part.folder / "new", checkpoint)  # from here on the iteration counts
            if done:
                return


def hash_of(part: Part) -> int:
    """A seed for a rank's speed, by its name."""
    return 1000 * part.seed + sum(map(ord, part.names[part.rank]))
