"""Rank 0's talk with the coordinator, in a thread beside the training.

The training never waits for it. With the coordinator gone, nothing new is
proposed and the last agreed shares stay; it is tried again now and then.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import queue
import re
import socket
import sys
import threading
import time
from typing import Any, Callable, Sequence

from cotenant.agreement import FIELDS, Shares
from cotenant.coordinator import Access, Coordinator, CoordinatorError, Unreachable, shares_of

log = logging.getLogger("cotenant")

#: Reports that wait while the coordinator does not answer; older ones are dropped.
BACKLOG = 64

#: After as many answers without news, two iterations are told of in one call,
#: which halves what the balancing costs a job that is balanced.
SETTLED = 20


@dataclasses.dataclass(frozen=True)
class Worker:
    """A rank, as the coordinator knows it. ``maximum`` 0 is no limit."""

    name: str
    minimum: int = 1
    maximum: int = 0
    buckets: tuple[int, ...] = ()
    node: str = ""
    #: What the node or device is called among its like (``a100``); "" where that is not said.
    kind: str = ""

    def message(self) -> dict[str, Any]:
        """In the protocol's words."""
        return {
            "name": self.name,
            "min": self.minimum,
            "max": self.maximum,
            "buckets": list(self.buckets),
            "node": self.node,
            "class": self.kind,
        }


def worker_name(rank: int) -> str:
    """``COTENANT_WORKER``, or node and local rank: whoever comes back there is as fast."""
    return os.environ.get("COTENANT_WORKER") or f"{socket.gethostname()}/{os.environ.get('LOCAL_RANK', rank)}"


def job_name(rendezvous: str | None = None) -> str:
    """``COTENANT_JOB``, torchrun's run id, or script and rendezvous address."""
    run = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    if os.environ.get("COTENANT_JOB"):
        return os.environ["COTENANT_JOB"]
    if run != "none":
        return run
    script = os.path.basename(sys.argv[0] if sys.argv else "") or "job"
    where = os.environ.get("MASTER_ADDR", socket.gethostname()), os.environ.get("MASTER_PORT", str(os.getpid()))
    return f"{script}@{rendezvous or ':'.join(where)}"


def sample_name(text: str) -> str:
    """A name as samples may hold it: what else there is becomes a dash."""
    return re.sub(r"[^A-Za-z0-9._/-]+", "-", text).strip("-")[:200]


def workload_name(job: str) -> str:
    """What the job trains, the same in every run of it, by which its speeds are kept.

    ``COTENANT_WORKLOAD``, or the script's name; the job's where there is no script.
    """
    script = os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0]
    return sample_name(os.environ.get("COTENANT_WORKLOAD") or script) or sample_name(job) or "job"


def class_name(device: str = "") -> str:
    """The class of this rank's node or device: ``COTENANT_CLASS``, or what the device is called."""
    return sample_name(os.environ.get("COTENANT_CLASS") or device)


Message = Callable[[], "tuple[int, Sequence[float] | None]"]


class Session(threading.Thread):
    """Opens the job, passes reports on, keeps the newest answer.

    Parameters
    ----------
    job : its name, unique per coordinator
    workers : in the order of ranks
    global_batch : the sum of all batch sizes
    options : more fields of OpenRequest (allocator, predictor, threshold, seed)
    iteration : the next that the job runs
    agreed : what the workers hold; None at the beginning
    connect : makes the connection; :class:`Access` where None
    """

    def __init__(
        self,
        job: str,
        workers: Sequence[Worker],
        global_batch: int,
        options: dict[str, Any],
        iteration: int = 0,
        agreed: Shares | None = None,
        agreed_workers: Sequence[str] = (),
        connect: Callable[[], Coordinator] | None = None,
        retry: float = 1.0,
    ) -> None:
        super().__init__(name="cotenant", daemon=True)
        self.job = job
        self.workers = list(workers)
        self.global_batch = global_batch
        self.options = options
        self.iteration = iteration
        self.agreed = agreed
        self.agreed_workers = list(agreed_workers)
        self.retry = retry
        #: CPU seconds that this thread used.
        self.cpu = 0.0
        #: Reports that the coordinator took.
        self.reported = 0
        #: Why the coordinator, in its words, never took the job: what was asked
        #: for can't be. Trying again does not help, as it does in an outage.
        self.refusal = ""
        self.access = Access()
        self._connect = connect or self.access.connect
        self._coordinator: Coordinator | None = None
        self._generation = 0
        self._newest: Shares | None = None
        self._job = json.dumps(job)
        self._names = [json.dumps(w.name) for w in self.workers]
        #: A SimpleQueue is C: an Event or a Condition costs a tenth of a millisecond.
        self._queue: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._submitted = self._handled = 0
        #: Answers without news, one after the other; and what waits to be told
        #: along with the next iteration.
        self._calm = self._held = 0
        self._answer = b""
        self._opened = threading.Event()
        self._ended = threading.Event()
        self._complained = False
        self._refused: set[str] = set()

    # What the training's thread calls; none of it waits, but `opened`.

    def submit(self, message: Message) -> None:
        """Hands over an iteration: a function that waits for what all measured.

        It returns the iteration, and the message of :mod:`cotenant.agreement`,
        or None where there is none.
        """
        if self._queue.qsize() >= BACKLOG:
            try:
                self._queue.get_nowait()
                self._submitted -= 1
            except queue.Empty:
                pass  # the thread was faster
        self._submitted += 1
        self._queue.put(message)

    @property
    def idle(self) -> bool:
        """Whether all that was handed over is done with, or waits for the next iteration."""
        return self._handled + self._held >= self._submitted

    def proposal(self) -> Shares | None:
        """The coordinator's newest shares; None where it never answered."""
        return self._newest

    def agree(self, shares: Shares) -> None:
        """Tells what all workers hold now, for when the coordinator forgot."""
        self.agreed = shares
        self.agreed_workers = []

    def opened(self, timeout: float) -> Shares | None:
        """Waits until the job is open, or until that failed once; why: `refusal`, or an outage."""
        self._opened.wait(timeout)
        if self._newest is not None:
            self.agree(self._newest)
        return self._newest

    def stop(self, forget: bool, timeout: float = 2.0) -> None:
        """Ends the thread; ``forget`` closes the job, which has ended well."""
        self._ended.set()
        self._queue.put(None)
        if self.is_alive():
            self.join(timeout)
        if self.is_alive():
            return
        try:
            if forget and self._coordinator is not None:
                self._coordinator.call("Close", {"job": self.job})
        except (CoordinatorError, Unreachable) as e:
            log.info("closing the job: %s", e)
        if self._coordinator is not None:
            self._coordinator.close()
        self.access.stop()

    # The thread.

    def run(self) -> None:
        pause = self.retry
        while not self._ended.is_set():
            try:
                if self._coordinator is None:
                    self._open()
                    pause = self.retry
                self._next()
            except (CoordinatorError, Unreachable) as e:
                self._lost(e)
                self._ended.wait(pause)
                pause = min(2 * pause, 30.0)
            except Exception as e:  # what the coordinator says must not end the training
                log.exception("balancing ends, training goes on")
                self._lost(e)
                break
            self.cpu = time.thread_time()
        self._opened.set()

    def _lost(self, e: Exception) -> None:
        if isinstance(e, CoordinatorError) and e.code == "invalid_argument" and self._newest is None:
            if not self.refusal:
                log.warning("cotenant: the coordinator refuses the job, so nothing is balanced (%s)", e)
            self.refusal = e.message
        elif not self._complained:
            log.warning("cotenant: no balancing until the coordinator answers; training goes on with its shares (%s)", e)
            self._complained = True
        if self._coordinator is not None:
            self._coordinator.close()
        self._coordinator = None
        self._opened.set()

    def _open(self) -> None:
        coordinator = self._connect()
        request: dict[str, Any] = {
            "job": self.job,
            "workload": workload_name(self.job),
            "workers": [w.message() for w in self.workers],
            "globalBatch": self.global_batch,
            "iteration": str(self.iteration),
            **self.options,
        }
        if self.agreed is not None and self.agreed.generation > 0:  # 0: no coordinator ever gave them
            request["agreed"] = {
                "generation": str(self.agreed.generation),
                "iteration": str(self.agreed.answered),
                "batchSizes": list(self.agreed.batch_sizes),
            }
            if self.agreed_workers and self.agreed_workers != [w.name for w in self.workers]:
                request["agreedWorkers"] = self.agreed_workers
        self._answer = b""
        try:
            self._keep(coordinator.call("Open", request))
        except (CoordinatorError, Unreachable):
            coordinator.close()
            raise
        if self._coordinator is not None and self._coordinator is not coordinator:
            self._coordinator.close()
        self._coordinator = coordinator
        if self._complained:
            log.warning("cotenant: the coordinator answers; balancing goes on")
            self._complained = False
        self._opened.set()

    def _next(self) -> None:
        messages = []
        for _ in range(2 if self._calm >= SETTLED else 1):
            message = self._queue.get()
            if message is None or self._ended.is_set():
                return
            messages.append(message)
            self._held = 1
        self._held = 0
        try:
            self._report(messages)
        finally:
            self._handled += len(messages)

    def _report(self, messages: Sequence[Message]) -> None:
        told: list[tuple[int, Sequence[float]]] = []
        for message in messages:
            try:
                iteration, numbers = message()
            except RuntimeError as e:  # the process group broke; the training sees it as well
                log.info("reports of an iteration are lost: %s", e)
                continue
            self.iteration = max(self.iteration, iteration + 1)
            if numbers is not None:
                told.append((iteration, numbers))
        iteration = max((at for at, _ in told), default=0)
        reports = ",".join(filter(None, [self._written(at, numbers, iteration - at) for at, numbers in told]))
        if not reports:
            return
        held = self.agreed.answered if self.agreed is not None else 0
        request = (
            f'{{"job":{self._job},"generation":"{self._generation}","iteration":"{iteration}",'
            f'"heldIteration":"{held}","reports":[{reports}]}}'
        )
        assert self._coordinator is not None
        try:
            answer = self._coordinator.post("Report", request.encode())
        except CoordinatorError as e:
            if e.code not in ("not_found", "failed_precondition"):
                raise
            log.info("opening the job again: %s", e)
            self._open()
            return
        self.reported += 1
        if answer == self._answer:
            self._calm += 1
            return  # no news, as mostly
        self._calm = 0
        self._answer = answer
        read = self._coordinator.read(answer)
        self._keep(read)
        for refusal in read.get("refused", ()):
            reason = f"{refusal.get('worker')}: {refusal.get('reason')}"
            if reason not in self._refused and len(self._refused) < 20:
                self._refused.add(reason)
                log.info("the coordinator left out a report of %s", reason)

    def _written(self, iteration: int, numbers: Sequence[float], ago: int) -> str:
        """The reports as JSON, straight from the message, since this is done in every iteration.

        ``ago`` is how many iterations they are before the newest of the call.
        """
        width = len(FIELDS)
        rows = []
        for name, begin in zip(self._names, range(0, width * len(self._names), width)):
            valid, at, size, compute, communicate, cpu, memory, out = numbers[begin : begin + width]
            total = compute + communicate + cpu + memory
            # x - x is 0 of finite numbers only: others are no JSON.
            if valid > 0 and at == iteration and total - total == 0:
                rows.append((name, size, compute, communicate, cpu, memory, ',"outOfMemory":true' if out else ""))
        if not rows:
            return ""
        # A rank's own time in the collective holds its waiting for slower ones:
        # the last to arrive waits for none, so the least of all is the sending.
        least = "%.6g" % min([row[3] for row in rows])
        before = ',"iterationsAgo":%d' % ago if ago else ""
        return ",".join(
            [
                '{"worker":%s,"batchSize":%d,"computeSeconds":%.9g,"communicateSeconds":%s,"cpu":%.4g,"memory":%.4g%s%s}'
                % (name, size, compute, least, cpu, memory, out, before)
                for name, size, compute, _, cpu, memory, out in rows
            ]
        )

    def _keep(self, answer: dict[str, Any]) -> None:
        self._newest = shares_of(answer, len(self.workers), self.global_batch)
        self._generation = self._newest.generation
