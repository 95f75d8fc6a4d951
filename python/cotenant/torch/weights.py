"""Makes the update of unequal batches the update of the whole global batch.

Worker i computes the mean gradient g_i of its x_i samples. The mean over the
global batch of X samples is sum_i x_i g_i / X (LB-BSP, weighted gradient
aggregation), not the mean of the g_i, which DistributedDataParallel computes.
"""

import copy
from typing import Any, Callable

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

from cotenant.torch.collective import GradBucket, dist

from cotenant.clock import Stopwatch


_Function: Any = torch.autograd.Function  # typed in some versions only


class _Scale(_Function):  # type: ignore[misc] # see above
    """The identity, whose gradient is multiplied by a factor."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.factor = factor
        same: torch.Tensor = x.view_as(x)
        return same

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        # A factor of 0 is a worker without samples: what it computed on its
        # stand-in must not count even if it is no number.
        (grad,) = grads
        return (torch.zeros_like(grad) if ctx.factor == 0 else grad * ctx.factor), None


def scaled(output: Any, factor: float) -> Any:
    """The same output, whose gradients are multiplied by ``factor``.

    Goes into lists, tuples and dictionaries (and what derives from them).
    """
    if factor == 1.0:
        return output
    if isinstance(output, torch.Tensor):
        return _Scale.apply(output, factor) if output.requires_grad else output
    if isinstance(output, dict):
        copied = copy.copy(output)
        for key, value in output.items():
            copied[key] = scaled(value, factor)
        return copied
    if isinstance(output, tuple) and hasattr(output, "_fields"):
        return type(output)(*(scaled(value, factor) for value in output))
    if isinstance(output, (list, tuple)):
        return type(output)(scaled(value, factor) for value in output)
    return output


class Weights:
    """The weight of this worker's gradient, in one of two ways.

    In the *hook*, a communication hook of DistributedDataParallel: multiply by
    x_i, sum over the workers, divide by X. In that order dyadic data stay
    exact for any X. Gradients of 16 bits are multiplied by x_i / X first,
    since the sum could overflow.

    At the *output*: the gradient of the model's output is multiplied by
    W x_i / X, and DistributedDataParallel averages over the W workers as ever.
    For scripts with a communication hook of their own, and for synchronised
    batch normalisation, whose backward pass mixes workers before the hook.

    Parameters
    ----------
    sum_losses : the loss is a sum over samples, not a mean: the weights are 1
    """

    def __init__(self, workers: int, sum_losses: bool = False) -> None:
        self._workers = workers
        self._sum_losses = sum_losses
        self._group: Any = None
        self.at_output = False
        self.size, self.total = 1, workers
        self._first = (1, workers)
        self.watch: Callable[[], Stopwatch | None] = lambda: None

    def set(self, size: int, total: int, first: bool = True) -> None:
        """Sets x_i and X of the coming batch; ``first`` of those accumulated."""
        self.size, self.total = size, total
        if first:
            self._first = (size, total)

    @property
    def share(self) -> float:
        """The weight of this worker's gradient in the sum over workers."""
        return self._ratio(self.size, self.total)

    def _ratio(self, size: int, total: int) -> float:
        if self._sum_losses:
            return 1.0 if size else 0.0
        return size / total

    @property
    def factor(self) -> float:
        """What the gradient of the output is multiplied by."""
        if self.at_output:
            return self._workers * self.share
        # The hook weighs the sum over accumulated batches as their first one;
        # another weight, in the last batch of an epoch, is made up for here.
        size, total = self._first
        if self._sum_losses or self.size * total == size * self.total or size == 0:
            return 0.0 if self.size == 0 and size else 1.0
        return (self.size * total) / (size * self.total)

    # DistributedDataParallel reads the hook's annotations, so they must not be
    # strings: no `from __future__ import annotations` in this file.
    def hook(self, _: object, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """The communication hook; also where compute time ends."""
        gradient = bucket.buffer()
        watch = self.watch()
        last = bucket.is_last()
        size, total = self._first
        divide: int | None = None
        if self.at_output:
            gradient.div_(self._workers)
        elif size == 0:
            gradient.zero_()
            divide = None if self._sum_losses else total
        elif not self._sum_losses:
            if gradient.dtype in (torch.float32, torch.float64):
                gradient.mul_(size)
                divide = total
            else:
                gradient.mul_(size / total)
        if gradient.dtype not in (torch.float32, torch.float64):
            divide = None
        if last and watch is not None:
            watch.ready()
        future = dist.all_reduce(gradient, group=self._group, async_op=True).get_future()

        def finish(summed: torch.futures.Future[Any]) -> torch.Tensor:
            value: torch.Tensor = summed.value()[0]
            if divide is not None:
                value.div_(divide)
            if last and watch is not None:
                watch.done()
            return value

        result: torch.futures.Future[torch.Tensor] = future.then(finish)
        return result

    def attach(self, model: DistributedDataParallel) -> bool:
        """Registers the hook; False where the model has one already."""
        self._group = model.process_group
        try:
            model.register_comm_hook(None, self.hook)
        except RuntimeError:
            self.at_output = True
            return False
        return True
