"""The talk with the coordinator, against a small one of the tests' own."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
import unittest
from typing import Any, Callable, Sequence
from unittest import mock

from cotenant import agreement, coordinator
from cotenant.agreement import Report, Shares
from cotenant.coordinator import Coordinator, CoordinatorError, Unreachable
from cotenant.session import Session, Worker, class_name, job_name, worker_name, workload_name
from fake import FakeCoordinator

WORKERS = [Worker("a"), Worker("b", 2, 40, (8, 16))]


def until(true: Callable[[], Any], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError("did not come true")
        time.sleep(0.005)


def reports(iteration: int, *seconds: float, sizes: Sequence[int] = (16, 16)) -> Any:
    message = [0.0] * agreement.length(len(seconds))
    for rank, (size, s) in enumerate(zip(sizes, seconds)):
        agreement.write(message, rank, Report(iteration, size, s, 0.01 + s, 0.5, 0.25), None)
    return lambda: (iteration, message)


class Talk(unittest.TestCase):
    def start(self, fake: FakeCoordinator, **more: Any) -> Session:
        session = Session(
            "job", WORKERS, 32, {"allocator": "cpu"}, connect=lambda: Coordinator(fake.address), retry=0.02, **more
        )
        session.start()
        self.addCleanup(session.stop, False)
        return session

    def fake(self, script: Any = None, port: int = 0) -> FakeCoordinator:
        fake = FakeCoordinator(script, port)
        self.addCleanup(fake.close)
        return fake

    def test_reports_become_shares(self) -> None:
        fake = self.fake()
        session = self.start(fake)
        self.assertEqual(session.opened(10), Shares(1, 0, (16, 16), 0))
        session.submit(reports(0, 0.3, 0.1))
        until(lambda: session.proposal() == Shares(1, 2, (8, 24), 2))
        method, request = fake.requests[0]
        self.assertEqual((method, request["globalBatch"], request["allocator"]), ("Open", 32, "cpu"))
        self.assertEqual(request["workers"][1], {"name": "b", "min": 2, "max": 40, "buckets": [8, 16], "node": "", "class": ""})
        method, request = fake.requests[1]
        self.assertEqual((method, request["iteration"], request["heldIteration"]), ("Report", "0", "0"))
        self.assertEqual([r["communicateSeconds"] for r in request["reports"]], [0.11, 0.11], "waiting is no sending")
        session.agree(Shares(1, 3, (8, 24), 2))
        session.submit(reports(3, 0.1, 0.1, sizes=(8, 24)))
        until(lambda: len(fake.requests) == 3)
        self.assertEqual(fake.requests[2][1]["heldIteration"], "2")
        session.stop(forget=True)
        self.assertEqual(fake.requests[-1], ("Close", {"job": "job"}))

    def test_a_coordinator_that_forgot_is_told_what_holds(self) -> None:
        fake = self.fake()
        session = self.start(fake)
        session.opened(10)
        session.agree(Shares(1, 5, (10, 22), 4))
        fake.jobs.clear()
        session.submit(reports(7, 0.1, 0.1))
        until(lambda: [m for m, _ in fake.requests].count("Open") == 2)
        request = fake.requests[-1][1]
        self.assertEqual(request["agreed"], {"generation": "1", "iteration": "4", "batchSizes": [10, 22]})
        self.assertEqual(request["iteration"], "8")

    def test_none_there_then_one_comes(self) -> None:
        fake = self.fake()
        port = int(fake.address.rsplit(":", 1)[1])
        fake.close()
        with self.assertLogs("cotenant", "WARNING") as logged:
            session = self.start(fake)
            self.assertIsNone(session.opened(10))
            session.submit(reports(0, 0.3, 0.1))
            until(lambda: session.ident and not session._coordinator)
            time.sleep(0.1)
            again = self.fake(port=port)
            until(lambda: session.proposal() is not None)
            until(lambda: session.reported == 1)
        self.assertEqual(len(logged.output), 2, logged.output)
        self.assertIn("training goes on", logged.output[0])
        self.assertTrue(again.requests)

    def test_a_refusal_is_no_outage(self) -> None:
        refusing = (400, "invalid_argument", "predictor: none")
        fake = self.fake(lambda method, request: refusing)
        with self.assertLogs("cotenant", "WARNING") as logged:
            session = self.start(fake)
            self.assertIsNone(session.opened(10))
            until(lambda: len(fake.requests) > 2)
        self.assertEqual(session.refusal, "predictor: none")
        self.assertEqual(len(logged.output), 1, logged.output)
        self.assertIn("refuses the job", logged.output[0])
        # Of a job that was open once, it ends no training.
        fake = self.fake(lambda method, request: refusing if method == "Report" else None)
        with self.assertLogs("cotenant", "WARNING") as logged:
            session = self.start(fake)
            session.opened(10)
            session.submit(reports(0, 0.3, 0.1))
            until(lambda: logged.output)
        self.assertEqual(session.refusal, "")

    def test_answers_that_are_none_change_nothing(self) -> None:
        bad: list[Any] = [
            b"<html>", b"[]", {}, {"shares": {"batchSizes": [16, 17]}}, {"shares": {"batchSizes": [32]}},
            {"shares": {"batchSizes": ["x", 1]}}, {"shares": []}, (500, "internal", "oops"), "hang up",
        ]  # fmt: skip
        for answer in bad:
            fake = self.fake(lambda method, request, answer=answer: answer if method == "Report" else None)
            with self.assertLogs("cotenant", "WARNING") as logged:
                session = self.start(fake)
                session.opened(10)
                session.submit(reports(0, 0.3, 0.1))
                until(lambda: logged.output)
            newest = session.proposal()
            self.assertEqual(newest and newest.batch_sizes, (16, 16), answer)
            session.stop(False)

    def test_reports_of_no_use_stay_here(self) -> None:
        fake = self.fake()
        session = self.start(fake)
        session.opened(10)
        session.submit(lambda: (3, [0.0] * agreement.length(2)))
        session.submit(lambda: (3, None))
        session.submit(reports(4, float("nan"), float("inf")))

        def broken() -> Any:
            raise RuntimeError("a peer is gone")

        session.submit(broken)
        session.submit(reports(5, float("nan"), 0.1))
        until(lambda: session.reported == 1)
        self.assertEqual([r["worker"] for r in fake.requests[-1][1]["reports"]], ["b"])

    def test_the_training_never_waits_for_an_answer(self) -> None:
        gate = threading.Event()
        self.addCleanup(gate.set)
        fake = self.fake(lambda method, request: gate.wait(30) and None if method == "Report" else None)
        session = self.start(fake)
        session.opened(10)
        begin = time.monotonic()
        for i in range(1000):
            session.submit(reports(i, 0.1, 0.1))
            session.proposal()
        self.assertLess(time.monotonic() - begin, 2)
        self.assertLessEqual(session._queue.qsize(), 64)


class Client(unittest.TestCase):
    def test_token_and_errors(self) -> None:
        fake = FakeCoordinator(lambda method, request: (401, "unauthenticated", "no token"))
        self.addCleanup(fake.close)
        client = Coordinator("http://" + fake.address, token="secret")
        with self.assertRaisesRegex(CoordinatorError, "unauthenticated: no token"):
            client.call("Jobs", {})
        self.assertEqual(fake.headers[0]["Authorization"], "Bearer secret")
        client.close()
        self.assertRaises(ValueError, Coordinator, "ftp://x")

    def test_a_connection_that_was_closed_meanwhile_is_made_again(self) -> None:
        closing = {"after": True}

        def script(method: str, request: dict[str, Any]) -> Any:
            if method == "Report" and closing.pop("after", False):
                return "hang up"
            return {}

        fake = FakeCoordinator(script)
        self.addCleanup(fake.close)
        client = Coordinator(fake.address)
        client.call("Jobs", {})
        self.assertEqual(client.call("Report", {}), {})
        self.assertEqual(len(fake.requests), 3)
        client.close()

    def test_answers_in_pieces(self) -> None:
        body = b'{"shares":{"batchSizes":[1,2]}}'
        plain = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunked += b"a\r\n%s\r\n%x;x=y\r\n%s\r\n0\r\n\r\n" % (body[:10], len(body) - 10, body[10:])
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for answer in (plain, chunked, chunked):
                    connection.recv(65536)
                    for byte in answer:
                        connection.sendall(bytes([byte]))

        threading.Thread(target=serve, daemon=True).start()
        client = Coordinator(f"127.0.0.1:{listener.getsockname()[1]}")
        for _ in range(3):
            self.assertEqual(client.call("Jobs", {}), json.loads(body))
        client.close()

    def test_what_is_no_http(self) -> None:
        for answer in (b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 x\r\nContent-Length: 1\r\n\r\n", b""):
            listener = socket.create_server(("127.0.0.1", 0))

            def serve(listener: socket.socket = listener, answer: bytes = answer) -> None:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

            threading.Thread(target=serve, daemon=True).start()
            with self.assertRaises(Unreachable):
                Coordinator(f"127.0.0.1:{listener.getsockname()[1]}").call("Jobs", {})
            listener.close()

    def test_no_program(self) -> None:
        with mock.patch.dict(os.environ, {"COTENANT_BINARY": "/nonexistent/cotenant"}):
            with self.assertRaisesRegex(Unreachable, "starting the coordinator"):
                coordinator.OwnCoordinator()
        with mock.patch.dict(os.environ, {"COTENANT_BINARY": "/bin/false"}):
            with self.assertRaisesRegex(Unreachable, "did not get ready"):
                coordinator.OwnCoordinator()


class Names(unittest.TestCase):
    def test_names(self) -> None:
        with mock.patch.dict(os.environ, {"TORCHELASTIC_RUN_ID": "run-7", "LOCAL_RANK": "2"}, clear=True):
            self.assertEqual(job_name(), "run-7")
            self.assertTrue(worker_name(5).endswith("/2"))
        with mock.patch.dict(os.environ, {"COTENANT_JOB": "mine", "COTENANT_WORKER": "w"}):
            self.assertEqual((job_name(), worker_name(1)), ("mine", "w"))
        with mock.patch.dict(os.environ, {"MASTER_ADDR": "host", "MASTER_PORT": "9"}, clear=True):
            self.assertTrue(job_name().endswith("@host:9"))

    def test_samples_are_kept_by_names_that_stay(self) -> None:
        with mock.patch.dict(os.environ, {"MASTER_PORT": "9"}, clear=True), mock.patch.object(sys, "argv", ["/x/my train+1.py"]):
            self.assertEqual((workload_name(job_name()), class_name(), class_name("Tesla V100 16GB")), ("my-train-1", "", "Tesla-V100-16GB"))
        with mock.patch.dict(os.environ, {"COTENANT_WORKLOAD": "bert/32", "COTENANT_CLASS": "a100"}):
            self.assertEqual((workload_name("job"), class_name("Tesla")), ("bert/32", "a100"))
        with mock.patch.dict(os.environ, {}, clear=True), mock.patch.object(sys, "argv", []):
            self.assertEqual((workload_name("my job"), workload_name("*")), ("my-job", "job"))


if __name__ == "__main__":
    unittest.main()
