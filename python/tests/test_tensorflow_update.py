"""The update of unequal batches is the update of the whole global batch."""

from __future__ import annotations

import random
import time
import unittest
from typing import Any

import fake

try:
    import clusters
    import numpy as np
    import tensorflow as tf
except ImportError:
    raise unittest.SkipTest("TensorFlow is not installed (pip install tensorflow-cpu)")

LENGTH, GLOBAL = 150, 24  # the last batch has 6


def data(dyadic: bool, length: int = LENGTH) -> Any:
    draw = np.random.RandomState(3)
    if dyadic:  # multiples of 1/8 in [-2, 2): sums and products of a few are exact
        return draw.randint(-16, 16, (length, 4)) / 8, draw.randint(-16, 16, (length, 1)) / 8
    return draw.standard_normal((length, 4)), draw.standard_normal((length, 1))


class Embedded(tf.keras.layers.Layer):
    """A layer whose gradient is sparse."""

    def __init__(self) -> None:
        super().__init__(dtype="float64")
        self.table = self.add_weight(shape=(6, 1), initializer="ones", name="table")

    def call(self, x: Any) -> Any:
        return tf.gather(self.table.value, tf.cast(tf.clip_by_value(x[:, 0] + 3, 0, 5), tf.int32))


def net(options: dict[str, Any]) -> Any:
    keras = tf.keras
    keras.utils.set_random_seed(5)
    x = inputs = keras.Input((4,), dtype="float64")
    if options.get("dyadic"):
        x = keras.layers.Dense(1, dtype="float64", kernel_initializer="ones")(x)
    else:
        hidden = keras.layers.Dense(8, activation="tanh", dtype="float64")(x)
        x = keras.layers.Dense(1, dtype="float64")(hidden)
        if options.get("sparse"):
            x = keras.layers.Add(dtype="float64")([x, Embedded()(inputs)])
    return keras.Model(inputs, x)


def optimizer_of(options: dict[str, Any]) -> Any:
    if options.get("dyadic"):
        return tf.keras.optimizers.SGD(0.0)
    inner = tf.keras.optimizers.Adam(0.02, clipnorm=options.get("clipnorm"))
    return tf.keras.mixed_precision.LossScaleOptimizer(inner) if options.get("scaled") else inner


def loss_of(output: Any, y: Any, options: dict[str, Any]) -> Any:
    squares = tf.reduce_sum((output - y) ** 2, axis=1)
    return tf.reduce_sum(squares) if options.get("sum_losses") else tf.reduce_mean(squares)


def flat(tensors: Any) -> list[float]:
    return [float(v) for t in tensors for v in np.ravel(t)]


def alone(rank: int, options: dict[str, Any]) -> list[list[float]]:
    """The reference: one process, plain TensorFlow."""
    x, y = data(options.get("dyadic", False))
    model, optimizer = net(options), optimizer_of(options)
    result = []
    for epoch in range(options.get("epochs", 2)):
        order = np.random.RandomState(7 + epoch).permutation(LENGTH)
        for begin in range(0, LENGTH, GLOBAL):
            part = order[begin : begin + GLOBAL]
            with tf.GradientTape() as tape:
                loss = loss_of(model(tf.constant(x[part])), y[part], options)
                if options.get("scaled"):
                    loss = optimizer.scale_loss(loss)
            gradients = tape.gradient(loss, model.trainable_variables)
            result.append(flat(map(tf.convert_to_tensor, gradients)))
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return result if options.get("dyadic") else [flat(model.trainable_variables)]


def answered(balancer: Any) -> None:
    """Waits on rank 0 for the coordinator, as slow iterations would, so that shares change at any load."""
    session = balancer.pace.session
    until = time.monotonic() + 10
    while session is not None and not session.idle and time.monotonic() < until:
        time.sleep(0.001)


def together(rank: int, options: dict[str, Any]) -> Any:
    """The same, as one of several ranks: two lines more."""
    from cotenant.tensorflow import Balancer

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model, optimizer = net(options), optimizer_of(options)
    optimizer, batches = Balancer.prepare(
        strategy,
        None if options.get("manual") else optimizer,
        data(options.get("dyadic", False)),
        global_batch=GLOBAL,
        seed=7,
        minimum=options.get("minimum", 1),
        sum_losses=options.get("sum_losses", False),
        threshold=-1.0,
    )
    batches.balancer._reduction._on_device = options.get("on_device", False)
    variables = model.trainable_variables

    def replica(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(model(x), y, options)
            if options.get("nan"):  # what a stand-in computes may be no number
                idle = tf.equal(batches.balancer._reduction._in[0], 0)
                loss *= tf.where(idle, tf.constant(float("nan"), loss.dtype), tf.ones_like(loss))
            if options.get("scaled"):
                loss = optimizer.scale_loss(loss)
        gradients = tape.gradient(loss, variables)
        if not options.get("manual"):
            optimizer.apply_gradients(zip(gradients, variables))
            return gradients if not options.get("sparse") else []
        reduced = batches.balancer.reduce([*gradients, None])
        assert reduced.pop() is None
        if not options.get("dyadic"):
            for v, g in zip(variables, reduced):
                v.assign_sub(0.02 * g)
        return reduced

    def step(x: Any, y: Any) -> Any:
        return strategy.run(replica, args=(x, y))

    if not options.get("eager"):
        step = tf.function(step, input_signature=batches.element_spec)
    result, sizes = [], []
    for _ in range(options.get("epochs", 2)):
        for x, y in batches:
            answered(batches.balancer)
            sizes.append(batches.balancer.batch_size)
            result.append(flat(step(x, y)))
    batches.balancer.close()
    return result if options.get("dyadic") else [flat(variables)], sizes, batches.balancer._reduction.traces


class Update(unittest.TestCase):
    def check(self, workers: int, exact: bool = False, seed: int = 1, **options: Any) -> list[Any]:
        coordinator = fake.FakeCoordinator(fake.wander(GLOBAL, workers, options.get("minimum", 1), seed))
        self.addCleanup(coordinator.close)
        (want,) = clusters.run(1, alone, options)
        answers = clusters.run(workers, together, options, env={"COTENANT_ADDRESS": coordinator.address})
        for got, *_ in answers:
            self.assertEqual(len(got), len(want))
            for a, b in zip(got, want):
                if exact:
                    self.assertEqual(a, b)
                    continue
                top = max(map(abs, b))
                self.assertLess(max(abs(x - y) for x, y in zip(a, b)) / top, 1e-12)
        sizes = [sizes for _, sizes, _ in answers]
        self.assertEqual(sum(map(sum, sizes)), options.get("epochs", 2) * LENGTH)
        self.assertGreater(len(set(zip(*sizes))), 2, "the shares never changed")
        return answers

    def test_float64_and_clipped_by_the_norm_of_the_whole(self) -> None:
        answers = self.check(3, clipnorm=0.5)
        self.assertLessEqual(answers[0][2], 3, "traced again for each batch size")

    def test_sparse_gradients(self) -> None:
        self.check(2, sparse=True)

    def test_ranks_without_samples_whose_stand_in_is_no_number(self) -> None:
        answers = self.check(3, minimum=0, seed=4, nan=True, scaled=True)
        self.assertIn(0, sum((sizes for _, sizes, _ in answers), []))

    def test_dyadic_data_exactly(self) -> None:
        # The loss is a sum, so every gradient is a sum of products of dyadic
        # numbers, and stays one.
        self.check(3, exact=True, dyadic=True, sum_losses=True, manual=True)

    def test_step_by_step_without_a_graph(self) -> None:
        self.check(2, eager=True, epochs=1)

    def test_marks_that_wait_for_a_device(self) -> None:
        self.check(2, on_device=True)


if __name__ == "__main__":
    unittest.main()
