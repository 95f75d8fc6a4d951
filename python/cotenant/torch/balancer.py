"""The balancer of a PyTorch script."""

from __future__ import annotations

import contextlib
import datetime
import os
from typing import Any, Callable, Iterator, Sequence, Sized, cast

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from cotenant import joining
from cotenant.clock import WallClock
from cotenant.either import Either
from cotenant.pace import Pace
from cotenant.sampling import Course, Draw
from cotenant.session import class_name, worker_name
from cotenant.torch.clock import CudaClock
from cotenant.torch.collective import GroupLink, dist
from cotenant.torch.loader import BalancedLoader, BalancedSampler, Order, in_order, shuffled
from cotenant.torch.pieces import Cut, Pieces, cut
from cotenant.torch.weights import Weights, scaled

_norms = nn.modules.batchnorm._BatchNorm


class Balancer:
    """Sizes each rank's batches so that no rank waits for a slower one.

    ::

        model, loader = Balancer.prepare(model, loader)             # or, with options:
        model, loader = Balancer(global_batch=512).prepare(model, loader)

    The update stays that of a single process on the same global batch, and
    every sample is seen exactly once an epoch, whatever the batch sizes. All
    ranks must call ``prepare``, and iterate over the loader alike.

    Parameters
    ----------
    dataset : what `prepare` makes a loader of, where it is given none
    global_batch : samples of all ranks in a batch; default: the loader's batch
        size times the number of ranks
    tokens : how many tokens each sample has, by its index: batch sizes,
        ``global_batch``, limits and weights are then tokens, not samples
    minimum, maximum : least and greatest batch size of this rank; the default
        minimum is 1, or 2 where the model has batch normalisation; maximum 0 is
        no limit
    buckets : the only batch sizes this rank may have (compiled graphs)
    accumulate : batches whose gradients are added up for one update; their
        shares are the same
    sum_losses : the loss is a sum over the samples of a batch, not their mean
    order : the order of an epoch, by its number, the same on every rank;
        default: DistributedSampler's order where the loader shuffles
    seed : of that order; default: the loader's, else rank 0's torch.initial_seed()
    allocator : ``cpu`` (proportional to speed), ``gpu`` (learned curves of time
        by batch size); default: by where the model is
    predictor, threshold : see ``cotenant serve balance``
    balance : False keeps equal batches, all else alike (to compare with); also
        by COTENANT_BALANCE=0
    wrap : False leaves the model as it is, for scripts that average gradients
        themselves (see `scale`) or are wrapped later (see `attach`)
    group : the process group of the ranks that take batches, on gloo, where
        others take none, such as parameter servers; those don't call `prepare`.
        Default: all ranks
    timeout : of the collectives; where the process group is made here, of it
        too; a ``group`` has its own

    The environment: ``COTENANT_ADDRESS``, ``COTENANT_TOKEN``, ``COTENANT_CA``
    name a coordinator (default: rank 0 starts its own); ``COTENANT_JOB`` and
    ``COTENANT_WORKER`` name the job and this rank; ``COTENANT_WORKLOAD`` and
    ``COTENANT_CLASS`` what it trains and where, in samples of its speed.
    """

    def __init__(
        self,
        dataset: Any = None,
        *,
        global_batch: int | None = None,
        tokens: Sequence[int] | None = None,
        minimum: int | None = None,
        maximum: int = 0,
        buckets: Sequence[int] = (),
        accumulate: int = 1,
        sum_losses: bool = False,
        order: Order | None = None,
        seed: int | None = None,
        allocator: str | None = None,
        predictor: str = "auto",
        threshold: float | None = None,
        balance: bool | None = None,
        wrap: bool = True,
        group: Any = None,
        timeout: datetime.timedelta | None = None,
    ) -> None:
        if accumulate < 1:
            raise ValueError(f"accumulate {accumulate}: want at least 1")
        self._dataset = dataset
        if tokens is not None and global_batch is None:
            raise ValueError("with tokens=, say how many tokens all ranks take in a batch: global_batch=")
        self._asked_global_batch = global_batch
        self._tokens = tokens
        self._limits = (minimum, maximum, tuple(sorted(buckets)))
        self._accumulate = accumulate
        self._sum_losses = sum_losses
        self._order = order
        self._seed = seed
        self._allocator = allocator
        self._options: dict[str, Any] = {"predictor": predictor}
        if threshold is not None:
            self._options["threshold"] = threshold
        self._balance = os.environ.get("COTENANT_BALANCE") != "0" if balance is None else balance
        self._wrap = wrap
        self._asked_group = group
        self._timeout = timeout
        self._loader: BalancedLoader | None = None
        self._pieces = Pieces(self)
        #: The batch of all ranks whose part was handed out last.
        self.draw: Draw | None = None

    # Preparing.

    def _prepare(self, model: nn.Module, loader: DataLoader[Any] | None = None) -> tuple[nn.Module, BalancedLoader]:
        """Wraps a model and its loader for balanced training; every rank calls it.

        Joins torchrun's process group where the script has not, and wraps the
        model in DistributedDataParallel where it is not.

        Returns
        -------
        (model, loader) : train with these as before

        Raises
        ------
        ValueError
            The ranks disagree, or the loader is of a kind whose batches can't
            be cut (the message says what to do).
        """
        if self._loader is not None:
            raise ValueError("a Balancer prepares one loader; make another Balancer for another loader")
        if loader is None:
            if self._dataset is None:
                raise ValueError("prepare: give a loader, or the Balancer a dataset and a global_batch")
            # Read for its settings only; its batch size counts if global_batch is not given.
            loader = DataLoader(self._dataset, shuffle=not isinstance(self._dataset, IterableDataset))
        cuda = any(p.is_cuda for p in model.parameters())
        self._join(cuda)
        self._set_up(model, loader, cuda)
        if self.workers > 1 and self._wrap:
            if not isinstance(model, DistributedDataParallel):
                model = DistributedDataParallel(model, process_group=self._asked_group)
            self.attach(model)
        else:
            self._pieces.watch(model)
        assert self._loader is not None
        return model, self._loader

    prepare = Either(_prepare)

    def _join(self, cuda: bool) -> None:
        if self._asked_group is not None:
            self._join_group(self._asked_group)
            return
        if not dist.is_initialized() and int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ:
            more: dict[str, Any] = {} if self._timeout is None else {"timeout": self._timeout}
            store = _restart_store(self._timeout)
            if store is not None:
                more.update(store=store, rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
            dist.init_process_group("nccl" if cuda else "gloo", **more)
        together = dist.is_initialized()
        self.rank = dist.get_rank() if together else 0
        self.workers = dist.get_world_size() if together else 1
        self._group: Any = None
        if self.workers > 1:
            # A group of its own: gloo whatever the training uses, so that
            # numbers in main memory travel beside the gradients.
            more = {} if self._timeout is None else {"timeout": self._timeout}
            self._group = dist.new_group(backend="gloo", **more)

    def _join_group(self, group: Any) -> None:
        self.rank, self.workers, self._group = dist.get_rank(group), dist.get_world_size(group), group
        if self.rank < 0:
            raise ValueError("prepare: this rank is not in group=; only those that take batches call prepare")
        # Another group can't be made of it here: PyTorch 1.13 wants all ranks to
        # take part in that, and the others know nothing of it.
        if dist.get_backend(group) == "nccl":
            raise ValueError('prepare: group= is on nccl; give one on gloo: dist.new_group(ranks, backend="gloo")')

    def _set_up(self, model: nn.Module, loader: DataLoader[Any], cuda: bool) -> None:
        normalised = any(isinstance(m, _norms) for m in model.modules())
        length = None if isinstance(loader.dataset, IterableDataset) else len(cast(Sized, loader.dataset))
        minimum, maximum, buckets = self._limits
        mine: dict[str, Any] = {
            "worker": worker_name(self.rank),
            "class": class_name(torch.cuda.get_device_name() if cuda else ""),
            "length": length,
            "batch_size": loader.batch_size,
            "seed": self._seed if self._seed is not None else _seed_of(loader),
            "ahead": loader.num_workers * int(loader.prefetch_factor or 2) if length is not None else 0,
            "accumulate": self._accumulate,
            "limits": (minimum, maximum, buckets),
            "least": 2 if normalised else 1,
            "shuffle": _shuffles(loader) if self._order is None else "given",
            "global_batch": self._asked_global_batch,
            "drop_last": loader.drop_last,
            "tokens": None if self._tokens is None else int(sum(self._tokens)),
        }
        if self._tokens is not None and length is None:
            raise ValueError("prepare: a stream's load can't be counted in tokens, which would have to be known before")
        everybody = [mine] * self.workers
        if self.workers > 1:
            dist.all_gather_object(everybody, mine, group=self._group)
        joining.same(everybody, ("length", "accumulate", "shuffle", "global_batch", "drop_last", "tokens"))
        if mine["shuffle"] is None:
            raise ValueError(
                f"prepare: the loader's sampler {type(loader.sampler).__name__} (batch sampler "
                f"{type(loader.batch_sampler).__name__}) can't be cut; give the order of an epoch: "
                "Balancer(order=lambda epoch: [...], global_batch=...), the same on every rank"
            )
        self.global_batch = self._global_batch(everybody)
        self.seed = int(everybody[0]["seed"]) % 2**31
        self.pace = Pace(
            self.rank,
            joining.workers(everybody, self.global_batch),
            self.global_batch,
            GroupLink(self.workers, self._group) if self.workers > 1 else None,
            {"allocator": self._allocator or ("gpu" if cuda else "cpu"), "seed": str(self.seed), **self._options},
            CudaClock() if cuda else WallClock(),
            ahead=-(-max(each["ahead"] for each in everybody) // self._accumulate),
            accumulate=self._accumulate,
            balance=self._balance,
        )
        least = 2 if normalised else 1
        if self._order is not None:
            length = len(self._order(0))  # may be of another length than the data set
        course = Course(length, self.global_batch, self.pace.shares, least, loader.drop_last, self._accumulate)
        counted = self._tokens
        self._sampler = BalancedSampler(
            course,
            self._order_of(length, mine["shuffle"]),
            self.rank,
            least,
            None if counted is None else lambda index: int(counted[index]),
        )
        self._sampler.measure(self._sampler.order(0))
        self.weights = Weights(self.workers, self._sum_losses)
        self._loader = BalancedLoader(self, loader, self._sampler)

    def _order_of(self, length: int | None, shuffle: str) -> Order:
        self._shuffle = shuffle
        if self._order is not None:
            return self._order
        return shuffled(length or 0, self.seed) if shuffle == "yes" else in_order(length or 0)

    def _global_batch(self, everybody: list[dict[str, Any]]) -> int:
        if self._asked_global_batch is not None:
            size = self._asked_global_batch
        elif all(each["batch_size"] for each in everybody):
            size = sum(each["batch_size"] for each in everybody)
        else:
            raise ValueError("prepare: the loader has no batch_size; say how many samples all ranks take: global_batch=")
        if size < 1:
            raise ValueError(f"global_batch {size}: want at least 1")
        return size

    def attach(self, model: DistributedDataParallel) -> None:
        """Weighs the gradients of a model that was wrapped after `prepare`, with ``wrap=False``.

        For frameworks that wrap it themselves, such as Lightning. `prepare`
        does this where the model is wrapped already, or is by it.
        """
        self._pieces.watch(model)
        self.weights.watch = lambda: self.pace.watch
        if any(isinstance(m, nn.SyncBatchNorm) for m in model.modules()):
            self.weights.at_output = True
        if not self.weights.attach(model):
            # Its own hook can't be watched, so compute ends about where the
            # gradient comes that is computed last: that of the first parameter.
            first: Any = next(p for p in model.parameters() if p.requires_grad)
            first.register_hook(self._ready)
        begun: list[Any] = []

        def before(*_: Any) -> None:
            if self.pace.watch is not None and torch.is_grad_enabled():
                begun[:] = [self.pace.watch.begin_wait()]

        def inside(*_: Any) -> None:
            if begun and self.pace.watch is not None:
                self.pace.watch.end_wait(begun.pop())

        def after(_: nn.Module, __: Any, output: Any) -> Any:
            return scaled(output, self.weights.factor) if torch.is_grad_enabled() else None

        model.register_forward_pre_hook(before)
        # Between the two hooks is the broadcast of buffers, which waits for rank 0.
        model.module.register_forward_pre_hook(inside)
        model.register_forward_hook(after)

    def _ready(self, gradient: torch.Tensor) -> None:
        if self.pace.watch is not None:
            self.pace.watch.ready()

    # Where it stands.

    @property
    def shares(self) -> tuple[int, ...]:
        """The batch sizes of all ranks, as agreed last; empty before the first epoch."""
        latest = self.pace.latest
        return latest.batch_sizes if latest else ()

    @property
    def batch_size(self) -> int:
        """Samples of the batch handed out last that count: 0 where it is a stand-in."""
        return self.draw.sizes[self.rank] if self.draw is not None else 0

    def tokens(self, begin: int, end: int) -> list[int]:
        """Tokens of the samples at positions of the epoch's order; 1 each where load is samples."""
        return self._sampler.course.tokens(begin, end)

    @property
    def stand_in(self) -> int:
        """The fewest samples that the model takes: 2 where it has batch normalisation."""
        return self._sampler.stand_in

    @property
    def sums_losses(self) -> bool:
        """Whether losses are sums over samples."""
        return self._sum_losses

    @property
    def weight(self) -> float:
        """The weight of that batch's gradient: batch_size / samples of all ranks, or tokens of tokens."""
        return self.weights.share

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss, weighted so that the mean of all ranks' gradients is the update.

        For scripts that average gradients themselves (parameter servers, their
        own all-reduce) on a model that is not DistributedDataParallel. They say
        what is not compute by `communication`, or by `ready` and `done`.
        """
        result: torch.Tensor = scaled(loss, self.workers * self.weight)
        return result

    def backward(self, loss_of: Callable[[Any], torch.Tensor], batch: Any, cut: Cut = cut) -> torch.Tensor:
        """``loss_of(batch).backward()``, in smaller pieces where that does not fit into memory.

        The pieces' gradients add up to the batch's, so no sample is lost; the
        coordinator is told, and gives this rank smaller batches from then on.
        See :mod:`cotenant.torch.pieces`.

        Parameters
        ----------
        loss_of : runs the model on a batch, or on a piece of one, and gives the
            loss: the mean over it (or the sum, with ``sum_losses``)
        batch : as the loader gave it
        cut : cuts a batch into pieces; the default goes into tuples, lists and
            dictionaries, and cuts what is as long as the batch has samples

        Returns
        -------
        The loss of the whole batch, without gradient.

        Raises
        ------
        RuntimeError
            A single sample does not fit, or memory ran out amid the sum of
            gradients. The job has to start again from its checkpoint.
        """
        return self._pieces.backward(loss_of, batch, cut)

    @contextlib.contextmanager
    def communication(self) -> Iterator[None]:
        """What is done within is not compute: a pull or a push, and the waiting for others in it.

        Wherever in the iteration, and as often as it takes; instead of `ready`
        and `done`.
        """
        watch = self.pace.watch
        begun = watch.begin_wait() if watch is not None else None
        try:
            yield
        finally:
            if watch is not None:
                watch.end_wait(begun)

    def ready(self) -> None:
        """This rank has its gradients; what follows is communication (see `scale`)."""
        if self.pace.watch is not None:
            self.pace.watch.ready()

    def done(self) -> None:
        """The communication that began with `ready` is over."""
        if self.pace.watch is not None:
            self.pace.watch.done()

    def state_dict(self) -> dict[str, Any]:
        """Where the training stands; the same on every rank, whoever saves it.

        Plain numbers, strings and lists. With accumulation, the last whole
        iteration counts: gradients that were not applied are computed again.
        """
        return joining.state(self._sampler, self.pace, self.seed, self._sampler.course.length)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where `state_dict` was taken, whatever the number of ranks was.

        Every rank loads the same state, before it iterates.
        """
        seed = joining.resume(state, self._sampler, self.pace, self._sampler.course.length)
        if self._order is None:
            self.seed = seed
            self._sampler.order = self._order_of(self._sampler.course.length, self._shuffle)

    def close(self) -> None:
        """Ends the talk with the coordinator now; otherwise done when the script ends."""
        self.pace.close()


def _restart_store(timeout: datetime.timedelta | None) -> Any:
    """Where the ranks of this start of torchrun meet; None where PyTorch knows.

    torchrun keeps one store over restarts. PyTorch 2.15 does not set the starts
    apart in it, so that a rank may wait for ever at an address of a dead one.
    On several nodes the numbers of starts need not agree.
    """
    e = os.environ
    if e.get("TORCHELASTIC_USE_AGENT_STORE") != "True" or e.get("LOCAL_WORLD_SIZE") != e["WORLD_SIZE"]:
        return None
    store = dist.TCPStore(
        e["MASTER_ADDR"], int(e["MASTER_PORT"]), int(e["WORLD_SIZE"]), False, timeout or datetime.timedelta(minutes=30)
    )
    return dist.PrefixStore(f"start-{e.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)


def _seed_of(loader: DataLoader[Any]) -> int:
    seed = getattr(loader.sampler, "seed", None)
    return int(seed) if isinstance(seed, int) else torch.initial_seed()


def _shuffles(loader: DataLoader[Any]) -> str | None:
    """Whether a loader shuffles: yes or no; None where it can't be told."""
    if isinstance(loader.dataset, IterableDataset):
        return "no"
    if loader.batch_sampler is not None and type(loader.batch_sampler) is not BatchSampler:
        return None
    sampler = loader.sampler
    if isinstance(sampler, DistributedSampler):
        return "yes" if sampler.shuffle else "no"
    if isinstance(sampler, RandomSampler):
        return None if sampler.replacement or sampler.num_samples != len(cast(Sized, loader.dataset)) else "yes"
    return "no" if isinstance(sampler, SequentialSampler) else None
