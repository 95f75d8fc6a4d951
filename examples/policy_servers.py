#!/usr/bin/env python3
"""A policy for jobs of workers and parameter servers, on the standard library alone.

    cotenant simulate jobs --contention --backfill --policy 'greedy,exec:python3 examples/policy_servers.py'

Each job goes to as few servers as it fits on, so that little crosses the
network: to the fullest server that takes all of it, or else to the emptiest
ones. It asks for no predictions. docs/external-policies.md has the protocol.
"""

import json
import sys


class Server:
    """What is free on a node: resources, devices, and tasks where they are counted."""

    def __init__(self, node, running, requests):
        self.name = node["name"]
        self.free = dict(node.get("capacity", {}))
        self.slots = node.get("slots") or float("inf")
        self.devices = {i: d.get("slots") or 1 for i, d in enumerate(node.get("devices", []))}
        for task in running:
            if task["node"] == self.name:
                self.take(requests(task), task.get("on", []))

    def take(self, needs, on, sign=1):
        for resource, amount in needs.items():
            if resource in self.free:
                self.free[resource] -= sign * amount
        for i in on:
            self.devices[i] -= sign
        self.slots -= sign

    def put(self, task, needs):
        """Take a task in and return its devices; None where it does not fit."""
        wanted = task.get("devices", 0)
        on = [i for i, left in self.devices.items() if left > 0][:wanted]
        if len(on) < wanted or self.slots < 1 or any(self.free.get(r, 0) < n for r, n in needs.items()):
            return None
        self.take(needs, on)
        return on

    def room(self):
        """Free tasks on devices, then free resources: how empty the server is."""
        return sum(self.devices.values()), self.free.get("cpu", 0)


def place(gang, servers, requests):
    """Return a binding for each task, or None: jobs are placed whole."""
    fullest_first = sorted(servers, key=Server.room)
    for order in [[s] for s in fullest_first] + [fullest_first[::-1]]:
        done = []
        for task in gang["tasks"]:
            needs = requests(task)
            for server in order:
                on = server.put(task, needs)
                if on is not None:
                    done.append((server, needs, on, task["id"]))
                    break
            else:
                break
        if len(done) == len(gang["tasks"]):
            return [{"task": id, "node": s.name, **({"devices": on} if on else {})} for s, _, on, id in done]
        for server, needs, on, _ in done:
            server.take(needs, on, sign=-1)
    return None


def decide(request):
    cluster = request["cluster"]
    declared = {w["name"]: w.get("requests", {}) for w in cluster.get("workloads", [])}

    def requests(task):
        return task.get("requests") or declared.get(task["workload"], {})

    servers = [Server(n, cluster.get("running", []), requests) for n in cluster["nodes"]]
    bind, hold = [], []
    for gang in request["pending"]:
        placed = place(gang, servers, requests)
        if placed is None:
            hold += [{"task": t["id"], "why": "the job does not fit whole"} for t in gang["tasks"]]
        else:
            bind += placed
    return {"id": request["id"], "bind": bind, "hold": hold}


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if request["version"] != 1:
            answer = {"id": request["id"], "error": f"I speak version 1, not {request['version']}"}
        else:
            answer = decide(request)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
