"""The example policy decides as it says: where the tasks of a node lose least."""

import io
import json
import unittest
from contextlib import redirect_stdout
from unittest import mock

import policy


def request(**change):
    """Two nodes of two slots, a task of each of a and b to place."""
    base = {
        "version": 1,
        "id": 7,
        "cluster": {
            "nodes": [{"name": "n0", "slots": 2}, {"name": "n1", "slots": 2}],
            "running": [{"id": "x", "workload": "a", "node": "n0"}],
        },
        "pending": [
            {"name": "g", "tasks": [{"id": "a/0", "workload": "a"}, {"id": "b/0", "workload": "b"}]}
        ],
        "model": {"kind": "table"},
    }
    return {**base, **change}


def value(colocation):
    """Two of a kind halve each other; unlike tasks don't notice each other."""
    return {w: {"value": 0.5 if n > 1 else 1.0, "std": 0, "measured": True} for w, n in colocation.items()}


def answers_of(requests):
    """Runs the policy against a caller that answers its questions."""
    replies = [json.dumps(r) for r in requests]
    out = io.StringIO()

    class Input:
        def readline(self):
            last = out.getvalue().splitlines()[-1:] or ["{}"]
            question = json.loads(last[0]).get("predict")
            if question and not getattr(self, "done", None) == out.tell():
                self.done = out.tell()
                return json.dumps({"id": 7, "estimates": [value(c) for c in question["colocations"]]})
            return replies.pop(0) if replies else ""

    with mock.patch("sys.stdin", Input()), redirect_stdout(out):
        policy.main()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    return [line for line in lines if "predict" not in line]


class Policy(unittest.TestCase):
    def test_keeps_alike_tasks_apart(self):
        (answer,) = answers_of([request()])
        self.assertEqual(answer["id"], 7)
        where = {b["task"]: b["node"] for b in answer["bind"]}
        self.assertEqual(where["a/0"], "n1")
        self.assertEqual(set(where), {"a/0", "b/0"})

    def test_holds_what_does_not_fit(self):
        full = {"nodes": [{"name": "n0", "slots": 1}], "running": [{"id": "x", "workload": "a", "node": "n0"}]}
        (answer,) = answers_of([request(cluster=full)])
        self.assertEqual([h["task"] for h in answer["hold"]], ["a/0", "b/0"])

    def test_refuses_what_it_does_not_know(self):
        answers = answers_of([request(version=2), request(model=None)])
        self.assertTrue(all("error" in a for a in answers), answers)


if __name__ == "__main__":
    unittest.main()
