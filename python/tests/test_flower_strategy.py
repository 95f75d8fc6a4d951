"""The Flower strategy in virtual time, with the real coordinator."""

from __future__ import annotations

import math
import os
import random
import signal
import unittest
from typing import Any, Iterable
from unittest import mock

try:
    import flwr  # noqa: F401
except ImportError:
    raise unittest.SkipTest("Flower is not installed (pip install flwr numpy)")

import federation
import numpy as np
from federation import Client, World, start
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp.strategy import FedAvg, FedProx, Strategy

from cotenant.flower import Balanced

PROGRAM = federation.program()
X = 1200


def averaging(**more: Any) -> FedAvg:
    return FedAvg(**{"fraction_evaluate": 0.0, "min_train_nodes": 1, "min_available_nodes": 1, **more})


@unittest.skipUnless(PROGRAM, "the Go program is not built: make build, or set COTENANT_BINARY")
class Training(unittest.TestCase):
    def setUp(self) -> None:
        environment = {"COTENANT_BINARY": PROGRAM or "", "COTENANT_ADDRESS": "", "COTENANT_JOB": ""}
        patch = mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)

    def train(self, clients: dict[int, Client], rounds: int, strategy: Strategy | None = None, **more: Any) -> Balanced:
        """Runs it, and checks what always holds."""
        self.world = World(clients)
        timeout = more.pop("timeout", 3600.0)
        balanced = Balanced(strategy or averaging(), more.pop("samples", X), **more)
        self.result = start(self.world, balanced, rounds, timeout=timeout)
        self.assertEqual([r.number for r in balanced.rounds], list(range(1, rounds + 1)))
        for r in balanced.rounds:
            self.assertLessEqual(sum(r.samples.values()), balanced.samples)
            self.assertGreaterEqual(min(r.samples.values()), 0)
        return balanced

    def whole(self, balanced: Balanced) -> None:
        for r in balanced.rounds:
            self.assertEqual(sum(r.samples.values()), balanced.samples, f"round {r.number}: {r.samples}")

    def test_clients_take_as_long_as_each_other(self) -> None:
        def clients() -> dict[int, Client]:
            return {1: Client(20), 2: Client(40), 3: Client(60), 4: Client(60)}

        balanced = self.train(clients(), 10)
        self.whole(balanced)
        trips = list(balanced.rounds[-1].trips.values())
        self.assertLess(max(trips) / min(trips), 1.1, balanced.rounds[-1])
        equal = self.train(clients(), 2, balance=False)
        self.assertEqual(list(equal.rounds[0].samples.values()), [300] * 4)
        self.assertGreater(equal.rounds[1].seconds / balanced.rounds[-1].seconds, 2.0)
        self.assertLess(equal.rounds[1].seconds / balanced.rounds[1].seconds, 2.3, "it knows more than it can")
        # One report is enough.
        self.assertGreater(equal.rounds[1].seconds / balanced.rounds[1].seconds, 1.8)

    def test_the_way_there_and_back_counts(self) -> None:
        balanced = self.train({1: Client(40, link=12), 2: Client(40)}, 8)
        self.whole(balanced)
        near, far = balanced.rounds[-1].samples["2"], balanced.rounds[-1].samples["1"]
        # far / 40 + 12 = near / 40
        self.assertAlmostEqual(near - far, 480, delta=30)

    def test_the_update_is_weighted_by_samples(self) -> None:
        def exactly(number: int, reply: Message) -> Message:
            self.assertLessEqual(reply.content["metrics"]["num-examples"], X)
            return reply

        balanced = self.train({1: Client(16, behave=exactly), 2: Client(48, behave=exactly)}, 1, samples=1024)
        sizes = np.array(list(balanced.rounds[0].samples.values()), float)
        # A client of n samples moves the weights by n.
        want = (sizes * sizes).sum() / sizes.sum()
        self.assertEqual(self.result.arrays.to_numpy_ndarrays()[0].tolist(), [want, want])
        metrics = self.result.train_metrics_clientapp[1]
        self.assertEqual(dict(metrics), {"node": float((sizes * [1, 2]).sum() / sizes.sum())}, "and nothing of ours in it")

    def test_nobody_trains_on_more_than_it_owns(self) -> None:
        clients = {1: Client(50, data=90), 2: Client(20), 3: Client(20)}
        balanced = self.train(clients, 8)
        self.assertEqual(balanced.rounds[0].samples["1"], 400, "it has said nothing yet")
        self.assertEqual(clients[1].done, [90] * 8)
        for r in balanced.rounds[1:]:
            self.assertEqual(r.samples["1"], 90)
        self.whole(balanced)
        self.assertEqual([clients[1].seen.count(i) for i in range(90)], [8] * 90)

    def test_all_they_own_where_that_is_less(self) -> None:
        clients = {1: Client(50, data=90), 2: Client(20, data=200), 3: Client(20, data=0)}
        balanced = self.train(clients, 4)
        self.assertEqual([list(r.samples.values()) for r in balanced.rounds[1:]], [[90, 200, 0]] * 3)
        self.assertEqual(clients[3].done, [0], "who owns nothing is not asked again")
        self.assertEqual(len(self.result.train_metrics_clientapp), 4)

    def test_a_client_dies_in_a_round(self) -> None:
        clients = {n: Client(30 * n) for n in (1, 2, 3)}
        clients[2].behave = lambda number, reply: None if number >= 3 else reply
        balanced = self.train(clients, 24)
        self.whole(balanced)
        missed = [r.number for r in balanced.rounds if r.missed]
        self.assertEqual(missed, [3, 5, 8, 13, 22], "it is asked again after 1, 2, 4, 8 ... rounds")
        self.assertEqual({c for r in balanced.rounds for c in r.missed}, {"2"})
        self.assertLess(max(r.seconds for r in balanced.rounds), 150, "the round goes on without it")
        for r in balanced.rounds[3:]:
            if not r.missed:
                self.assertEqual(set(r.samples), {"1", "3"})
                trips = list(r.trips.values())
                self.assertLess(max(trips) / min(trips), 1.1)

    def test_all_die(self) -> None:
        clients = {1: Client(10, behave=lambda number, reply: None), 2: Client(10, behave=lambda number, reply: None)}
        balanced = self.train(clients, 3, timeout=50)
        self.assertEqual([r.missed for r in balanced.rounds], [["1", "2"]] * 3)
        self.assertTrue(all(50 <= r.seconds < 51.1 for r in balanced.rounds), balanced.rounds)
        self.assertEqual(len(self.result.train_metrics_clientapp), 0)

    def test_an_unknown_client_is_waited_for(self) -> None:
        balanced = self.train({1: Client(100), 2: Client(1)}, 2)
        self.assertEqual(balanced.rounds[0].missed, [], "nobody knows yet that it is a hundred times as slow")
        self.assertGreater(balanced.rounds[0].seconds, 599)
        self.assertLess(balanced.rounds[1].seconds, 20)

    def test_a_client_that_became_slow_is_known_to_be_when_it_is_back(self) -> None:
        clients = {1: Client(50), 2: Client(50), 3: Client(50)}

        def slower(number: int, reply: Message) -> Message:
            if number == 3:
                clients[1].speed = 8.0  # from the next round on: it is told by then what to do
            return reply

        clients[1].behave = slower
        balanced = self.train(clients, 20)
        self.whole(balanced)
        missed = [r.number for r in balanced.rounds if r.missed]
        self.assertEqual(missed, [4], "after its late reply it gets what it can do")
        back = [r for r in balanced.rounds[4:] if "1" in r.samples]
        self.assertEqual(back[0].number, 6)
        for r in back[3:]:
            self.assertLess(max(r.trips.values()) / min(r.trips.values()), 1.5, r)

    def test_a_late_joiner(self) -> None:
        clients = {1: Client(20), 2: Client(60), 3: Client(40, joins=5), 4: Client(60, leaves=9)}
        balanced = self.train(clients, 14)
        self.whole(balanced)
        members = [set(r.samples) for r in balanced.rounds]
        self.assertEqual(members, [{"1", "2", "4"}] * 4 + [{"1", "2", "3", "4"}] * 4 + [{"1", "2", "3"}] * 6)
        for r in balanced.rounds:
            if r.number not in (1, 5):
                self.assertLess(max(r.trips.values()) / min(r.trips.values()), 1.15, r)
        joined = balanced.rounds[4].samples
        self.assertGreater(joined["2"], 2.5 * joined["1"], "what is known of the others stays known")

    def test_others_every_round(self) -> None:
        clients = {n: Client(10.0 * n) for n in range(1, 9)}
        with mock.patch("random.sample", random.Random(1).sample):
            balanced = self.train(clients, 30, averaging(fraction_train=0.5))
        self.whole(balanced)
        self.assertTrue(all(len(r.samples) == 4 for r in balanced.rounds))
        for r in balanced.rounds[10:]:
            self.assertLess(max(r.trips.values()) / min(r.trips.values()), 1.15, r)

    def test_nonsense_is_left_out(self) -> None:
        def record(**lies: Any) -> Any:
            def behave(number: int, reply: Message) -> Message:
                reply.content["cotenant"] = ConfigRecord({**reply.content["cotenant"], **lies})
                return reply

            return behave

        def claim(value: Any) -> Any:
            def behave(number: int, reply: Message) -> Message:
                reply.content["metrics"]["num-examples"] = value
                return reply

            return behave

        for lie in (
            record(seconds=math.nan), record(seconds=-1.0), record(seconds=math.inf), record(seconds=365 * 86400.0), record(seconds=0.0),
            record(seconds="long"), record(samples=10**12), record(samples=-5), record(data=-1), record(data=3), record(data=[1, 2]),
            record(cpu=math.nan), record(memory=-3.0), claim(math.nan), claim(-4), claim(0), claim(math.inf), claim(10**9),
        ):  # fmt: skip
            clients = {1: Client(20), 2: Client(60), 3: Client(60, behave=lie)}
            with self.assertLogs("flwr", "INFO") as logged:
                balanced = self.train(clients, 5)
            self.whole(balanced)
            last = balanced.rounds[-1]
            self.assertAlmostEqual(last.trips["1"], last.trips["2"], delta=0.15 * last.trips["1"])
            self.assertTrue(np.isfinite(self.result.arrays.to_numpy_ndarrays()[0]).all())
            # A client of n samples moves the weights by n: more than anybody's share in a round is a weight out of bounds.
            most = sum(max(r.samples.values()) for r in balanced.rounds)
            self.assertLessEqual(self.result.arrays.to_numpy_ndarrays()[0].max(), most)
            said = [line for line in logged.output if "cotenant: client 3" in line]
            self.assertLess(len(said), 3, "once is enough")

    def test_an_update_counts_for_no_more_than_was_asked(self) -> None:
        def claims(number: int, reply: Message) -> Message:
            reply.content["metrics"]["num-examples"] = 10**9
            return reply

        balanced = self.train({1: Client(20), 2: Client(20, behave=claims)}, 1)
        self.assertEqual(balanced.rounds[0].samples, {"1": 600, "2": 600})
        self.assertEqual(dict(self.result.train_metrics_clientapp[1]), {"node": 1.5})

    def test_a_client_fails(self) -> None:
        clients = {1: Client(20), 2: Client(20, behave=lambda number, reply: federation.failure(reply) if number == 2 else reply)}
        balanced = self.train(clients, 4)
        self.assertEqual([set(r.trips) for r in balanced.rounds], [{"1", "2"}, {"1"}, {"1", "2"}, {"1", "2"}])
        self.assertTrue(all(not r.missed for r in balanced.rounds))
        self.assertEqual(len(self.result.train_metrics_clientapp), 4)

    def test_clients_that_know_nothing_of_it(self) -> None:
        with self.assertLogs("flwr", "WARNING") as logged:
            balanced = self.train({1: Client(20, mods=False), 2: Client(60, mods=False)}, 3)
        self.assertEqual([r.samples for r in balanced.rounds], [{"1": 600, "2": 600}] * 3)
        self.assertEqual(len([line for line in logged.output if "mods=[measure]" in line]), 2)
        self.assertEqual(len(self.result.train_metrics_clientapp), 3)

    def test_more_clients_than_samples(self) -> None:
        balanced = self.train({n: Client(10) for n in range(1, 8)}, 3, samples=3)
        self.whole(balanced)
        self.assertEqual(len(balanced.rounds[0].trips), 3)

    def test_strategies_keep_their_ways(self) -> None:
        class Own(FedProx):
            """Counts rounds in a loop of its own."""

            def start(self, grid: Any, initial_arrays: ArrayRecord, num_rounds: int = 3, **more: Any) -> Any:
                self.started = num_rounds
                return super().start(grid, initial_arrays, num_rounds, **more)

            def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> tuple[ArrayRecord | None, MetricRecord | None]:
                self.last = server_round
                return super().aggregate_train(server_round, replies)

        own = Own(fraction_evaluate=0.0, proximal_mu=0.25)
        before = set(vars(own))
        balanced = self.train({1: Client(20), 2: Client(60)}, 4, own)
        self.whole(balanced)
        self.assertEqual((own.started, own.last), (4, 4))
        self.assertEqual(balanced.last, 4, "read through")
        self.assertEqual(set(vars(own)) - before, {"started", "last"}, "nothing of ours stays in it")
        for message in self.world.pushed:
            config = message.content["config"]
            self.assertEqual(config["proximal-mu"], 0.25)
            number = int(config["server-round"])
            self.assertEqual(config["cotenant-samples"], balanced.rounds[number - 1].samples[str(message.metadata.dst_node_id)])
        self.assertRaisesRegex(TypeError, "want one of flwr.serverapp.strategy", Balanced, object(), 10)

    def test_the_coordinator_dies(self) -> None:
        killed = []

        def kill(number: int, reply: Message) -> Message:
            own = balanced._plans.access.own
            if number in (3, 6) and own is not None and number not in killed:
                os.kill(own._process.pid, signal.SIGKILL)
                own._process.wait()
                killed.append(number)
            return reply

        world = World({1: Client(20, behave=kill), 2: Client(60)})
        balanced = Balanced(averaging(), X)
        with self.assertLogs("cotenant", "WARNING") as logged:
            start(world, balanced, 10)
        self.assertEqual(killed, [3, 6])
        self.whole(balanced)
        for r in balanced.rounds[1:]:
            self.assertLess(max(r.trips.values()) / min(r.trips.values()), 1.15, f"{r}: its shares are not lost")
        self.assertEqual(len([line for line in logged.output if "training goes on" in line]), 2)
        self.assertEqual(len([line for line in logged.output if "balancing goes on" in line]), 2)

    def test_no_coordinator(self) -> None:
        with mock.patch.dict(os.environ, {"COTENANT_BINARY": "/nonexistent/cotenant"}), self.assertLogs("cotenant", "WARNING") as logged:
            clients = {1: Client(20, data=100), 2: Client(60), 3: Client(60)}
            balanced = self.train(clients, 4)
        self.assertEqual([list(r.samples.values()) for r in balanced.rounds], [[400] * 3] + [[100, 550, 550]] * 3)
        self.assertEqual(len(logged.output), 1)


if __name__ == "__main__":
    unittest.main()
