"""Random schedules of deaths, joins and stalls, with real processes; all of them: replay.py."""

from __future__ import annotations

import collections
import json
import pathlib
import tempfile
import unittest
from typing import Any

try:
    import replay
    import replay_check
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed (Debian: apt-get install python3-torch)")

from test_torch_run import program


@unittest.skipUnless(program(), "the Go program is not built: make build, or set COTENANT_BINARY")
class Replay(unittest.TestCase):
    def test_twenty_schedules(self) -> None:
        happened: collections.Counter[str] = collections.Counter()
        for result in replay.replay(replay.read(20), program() or "", parallel=6):
            self.assertNotIn("broken", result, result.get("broken"))
            happened.update(result)
        for what in ("crash", "stall", "join", "outage", "amnesia", "in_vain", "moves", "reported"):
            self.assertGreater(happened[what], 0, f"these schedules try nothing of {what}: {happened}")


class Check(unittest.TestCase):
    """The check finds what it is for."""

    DATA, TOTAL, SEED = 10, 4, 3

    def logs(self) -> list[list[dict[str, Any]]]:
        """Two ranks through an epoch; shares change at iteration 1."""
        order = replay_check.order(self.SEED, 0, self.DATA)
        rows: list[list[dict[str, Any]]] = [[], []]
        for iteration, (shares, sizes) in enumerate((((2, 2), (2, 2)), ((1, 3), (1, 3)), ((1, 3), (1, 1)))):
            at = 4 * iteration
            for rank in range(2):
                begin = at + sum(sizes[:rank])
                rows[rank].append(
                    {
                        "iteration": iteration,
                        "epoch": 0,
                        "end": at + sum(sizes),
                        "shares": shares,
                        "samples": order[begin : begin + sizes[rank]],
                        "reported": iteration,
                    }
                )
        return rows

    def check(self, rows: list[list[dict[str, Any]]], end: int = 3, counts: Any = None) -> Any:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for rank, log in enumerate(rows):
                folder.joinpath(f"log-0-{rank}").write_text("".join(json.dumps(line) + "\n" for line in log))
            folder.joinpath("checkpoint.json").write_text(json.dumps({"counts": counts or [1.0] * self.DATA}))
            return replay_check.check(folder, [(2, 0), (0, end)], self.SEED, self.DATA, self.TOTAL)

    def test_nothing_wrong(self) -> None:
        self.assertEqual(self.check(self.logs()), {"iterations": 3, "in_vain": 0, "moves": 1, "reported": 2})

    def test_everything_else(self) -> None:
        def change(rank: int, at: int, what: str, value: Any) -> list[list[dict[str, Any]]]:
            rows = self.logs()
            rows[rank][at][what] = value
            return rows

        order = replay_check.order(self.SEED, 0, self.DATA)
        rows = self.logs()
        del rows[1][2]
        for words, broken in {
            "shares .* of the ranks": change(1, 1, "shares", (2, 2)),
            "end .* of the ranks": change(1, 0, "end", 5),
            "where 1 was due": change(0, 1, "iteration", 2),
            "not the next samples": change(0, 1, "samples", [order[0]]),
            "4 samples within an epoch|3 samples within": change(0, 1, "samples", []),
            "a rank has not taken part": rows,
        }.items():
            with self.assertRaisesRegex(replay_check.Broken, words):
                self.check(broken)
        rows = self.logs()
        for log in rows:
            log[0]["shares"] = (3, 2)
        with self.assertRaisesRegex(replay_check.Broken, "are none of 4"):
            self.check(rows)
        with self.assertRaisesRegex(replay_check.Broken, "counts what nobody logged"):
            self.check(self.logs(), end=4)
        with self.assertRaisesRegex(replay_check.Broken, "the model counted sample 3 2.0 times"):
            self.check(self.logs(), counts=[1, 1, 1, 2.0] + [1] * 6)


if __name__ == "__main__":
    unittest.main()
