"""torch.distributed, whose types differ between the versions that are served."""

from __future__ import annotations

import array
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed

#: Untyped in some versions, so untyped here.
dist: Any = torch.distributed

if TYPE_CHECKING:
    GradBucket = Any
else:
    GradBucket = torch.distributed.GradBucket


class Sum:
    """A sum over all ranks that runs beside the training; see :class:`cotenant.pace.Exchange`."""

    def __init__(self, row: list[float], group: Any) -> None:
        # Below dist.all_reduce, whose checks and wrappers cost as much as the
        # rest; the numbers stay in an array that Python reads without PyTorch.
        self._row = array.array("d", row)
        self._work = group.allreduce([torch.frombuffer(self._row, dtype=torch.float64)])

    def wait(self, begin: int = 0) -> list[float]:
        """See :meth:`cotenant.pace.Exchange.wait`; raises where the process group's timeout is over, too."""
        self._work.wait()
        return self._row[begin:].tolist()


class GroupLink:
    """Talks over a process group; see :class:`cotenant.pace.Link`."""

    rides = False

    def __init__(self, workers: int, group: Any) -> None:
        self._workers = workers
        self._group = group

    def gather(self, mine: Any) -> list[Any]:
        """See :meth:`cotenant.pace.Link.gather`."""
        everybody: list[Any] = [None] * self._workers
        dist.all_gather_object(everybody, mine, group=self._group)
        return everybody

    def sum(self, row: list[float]) -> Sum:
        """See :meth:`cotenant.pace.Link.sum`."""
        return Sum(row, self._group)
