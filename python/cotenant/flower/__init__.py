"""Balances federated training with Flower: no client keeps a round waiting.

In the ServerApp, wrap the strategy::

    from cotenant.flower import Balanced

    strategy = Balanced(FedAvg(), samples=4096)      # of a round, all clients together
    result = strategy.start(grid, arrays, num_rounds=20)

In the ClientApp, measure, and train on the samples that are next::

    from cotenant.flower import measure, next_samples

    app = ClientApp(mods=[measure])

    @app.train()
    def train(message, context):
        indices = next_samples(message, context, len(data))
        ...
        metrics = MetricRecord({"num-examples": len(indices), ...})

The coordinator's allocator ``federated`` decides: compute and the way there and
back together take as long for every client, and none is given more than it has.
"""

from cotenant.flower.client import asked, measure, next_samples
from cotenant.flower.strategy import Balanced

__all__ = ["Balanced", "asked", "measure", "next_samples"]
