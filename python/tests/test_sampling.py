import random
import unittest

from cotenant.sampling import Course, equal, portion


class Portion(unittest.TestCase):
    def test_loses_none_and_keeps_minimum(self) -> None:
        draw = random.Random(1)
        for _ in range(5000):
            minimum = draw.choice([1, 2, 4])
            shares = [draw.choice([0, *range(minimum, 40)]) for _ in range(draw.randint(1, 8))]
            if sum(shares) == 0:
                continue
            total = draw.randint(0, sum(shares))
            sizes = portion(total, shares, minimum)
            self.assertEqual(sum(sizes), total, (shares, sizes))
            for size, share in zip(sizes, shares):
                self.assertGreaterEqual(size, 0)
                if share == 0:
                    self.assertEqual(size, 0, (total, shares, sizes))
                if 0 < size < minimum:
                    self.assertEqual(size, total, (total, shares, sizes))

    def test_is_proportional(self) -> None:
        self.assertEqual(portion(8, (8, 4, 2, 2)), (4, 2, 1, 1))
        self.assertEqual(portion(16, (8, 4, 2, 2)), (8, 4, 2, 2))
        self.assertEqual(portion(3, (8, 4, 2, 2), 2), (3, 0, 0, 0))
        self.assertEqual(portion(0, (8, 4)), (0, 0))

    def test_equal(self) -> None:
        self.assertEqual(equal(10, 4), (3, 3, 2, 2))


class EveryEpoch(unittest.TestCase):
    def test_sees_each_sample_once_whatever_the_shares(self) -> None:
        draw = random.Random(2)
        for _ in range(300):
            workers, total, length = draw.randint(1, 6), draw.randint(1, 30), draw.randint(0, 200)
            vectors: dict[int, tuple[int, ...]] = {}

            def shares(iteration: int) -> tuple[int, ...]:
                if iteration not in vectors:
                    cuts = sorted(draw.randint(0, total) for _ in range(workers - 1))
                    vectors[iteration] = tuple(b - a for a, b in zip([0, *cuts], [*cuts, total]))
                return vectors[iteration]

            course = Course(length, total, shares)
            seen: list[int] = []
            offset = iteration = 0
            while (d := course.draw(iteration, offset)) is not None:
                for rank in range(workers):
                    seen += range(*d.part(rank))
                offset, iteration = d.end, iteration + 1
            self.assertEqual(seen, list(range(length)))
            self.assertEqual(iteration, course.batches(0))

    def test_drop_last(self) -> None:
        course = Course(10, 4, lambda _: (2, 2), drop_last=True)
        self.assertEqual(course.batches(0), 2)
        self.assertIsNone(course.draw(2, 8))

    def test_stream(self) -> None:
        course = Course(None, 4, lambda _: (2, 2))
        self.assertRaises(TypeError, course.batches, 0)
        self.assertRaises(TypeError, course.draw, 0, 0)
        last = course.draw(0, 4, 3)
        assert last is not None
        self.assertEqual((last.begin, last.end, sum(last.sizes)), (4, 7, 3))


if __name__ == "__main__":
    unittest.main()
