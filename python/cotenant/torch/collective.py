"""torch.distributed, whose types differ between the versions that are served."""

from typing import TYPE_CHECKING, Any

import torch.distributed

#: Untyped in some versions, so untyped here.
dist: Any = torch.distributed

if TYPE_CHECKING:
    GradBucket = Any
else:
    GradBucket = torch.distributed.GradBucket
