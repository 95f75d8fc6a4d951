"""The loader of a rank's part of every global batch."""

from __future__ import annotations

import collections
import itertools
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence, Sized, cast

import torch
from torch.utils.data import DataLoader, IterableDataset, Sampler, default_collate

from cotenant.sampling import Course, Draw, Place

if TYPE_CHECKING:
    from cotenant.torch.balancer import Balancer

Order = Callable[[int], Sequence[int]]


def shuffled(length: int, seed: int) -> Order:
    """DistributedSampler's order of an epoch: the same seed gives the same."""

    def order(epoch: int) -> Sequence[int]:
        generator = torch.Generator()
        generator.manual_seed(seed + epoch)
        return cast("Sequence[int]", torch.randperm(length, generator=generator))

    return order


def in_order(length: int) -> Order:
    """First to last, every epoch."""
    return lambda epoch: range(length)


def indices(order: Sequence[int], begin: int, end: int) -> list[int]:
    """A part of an order as plain numbers."""
    part = order[begin:end]
    return part.tolist() if isinstance(part, torch.Tensor) else list(part)


class BalancedSampler(Sampler[Any], Place):
    """Draws the indices of this rank's batches, and remembers what it drew.

    A loader with worker processes draws ahead of the training: ``drawn`` holds
    the batches that are drawn and not yet handed out.
    """

    def __init__(
        self, course: Course, order: Order, rank: int, stand_in: int, tokens: Callable[[int], int] | None = None
    ) -> None:
        Place.__init__(self)
        self.tokens = tokens
        self.course = course
        self.order = order
        self.rank = rank
        self.stand_in = stand_in
        self.drawn: collections.deque[Draw] = collections.deque()

    def measure(self, order: Sequence[int]) -> None:
        """Counts an epoch's load in tokens, where it is to be."""
        if self.tokens is not None:
            self.course.measure(map(self.tokens, indices(order, 0, len(order))))

    def __len__(self) -> int:
        return self.course.batches(self.offset)

    def __iter__(self) -> Iterator[list[int]]:
        self.drawn.clear()
        order = self.order(self.epoch)
        self.course.length = len(order)
        self.measure(order)
        offset, iteration = self.offset, self.iteration
        for batch in itertools.count():
            draw = self.course.draw(iteration + batch // self.course.accumulate, offset)
            if draw is None:
                return
            offset = draw.end
            self.drawn.append(draw)
            begin, end = draw.part(self.rank)
            # A rank without samples still takes part in the sum of gradients:
            # with a stand-in, whose weight is 0.
            mine = indices(order, begin, end) or indices(order, draw.begin, draw.begin + 1) * self.stand_in
            yield mine


class BalancedLoader(DataLoader[Any]):
    """A DataLoader whose batch size follows the shares; see :class:`Balancer`.

    Every whole pass over it is the next epoch; ``set_epoch`` chooses another.
    ``state_dict`` tells where it stands, the same on every rank: what was
    handed out counts as seen, with accumulation up to the last whole group.
    """

    def __init__(self, balancer: Balancer, loader: DataLoader[Any], sampler: BalancedSampler) -> None:
        self.balancer = balancer
        # Lightning and Accelerate look whether a loader is a DataLoader, so
        # this is one, with the settings of the one it stands for.
        options: dict[str, Any] = {
            "num_workers": loader.num_workers,
            "pin_memory": loader.pin_memory,
            "timeout": loader.timeout,
            "worker_init_fn": loader.worker_init_fn,
            "multiprocessing_context": loader.multiprocessing_context,
            "generator": loader.generator,
        }
        if loader.num_workers > 0:
            options["prefetch_factor"] = loader.prefetch_factor
            options["persistent_workers"] = loader.persistent_workers
        self._streams = isinstance(loader.dataset, IterableDataset)
        if self._streams:
            # Its samples come one by one and are put together here, in this
            # process, which knows the shares.
            self._collate = loader.collate_fn if loader.batch_size is not None else default_collate
            super().__init__(loader.dataset, batch_size=None, collate_fn=_as_it_is, **options)
        else:
            super().__init__(loader.dataset, batch_sampler=sampler, collate_fn=loader.collate_fn, **options)
            # Where scripts look for it: loader.sampler.set_epoch(epoch).
            self.__dict__["sampler"] = sampler
        self._course_sampler = sampler

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass that epoch, from its beginning unless in it already."""
        self._course_sampler.set_epoch(epoch)

    def __len__(self) -> int:
        """Batches of a whole epoch, the same on every rank."""
        if self._streams:
            batches = len(cast(Sized, self.dataset))
            return -(-batches // self.balancer.global_batch)
        return self._course_sampler.course.batches(0)

    def state_dict(self) -> dict[str, Any]:
        """See :meth:`Balancer.state_dict`."""
        return self.balancer.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See :meth:`Balancer.load_state_dict`."""
        self.balancer.load_state_dict(state)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override] # a generator serves as well
        sampler, balancer = self._course_sampler, self.balancer
        sampler.start()
        balancer.pace.begin_epoch(sampler.iteration, (sampler.epoch, sampler.offset))
        accumulate = sampler.course.accumulate
        source = self._from_stream() if self._streams else super().__iter__()
        within = 0
        while True:
            if within == 0:
                balancer.pace.begin()
            batch = next(source, _end)
            if batch is _end:
                break
            draw = sampler.drawn.popleft()
            balancer.draw = draw
            balancer.weights.set(draw.load(sampler.rank), draw.total_load, first=within == 0)
            within += 1
            if within == accumulate:
                # With its last batch handed out, an iteration is seen.
                sampler.offset, sampler.iteration = draw.end, draw.iteration + 1
            yield batch
            if within == accumulate:
                within = 0
                balancer.pace.end(draw.iteration, draw)
        if within:
            # Fewer batches than are accumulated; the epoch is over all the same.
            balancer.pace.end(sampler.iteration, None)
            sampler.iteration += 1
        sampler.epoch, sampler.offset = sampler.epoch + 1, 0

    def _from_stream(self) -> Iterator[Any]:
        sampler = self._course_sampler
        set_epoch = getattr(self.dataset, "set_epoch", None)
        if set_epoch is not None:
            set_epoch(sampler.epoch)
        offset = sampler.offset
        samples = itertools.islice(super().__iter__(), offset, None)
        for batch in itertools.count():
            # Every rank reads the whole stream and keeps its own part, so that
            # all know where it ends, and no sample depends on who reads it.
            pool = list(itertools.islice(samples, sampler.course.global_batch))
            draw = sampler.course.draw(sampler.iteration, offset, len(pool))
            if draw is None:
                return
            offset = draw.end
            sampler.drawn.append(draw)
            begin, end = draw.part(sampler.rank)
            mine = pool[begin - draw.begin : end - draw.begin] or pool[:1] * sampler.stand_in
            yield self._collate(mine)


_end = object()


def _as_it_is(sample: Any) -> Any:
    return sample
