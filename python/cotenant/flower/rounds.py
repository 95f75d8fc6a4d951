"""How many samples each client trains on in a round: the talk with the coordinator.

Knows nothing of Flower. A round is the coordinator's iteration, and clients are
its workers; who is in a round may change from one to the next.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from typing import Any, Callable, Mapping, Sequence

from cotenant.coordinator import Access, Coordinator, CoordinatorError, Unreachable, shares_of

log = logging.getLogger("cotenant")

#: Shares hold from two iterations after a report on, so that training ranks need
#: not wait for them. A round can wait that moment, so it counts as two.
ITERATIONS = 2

#: Samples that a client may say it owns; more would be no number to the coordinator.
MOST = 1 << 53


@dataclasses.dataclass(frozen=True)
class Measured:
    """What one client did in a round.

    ``samples`` that it trained on, ``seconds`` that it computed, ``trip``
    seconds from the server and back, ``cpu`` and ``memory`` in use at the
    client (0..1; 0 where not measured).
    """

    samples: int
    seconds: float
    trip: float
    cpu: float = 0.0
    memory: float = 0.0

    def wrong(self, asked: int) -> str:
        """What no client can have measured that was asked for so many samples; empty if nothing."""
        numbers = {"seconds": self.seconds, "trip": self.trip, "cpu": self.cpu, "memory": self.memory}
        for name, value in numbers.items():
            if not math.isfinite(value) or value < 0:
                return f"{name} {value} is no measurement"
        if not 0 <= self.samples <= asked:
            return f"samples {self.samples}: it was asked for {asked}"
        if self.samples > 0 and self.seconds == 0:
            return f"seconds 0 for {self.samples} samples"
        if self.seconds > self.trip:
            return f"seconds {self.seconds:.3g}, of {self.trip:.3g} until its reply was here"
        return ""


def level(total: int, caps: Mapping[str, int]) -> dict[str, int]:
    """As equal as the caps allow, and ``total`` in all (or all caps, if they are less)."""
    sizes: dict[str, int] = {}
    left = total
    for i, name in enumerate(sorted(caps, key=lambda n: caps[n])):
        sizes[name] = min(caps[name], -(-left // (len(caps) - i)))
        left -= sizes[name]
    return {name: sizes[name] for name in caps}


class Rounds:
    """The samples of each round, by client.

    Parameters
    ----------
    samples : of a round, all clients together
    job : its name, unique per coordinator
    minimum : of a client, where there are enough for all
    options : more fields of OpenRequest (predictor, threshold, seed)
    balance : False for equal shares, all else alike
    connect : makes the connection; by ``COTENANT_ADDRESS`` where None, or to a
        coordinator started here
    """

    def __init__(
        self,
        samples: int,
        job: str,
        minimum: int = 1,
        options: Mapping[str, Any] | None = None,
        balance: bool = True,
        connect: Callable[[], Coordinator] | None = None,
    ) -> None:
        if samples < 1:
            raise ValueError(f"samples {samples}: want at least 1 in a round")
        if minimum < 0:
            raise ValueError(f"minimum {minimum}: want at least 0")
        self.samples = samples
        self.job = job
        self.minimum = minimum
        self.balance = balance
        self._options = dict(options or {})
        self.access = Access()
        self._connect = connect or self.access.connect
        self._coordinator: Coordinator | None = None
        self._owned: dict[str, int] = {}  # samples, by client that said so
        self._workers: list[dict[str, Any]] = []  # as opened
        self._generation = 0
        self._held = 0  # iteration of the newest shares
        self._sizes: list[int] = []
        self._late: dict[str, Measured] = {}
        self._complained = False

    def owns(self, client: str, data: int) -> None:
        """Tells how many samples a client has."""
        self._owned[client] = min(max(0, data), MOST)

    def plan(self, number: int, clients: Sequence[str]) -> dict[str, int]:
        """How many samples each client trains on in this round.

        They sum to ``samples``, and none is more than the client owns; where all
        own less together, each is what the client owns. Clients that have not
        said what they own may be given more than that.

        Raises
        ------
        ValueError
            The coordinator refuses the job as it is asked for; later on that is
            as if it were gone, since a client may be the reason.
        """
        caps = {name: min(self.samples, self._owned.get(name, self.samples)) for name in dict.fromkeys(clients)}
        able = {name: cap for name, cap in caps.items() if cap > 0}
        if not self.balance or sum(able.values()) <= self.samples:
            sizes = level(self.samples, able)
        else:
            sizes = self._ask(number, able)
        return {name: sizes.get(name, 0) for name in sorted(caps)}

    def _ask(self, number: int, caps: Mapping[str, int]) -> dict[str, int]:
        least = {name: min(self.minimum, cap) for name, cap in caps.items()}
        if sum(least.values()) > self.samples:
            least = dict.fromkeys(caps, 0)  # more clients than samples: somebody has none
        workers = [
            {"name": name, "min": least[name], "data": str(self._owned.get(name, 0))}
            for name in sorted(caps)
        ]
        try:
            if workers != self._workers or self._coordinator is None:
                self._open(number, workers)
            self._tell_late(number)
            if self._held > ITERATIONS * number:
                raise Unreachable(f"its shares hold from iteration {self._held} on, after round {number}")
        except (CoordinatorError, Unreachable) as e:
            if isinstance(e, CoordinatorError) and e.code == "invalid_argument" and self._generation == 0:
                raise ValueError(f"the coordinator refuses the job: {e.message}") from e
            self._lost(e)
        names = [str(w["name"]) for w in self._workers]
        held = dict(zip(names, self._sizes))
        if held.keys() == caps.keys() and all(held[name] <= cap for name, cap in caps.items()):
            return held
        return level(self.samples, caps)

    def report(self, number: int, measured: Mapping[str, Measured]) -> dict[str, str]:
        """Tells what clients measured in a round that was planned.

        ``measured`` makes sense (:meth:`Measured.wrong`). Returns the reasons
        for those that the coordinator left out, by client.
        """
        if self._coordinator is None or not self.balance:
            return {}
        try:
            try:
                return self._tell(ITERATIONS * number, measured)
            except CoordinatorError as e:
                if e.code not in ("not_found", "failed_precondition"):
                    raise
                # It has forgotten the job, or restarted from an older state.
                self._open(number, self._workers)
                return self._tell(ITERATIONS * number, measured)
        except (CoordinatorError, Unreachable) as e:
            self._lost(e)
            return {}

    def report_late(self, client: str, measured: Measured) -> None:
        """Tells what a client measured in a round before; it is not in the current one."""
        self._late[client] = measured

    def _tell_late(self, number: int) -> None:
        # Of the iteration whose report decides this round's shares.
        back = {str(w["name"]) for w in self._workers} & self._late.keys()
        if back:
            self._tell(ITERATIONS * (number - 1), {name: self._late.pop(name) for name in sorted(back)})

    def _tell(self, iteration: int, measured: Mapping[str, Measured]) -> dict[str, str]:
        names = {str(w["name"]) for w in self._workers}
        reports = [
            {
                "worker": name,
                "batchSize": m.samples,
                "computeSeconds": m.seconds,
                "communicateSeconds": m.trip - m.seconds,
                "cpu": m.cpu,
                "memory": m.memory,
            }
            for name, m in measured.items()
            if name in names and m.samples > 0
        ]
        if not reports:
            return {}
        assert self._coordinator is not None
        request = {
            "job": self.job,
            "generation": str(self._generation),
            "iteration": str(iteration),
            "heldIteration": str(self._held),
            "reports": reports,
        }
        answer = self._coordinator.call("Report", request)
        self._keep(answer, len(self._workers))
        return {str(r.get("worker")): str(r.get("reason")) for r in answer.get("refused", ())}

    def stop(self, forget: bool = True) -> None:
        """Ends the talk; ``forget`` closes the job, which has ended well."""
        if self._coordinator is not None:
            try:
                if forget:
                    self._coordinator.call("Close", {"job": self.job})
            except (CoordinatorError, Unreachable) as e:
                log.info("closing the job: %s", e)
            self._coordinator.close()
            self._coordinator = None
        self.access.stop()

    def _open(self, number: int, workers: list[dict[str, Any]]) -> None:
        if self._coordinator is None:
            self._coordinator = self._connect()
        request: dict[str, Any] = {
            "job": self.job,
            "workers": workers,
            "globalBatch": self.samples,
            "allocator": "federated",
            # Shares of the iteration before this round's: late reports may still change this one's.
            "iteration": str(ITERATIONS * number - 1),
            **self._options,
        }
        if self._generation > 0:
            request["agreed"] = {
                "generation": str(self._generation),
                "iteration": str(self._held),
                "batchSizes": self._sizes,
            }
            request["agreedWorkers"] = [w["name"] for w in self._workers]
        self._keep(self._coordinator.call("Open", request), len(workers))
        self._workers = workers
        if self._complained:
            log.warning("cotenant: the coordinator answers; balancing goes on")
            self._complained = False

    def _keep(self, answer: Mapping[str, Any], clients: int) -> None:
        shares = shares_of(answer, clients, self.samples)
        self._generation, self._held, self._sizes = shares.generation, shares.iteration, list(shares.batch_sizes)

    def _lost(self, e: Exception) -> None:
        if not self._complained:
            log.warning("cotenant: no balancing until the coordinator answers; training goes on (%s)", e)
            self._complained = True
        if self._coordinator is not None:
            self._coordinator.close()
        self._coordinator = None
