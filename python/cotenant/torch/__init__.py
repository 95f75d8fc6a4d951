"""Balances PyTorch's DistributedDataParallel. Two lines in a script::

    from cotenant.torch import Balancer
    model, loader = Balancer.prepare(model, loader)

and it is started as before, with ``torchrun``. See :class:`Balancer`.
"""

from cotenant.torch.balancer import Balancer
from cotenant.torch.loader import BalancedLoader

__all__ = ["BalancedLoader", "Balancer"]
