"""Balances TensorFlow's MultiWorkerMirroredStrategy in a custom loop. Two lines::

    from cotenant.tensorflow import Balancer
    optimizer, batches = Balancer.prepare(strategy, optimizer, (images, labels), global_batch=256)

and the script is started as before, by ``TF_CONFIG``. See :class:`Balancer`.
"""

from cotenant.tensorflow.balancer import Balancer
from cotenant.tensorflow.batches import Batches

__all__ = ["Balancer", "Batches"]
