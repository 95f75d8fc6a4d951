"""How ranks talk to each other over TensorFlow's own collectives.

There is no asynchronous collective in TensorFlow's API, and one that runs in
another thread would have to be started in the same order on all ranks beside
those of the training. So the sum that the balancing needs rides with the
gradients': one tensor more in the same all-reduce, no message by itself, no
port of its own. What it brings is known an iteration later than by itself.
"""

from __future__ import annotations

import json
from typing import Any, Callable

import tensorflow as tf

from cotenant.tensorflow.reduction import Reduction


class Ride:
    """A sum that rides with the gradients of the next step; see :class:`cotenant.pace.Exchange`."""

    def __init__(self, reduction: Reduction) -> None:
        self._reduction = reduction
        self._message = reduction.sent + 1
        self._sums: list[float] | None = None

    def wait(self, begin: int = 0) -> list[float] | None:
        """See :meth:`cotenant.pace.Exchange.wait`."""
        if self._sums is None:
            if self._reduction.received < self._message:
                return None
            self._sums = self._reduction.summed.tolist()
        return self._sums[begin:]


class RidingLink:
    """Talks over a strategy's collectives; see :class:`cotenant.pace.Link`."""

    rides = True

    def __init__(self, strategy: Any, rank: int, workers: int) -> None:
        self._rank = rank
        self._workers = workers
        self.reduction: Reduction | None = None

        def summed(v: Any) -> Any:
            # Without the identity the strategy can't tell on which device the value is.
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(v))

        add: Any = tf.function(
            lambda v: strategy.run(summed, args=(v,)), input_signature=[tf.TensorSpec([None], tf.int32)]
        )
        self._add: Callable[[list[int]], list[int]] = lambda numbers: add(tf.constant(numbers, tf.int32)).numpy().tolist()

    def gather(self, mine: Any) -> list[Any]:
        """See :meth:`cotenant.pace.Link.gather`."""
        text = list(json.dumps(mine).encode())
        lengths = self._add([len(text) if rank == self._rank else 0 for rank in range(self._workers)])
        begins = [sum(lengths[:rank]) for rank in range(self._workers + 1)]
        row = [0] * begins[-1]
        row[begins[self._rank] : begins[self._rank + 1]] = text
        everything = bytes(self._add(row))
        return [json.loads(everything[a:b]) for a, b in zip(begins, begins[1:])]

    def sum(self, row: list[float]) -> Ride:
        """See :meth:`cotenant.pace.Link.sum`."""
        assert self.reduction is not None
        self.reduction.row = row
        return Ride(self.reduction)
