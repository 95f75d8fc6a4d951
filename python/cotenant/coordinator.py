"""Talks to the coordinator, and starts one where none is named.

The coordinator is ``cotenant serve balance``. Its protocol is Connect: plain
HTTP POST of JSON, so this needs nothing but the standard library.
"""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.parse
from typing import Any, Mapping

SERVICE = "/cotenant.balance.v1.BalanceService/"


class CoordinatorError(Exception):
    """The coordinator answered with an error.

    ``code`` is Connect's (``not_found``, ``failed_precondition``, ...).
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


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
        if url.scheme == "https":
            context = ssl.create_default_context(cafile=ca)
            self._http: http.client.HTTPConnection = http.client.HTTPSConnection(
                url.hostname, url.port, timeout=timeout, context=context
            )
        else:
            self._http = http.client.HTTPConnection(url.hostname, url.port, timeout=timeout)
        self._headers = {"Content-Type": "application/json", "Connect-Protocol-Version": "1"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def call(self, method: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """Calls a method of the service; names are the protocol's JSON names.

        Raises
        ------
        CoordinatorError
            It answered with an error.
        Unreachable
            It did not answer, or not as a coordinator does.
        """
        body = json.dumps(message).encode()
        for attempt in (1, 2):
            kept = self._http.sock is not None
            try:
                self._http.request("POST", SERVICE + method, body, self._headers)
                response = self._http.getresponse()
                status, data = response.status, response.read()
                break
            except (OSError, http.client.HTTPException) as e:
                self._http.close()
                # A connection kept open may have been closed at the other end
                # meanwhile. All methods may be repeated.
                if attempt == 2 or not kept or isinstance(e, TimeoutError):
                    raise Unreachable(f"coordinator {self.address}: {e!r}") from e
        try:
            answer = json.loads(data)
            if not isinstance(answer, dict):
                raise ValueError("not an object")
        except ValueError as e:
            raise Unreachable(f"coordinator {self.address}: status {status}, no JSON in {data[:100]!r}") from e
        if status != 200:
            raise CoordinatorError(str(answer.get("code", status)), str(answer.get("message", "")))
        return answer

    def close(self) -> None:
        """Closes the connection."""
        self._http.close()


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
