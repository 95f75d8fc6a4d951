import math
import random
import unittest

from cotenant import agreement
from cotenant.agreement import Agreement, Report, Shares


class Agreeing(unittest.TestCase):
    def test_holds_from_its_iteration_on(self) -> None:
        a = Agreement(Shares(1, 0, (4, 4)))
        self.assertTrue(a.accept(Shares(1, 7, (6, 2))))
        self.assertTrue(a.accept(Shares(1, 9, (5, 3))))
        self.assertEqual([a.at(i) for i in (0, 6, 7, 8, 9, 10)], [(4, 4), (4, 4), (6, 2), (6, 2), (5, 3), (5, 3)])
        self.assertEqual(a.latest.batch_sizes, (5, 3))

    def test_refuses_what_is_no_vector_of_this_job(self) -> None:
        a = Agreement(Shares(1, 5, (4, 4)))
        for sizes, iteration in (((4, 5), 9), ((9, -1), 9), ((8,), 9), ((2, 2, 4), 9), ((5, 3), 4)):
            self.assertFalse(a.accept(Shares(1, iteration, sizes)), sizes)
        self.assertFalse(a.accept(Shares(1, 9, (4, 4))), "no news")
        self.assertEqual(a.at(100), (4, 4))

    def test_a_message_is_the_sum_of_its_parts(self) -> None:
        draw = random.Random(3)
        for workers in (1, 2, 5):
            reports = [
                Report(draw.randrange(2**40), draw.randrange(1000), draw.random(), draw.random(), draw.random(), draw.random())
                if draw.random() < 0.8
                else None
                for _ in range(workers)
            ]
            shares = Shares(3, 2**41, tuple(draw.randrange(50) for _ in range(workers)), 2**40)
            total = [0.0] * agreement.length(workers)
            for rank in range(workers):
                row = [0.0] * agreement.length(workers)
                agreement.write(row, rank, reports[rank], shares if rank == 0 else None)
                total = [a + b for a, b in zip(total, row)]
            self.assertEqual(agreement.read(total, workers), (reports, shares))

    def test_nonsense_of_one_rank_stays_its_own(self) -> None:
        total = [0.0] * agreement.length(2)
        for rank, compute in enumerate((math.nan, 0.5)):
            row = [0.0] * agreement.length(2)
            agreement.write(row, rank, Report(1, 4, compute, 0.0), None)
            total = [a + b for a, b in zip(total, row)]
        reports, shares = agreement.read(total, 2)
        assert reports[0] and reports[1]
        self.assertTrue(math.isnan(reports[0].compute))
        self.assertEqual(reports[1], Report(1, 4, 0.5, 0.0))
        self.assertIsNone(shares)


if __name__ == "__main__":
    unittest.main()
