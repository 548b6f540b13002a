"""What tests share: a server that answers with given bytes, a wire that is cut, a real farm."""

from __future__ import annotations

import os
import socket
import threading
import unittest
from collections.abc import Callable, Iterable

from tessera_farm import Farm

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The repository."""

Answer = Callable[[socket.socket, bytes], None]


def library(name: str) -> str:
    """A scene of the repository's own library."""
    return os.path.join(ROOT, "scenes", "library", name)


class Server:
    """Answers each connection of this machine by a function of its socket and first request."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.heads: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                stream, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(stream,), daemon=True).start()

    def _one(self, stream: socket.socket) -> None:
        with stream:
            try:
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = stream.recv(65536)
                    if not piece:
                        return
                    head += piece
                self.heads.append(head)
                self._answer(stream, head)
            except OSError:
                # The client went: some tests are about that.
                return


def always(*pieces: bytes) -> Answer:
    """The same bytes for everybody, and the end of the connection."""

    def answer(stream: socket.socket, _: bytes) -> None:
        for piece in pieces:
            stream.sendall(piece)

    return answer


def http(status: str, body: bytes = b"", headers: Iterable[str] = (), length: int = -1) -> bytes:
    """An answer over HTTP whose connection ends."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length < 0 else length}"]
    lines += [*headers, "Connection: close", "", ""]
    return "\r\n".join(lines).encode() + body


class Cut:
    """A wire to a farm that is cut after so many bytes to it (`up`) or from it (`down`), as often
    as `times` says; then it holds."""

    def __init__(self, farm: str, up: int = -1, down: int = -1, times: int = 3) -> None:
        self._farm = farm.split("://")[1].encode()
        host, port = farm.split("://")[1].rsplit(":", 1)
        self._to = (host.strip("[]"), int(port))
        self._limits = {True: up, False: down}
        self._left, self._lock = times, threading.Lock()
        self.cuts, self.sent = 0, 0
        self._server = Server(self._pipe)
        self.url = self._server.url
        self._own = self.url.split("://")[1].encode()

    def __enter__(self) -> Cut:
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.__exit__(*exc)

    def _pipe(self, client: socket.socket, head: bytes) -> None:
        with socket.create_connection(self._to) as farm:
            back = threading.Thread(target=self._copy, args=(farm, client, False), daemon=True)
            back.start()
            self._copy(client, farm, True, head)
            back.join()

    def _copy(self, source: socket.socket, to: socket.socket, up: bool, piece: bytes = b"") -> None:
        count = 0
        try:
            while True:
                piece = piece or source.recv(65536)
                if not piece:
                    break
                count += len(piece)
                if up:
                    # The farm answers to its own name only.
                    piece = piece.replace(b"Host: " + self._own, b"Host: " + self._farm)
                    self.sent += len(piece)
                if 0 <= self._limits[up] < count and self._cut():
                    source.shutdown(socket.SHUT_RDWR)
                    break
                to.sendall(piece)
                piece = b""
        except OSError:
            # One of the two has gone.
            pass
        for one in (source, to):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _cut(self) -> bool:
        with self._lock:
            if self._left == 0:
                return False
            self._left -= 1
            self.cuts += 1
            return True


class FarmTest(unittest.TestCase):
    """A test with the farm that the environment names; not run, and told so, without one."""

    farm: Farm

    @classmethod
    def setUpClass(cls) -> None:
        if not os.environ.get("TESSERA_URL"):
            raise unittest.SkipTest("TESSERA_URL names no farm")
        cls.farm = Farm(within=60.0)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.farm.close()

    def through(self, cut: Cut) -> Farm:
        """The same farm through a wire that is cut."""
        farm = Farm(cut.url, quiet=10.0)
        self.addCleanup(farm.close)
        return farm
