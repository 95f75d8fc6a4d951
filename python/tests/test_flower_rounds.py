"""How a round's samples are found, without Flower, against a small coordinator."""

from __future__ import annotations

import math
import random
import unittest
from typing import Any

from cotenant.coordinator import Coordinator
from fake import FakeCoordinator

try:
    from cotenant.flower.rounds import Measured, Rounds, level
except ImportError:
    raise unittest.SkipTest("Flower is not installed (pip install flwr numpy)")


def measured(samples: int, seconds: float, link: float = 0.5) -> Measured:
    return Measured(samples, seconds, seconds + link, 0.5, 0.25)


class Levels(unittest.TestCase):
    def test_equal_but_for_caps(self) -> None:
        self.assertEqual(level(10, {"a": 10, "b": 10, "c": 2}), {"a": 4, "b": 4, "c": 2})
        self.assertEqual(level(11, {"a": 11, "b": 11}), {"a": 6, "b": 5})
        self.assertEqual(level(10, {"a": 1, "b": 2}), {"a": 1, "b": 2})
        self.assertEqual(level(2, {"a": 2, "b": 2, "c": 2}), {"a": 1, "b": 1, "c": 0})
        self.assertEqual(level(5, {}), {})

    def test_the_sum_is_the_total(self) -> None:
        draw = random.Random(1)
        for _ in range(500):
            caps = {str(i): draw.choice([0, 1, 7, 1000]) for i in range(draw.randint(1, 9))}
            total = draw.randint(1, 2000)
            sizes = level(total, caps)
            self.assertEqual(sum(sizes.values()), min(total, sum(caps.values())))
            self.assertTrue(all(0 <= sizes[n] <= caps[n] for n in caps))
            free = [sizes[n] for n in caps if sizes[n] < caps[n]]
            if free:
                self.assertLessEqual(max(sizes.values()) - min(free), 1)


class Sense(unittest.TestCase):
    def test_what_cannot_be_measured(self) -> None:
        self.assertEqual(Measured(5, 1.0, 2.0).wrong(5), "")
        self.assertEqual(Measured(0, 0.0, 2.0).wrong(5), "")
        for bad, why in (
            (Measured(5, math.nan, 2.0), "seconds nan"),
            (Measured(5, -1.0, 2.0), "seconds -1"),
            (Measured(5, 1.0, math.inf), "trip inf"),
            (Measured(6, 1.0, 2.0), "samples 6: it was asked for 5"),
            (Measured(-1, 1.0, 2.0), "samples -1"),
            (Measured(5, 0.0, 2.0), "seconds 0 for 5 samples"),
            (Measured(5, 3.0, 2.0), "seconds 3, of 2 until its reply was here"),
            (Measured(5, 1.0, 2.0, math.nan), "cpu nan"),
            (Measured(5, 1.0, 2.0, 0.0, -1.0), "memory -1"),
        ):
            self.assertIn(why, bad.wrong(5))


class Talk(unittest.TestCase):
    def rounds(self, fake: FakeCoordinator, **more: Any) -> Rounds:
        rounds = Rounds(100, "job", connect=lambda: Coordinator(fake.address), **more)
        self.addCleanup(rounds.stop)
        return rounds

    def fake(self, script: Any = None) -> FakeCoordinator:
        fake = FakeCoordinator(script)
        self.addCleanup(fake.close)
        return fake

    def test_reports_become_the_next_round(self) -> None:
        fake = self.fake()
        rounds = self.rounds(fake, options={"predictor": "last"})
        self.assertEqual(rounds.plan(1, ["b", "a"]), {"a": 50, "b": 50})
        rounds.owns("a", 5000)
        self.assertEqual(rounds.report(1, {"a": measured(50, 1.0), "b": measured(50, 3.0)}), {})
        rounds.owns("a", 5000)
        method, request = fake.requests[0]
        self.assertEqual((method, request["allocator"], request["globalBatch"]), ("Open", "federated", 100))
        self.assertEqual((request["iteration"], request["predictor"]), ("1", "last"))
        self.assertEqual(request["workers"][0], {"name": "a", "min": 1, "data": "0"})
        method, request = fake.requests[1]
        self.assertEqual((method, request["iteration"]), ("Report", "2"))
        self.assertEqual([r["communicateSeconds"] for r in request["reports"]], [0.5, 0.5])
        # What it owns is known now: the worker is another, and the knowledge of the old one stays.
        rounds.plan(2, ["a", "b"])
        method, request = fake.requests[2]
        self.assertEqual(request["workers"][0]["data"], "5000")
        self.assertEqual(request["agreedWorkers"], ["a", "b"])
        self.assertEqual((request["agreed"]["iteration"], request["agreed"]["batchSizes"]), ("4", [75, 25]))
        rounds.report(2, {"a": measured(75, 1.0), "b": measured(25, 1.0)})
        self.assertEqual(rounds.plan(3, ["a", "b"]), {"a": 75, "b": 25})
        self.assertEqual(len(fake.requests), 4, "the same clients need no opening")
        rounds.stop()
        self.assertEqual(fake.requests[-1], ("Close", {"job": "job"}))

    def test_a_coordinator_that_forgot_is_told(self) -> None:
        fake = self.fake()
        rounds = self.rounds(fake)
        rounds.plan(1, ["a", "b"])
        fake.jobs.clear()
        rounds.report(1, {"a": measured(50, 1.0), "b": measured(50, 3.0)})
        self.assertEqual([m for m, _ in fake.requests], ["Open", "Report", "Open", "Report"])
        self.assertEqual(rounds.plan(2, ["a", "b"]), {"a": 75, "b": 25})

    def test_late_reports_count_when_the_client_is_back(self) -> None:
        fake = self.fake()
        rounds = self.rounds(fake)
        rounds.plan(1, ["a", "b"])
        rounds.report(1, {"b": measured(50, 3.0)})
        rounds.plan(2, ["b"])
        rounds.report_late("a", measured(50, 9.0))
        rounds.plan(3, ["a", "b"])
        method, request = fake.requests[-1]
        self.assertEqual((method, request["iteration"], [r["worker"] for r in request["reports"]]), ("Report", "4", ["a"]))
        rounds.plan(4, ["a", "b"])
        self.assertEqual(fake.requests[-1], (method, request), "once")

    def test_answers_that_are_none_change_nothing(self) -> None:
        bad: list[Any] = [
            b"<html>", b"[]", {}, {"shares": {"batchSizes": [50, 51]}}, {"shares": {"batchSizes": [100]}},
            {"shares": {"batchSizes": [-1, 101]}}, {"shares": {"batchSizes": ["x", 1]}}, {"shares": []}, (500, "internal", "oops"), "hang up",
        ]  # fmt: skip
        for when in ("Open", "Report"):
            for answer in bad:
                fake = self.fake(lambda method, request, answer=answer, when=when: answer if method == when else None)
                rounds = self.rounds(fake)
                with self.assertLogs("cotenant", "WARNING") as logged:
                    for number in (1, 2, 3):
                        self.assertEqual(rounds.plan(number, ["a", "b"]), {"a": 50, "b": 50}, (when, answer))
                        rounds.report(number, {"a": measured(50, 1.0), "b": measured(50, 3.0)})
                lost = [line for line in logged.output if "training goes on" in line]
                self.assertLessEqual(len(lost), 3 if when == "Report" else 1, logged.output)

    def test_a_refusal_is_no_outage(self) -> None:
        refusing = (400, "invalid_argument", "predictor: none")
        rounds = self.rounds(self.fake(lambda method, request: refusing))
        with self.assertRaisesRegex(ValueError, "^the coordinator refuses the job: predictor: none$"):
            rounds.plan(1, ["a", "b"])
        # Later on a client may be the reason, and must not end the run.
        fake = self.fake(lambda method, request: refusing if len(request.get("workers", ())) > 2 else None)
        rounds = self.rounds(fake)
        rounds.plan(1, ["a", "b"])
        rounds.owns("c", 10**30)
        with self.assertLogs("cotenant", "WARNING"):
            self.assertEqual(rounds.plan(2, ["a", "b", "c"]), {"a": 34, "b": 33, "c": 33})
        self.assertLess(int(fake.requests[-1][1]["workers"][2]["data"]), 1 << 63)

    def test_equal_shares_ask_nobody(self) -> None:
        fake = self.fake()
        rounds = self.rounds(fake, balance=False)
        rounds.owns("a", 20)
        self.assertEqual(rounds.plan(1, ["a", "b", "c"]), {"a": 20, "b": 40, "c": 40})
        self.assertEqual(rounds.report(1, {"a": measured(20, 1.0)}), {})
        self.assertEqual(rounds.plan(2, []), {})
        self.assertEqual(fake.requests, [])

    def test_what_cannot_be(self) -> None:
        self.assertRaisesRegex(ValueError, "samples 0", Rounds, 0, "job")
        self.assertRaisesRegex(ValueError, "minimum -1", Rounds, 1, "job", -1)


if __name__ == "__main__":
    unittest.main()
