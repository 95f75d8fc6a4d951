#!/usr/bin/env python3
"""A policy for training jobs in Python, on the standard library alone.

    cotenant simulate jobs ... --backfill --policy 'greedy-wait,exec:python3 examples/policy_jobs.py'

Each worker goes to the device where the performances of those that share it
add up to most, by the predictions that it asks for. A job that would add less
than THRESHOLD waits. docs/external-policies.md has the protocol.
"""

import json
import sys

THRESHOLD = 0.4


def read():
    """Return the next line as an object; None when there is none."""
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def write(answer):
    print(json.dumps(answer), flush=True)


class Worth:
    """The sum of performances on a device, by who shares it."""

    def __init__(self):
        self.known = {}

    def ask(self, cls, workloads, new):
        """Ask at once for each workload with one more beside it."""
        cells = {}
        for w in workloads:
            key = (cls, tuple(sorted((w, new))))
            if key not in self.known:
                cells[key] = {w: 2} if w == new else {w: 1, new: 1}
        if not cells:
            return
        write({"predict": {"class": cls, "colocations": list(cells.values())}})
        for key, estimates in zip(cells, read()["estimates"]):
            counts = cells[key]
            # What does not fit together is told as 0; what nobody knows is avoided.
            self.known[key] = sum(n * e["value"] if e else 0 for n, e in ((counts[w], estimates[w]) for w in counts))

    def gain(self, cls, tenants, new):
        if not tenants:
            return 1.0
        worth = self.known[(cls, tuple(sorted((tenants[0], new))))]
        return worth - 1.0 if worth > 0 else float("-inf")


WORTH = Worth()


def devices(cluster):
    """List [node, index, class, slots, tenants] of every device."""
    out, at = [], {}
    for node in cluster["nodes"]:
        for i, d in enumerate(node.get("devices", [])):
            at[node["name"], i] = []
            out.append([node["name"], i, d.get("class", node.get("class", "")), d.get("slots", 1), at[node["name"], i]])
    for task in cluster.get("running", []):
        for i in task.get("on", []):
            at[task["node"], i].append(task["workload"])
    return out


def place(gang, free):
    """Choose a device for each task, or None: jobs are placed whole."""
    chosen = []
    for task in gang["tasks"]:
        new = task["workload"]
        for cls in {d[2] for d in free}:
            WORTH.ask(cls, {d[4][0] for d in free if d[2] == cls and d[4]}, new)
        room = [d for d in free if len(d[4]) < min(d[3], 2)]
        best = max(room, key=lambda d: WORTH.gain(d[2], d[4], new), default=None)
        if best is None or WORTH.gain(best[2], best[4], new) < THRESHOLD:
            for d in chosen:
                d[4].pop()
            return None
        best[4].append(new)
        chosen.append(best)
    return chosen


def decide(request):
    free = devices(request["cluster"])
    bind, hold = [], []
    for gang in request["pending"]:
        chosen = place(gang, free)
        if chosen is None:
            hold += [{"task": t["id"], "why": "would gain too little now"} for t in gang["tasks"]]
        else:
            bind += [{"task": t["id"], "node": d[0], "devices": [d[1]]} for t, d in zip(gang["tasks"], chosen)]
    return {"id": request["id"], "bind": bind, "hold": hold}


def main():
    while (request := read()) is not None:
        if request["version"] != 1:
            write({"id": request["id"], "error": f"I speak version 1, not {request['version']}"})
        else:
            write(decide(request))


if __name__ == "__main__":
    main()
