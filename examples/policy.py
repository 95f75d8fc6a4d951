#!/usr/bin/env python3
"""A placement policy for Cotenant in Python, on the standard library alone.

    cotenant plan services ... --policy 'greedy,exec:python3 examples/policy.py'

It places one task after another where the tasks of the node lose least, by
the predictions that it asks for. docs/external-policies.md has the protocol.
It knows slots, not constraints: a cluster with those needs more.
"""

import json
import sys
from collections import Counter


def read():
    """Return the next line as an object; None when there is none."""
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def write(answer):
    print(json.dumps(answer), flush=True)


class Predictor:
    """Sums of the performances on a node, asked for once per co-location."""

    def __init__(self):
        self.known = {}

    def fill(self, wanted):
        """Ask for many co-locations at once: a line each way costs time."""
        new = [(k, c) for k, c in wanted if k not in self.known]
        by_class = {}
        for (cls, key), colocation in new:
            by_class.setdefault(cls, {})[(cls, key)] = colocation
        for cls, cells in by_class.items():
            write({"predict": {"class": cls, "metric": "rate", "colocations": list(cells.values())}})
            for cell, estimates in zip(cells, read()["estimates"]):
                colocation = cells[cell]
                if any(e is None for e in estimates.values()):
                    self.known[cell] = float("-inf")  # nobody knows: avoid it
                else:
                    self.known[cell] = sum(n * estimates[w]["value"] for w, n in colocation.items())


def cell(node, colocation):
    return (node.get("class", ""), tuple(sorted(colocation.items())))


def decide(request):
    cluster = request["cluster"]
    nodes = [n for n in cluster["nodes"] if not n.get("unschedulable")]
    on = {n["name"]: Counter() for n in cluster["nodes"]}
    for task in cluster.get("running", []):
        on[task["node"]][task["workload"]] += 1

    predictor = Predictor()
    bind, hold, why = [], [], {}
    for group in request["pending"]:
        for task in group["tasks"]:
            room = [n for n in nodes if not n.get("slots") or on[n["name"]].total() < n["slots"]]
            if not room:
                hold.append({"task": task["id"], "why": "no node has a free slot"})
                continue
            # Nodes that run the same gain the same: look at one of each.
            choices = {}
            for n in room:
                choices.setdefault(cell(n, on[n["name"]]), n)
            after = {k: on[n["name"]] + Counter([task["workload"]]) for k, n in choices.items()}
            predictor.fill([(cell(n, on[n["name"]]), on[n["name"]]) for n in choices.values() if on[n["name"]]])
            predictor.fill([(cell(n, after[k]), after[k]) for k, n in choices.items()])

            gains = {}
            for k, n in choices.items():
                before = predictor.known.get(cell(n, on[n["name"]]), 0.0)
                # A node that nobody can judge is not made better by one task more.
                gains[k] = predictor.known[cell(n, after[k])] - max(before, 0.0)
            best = max(gains, key=gains.get)
            name = choices[best]["name"]
            on[name][task["workload"]] += 1
            bind.append({"task": task["id"], "node": name})
            why[task["id"]] = {"words": f"of {len(choices)} kinds of nodes, {name} gains most: {gains[best]:+.3f}"}
    return {"id": request["id"], "bind": bind, "hold": hold, "why": why}


def main():
    while (request := read()) is not None:
        if request["version"] != 1:
            write({"id": request["id"], "error": f"I speak version 1, not {request['version']}"})
        elif request.get("model") is None:
            write({"id": request["id"], "error": "I need a model to ask"})
        else:
            write(decide(request))


if __name__ == "__main__":
    main()
