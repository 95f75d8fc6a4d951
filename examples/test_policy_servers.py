"""The example for jobs on servers keeps a job together, whole, and within what is free."""

import unittest

import policy_servers


def job(name, workers, servers=1):
    tasks = [{"id": f"{name}/worker-{i}", "workload": "w", "role": "worker", "devices": 1} for i in range(workers)]
    tasks += [{"id": f"{name}/ps-{i}", "workload": "w/ps", "role": "ps"} for i in range(servers)]
    return {"name": name, "gang": True, "tasks": tasks}


def decide(*jobs, running=()):
    node = {"capacity": {"cpu": 8000}, "devices": [{"name": "0"}, {"name": "1"}]}
    return policy_servers.decide(
        {
            "id": 7,
            "version": 1,
            "cluster": {
                "nodes": [{"name": "a", **node}, {"name": "b", **node}],
                "running": list(running),
                "workloads": [{"name": "w", "requests": {"cpu": 2000}}, {"name": "w/ps", "requests": {"cpu": 2000}}],
            },
            "pending": list(jobs),
        }
    )


class PolicyServers(unittest.TestCase):
    def test_keeps_a_job_on_one_server(self):
        answer = decide(job("x", 2), running=[{"id": "r", "workload": "w", "node": "a", "on": [0]}])
        self.assertEqual({b["node"] for b in answer["bind"]}, {"b"})
        self.assertEqual([b.get("devices") for b in answer["bind"]], [[0], [1], None])

    def test_prefers_the_fullest_that_takes_all(self):
        answer = decide(job("x", 1), running=[{"id": "r", "workload": "w", "node": "b", "on": [1]}])
        self.assertEqual([(b["node"], b.get("devices")) for b in answer["bind"]], [("b", [0]), ("b", None)])

    def test_divides_what_no_server_takes(self):
        answer = decide(job("x", 3))
        self.assertEqual(len(answer["bind"]), 4)
        self.assertEqual(len({(b["node"], *b["devices"]) for b in answer["bind"] if "devices" in b}), 3)

    def test_holds_whole_jobs_and_gives_back_what_they_took(self):
        answer = decide(job("x", 5), job("y", 4))
        self.assertEqual({h["task"].split("/")[0] for h in answer["hold"]}, {"x"})
        self.assertEqual({b["task"].split("/")[0] for b in answer["bind"]}, {"y"})


if __name__ == "__main__":
    unittest.main()
