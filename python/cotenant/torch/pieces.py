"""A batch that does not fit into memory is done in pieces.

The gradient of a mean is the weighted mean of the pieces' gradients, so they are
added up, and the update stays what it was. Only then are they summed over the
ranks. DistributedDataParallel does that amid a backward pass, and can't begin
again once it has begun. So pieces, and batches that are larger than any that
has fitted before, run without it (``no_sync``), and a pass of weight 0 over the
batch's first sample sums what they left.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any, Callable, Mapping, cast

import torch
from torch.nn.parallel import DistributedDataParallel

from cotenant.torch.weights import scaled

if TYPE_CHECKING:
    from cotenant.torch.balancer import Balancer

log = logging.getLogger("cotenant")

#: ``cut(batch, samples, pieces)``: the pieces, and how many samples each has.
Cut = Callable[[Any, int, int], "list[tuple[Any, int]]"]


def out_of_memory(e: BaseException) -> bool:
    """Whether an error says that memory ran out, on whatever device."""
    kinds = (MemoryError, getattr(torch.cuda, "OutOfMemoryError", MemoryError))
    return isinstance(e, kinds) or isinstance(e, RuntimeError) and (
        "out of memory" in str(e) or "can't allocate memory" in str(e)
    )


def cut(batch: Any, samples: int, pieces: int) -> list[tuple[Any, int]]:
    """Cuts a batch along the first dimension of what is as long as it has samples.

    Raises
    ------
    ValueError
        Nothing in it is.
    """
    bounds = [samples * i // pieces for i in range(pieces + 1)]
    found: list[int] = []
    parts = [(_part(batch, samples, a, b, found), b - a) for a, b in zip(bounds, bounds[1:]) if b > a]
    if not found:
        raise ValueError(f"nothing in the batch ({type(batch).__name__}) has {samples} entries; give backward(cut=...)")
    return parts


def _part(batch: Any, samples: int, begin: int, end: int, found: list[int]) -> Any:
    whole: bool
    if isinstance(batch, torch.Tensor):
        whole = batch.dim() == 0 or len(batch) != samples
    elif isinstance(batch, Mapping):
        cut = {key: _part(value, samples, begin, end, found) for key, value in batch.items()}
        return type(batch)(cut)  # type: ignore[call-arg] # as dict and UserDict take it
    elif isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_part(value, samples, begin, end, found) for value in batch))
    elif isinstance(batch, (tuple, list)):
        whole = len(batch) != samples or any(isinstance(each, (torch.Tensor, tuple, list, Mapping)) for each in batch)
        if whole:
            return type(batch)(_part(value, samples, begin, end, found) for value in batch)
    else:
        whole = True
    if whole:
        return batch
    found.append(begin)
    return batch[begin:end]


class Pieces:
    """Runs batches forwards and backwards; see :meth:`Balancer.backward`."""

    def __init__(self, balancer: Balancer) -> None:
        self._balancer = balancer
        self._fitted = 0  # the largest load that has
        self._model: Any = None
        self._entered = False

    def watch(self, model: Any) -> None:
        """Takes the model that batches run through, wrapped or not."""
        self._model = model
        if isinstance(model, DistributedDataParallel):
            model.module.register_forward_pre_hook(self._enter)

    def _enter(self, *_: Any) -> None:
        self._entered = True

    def backward(self, loss_of: Callable[[Any], torch.Tensor], batch: Any, cut: Cut) -> torch.Tensor:
        """See :meth:`Balancer.backward`."""
        balancer, draw = self._balancer, self._balancer.draw
        if draw is None:
            raise ValueError("backward: no batch was handed out; iterate over the loader that prepare gave")
        begin, end = draw.part(balancer.rank)
        tokens = balancer.tokens(begin, end)
        samples, load = end - begin, sum(tokens)
        sums = isinstance(self._model, DistributedDataParallel) and self._model.require_backward_grad_sync
        if samples <= 1 or load <= self._fitted:
            loss = self._at_once(loss_of, batch)
            if loss is not None:
                self._fitted = max(self._fitted, load)
                return loss
            pieces = 2
        else:
            pieces = 1
        most = max(1, samples // balancer.stand_in)
        kept = [None if p.grad is None else p.grad.clone() for p in self._model.parameters()]
        while True:
            loss = self._in_pieces(loss_of, cut(batch, samples, pieces) if pieces > 1 else [(batch, samples)], tokens)
            if loss is not None:
                break
            if pieces >= most:
                raise RuntimeError(f"out of memory, even with the batch of {samples} samples in {pieces} pieces")
            for p, gradient in zip(self._model.parameters(), kept):
                p.grad = None if gradient is None else gradient.clone()
            pieces = min(most, 2 * pieces)
        if pieces == 1:
            self._fitted = load
        else:
            log.info("a batch of %d did not fit into memory; done in %d pieces", load, pieces)
        if sums:
            first, _ = cut(batch, samples, most)[0]
            scaled(loss_of(first), 0.0).backward()
        return loss

    def _ran_out(self) -> None:
        self._balancer.pace.out_of_memory = True
        if self._entered and isinstance(self._model, DistributedDataParallel):
            # The buffers were broadcast before the model was entered, once on
            # all ranks; so not again.
            cast(Any, self._model).require_forward_param_sync = False
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _at_once(self, loss_of: Callable[[Any], Any], batch: Any) -> torch.Tensor | None:
        self._entered = False
        try:
            loss = loss_of(batch)
        except (RuntimeError, MemoryError) as e:
            if not out_of_memory(e) or self._balancer.batch_size < 2:
                raise
            self._ran_out()
            return None
        self._scaled(loss).backward()
        detached: torch.Tensor = loss.detach()
        return detached

    def _in_pieces(
        self, loss_of: Callable[[Any], Any], pieces: list[tuple[Any, int]], tokens: list[int]
    ) -> torch.Tensor | None:
        apart = self._model.no_sync() if isinstance(self._model, DistributedDataParallel) else contextlib.nullcontext()
        total: torch.Tensor | None = None
        at = 0
        self._entered = False
        try:
            with apart:
                for piece, samples in pieces:
                    weight = sum(tokens[at : at + samples]) / sum(tokens) if not self._balancer.sums_losses else 1.0
                    loss = loss_of(piece)
                    self._scaled(loss * weight).backward()
                    total = loss.detach() * weight + (0.0 if total is None else total)
                    at += samples
            return total
        except (RuntimeError, MemoryError) as e:
            if not out_of_memory(e):
                raise
            self._ran_out()
            return None

    def _scaled(self, loss: Any) -> Any:
        # A model that is not wrapped has no hook that weighs its gradients.
        apart = isinstance(self._model, DistributedDataParallel) or self._balancer.workers == 1
        return loss if apart else self._balancer.scale(loss)
