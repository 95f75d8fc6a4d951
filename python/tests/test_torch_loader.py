"""Every sample once an epoch, the same shares on every rank, resumed anywhere."""

from __future__ import annotations

import random
import unittest
from typing import Any, Iterator

import fake

try:
    import ranks
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, IterableDataset, TensorDataset, WeightedRandomSampler
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed (Debian: apt-get install python3-torch)")


class Stream(IterableDataset):  # type: ignore[type-arg]
    def __init__(self, length: int) -> None:
        self.length = length

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(torch.arange(float(self.length)).reshape(-1, 1))


def walk(rank: int, options: dict[str, Any]) -> Any:
    """Trains; tells for each iteration the samples of this rank and all shares."""
    from cotenant.torch import Balancer

    if options.get("stream"):
        dataset: Any = Stream(options["length"])
    else:
        dataset = TensorDataset(torch.arange(float(options["length"])).reshape(-1, 1))
    loader = DataLoader(
        dataset, batch_size=8, shuffle=options.get("shuffle", False), num_workers=options.get("num_workers", 0)
    )
    layers: list[nn.Module] = [nn.Linear(1, 2)]
    if options.get("normalised"):
        layers.append(nn.BatchNorm1d(2))
    model, loader = Balancer.prepare(nn.Sequential(*layers), loader, seed=1, minimum=options.get("minimum"))
    if options.get("state"):
        loader.load_state_dict(options["state"])
    steps, state = [], None
    for _ in range(options.get("epochs", 1)):
        epoch = loader.state_dict()["epoch"]
        for batch in loader:
            x = batch if options.get("stream") else batch[0]
            size = loader.balancer.batch_size
            steps.append((epoch, x[:size, 0].tolist(), len(x)))
            model(x).mean().backward()
            if len(steps) == options.get("stop"):
                state = loader.state_dict()
                break
        if state:
            break
    loader.balancer.close()
    return steps, state


class Walk(unittest.TestCase):
    def walk(self, workers: int, script: Any = None, **options: Any) -> list[Any]:
        coordinator = fake.FakeCoordinator(script or scatter(workers, options.get("minimum") or 2))
        self.addCleanup(coordinator.close)
        answers = ranks.run(workers, walk, options, env={"COTENANT_ADDRESS": coordinator.address})
        self.coordinator = coordinator
        return answers

    def seen(self, answers: list[Any], epoch: int) -> list[float]:
        return sorted(s for steps, *_ in answers for e, samples, *_ in steps if e == epoch for s in samples)

    def test_every_sample_once_an_epoch(self) -> None:
        for workers, shuffle, num_workers in ((3, True, 0), (2, True, 2)):
            answers = self.walk(workers, length=203, shuffle=shuffle, num_workers=num_workers, epochs=2)
            for epoch in (0, 1):
                self.assertEqual(self.seen(answers, epoch), list(range(203)))
            sizes = {tuple(len(steps[i][1]) for steps, *_ in answers) for i in range(len(answers[0][0]))}
            self.assertGreater(len(sizes), 3, "the shares never changed")
            first, second = ([s for e, samples, *_ in answers[0][0] if e == epoch for s in samples] for epoch in (0, 1))
            self.assertNotEqual(first, second, "both epochs have one order")

    def test_stream(self) -> None:
        answers = self.walk(3, length=101, stream=True, epochs=2)
        for epoch in (0, 1):
            self.assertEqual(self.seen(answers, epoch), list(range(101)))

    def test_resumes_with_another_number_of_ranks(self) -> None:
        for stream in (False, True):
            first = self.walk(3, length=150, shuffle=not stream, stream=stream, stop=4)
            states = [state for _, state in first]
            self.assertTrue(all(s == states[0] for s in states), states)
            self.assertEqual(states[0]["offset"], 4 * 24)
            second = self.walk(2, length=150, shuffle=not stream, stream=stream, state=states[0], epochs=2)
            self.assertEqual(sorted(self.seen(first, 0) + self.seen(second, 0)), list(range(150)))
            self.assertEqual(self.seen(second, 1), list(range(150)))
            opened = next(request for method, request in self.coordinator.requests if method == "Open")
            self.assertEqual(opened["iteration"], "4")
            self.assertEqual(len(opened["agreedWorkers"]), 3)

    def test_batch_normalisation_gets_two(self) -> None:
        answers = self.walk(4, length=98, normalised=True)  # the last batch has 2 samples
        self.assertEqual(self.seen(answers, 0), list(range(98)))
        for steps, *_ in answers:
            for _, samples, handed_out in steps[:-1]:
                self.assertGreaterEqual(handed_out, 2)
        opened = next(request for method, request in self.coordinator.requests if method == "Open")
        self.assertEqual([w["min"] for w in opened["workers"]], [2] * 4)

    def test_fewer_samples_than_ranks(self) -> None:
        answers = self.walk(4, length=2)
        self.assertEqual(self.seen(answers, 0), [0, 1])


def scatter(workers: int, minimum: int) -> Any:
    draw = random.Random(workers)

    def script(method: str, request: dict[str, Any]) -> Any:
        if method != "Report":
            return None
        free = 8 * workers - workers * minimum
        cuts = sorted(draw.randint(0, free) for _ in range(workers - 1))
        sizes = [minimum + b - a for a, b in zip([0, *cuts], [*cuts, free])]
        return {"shares": {"generation": "1", "iteration": str(int(request["iteration"]) + 2), "batchSizes": sizes}}

    return script


def differing(rank: int) -> str:
    from cotenant.torch import Balancer

    dataset = TensorDataset(torch.zeros(10 + rank, 1))
    try:
        Balancer.prepare(nn.Linear(1, 1), DataLoader(dataset, batch_size=2))
    except ValueError as e:
        return str(e)
    return ""


def apart(rank: int) -> str:
    from cotenant.torch import Balancer

    dataset = TensorDataset(torch.zeros(40, 1))
    model, loader = Balancer.prepare(nn.Linear(1, 1), DataLoader(dataset, batch_size=2), balance=False)
    if rank == 0:
        loader.load_state_dict({**loader.state_dict(), "offset": 8})
    try:
        next(iter(loader))
    except ValueError as e:
        return str(e)
    return ""


class Refusals(unittest.TestCase):
    def test_ranks_that_differ(self) -> None:
        for message in ranks.run(2, differing):
            self.assertIn("length differ: [10, 11]", message)

    def test_ranks_that_resumed_at_different_places(self) -> None:
        for message in ranks.run(2, apart):
            self.assertIn("stand at different", message)

    def test_a_sampler_whose_order_is_not_known(self) -> None:
        from cotenant.torch import Balancer

        dataset = TensorDataset(torch.zeros(10, 1))
        loader = DataLoader(dataset, batch_size=2, sampler=WeightedRandomSampler([1.0] * 10, 10))
        with self.assertRaisesRegex(ValueError, "give the order of an epoch"):
            Balancer.prepare(nn.Linear(1, 1), loader)
        _, given = Balancer.prepare(nn.Linear(1, 1), loader, order=lambda epoch: [3, 1, 2], global_batch=2)
        self.assertEqual([len(x) for (x,) in given], [2, 1])


class Alone(unittest.TestCase):
    def test_a_single_process_trains_as_before(self) -> None:
        from cotenant.torch import Balancer

        dataset = TensorDataset(torch.arange(10.0))
        model = nn.Linear(1, 1)
        same, loader = Balancer(dataset, global_batch=4).prepare(model)
        self.assertIs(same, model)
        self.assertEqual(len(loader), 3)
        self.assertIsInstance(loader, DataLoader)
        next(iter(loader))  # a look at the first batch loses none
        self.assertEqual(sorted(x for (batch,) in loader for x in batch.tolist()), list(range(10)))
        loader.set_epoch(5)
        self.assertEqual(sorted(x for (batch,) in loader for x in batch.tolist()), list(range(10)))
        self.assertEqual(loader.state_dict()["epoch"], 6)

    def test_is_distributed_samplers_order(self) -> None:
        from torch.utils.data.distributed import DistributedSampler

        from cotenant.torch import Balancer

        dataset = TensorDataset(torch.arange(10))
        sampler = DistributedSampler(dataset, num_replicas=1, rank=0, seed=4)
        _, loader = Balancer.prepare(nn.Linear(1, 1), DataLoader(dataset, batch_size=3, sampler=sampler))
        for epoch in (0, 1):
            sampler.set_epoch(epoch)
            self.assertEqual([x for (batch,) in loader for x in batch.tolist()], list(sampler))


if __name__ == "__main__":
    unittest.main()
