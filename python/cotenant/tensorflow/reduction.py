"""Makes the update of unequal batches the update of the whole global batch.

Worker i computes the mean gradient g_i of its x_i samples. The mean over the
global batch of X samples is sum_i x_i g_i / X (LB-BSP, weighted gradient
aggregation). Keras 3 sums what it is given, so gradients are weighted and
summed before it sees them, and it is told that they are summed already.

All of it is part of the graph of a step, so what changes between steps goes in
and out by two small variables:

- in: x_i, X, the number of this message, and this rank's row of the sum that
  the balancing needs (:mod:`cotenant.agreement`);
- out: that number again, when this rank had its gradients, when they were
  summed, and the summed row.
"""

from __future__ import annotations

import time
from typing import Any, Sequence

import tensorflow as tf

_HEAD = 3


class GraphClock:
    """The clock that ``tf.timestamp`` reads within a graph; see :class:`cotenant.clock.Clock`."""

    lag = 0

    def mark(self) -> float:
        return time.time()

    def seconds(self, begin: float, end: float) -> float:
        return end - begin


class Reduction:
    """Weights and sums gradients, and notes when.

    Made outside of the strategy's scope, where variables belong to this process
    alone.

    Parameters
    ----------
    row : how many numbers the row has that is summed beside the gradients
    sum_losses : the loss is a sum over samples, not a mean: the weights are 1
    on_device : gradients are computed on a device that the graph runs ahead of
    """

    def __init__(self, row: int, sum_losses: bool = False, on_device: bool = False) -> None:
        self._sum_losses = sum_losses
        self._on_device = on_device
        self._rides = row > 0
        #: This rank's row, for the next message.
        self.row = [0.0] * row
        #: Numbers of the last message sent, and of the last that came back.
        self.sent = self.received = 0
        #: The summed row of the last message that came back.
        self.summed: Any = None
        #: How often `reduce` was made part of a graph.
        self.traces = 0
        with tf.device("CPU:0"):
            self._in = tf.Variable([0.0] * (_HEAD + row), dtype=tf.float64, trainable=False)
            self._out = tf.Variable([0.0] * (_HEAD + row), dtype=tf.float64, trainable=False)

    # Between steps.

    def send(self, size: int, total: int) -> None:
        """Before a step: the samples of this rank, and of all."""
        self.sent += 1
        self._in.assign([float(size), float(total), float(self.sent), *self.row])

    def receive(self) -> tuple[float, float] | None:
        """After a step: when its gradients were there, and when they were summed.

        None where the step summed none.
        """
        out = self._out.numpy()
        if int(out[0]) != self.sent:
            return None
        self.received, self.summed = self.sent, out[_HEAD:]
        return float(out[1]), float(out[2])

    # Within a step.

    def reduce(self, gradients: Sequence[Any]) -> list[Any]:
        """The gradients of the whole global batch, from those of this rank's part.

        To be called in ``strategy.run``, on every rank. None stays None, and
        tf.IndexedSlices stay sparse.
        """
        context = tf.distribute.get_replica_context()
        if context is None:
            raise ValueError("gradients are summed over the ranks in a replica: call this within strategy.run")
        if tf.inside_function():
            self.traces += 1
        sent = self._in.read_value()
        own = [_each(self._weighted, g, sent[0], sent[1]) for g in gradients if g is not None]
        ready = self._after(own)
        *summed, told = _summed(context, [*own, sent[_HEAD:]] if self._rides else own) + ([] if self._rides else [sent[:0]])
        done = self._after([*summed, told])
        means = [_each(self._divided, g, sent[1]) for g in summed]
        with tf.device("CPU:0"):
            self._out.assign(tf.concat([[sent[2], ready, done], told], 0))
        left = iter(means)
        return [None if g is None else next(left) for g in gradients]

    def _weighted(self, gradient: Any, size: Any, total: Any) -> Any:
        # A rank without samples computed on a stand-in, which must not count
        # even if it is no number.
        if self._sum_losses:
            factor = tf.ones_like(size)
        else:
            # Multiplied by x_i, summed, divided by X: in that order dyadic data
            # stay exact for any X. In 16 bits the sum could overflow.
            factor = size if _wide(gradient) else size / total
        return tf.where(size > 0, gradient * tf.cast(factor, gradient.dtype), tf.zeros_like(gradient))

    def _divided(self, gradient: Any, total: Any) -> Any:
        if self._sum_losses or not _wide(gradient):
            return gradient
        return gradient / tf.cast(total, gradient.dtype)

    def _after(self, values: Sequence[Any]) -> Any:
        """The time at which all values are there."""
        parts = [v.values if isinstance(v, tf.IndexedSlices) else v for v in values]
        with tf.device("CPU:0"):
            if self._on_device:
                # On a device a value is "there" for the graph as soon as its
                # kernel is queued; a copy of it to the host comes after it.
                parts = [tf.identity(tf.reshape(v, [-1])[:1]) for v in parts]
            with tf.control_dependencies(parts):
                return tf.timestamp()


def _summed(context: Any, values: Sequence[Any]) -> list[Any]:
    """The sums over all ranks; one call for each type, since those of a call are packed together."""
    result: list[Any] = [None] * len(values)
    for kind in dict.fromkeys(v.dtype for v in values):
        at = [i for i, v in enumerate(values) if v.dtype == kind]
        for i, value in zip(at, context.all_reduce(tf.distribute.ReduceOp.SUM, [values[i] for i in at])):
            result[i] = value
    return result


def _wide(gradient: Any) -> bool:
    return gradient.dtype in (tf.float32, tf.float64)


def _each(function: Any, gradient: Any, *args: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(function(gradient.values, *args), gradient.indices, gradient.dense_shape)
    return function(gradient, *args)


def attach(optimizer: Any, reduction: Reduction) -> None:
    """Makes a Keras 3 optimizer apply the gradients of the whole global batch.

    Raises
    ------
    TypeError
        It is no optimizer of Keras 3.
    ValueError
        It was attached before.
    """
    if hasattr(getattr(optimizer, "apply", None), "reduction"):
        raise ValueError("prepare: this optimizer was prepared already; one optimizer goes with one data set")
    # A LossScaleOptimizer hands over to the one within it.
    summing = [o for o in (optimizer, getattr(optimizer, "inner_optimizer", None)) if o is not None]
    if not all(hasattr(o, "_all_reduce_sum_gradients") and hasattr(o, "apply") for o in summing):
        raise TypeError(
            f"prepare: {type(optimizer).__module__}.{type(optimizer).__name__} is no Keras 3 optimizer over TensorFlow; "
            "give None instead, and apply balancer.reduce(gradients), with no further summing over ranks"
        )
    for each in summing:
        each._all_reduce_sum_gradients = list
    plain = optimizer.apply

    def apply(grads: Sequence[Any], trainable_variables: Any = None) -> Any:
        return plain(reduction.reduce(grads), trainable_variables)

    apply.reduction = reduction  # type: ignore[attr-defined] # marks it
    optimizer.apply = apply
