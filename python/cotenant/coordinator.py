"""Talks to the coordinator, and starts one where none is named.

The coordinator is ``cotenant serve balance``. Its protocol is Connect: plain
HTTP POST of JSON, so this needs nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse
from typing import Any, Mapping

from cotenant.agreement import Shares

SERVICE = b"/cotenant.balance.v1.BalanceService/"

#: Those headers of an answer that say how long it is.
_HEADERS = re.compile(rb"\r\n(transfer-encoding|content-length|connection)[ \t]*:([^\r]*)", re.IGNORECASE)


class CoordinatorError(Exception):
    """The coordinator answered with an error.

    ``code`` is Connect's (``not_found``, ``failed_precondition``, ...), ``message`` its words.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Unreachable(Exception):
    """No coordinator, or one that does not answer in time."""


def binary() -> str:
    """Path of the Go program: ``COTENANT_BINARY``, the wheel's own, or on PATH.

    Raises
    ------
    Unreachable
        There is none.
    """
    named = os.environ.get("COTENANT_BINARY")
    if named:
        return named
    suffix = ".exe" if os.name == "nt" else ""
    carried = pathlib.Path(__file__).parent / "bin" / f"cotenant{suffix}"
    if carried.exists():
        return str(carried)
    on_path = shutil.which("cotenant")
    if on_path and open(on_path, "rb").read(2) != b"#!":  # not this package's own script
        return on_path
    raise Unreachable(
        "this installation carries no coordinator; install the wheel (make wheel), "
        "set COTENANT_BINARY to the program, or COTENANT_ADDRESS to a coordinator that runs"
    )


class Coordinator:
    """One connection, kept open; not for two threads at once.

    Parameters
    ----------
    address : ``host:port``, ``http://host:port`` or ``https://host:port``
    token : sent as ``Authorization: Bearer``
    ca : file of certificates to trust (https)
    timeout : seconds that an answer may take
    """

    def __init__(self, address: str, token: str | None = None, ca: str | None = None, timeout: float = 5.0) -> None:
        url = urllib.parse.urlsplit(address if "://" in address else "http://" + address)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"coordinator address {address!r}: want host:port, http://host:port or https://host:port")
        self.address = address
        self._host, self._port = url.hostname, url.port or (443 if url.scheme == "https" else 80)
        self._timeout = timeout
        self._kernel_timeout = struct.pack("ll", int(timeout), int(timeout % 1 * 1e6))
        self._tls = ssl.create_default_context(cafile=ca) if url.scheme == "https" else None
        self._socket: socket.socket | None = None
        if token and not token.isprintable():
            raise ValueError("the token has characters that no header may have")
        authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        self._head = (
            f"Host: {url.netloc}\r\nContent-Type: application/json\r\nConnect-Protocol-Version: 1\r\n"
            f"{authorization}Content-Length: "
        ).encode()

    def call(self, method: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """Calls a method of the service; names are the protocol's JSON names.

        Raises
        ------
        CoordinatorError
            It answered with an error.
        Unreachable
            It did not answer, or not as a coordinator does.
        """
        return self.read(self.post(method, json.dumps(message).encode()))

    def post(self, method: str, body: bytes) -> bytes:
        """Calls a method with a message that is JSON already; the answer as it came.

        Raises as `call` does.
        """
        request = b"POST %s%s HTTP/1.1\r\n%s%d\r\n\r\n%s" % (SERVICE, method.encode(), self._head, len(body), body)
        for attempt in (1, 2):
            kept = self._socket is not None
            try:
                status, data = self._exchange(request)
                break
            except (OSError, ValueError, LookupError) as e:
                self.close()
                # A connection kept open may have been closed at the other end
                # meanwhile. All methods may be repeated.
                if attempt == 2 or not kept or isinstance(e, (TimeoutError, BlockingIOError)):
                    raise Unreachable(f"coordinator {self.address}: {e!r}") from e
        if status != 200:
            answer = self.read(data, status)
            raise CoordinatorError(str(answer.get("code", status)), str(answer.get("message", "")))
        return data

    def read(self, data: bytes, status: int = 200) -> dict[str, Any]:
        """Reads an answer; raises Unreachable where it is none."""
        try:
            answer = json.loads(data)
            if not isinstance(answer, dict):
                raise ValueError("not an object")
        except ValueError as e:
            raise Unreachable(f"coordinator {self.address}: status {status}, no JSON in {data[:100]!r}") from e
        return answer

    def _exchange(self, request: bytes) -> tuple[int, bytes]:
        # By hand, since http.client takes three times the CPU time, which the
        # training pays in every iteration.
        if self._socket is None:
            plain = socket.create_connection((self._host, self._port), self._timeout)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls:
                self._socket = self._tls.wrap_socket(plain, server_hostname=self._host)
            elif sys.platform == "linux":
                # The kernel's own timeouts: Python's cost a poll before each call.
                for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                    plain.setsockopt(socket.SOL_SOCKET, option, self._kernel_timeout)
                plain.settimeout(None)
                self._socket = plain
            else:
                self._socket = plain
        self._socket.sendall(request)
        data = self._more(b"")
        while (end := data.find(b"\r\n\r\n")) < 0:
            data = self._more(data)
        headers = {name.lower(): value.strip().lower() for name, value in _HEADERS.findall(data, 0, end + 2)}
        status = int(data[:end].split(None, 2)[1])
        data = data[end + 4 :]
        if headers.get(b"transfer-encoding") == b"chunked":
            body = b""
            while True:
                while (end := data.find(b"\r\n")) < 0:
                    data = self._more(data)
                size = int(data[:end].split(b";")[0], 16)
                data = data[end + 2 :]
                while len(data) < size + 2:
                    data = self._more(data)
                body, data = body + data[:size], data[size + 2 :]
                if size == 0:
                    break
        else:
            size = int(headers[b"content-length"])
            while len(data) < size:
                data = self._more(data)
            body = data[:size]
        if headers.get(b"connection") == b"close":
            self.close()
        return status, body

    def _more(self, data: bytes) -> bytes:
        assert self._socket is not None
        more = self._socket.recv(65536)
        if not more or len(data) > 1 << 24:
            raise ConnectionError("hung up" if not more else "an answer without end")
        return data + more

    def close(self) -> None:
        """Closes the connection."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None


class OwnCoordinator:
    """A coordinator that this process started on loopback; ends with this process."""

    def __init__(self, timeout: float = 10.0) -> None:
        """Starts it and waits until it listens.

        Raises
        ------
        Unreachable
            There is no program, or it did not get ready; the message has its words.
        """
        program = binary()
        self._folder = tempfile.TemporaryDirectory(prefix="cotenant-", ignore_cleanup_errors=True)
        ready = os.path.join(self._folder.name, "ready.json")
        log = os.path.join(self._folder.name, "log")
        try:
            with open(log, "wb") as out:
                # A session of its own: Ctrl-C is for the training, which it outlives by a moment.
                self._process = subprocess.Popen(
                    [program, "serve", "balance", "--address", "127.0.0.1:0"]
                    + ["--ready-file", ready, "--parent", str(os.getpid())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=out,
                    start_new_session=True,
                )
        except OSError as e:
            self._folder.cleanup()
            raise Unreachable(f"starting the coordinator {program}: {e}") from e
        until = time.monotonic() + timeout
        while not os.path.exists(ready):
            if self._process.poll() is not None or time.monotonic() > until:
                words = pathlib.Path(log).read_text(errors="replace").strip()[-500:]
                self.stop()
                raise Unreachable(f"the coordinator {program} did not get ready: {words or 'it said nothing'}")
            time.sleep(0.005)
        self.address = str(json.loads(pathlib.Path(ready).read_text())["address"])

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Ends it."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(2)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._folder.cleanup()


class Access:
    """The coordinator at ``COTENANT_ADDRESS``, or one started here where none is named."""

    def __init__(self) -> None:
        #: The one started here, if any.
        self.own: OwnCoordinator | None = None

    def connect(self) -> Coordinator:
        """A connection to it; one started here that died is started anew."""
        address = os.environ.get("COTENANT_ADDRESS")
        if not address:
            if self.own is not None and not self.own.alive:
                self.stop()
            if self.own is None:
                self.own = OwnCoordinator()
            address = self.own.address
        return Coordinator(address, os.environ.get("COTENANT_TOKEN"), os.environ.get("COTENANT_CA"))

    def stop(self) -> None:
        """Ends the one started here."""
        if self.own is not None:
            self.own.stop()
            self.own = None


def shares_of(answer: Mapping[str, Any], workers: int, total: int) -> Shares:
    """The shares in an answer to Open or Report.

    Raises
    ------
    Unreachable
        There are none, or none of ``total`` for so many workers.
    """
    # Protobuf's JSON leaves out what is zero, and writes int64 as strings.
    try:
        shares = answer.get("shares") or {}
        sizes = tuple(int(n) for n in shares.get("batchSizes", ()))
        generation = int(answer.get("generation", shares.get("generation", 0)))
        first = int(shares.get("iteration", 0))
    except (AttributeError, TypeError, ValueError) as e:
        raise Unreachable(f"the coordinator's answer {answer!r} has no shares: {e}") from e
    if len(sizes) != workers or sum(sizes) != total or any(n < 0 for n in sizes):
        raise Unreachable(f"the coordinator's shares {sizes} are none of {total} for {workers}")
    return Shares(generation, first, sizes, first)
