"""A rank's part of every global batch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence, cast

import numpy as np
import tensorflow as tf

from cotenant.sampling import Course, Draw, Place

if TYPE_CHECKING:
    from cotenant.tensorflow.balancer import Balancer

Order = Callable[[int], Sequence[int]]


def shuffled(length: int, seed: int) -> Order:
    """A random order of each epoch; the same seed gives the same, with any version of numpy."""

    def order(epoch: int) -> Sequence[int]:
        return cast("Sequence[int]", np.random.RandomState((seed + epoch) % 2**32).permutation(length))

    return order


def in_order(length: int) -> Order:
    """First to last, every epoch."""
    return lambda epoch: range(length)


class Arrays:
    """Samples by index: arrays or tensors of one length, in tuples or dicts as it may be.

    Whatever has a length and takes an array of indices will do.
    """

    def __init__(self, arrays: Any) -> None:
        self._arrays = arrays
        lengths = [len(a) for a in tf.nest.flatten(arrays)]
        if not lengths or min(lengths) < max(lengths) or lengths[0] < 1:
            raise ValueError(f"prepare: arrays of lengths {lengths}; want one length, of at least 1")
        self.length = lengths[0]

    def take(self, indices: Any) -> Any:
        """The samples of these indices, as tensors."""

        def one(a: Any) -> Any:
            if tf.is_tensor(a):
                return tf.gather(a, indices)
            return tf.nest.map_structure(tf.convert_to_tensor, a[indices])

        return tf.nest.map_structure(one, self._arrays)


_State: Any = tf.train.experimental.PythonState


class Batches(_State):  # type: ignore[misc] # untyped
    """Iterates over this rank's parts of an epoch's batches; see :class:`Balancer`.

    Every whole pass over it is the next epoch; ``set_epoch`` chooses another.
    ``state_dict`` tells where it stands, the same on every rank: what was
    handed out counts as seen. A tf.train.Checkpoint takes it as it is::

        tf.train.Checkpoint(model=model, optimizer=optimizer, batches=batches)
    """

    def __init__(self, balancer: Balancer, data: Any, course: Course, order: Order, rank: int) -> None:
        super().__init__()
        self.balancer = balancer
        self.place = Place()
        self.course = course
        self.order = order
        self._data = data
        self._rank = rank

    def __len__(self) -> int:
        """Batches of a whole epoch, the same on every rank."""
        return self.course.batches(0)

    @property
    def element_spec(self) -> Any:
        """What a batch is, of any size: as ``tf.function``'s input_signature wants it."""
        if isinstance(self._data, Arrays):
            one = self._data.take(np.arange(1))
            return tf.nest.map_structure(lambda t: tf.TensorSpec([None, *t.shape[1:]], t.dtype), one)
        return self._data(0).batch(1).element_spec

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass that epoch, from its beginning unless in it already."""
        self.place.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """See :meth:`Balancer.state_dict`."""
        return self.balancer.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See :meth:`Balancer.load_state_dict`."""
        self.balancer.load_state_dict(state)

    def serialize(self) -> str:
        """The state, for tf.train.Checkpoint."""
        return json.dumps(self.state_dict())

    def deserialize(self, string_value: Any) -> None:
        """Loads what `serialize` gave."""
        self.load_state_dict(json.loads(string_value))

    def __iter__(self) -> Iterator[Any]:
        place, balancer = self.place, self.balancer
        place.start()
        balancer.pace.begin_epoch(place.iteration, (place.epoch, place.offset))
        source = self._from_arrays() if isinstance(self._data, Arrays) else self._from_stream()
        while True:
            balancer.pace.begin()
            got = next(source, None)
            if got is None:
                break
            draw, batch = got
            place.offset, place.iteration = draw.end, draw.iteration + 1
            balancer.begin_step(draw)
            yield batch
            balancer.end_step(draw)
        place.epoch, place.offset = place.epoch + 1, 0

    def _from_arrays(self) -> Iterator[tuple[Draw, Any]]:
        order = self.order(self.place.epoch)
        self.course.length = len(order)
        while (draw := self.course.draw(self.place.iteration, self.place.offset)) is not None:
            begin, end = draw.part(self._rank)
            # A rank without samples still takes part in the sum of gradients:
            # with a stand-in, whose weight is 0.
            mine = order[begin:end] if end > begin else order[draw.begin : draw.begin + 1]
            yield draw, self._data.take(np.asarray(mine))

    def _from_stream(self) -> Iterator[tuple[Draw, Any]]:
        # Every rank reads the whole stream and keeps its own part, so that all
        # know where it ends, and no sample depends on who reads it.
        stream = self._data(self.place.epoch)
        for pool in stream.skip(self.place.offset).batch(self.course.global_batch):
            available = int(tf.nest.flatten(pool)[0].shape[0])
            draw = self.course.draw(self.place.iteration, self.place.offset, available)
            if draw is None:
                return
            begin, end = (at - draw.begin for at in draw.part(self._rank))
            if begin == end:
                begin, end = 0, 1
            yield draw, tf.nest.map_structure(lambda t: t[begin:end], pool)
