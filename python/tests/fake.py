"""A small coordinator for tests: JSON over HTTP, shares in proportion to speed."""

from __future__ import annotations

import http.server
import json
import random
import threading
from typing import Any, Callable


class FakeCoordinator:
    """Answers as the real one does; ``script`` may override a method's answer.

    ``script(method, request)`` returns None to go on as usual, a dict to
    answer, a tuple (status, code, message) to fail, or ``"hang up"``.
    """

    def __init__(self, script: Callable[[str, dict[str, Any]], Any] | None = None, port: int = 0) -> None:
        self.script = script or (lambda method, request: None)
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.jobs: dict[str, dict[str, Any]] = {}
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                method = self.path.rsplit("/", 1)[1]
                fake.requests.append((method, body))
                fake.headers.append(dict(self.headers))
                answer = fake.script(method, body)
                if answer == "hang up":
                    self.close_connection = True
                    return
                status = 200
                if answer is None:
                    answer = fake.answer(method, body)
                if isinstance(answer, tuple):
                    status, code, message = answer
                    answer = {"code": code, "message": message}
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        # A rank that is killed hangs up in the middle of things: no news.
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()
        self.address = f"127.0.0.1:{self.server.server_address[1]}"

    def answer(self, method: str, request: dict[str, Any]) -> Any:
        """What a coordinator that works says."""
        if method == "Close":
            self.jobs.pop(request["job"], None)
            return {}
        if method == "Open":
            workers, total = request["workers"], request["globalBatch"]
            each, more = divmod(total, len(workers))
            sizes = request.get("agreed", {}).get("batchSizes") or [each + (i < more) for i in range(len(workers))]
            if len(sizes) != len(workers):
                sizes = [each + (i < more) for i in range(len(workers))]
            job = {"workers": [w["name"] for w in workers], "total": total, "speed": {}, "generation": len(self.jobs) + 1}
            self.jobs[request["job"]] = job
            shares = {"iteration": request["iteration"], "batchSizes": sizes, "generation": str(job["generation"])}
            return {"generation": str(job["generation"]), "shares": shares}
        job = self.jobs.get(request["job"])
        if job is None:
            return 404, "not_found", "no such job"
        for r in request["reports"]:
            if r["computeSeconds"] > 0:
                job["speed"][r["worker"]] = r["batchSize"] / r["computeSeconds"]
        total, speeds = job["total"], [job["speed"].get(w, 0.0) for w in job["workers"]]
        if min(speeds) <= 0:
            return {"shares": {**job.get("shares", self._equal(job)), "iteration": "0"}}
        sizes = [max(1, int(total * v / sum(speeds))) for v in speeds]
        sizes[sizes.index(max(sizes))] += total - sum(sizes)
        shares = {
            "iteration": str(int(request["iteration"]) + 2),
            "batchSizes": sizes,
            "generation": str(job["generation"]),
        }
        job["shares"] = shares
        return {"shares": shares}

    @staticmethod
    def _equal(job: dict[str, Any]) -> dict[str, Any]:
        each, more = divmod(job["total"], len(job["workers"]))
        sizes = [each + (i < more) for i in range(len(job["workers"]))]
        return {"batchSizes": sizes, "generation": str(job["generation"])}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def wander(total: int, workers: int, minimum: int, seed: int) -> Any:
    """A coordinator whose shares change in every answer, without any reason."""
    draw = random.Random(seed)

    def script(method: str, request: dict[str, Any]) -> Any:
        if method != "Report":
            return None
        free = total - workers * minimum
        cuts = sorted(draw.randint(0, free) for _ in range(workers - 1))
        sizes = [minimum + b - a for a, b in zip([0, *cuts], [*cuts, free])]
        return {"shares": {"generation": "1", "iteration": str(int(request["iteration"]) + 2), "batchSizes": sizes}}

    return script
