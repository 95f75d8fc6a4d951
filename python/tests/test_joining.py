"""What follows from what ranks tell each other."""

from __future__ import annotations

import unittest
from typing import Any

from cotenant import joining


def minima(batch: int, *asked: int | None, least: int = 1) -> list[int]:
    everybody: list[dict[str, Any]] = [
        {"worker": f"node/{rank}", "limits": [each, 0, []], "least": least} for rank, each in enumerate(asked)
    ]
    return [worker.minimum for worker in joining.workers(everybody, batch)]


class Minima(unittest.TestCase):
    def test_those_given_hold(self) -> None:
        self.assertEqual(minima(8, 3, 5), [3, 5])
        self.assertEqual(minima(8, 0, None), [0, 1])
        with self.assertRaisesRegex(ValueError, r"minimum= \[3, 6\] sum to more than the global batch 8"):
            minima(8, 3, 6)
        with self.assertRaisesRegex(ValueError, r"minimum= \[9, None\] sum to more than the global batch 8"):
            minima(8, 9, None)

    def test_somebody_has_none_of_fewer_samples_than_ranks(self) -> None:
        self.assertEqual(minima(2, None, None, None), [0, 0, 0])
        self.assertEqual(minima(2, 2, None, None), [2, 0, 0])

    def test_batch_normalisation_never_gets_one(self) -> None:
        self.assertEqual(minima(4, None, None, least=2), [2, 2])
        self.assertEqual(minima(2, None, 0, least=2), [2, 0])
        with self.assertRaisesRegex(ValueError, r"least batches \[2, 2\] sum to more than the global batch 3.*fewer ranks"):
            minima(3, None, None, least=2)


if __name__ == "__main__":
    unittest.main()
