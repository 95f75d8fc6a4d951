"""Every sample once an epoch, the same shares on every rank, resumed anywhere."""

from __future__ import annotations

import random
import types
import unittest
from typing import Any

import fake

try:
    import clusters
    import numpy as np
    import tensorflow as tf
except ImportError:
    raise unittest.SkipTest("TensorFlow is not installed (pip install tensorflow-cpu)")


def walk(rank: int, runs: list[dict[str, Any]]) -> Any:
    """Trains some times; tells for each the samples of this rank by epoch and iteration, and the state."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    return [one(strategy, options) for options in runs]


def one(strategy: Any, options: dict[str, Any]) -> Any:
    from cotenant.tensorflow import Balancer

    samples = np.arange(float(options["length"])).reshape(-1, 1)
    dataset: Any = {"x": samples, "y": tf.constant(samples)}
    if options.get("stream"):
        dataset = tf.data.Dataset.from_tensor_slices(dataset)
    if options["stream"] == "by epoch":
        whole = dataset
        dataset = lambda epoch: whole.shuffle(1000, seed=epoch, reshuffle_each_iteration=False)  # noqa: E731
    with strategy.scope():
        w = tf.Variable(1.0, dtype=tf.float64)
    _, batches = Balancer.prepare(
        strategy, None, dataset, global_batch=24, seed=1, minimum=options.get("minimum", 1), threshold=-1.0
    )

    @tf.function(input_signature=[batches.element_spec])  # type: ignore[untyped-decorator]
    def step(batch: Any) -> None:
        def replica(batch: Any) -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(w * batch["x"] + batch["y"])
            batches.balancer.reduce(tape.gradient(loss, [w]))

        strategy.run(replica, args=(batch,))

    if options.get("state"):
        batches.load_state_dict(options["state"])
    steps: list[Any] = []
    for _ in range(options.get("epochs", 1)):
        epoch = batches.state_dict()["epoch"]
        for batch in batches:
            step(batch)
            steps.append((epoch, batch["x"][: batches.balancer.batch_size, 0].numpy().tolist()))
            if len(steps) == options.get("stop"):
                break
    batches.balancer.close()
    return steps, batches.state_dict()


def scatter(workers: int, minimum: int) -> Any:
    draw = random.Random(workers)

    def script(method: str, request: dict[str, Any]) -> Any:
        if method != "Report":
            return None
        free = 24 - workers * minimum
        cuts = sorted(draw.randint(0, free) for _ in range(workers - 1))
        sizes = [minimum + b - a for a, b in zip([0, *cuts], [*cuts, free])]
        return {"shares": {"generation": "1", "iteration": str(int(request["iteration"]) + 2), "batchSizes": sizes}}

    return script


class Walk(unittest.TestCase):
    def walk(self, workers: int, *runs: dict[str, Any]) -> list[Any]:
        """Per run, what all ranks tell."""
        coordinator = fake.FakeCoordinator(scatter(workers, 0))
        self.addCleanup(coordinator.close)
        self.coordinator = coordinator
        return list(zip(*clusters.run(workers, walk, list(runs), env={"COTENANT_ADDRESS": coordinator.address})))

    def seen(self, answers: Any, epoch: int) -> list[float]:
        return sorted(s for steps, _ in answers for e, samples in steps if e == epoch for s in samples)

    def test_every_sample_once_an_epoch(self) -> None:
        kinds = ("", "in order", "by epoch")
        for kind, answers in zip(kinds, self.walk(3, *({"length": 203, "stream": kind, "epochs": 2} for kind in kinds))):
            for epoch in (0, 1):
                self.assertEqual(self.seen(answers, epoch), list(range(203)), kind)
            sizes = {tuple(len(steps[i][1]) for steps, _ in answers) for i in range(len(answers[0][0]))}
            self.assertGreater(len(sizes), 3, "the shares never changed")
            first, second = ([s for e, samples in answers[0][0] if e == epoch for s in samples[:3]] for epoch in (0, 1))
            if kind != "in order":
                self.assertNotEqual(first[:3], second[:3], "both epochs have one order")

    def test_resumes_with_another_number_of_ranks(self) -> None:
        kinds = ("", "by epoch")
        first = self.walk(3, *({"length": 150, "stream": kind, "stop": 4} for kind in kinds))
        for answers in first:
            states = [state for _, state in answers]
            self.assertTrue(all(s == states[0] for s in states), states)
            self.assertEqual(states[0]["offset"], 4 * 24)
        runs = [
            {"length": 150, "stream": kind, "state": answers[0][1], "epochs": 2} for kind, answers in zip(kinds, first)
        ]
        for before, after in zip(first, self.walk(2, *runs)):
            self.assertEqual(sorted(self.seen(before, 0) + self.seen(after, 0)), list(range(150)))
            self.assertEqual(self.seen(after, 1), list(range(150)))
        opened = next(request for method, request in self.coordinator.requests if method == "Open")
        self.assertEqual(opened["iteration"], "4")
        self.assertEqual(len(opened["agreedWorkers"]), 3)

    def test_fewer_samples_than_ranks(self) -> None:
        (answers,) = self.walk(3, {"length": 2, "stream": "", "epochs": 3})
        for epoch in range(3):
            self.assertEqual(self.seen(answers, epoch), [0, 1])


def refused(rank: int) -> list[str]:
    """What is said of things that can't be prepared, or go wrong."""
    from cotenant.tensorflow import Balancer

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        sgd = tf.keras.optimizers.SGD()
    said = []

    def attempt(call: Any) -> None:
        try:
            call()
            said.append("nothing")
        except (ValueError, TypeError) as e:
            said.append(str(e))

    def within() -> None:
        with strategy.scope():
            Balancer.prepare(strategy, sgd, np.zeros(10), global_batch=2)

    def twice() -> None:
        for _ in range(2):
            Balancer.prepare(strategy, sgd, np.zeros(10), global_batch=2)

    def unused() -> None:
        _, batches = Balancer.prepare(strategy, None, np.zeros(10), global_batch=2, balance=False)
        list(batches)

    def apart() -> None:
        _, batches = Balancer.prepare(strategy, None, np.zeros(40), global_batch=2, balance=False)
        if rank == 0:
            batches.load_state_dict({**batches.state_dict(), "offset": 8})
        next(iter(batches))

    attempt(lambda: Balancer.prepare(strategy, sgd, np.zeros(10 + rank), global_batch=2))
    attempt(within)
    attempt(unused)
    attempt(apart)
    attempt(lambda: Balancer.prepare(strategy, object(), np.zeros(10), global_batch=2))
    attempt(lambda: Balancer.prepare(strategy, sgd, (np.zeros(10), np.zeros(9)), global_batch=2))
    attempt(lambda: Balancer.prepare(types.SimpleNamespace(num_replicas_in_sync=2), sgd, np.zeros(10), global_batch=2))
    attempt(twice)
    return said


class Refusals(unittest.TestCase):
    def test_say_what_to_do(self) -> None:
        want = (
            r"length differ: \[10, 11\]",
            "outside of strategy.scope",
            "summed no gradients: apply them with the optimizer that prepare returned",
            "stand at different",
            "no Keras 3 optimizer",
            r"lengths \[10, 9\]",
            "SimpleNamespace is not served",
            "was prepared already",
        )
        for said in clusters.run(2, refused):
            for text, pattern in zip(said, want, strict=True):
                self.assertRegex(text, pattern)


if __name__ == "__main__":
    unittest.main()
