"""The coordinator of a replayed job, and the bad network before it."""

from __future__ import annotations

import json
import os
import pathlib
import random
import selectors
import shutil
import signal
import socket
import subprocess
import time
from typing import Any


class World:
    """A real coordinator that is killed and comes back, behind a port that stays.

    The proxy before it loses, by a seed, one connection in so many messages,
    with the question or with the answer on it (then the client asks again), and
    brings answers late.
    """

    def __init__(self, program: str, folder: pathlib.Path, seed: int, lose: float, late: float, port: Any) -> None:
        self._program, self._folder, self._port = program, folder, port
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = folder / "ready.json"
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{listener.getsockname()[1]}"
        self._proxy = os.fork()
        if self._proxy == 0:
            try:
                proxy(listener, port, random.Random(seed), lose, late)
            finally:
                os._exit(1)
        listener.close()
        self.start()

    def start(self) -> None:
        """Starts the coordinator; `look` sees when it is there."""
        self._ready.unlink(missing_ok=True)
        command = [self._program, "serve", "balance", "--address", "127.0.0.1:0", "--ready-file", str(self._ready)]
        command += ["--state", str(self._folder / "state"), "--parent", str(os.getpid())]
        with open(self._folder / "coordinator.log", "ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def look(self) -> None:
        """Lets the proxy know where it is; one that ended by itself is an error."""
        if self._process is None:
            return
        if self._process.poll() is not None:
            raise AssertionError(f"the coordinator ended: {(self._folder / 'coordinator.log').read_text()[-2000:]}")
        if self._port[0] == 0 and self._ready.exists():
            self._port[0] = int(json.loads(self._ready.read_text())["address"].rsplit(":", 1)[1])

    def kill(self, forget: bool) -> None:
        """Kills it; ``forget``: and all that it had saved."""
        self._port[0] = 0
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if forget:
            shutil.rmtree(self._folder / "state", ignore_errors=True)

    def close(self) -> None:
        """Ends all of it."""
        self.kill(False)
        os.kill(self._proxy, signal.SIGKILL)
        os.waitpid(self._proxy, 0)


def proxy(listener: socket.socket, port: Any, draw: random.Random, lose: float, late: float) -> None:
    """Passes bytes on between clients and 127.0.0.1:port[0]; without end."""
    chosen = selectors.DefaultSelector()
    chosen.register(listener, selectors.EVENT_READ)
    other: dict[socket.socket, socket.socket] = {}
    clients: set[socket.socket] = set()
    answers: list[tuple[float, socket.socket, bytes]] = []

    def drop(one: socket.socket) -> None:
        for each in (one, other.get(one)):
            if each is not None and each in other:
                chosen.unregister(each)
                del other[each]
                clients.discard(each)
                each.close()

    while True:
        for key, _ in chosen.select(0.005 if answers else 0.1):
            one = key.fileobj
            assert isinstance(one, socket.socket)
            if one is listener:
                client = listener.accept()[0]
                try:
                    server = socket.create_connection(("127.0.0.1", port[0]), 1)
                except OSError:
                    client.close()
                    continue
                other[client], other[server] = server, client
                clients.add(client)
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    chosen.register(each, selectors.EVENT_READ)
                continue
            if one not in other:
                continue
            try:
                data = one.recv(65536)
                if not data or draw.random() < lose / 2:
                    drop(one)
                elif one in clients:
                    other[one].sendall(data)
                else:
                    answers.append((time.monotonic() + late * draw.random(), other[one], data))
            except OSError:
                drop(one)
        due = [answer for answer in answers if answer[0] <= time.monotonic()]
        answers = [answer for answer in answers if answer not in due]
        for _, client, data in due:
            try:
                if client in other:
                    client.sendall(data)
            except OSError:
                drop(client)
