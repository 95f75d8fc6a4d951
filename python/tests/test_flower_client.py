"""What runs at a client: every sample in its turn, and the time it took."""

from __future__ import annotations

import unittest
from typing import Any

try:
    import flwr  # noqa: F401
except ImportError:
    raise unittest.SkipTest("Flower is not installed (pip install flwr numpy)")

import federation
from flwr.app import ConfigRecord, Context, Message, MetricRecord, RecordDict

from cotenant.flower import asked, measure, next_samples


def message(samples: int | None) -> Message:
    federation.identify()
    config = {"server-round": 1} if samples is None else {"server-round": 1, "cotenant-samples": samples}
    return Message(RecordDict({"config": ConfigRecord(config)}), dst_node_id=1, message_type="train")


def context() -> Context:
    return Context(7, 1, {}, RecordDict(), {})


class Turns(unittest.TestCase):
    def test_every_sample_in_its_turn(self) -> None:
        for data, sizes in ((10, [3, 4, 9, 1, 10, 0, 3]), (1, [1, 1, 1]), (7, [7, 7])):
            here, seen = context(), []
            for size in sizes:
                picked = next_samples(message(size), here, data)
                self.assertEqual(len(picked), size)
                seen += picked
            counts = [seen.count(i) for i in range(data)]
            self.assertLessEqual(max(counts) - min(counts), 1, counts)
            self.assertEqual(sorted(seen[:data]), list(range(data)))

    def test_no_more_than_there_are(self) -> None:
        self.assertEqual(sorted(next_samples(message(99), context(), 5)), [0, 1, 2, 3, 4])
        self.assertEqual(next_samples(message(99), context(), 0), [])
        self.assertEqual(next_samples(message(-3), context(), 5), [])
        self.assertRaisesRegex(ValueError, "data -1", next_samples, message(9), context(), -1)

    def test_all_where_the_server_does_not_ask(self) -> None:
        self.assertIsNone(asked(message(None)))
        self.assertEqual(sorted(next_samples(message(None), context(), 5)), [0, 1, 2, 3, 4])

    def test_orders_differ_by_turn_and_seed(self) -> None:
        here = context()
        first, second = (next_samples(message(50), here, 50) for _ in range(2))
        self.assertNotEqual(first, second)
        self.assertNotEqual(first, next_samples(message(50), context(), 50, seed=1))
        self.assertEqual(first, next_samples(message(50), context(), 50))

    def test_other_data_begin_anew(self) -> None:
        here = context()
        next_samples(message(3), here, 4)
        self.assertEqual(sorted(next_samples(message(6), here, 6)), [0, 1, 2, 3, 4, 5])


class Measuring(unittest.TestCase):
    def reply(self, samples: int | None, here: Context, pick: bool = True) -> Message:
        def train(message: Message, context: Context) -> Message:
            if pick:
                next_samples(message, context, 20)
            return Message(RecordDict({"metrics": MetricRecord({"num-examples": 1})}), reply_to=message)

        return measure(message(samples), here, train)

    def test_a_record_of_its_own(self) -> None:
        record: Any = self.reply(8, context()).content["cotenant"]
        self.assertEqual((record["samples"], record["data"]), (8, 20))
        self.assertTrue(0 < record["seconds"] < 60)
        self.assertTrue(0 <= record["cpu"] <= 1 and 0 <= record["memory"] <= 1)

    def test_nothing_where_there_is_nothing_to_tell(self) -> None:
        self.assertEqual(list(self.reply(None, context()).content), ["metrics"], "the server did not ask")
        here = context()
        self.assertEqual(list(self.reply(8, here, pick=False).content), ["metrics"], "next_samples was not called")
        self.reply(8, here)
        self.assertEqual(list(self.reply(8, here, pick=False).content), ["metrics"], "nor now")


if __name__ == "__main__":
    unittest.main()
