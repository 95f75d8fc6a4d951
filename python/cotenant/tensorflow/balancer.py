"""The balancer of a TensorFlow script."""

from __future__ import annotations

import logging
import os
from typing import Any, Sequence

import tensorflow as tf

from cotenant import agreement, joining
from cotenant.either import Either
from cotenant.pace import Pace
from cotenant.sampling import Course, Draw
from cotenant.session import class_name, job_name, worker_name
from cotenant.tensorflow.batches import Arrays, Batches, Order, in_order, shuffled
from cotenant.tensorflow.link import RidingLink
from cotenant.tensorflow.reduction import GraphClock, Reduction, attach

log = logging.getLogger("cotenant")

#: Traces of a step after which a script is told that it has too many.
MANY_TRACES = 8


class Balancer:
    """Sizes each rank's batches so that no rank waits for a slower one.

    ::

        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        with strategy.scope():
            model, optimizer = ...
        optimizer, batches = Balancer.prepare(strategy, optimizer, (images, labels), global_batch=256)

        @tf.function(reduce_retracing=True)
        def step(images, labels):
            def replica(images, labels):
                with tf.GradientTape() as tape:
                    loss = ...  # the mean over these samples
                gradients = tape.gradient(loss, model.trainable_variables)
                optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            strategy.run(replica, args=(images, labels))

        for images, labels in batches:
            step(images, labels)

    The update stays that of a single process on the same global batch, and
    every sample is seen exactly once an epoch, whatever the batch sizes. All
    ranks must call ``prepare``, and iterate alike: one step a batch.

    Parameters
    ----------
    global_batch : samples of all ranks in a batch
    minimum, maximum : least and greatest batch size of this rank; the default
        minimum is 1, with 0 it may have none; maximum 0 is no limit
    buckets : the only batch sizes this rank may have (compiled graphs)
    sum_losses : the loss is a sum over the samples of a batch, or
        tf.nn.compute_average_loss's part of the global mean: gradients are
        added up as they are
    shuffle : a random order each epoch; False: first to last
    order : the order of an epoch, by its number, the same on every rank
    seed : of the random order; rank 0's counts
    drop_last : leave out the last batch of an epoch where it is smaller
    allocator : ``cpu`` (proportional to speed), ``gpu`` (learned curves of time
        by batch size); default: ``gpu`` where there is one, else ``cpu``
    predictor, threshold : see ``cotenant serve balance``
    balance : False keeps equal batches, all else alike (to compare with); also
        by COTENANT_BALANCE=0

    The environment: ``COTENANT_ADDRESS``, ``COTENANT_TOKEN``, ``COTENANT_CA``
    name a coordinator (default: rank 0 starts its own); ``COTENANT_JOB`` and
    ``COTENANT_WORKER`` name the job and this rank; ``COTENANT_WORKLOAD`` and
    ``COTENANT_CLASS`` what it trains and where, in samples of its speed.
    """

    def __init__(
        self,
        *,
        global_batch: int,
        minimum: int | None = None,
        maximum: int = 0,
        buckets: Sequence[int] = (),
        sum_losses: bool = False,
        shuffle: bool = True,
        order: Order | None = None,
        seed: int = 0,
        drop_last: bool = False,
        allocator: str | None = None,
        predictor: str = "auto",
        threshold: float | None = None,
        balance: bool | None = None,
    ) -> None:
        if global_batch < 1:
            raise ValueError(f"global_batch {global_batch}: want at least 1")
        self.global_batch = global_batch
        self._limits = [minimum, maximum, sorted(buckets)]
        self._sum_losses = sum_losses
        self._shuffle = shuffle
        self._order = order
        self.seed = seed
        self._drop_last = drop_last
        self._allocator = allocator
        self._options: dict[str, Any] = {"predictor": predictor}
        if threshold is not None:
            self._options["threshold"] = threshold
        self._balance = os.environ.get("COTENANT_BALANCE") != "0" if balance is None else balance
        self._batches: Batches | None = None
        self._draw: Draw | None = None
        self._traces = 0
        self._told = False

    # Preparing.

    def _prepare(self, strategy: Any, optimizer: Any, dataset: Any) -> tuple[Any, Batches]:
        """Makes an optimizer's updates, and batches of a data set, balanced; every rank calls it.

        Parameters
        ----------
        strategy : a MultiWorkerMirroredStrategy with one device a process; or
            tf.distribute.get_strategy() of a single process
        optimizer : of Keras 3; changed in place. None for another kind: see `reduce`
        dataset : arrays or tensors (in tuples or dicts); or a tf.data.Dataset of
            single samples, the same on every rank, or a function of the epoch's
            number that returns one

        Returns
        -------
        (optimizer, batches) : train with these

        Raises
        ------
        ValueError
            The ranks disagree, or the strategy or data set is of another kind.
        TypeError
            The optimizer is.
        """
        if self._batches is not None:
            raise ValueError("a Balancer prepares one data set; make another Balancer for another one")
        if tf.distribute.has_strategy():
            raise ValueError("prepare: call it outside of strategy.scope(), whose variables belong to all ranks")
        self.rank, self.workers, first = _stand(strategy)
        link = RidingLink(strategy, self.rank, self.workers) if self.workers > 1 else None
        stream = dataset if callable(dataset) else None
        if isinstance(dataset, tf.data.Dataset):
            stream = lambda epoch: dataset  # noqa: E731
        data: Any = stream or Arrays(dataset)
        length = len(self._order(0)) if self._order is not None else data.length if stream is None else None
        if stream is not None and self._order is not None:
            raise ValueError("prepare: a tf.data.Dataset has its own order; give arrays, or no order")
        mine: dict[str, Any] = {
            "worker": worker_name(self.rank),
            "class": class_name(),
            "length": length,
            "global_batch": self.global_batch,
            "shuffle": "given" if self._order is not None else self._shuffle,
            "drop_last": self._drop_last,
            "sum_losses": self._sum_losses,
            "balance": self._balance,
            "seed": self.seed,
            "limits": self._limits,
            "least": 1,
        }
        everybody = [mine] if link is None else link.gather(mine)
        same = ("length", "global_batch", "shuffle", "drop_last", "sum_losses", "balance")
        joining.same(everybody, same)
        self.seed = int(everybody[0]["seed"])
        on_device = bool(tf.config.list_logical_devices("GPU"))
        allocator = self._allocator or ("gpu" if on_device else "cpu")
        self.pace = Pace(
            self.rank,
            joining.workers(everybody, self.global_batch),
            self.global_batch,
            link,
            {"allocator": allocator, "seed": str(self.seed % 2**31), **self._options},
            GraphClock(),
            balance=self._balance,
            job=job_name(first),
        )
        row = agreement.length(self.workers) if link is not None and self._balance else 0
        self._reduction = Reduction(row, self._sum_losses, on_device)
        if link is not None:
            link.reduction = self._reduction
        if optimizer is not None:
            attach(optimizer, self._reduction)
        course = Course(length, self.global_batch, self.pace.shares, drop_last=self._drop_last)
        self._batches = Batches(self, data, course, self._order_of(length), self.rank)
        return optimizer, self._batches

    prepare = Either(_prepare)

    def _order_of(self, length: int | None) -> Order:
        if self._order is not None:
            return self._order
        return shuffled(length or 0, self.seed) if self._shuffle else in_order(length or 0)

    # A step.

    def reduce(self, gradients: Sequence[Any]) -> list[Any]:
        """The gradients of the whole global batch, from those of this rank's part.

        For updates without an optimizer of Keras 3: call it within
        ``strategy.run``, and apply the result without summing over ranks again
        (the optimizers of tf_keras: ``skip_gradients_aggregation=True``).
        """
        return self._reduction.reduce(gradients)

    def begin_step(self, draw: Draw) -> None:
        """A batch is handed out; called by `Batches`."""
        self._draw = draw
        self._traces = self._reduction.traces
        self._reduction.send(draw.sizes[self.rank], draw.total)

    def end_step(self, draw: Draw) -> None:
        """The step on it is over; called by `Batches`."""
        marks = self._reduction.receive()
        traced = self._reduction.traces > self._traces
        if marks is None and self._reduction.received == 0 and self.workers > 1:
            raise ValueError(
                "the first step on a batch summed no gradients: apply them with the optimizer that prepare returned, "
                "or balancer.reduce, before the next batch is fetched"
            )
        if marks is not None and self.pace.watch is not None:
            self.pace.watch.ready(marks[0])
            self.pace.watch.done(marks[1])
        if self._reduction.traces > MANY_TRACES and not self._told:
            self._told = True
            log.warning(
                "cotenant: the step was traced %d times; say @tf.function(reduce_retracing=True), or "
                "input_signature=batches.element_spec, or keep to few batch sizes with buckets=",
                self._reduction.traces,
            )
        # What was traced meanwhile took longer than its samples do.
        self.pace.end(draw.iteration, None if traced or marks is None else draw)

    # Where it stands.

    @property
    def shares(self) -> tuple[int, ...]:
        """The batch sizes of all ranks, as agreed last; empty before the first epoch."""
        latest = self.pace.latest
        return latest.batch_sizes if latest else ()

    @property
    def batch_size(self) -> int:
        """Samples of the batch handed out last that count: 0 where it is a stand-in."""
        return self._draw.sizes[self.rank] if self._draw is not None else 0

    @property
    def weight(self) -> float:
        """The weight of that batch: batch_size / samples of all ranks."""
        return self.batch_size / self._draw.total if self._draw is not None else 0.0

    def state_dict(self) -> dict[str, Any]:
        """Where the training stands; the same on every rank, whoever saves it.

        Plain numbers, strings and lists.
        """
        assert self._batches is not None, "not prepared"
        return joining.state(self._batches.place, self.pace, self.seed, self._batches.course.length)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where `state_dict` was taken, whatever the number of ranks was.

        Every rank loads the same state, before it iterates.
        """
        assert self._batches is not None, "not prepared"
        self.seed = joining.resume(state, self._batches.place, self.pace, self._batches.course.length)
        if self._order is None:
            self._batches.order = self._order_of(self._batches.course.length)

    def close(self) -> None:
        """Ends the talk with the coordinator now; otherwise done when the script ends."""
        self.pace.close()


def _stand(strategy: Any) -> tuple[int, int, str | None]:
    """This process's rank, how many there are, and the address of the first of several."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        if strategy.num_replicas_in_sync == 1 and getattr(strategy, "cluster_resolver", None) is None:
            return 0, 1, None
        raise ValueError(f"prepare: {type(strategy).__name__} is not served; MultiWorkerMirroredStrategy is")
    resolver = strategy.cluster_resolver
    cluster = resolver.cluster_spec().as_dict() if resolver is not None and resolver.cluster_spec() else {}
    tasks = [(kind, i) for kind in ("chief", "worker") for i in range(len(cluster.get(kind, ())))]
    if strategy.num_replicas_in_sync != max(1, len(tasks)):
        raise ValueError(
            f"prepare: {strategy.num_replicas_in_sync} replicas in {max(1, len(tasks))} processes; batches are sized for "
            "a process each: start one a device (CUDA_VISIBLE_DEVICES)"
        )
    if len(tasks) < 2:
        return 0, 1, None
    return tasks.index((resolver.task_type, resolver.task_id)), len(tasks), cluster[tasks[0][0]][tasks[0][1]]
