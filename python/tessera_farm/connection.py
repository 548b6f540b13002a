"""Requests over HTTP/1.1 with a deadline, bounded answers, and tries that cannot do harm."""

from __future__ import annotations

import http.client
import io
import json
import random
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Union

from .errors import BadAnswer, TimedOut, TooOften, Unavailable, Unreachable, refusal
from .settings import Settings

# Longest answer in JSON that is read, in bytes: 16,384 frames have a tenth of it.
JSON_MAX = 64 << 20
# Connections that are kept for the next request.
_IDLE_MAX = 8
# Tries of a request, and the wait after the first; it doubles, up to the most.
_TRIES = 6
_PAUSE, _PAUSE_MAX = 0.25, 4.0
# Longest rest of a kept connection in seconds: the farm ends one after 20.
_REST_MAX = 10.0
_PIECE = 256 << 10
# What http.client and ssl raise when the other side is not there, or talks nonsense.
_LOST = (OSError, http.client.HTTPException, ValueError)

Body = Union[None, bytes, "Upload"]


class Upload:
    """A body that is read from a file's position on."""

    def __init__(self, stream: io.BufferedIOBase, offset: int, length: int) -> None:
        self.stream, self.offset, self.length = stream, offset, length

    def __iter__(self) -> Iterator[bytes]:
        self.stream.seek(self.offset)
        left = self.length
        while left > 0:
            piece = self.stream.read(min(_PIECE, left))
            if not piece:
                raise BadAnswer("the file became shorter while it was sent")
            left -= len(piece)
            yield piece


class _Timed(io.RawIOBase):
    """Reads a socket; no read ends after the deadline, or waits longer than `quiet` seconds."""

    def __init__(self, wire: _Wire) -> None:
        self.wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.wire.arm()
        return self.wire.sock.recv_into(buffer)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self.wire.release(reader=True)


class _Wire:
    """What http.client takes for a socket."""

    def __init__(self, sock: socket.socket, quiet: float) -> None:
        self.sock, self.quiet = sock, quiet
        self.readers, self.closed = 0, False
        self.deadline: float | None = None

    def arm(self) -> None:
        """Sets how long the next call may take."""
        left = self.quiet
        if self.deadline is not None:
            left = min(left, self.deadline - time.monotonic())
            if left <= 0:
                raise socket.timeout("the time for the answer is over")
        self.sock.settimeout(left)

    def sendall(self, data: Any) -> None:
        self.arm()
        self.sock.sendall(data)

    def makefile(self, mode: str = "rb", *_: Any) -> io.BufferedReader:
        self.readers += 1
        return io.BufferedReader(_Timed(self))

    def close(self) -> None:
        self.closed = True
        self.release(reader=False)

    def release(self, reader: bool) -> None:
        """Ends the socket once neither the connection nor an answer needs it."""
        self.readers -= reader
        if self.closed and self.readers <= 0:
            self.sock.close()


class Answer:
    """An answer whose body has not been read yet."""

    def __init__(self, line: _Line, response: http.client.HTTPResponse) -> None:
        self._line, self._response = line, response
        self.status = response.status
        self.headers = response.headers

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes.

        Raises:
            Unreachable, TimedOut: The answer was cut, or nothing came for too long.
        """
        try:
            while True:
                piece = self._response.read1(_PIECE)
                if not piece:
                    if self._response.length:
                        raise Unreachable("the answer was cut")
                    # Python before 3.12 notices the end of a body only with this.
                    self._response.read()
                    return
                yield piece
        except _LOST as error:
            raise _lost(error) from error

    def lines(self, longest: int) -> Iterator[bytes]:
        """The body line by line, with bounded lines."""
        try:
            while True:
                line = self._response.readline(longest + 1)
                if len(line) > longest:
                    raise BadAnswer(f"a line of more than {longest} bytes")
                if not line:
                    return
                yield line
        except _LOST as error:
            raise _lost(error) from error

    def read(self, longest: int = JSON_MAX) -> bytes:
        """The whole body, if it is not longer than so many bytes."""
        told = self._response.length
        if told is not None and told > longest:
            raise BadAnswer(f"an answer of {told} bytes is longer than {longest}")
        body = bytearray()
        for piece in self.pieces():
            body += piece
            if len(body) > longest:
                raise BadAnswer(f"the answer is longer than {longest} bytes")
        return bytes(body)

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            BadAnswer: It is something else.
        """
        body = self.read()
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise BadAnswer(f"the answer is not JSON: {body[:80]!r}") from error

    def close(self) -> None:
        """Ends the connection, if the body was not read to its end; else keeps it."""
        self._line.give_back(self._response)

    def abort(self) -> None:
        """Ends the connection, also under a thread that reads it."""
        self._line.abort()

    def end(self) -> None:
        """Ends the connection and gives up its socket; only for the thread that reads it."""
        self._line.abort()
        self._response.close()
        self._line.end()


def _lost(error: BaseException) -> Exception:
    if isinstance(error, socket.timeout):
        return TimedOut("the farm did not answer in time")
    if isinstance(error, (http.client.IncompleteRead, http.client.RemoteDisconnected)):
        return Unreachable("the answer was cut")
    text = type(error).__name__ + (f": {error}" if str(error) else "")
    if isinstance(error, OSError):
        return Unreachable(text)
    return BadAnswer(f"the answer is not HTTP: {text[:200]}")


class _Line(http.client.HTTPConnection):
    """One connection."""

    def __init__(self, pool: Connections) -> None:
        settings = pool.settings
        super().__init__(settings.host, settings.port, timeout=pool.quiet)
        self._pool = pool
        self.wire: _Wire | None = None
        self.kept_at = 0.0

    def connect(self) -> None:
        sock = socket.create_connection((self.host, self.port), self._pool.quiet)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            context = self._pool.settings.context
            if context is not None:
                sock = context.wrap_socket(sock, server_hostname=self.host)
        except BaseException:
            sock.close()
            raise
        self.wire = _Wire(sock, self._pool.quiet)
        self.sock = self.wire

    def abort(self) -> None:
        """Ends the connection at once."""
        wire = self.wire
        if wire is not None:
            try:
                wire.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                # It has ended already.
                return

    def end(self) -> None:
        """Closes the socket, whoever may still want to read it."""
        self.close()
        if self.wire is not None:
            self.wire.sock.close()

    def give_back(self, response: http.client.HTTPResponse) -> None:
        """Keeps the connection where another request can follow."""
        whole = response.isclosed() and not response.will_close
        if not whole or not self._pool.keep(self):
            response.close()
            self.close()


class Connections:
    """A farm's connections. May be used by several threads.

    Args:
        settings: Where the farm is.
        quiet: Longest time without a byte in seconds, > 0.
        within: Longest time of a request and its answer in JSON in seconds, > 0. Files and events
            take as long as bytes come.
    """

    def __init__(self, settings: Settings, quiet: float = 30.0, within: float = 120.0) -> None:
        if not (0 < quiet < 86_400 and 0 < within < 86_400):
            raise ValueError("times are seconds above 0 and below a day")
        self.settings, self.quiet, self.within = settings, quiet, within
        self._idle: list[_Line] = []
        self._lock = threading.Lock()
        self._closed = False

    def keep(self, line: _Line) -> bool:
        """Keeps a connection for later; False if there is no room."""
        with self._lock:
            room = len(self._idle) < _IDLE_MAX and not self._closed
            if room:
                line.kept_at = time.monotonic()
                self._idle.append(line)
            return room

    def close(self) -> None:
        """Ends the connections that nobody uses."""
        with self._lock:
            self._closed, idle, self._idle = True, self._idle, []
        for line in idle:
            line.close()

    def begin(
        self,
        method: str,
        path: str,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
        fresh: bool = False,
        within: float | None = None,
    ) -> Answer:
        """Sends one request once, and returns its answer, whatever its status is.

        `fresh`: over a new connection. A kept one may have been ended by the farm meanwhile, which
        shows only when a request is lost. `within`: seconds for all of it; None has no end.
        """
        line = self._line(fresh)
        try:
            if line.sock is None:
                line.connect()
            assert line.wire is not None
            line.wire.deadline = None if within is None else time.monotonic() + within
            self._send(line, method, path, body, dict(headers or {}))
            if isinstance(body, Upload):
                line.wire.deadline = time.monotonic() + self.within
            return Answer(line, line.getresponse())
        except _LOST as error:
            line.end()
            raise _lost(error) from error
        except BaseException:
            line.end()
            raise

    def _line(self, fresh: bool) -> _Line:
        with self._lock:
            kept = self._idle.pop() if self._idle and not fresh else None
        if kept is not None:
            if time.monotonic() - kept.kept_at < _REST_MAX:
                return kept
            kept.close()
        return _Line(self)

    def _send(
        self, line: _Line, method: str, path: str, body: Body, headers: dict[str, str]
    ) -> None:
        line.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        headers = {"Host": self.settings.netloc, "Accept": "*/*", **headers}
        if self.settings.token:
            headers["Authorization"] = f"Bearer {self.settings.token}"
        if isinstance(body, Upload):
            headers["Content-Length"] = str(body.length)
        elif body is not None or method in ("POST", "PUT", "PATCH"):
            headers["Content-Length"] = str(len(body or b""))
        for name, value in headers.items():
            line.putheader(name, value)
        line.endheaders()
        if isinstance(body, Upload):
            try:
                for piece in body:
                    line.send(piece)
            except (BrokenPipeError, ConnectionResetError):
                # The farm may have answered before it read everything: that says more.
                return
        elif body:
            line.send(body)

    def ask(self, method: str, path: str, form: Any = None, safe: bool = True) -> tuple[int, Any]:
        """Makes a request, again where that is harmless; its status and its JSON.

        `safe`: the same request twice has the effect of one. What is not safe is tried again only
        if nothing was sent, or if the farm says that it did nothing (429).

        Raises:
            Refused: The farm refuses it.
            Unreachable, TimedOut, BadAnswer: There is no answer, or none that can be used.
        """
        body = None if form is None else json.dumps(form, allow_nan=False).encode()
        headers = {} if form is None else {"Content-Type": "application/json"}
        ends = time.monotonic() + self.within
        pause = _PAUSE
        for number in range(_TRIES):
            left = ends - time.monotonic()
            last = number + 1 == _TRIES or left <= pause
            try:
                fresh = not safe or number > 0
                within = max(left, 0.001)
                answer = self.begin(method, path, body, headers, fresh, within)
            except (Unreachable, TimedOut) as error:
                cause = error.__cause__
                never_sent = isinstance(cause, ConnectionRefusedError)
                distrusted = isinstance(cause, ssl.SSLCertVerificationError)
                if last or distrusted or not (safe or never_sent):
                    raise
            else:
                try:
                    return _told(answer)
                except TooOften as error:
                    if last:
                        raise
                    pause = max(pause, _seconds(answer, error))
                except (Unavailable, Unreachable, TimedOut):
                    if last or not safe:
                        raise
                finally:
                    answer.close()
            time.sleep(pause * random.uniform(0.7, 1.0))
            pause = min(pause * 2, _PAUSE_MAX)
        raise AssertionError("the last try returns or raises")


def _seconds(answer: Answer, _: TooOften) -> float:
    text = answer.headers.get("retry-after", "")
    return min(float(text), _PAUSE_MAX) if text.isdigit() else 1.0


def _told(answer: Answer) -> tuple[int, Any]:
    """The status and JSON of an answer; the refusal that it is."""
    if answer.status in (200, 201):
        return answer.status, answer.json()
    raise refused(answer)


def refused(answer: Answer) -> Exception:
    """What an answer that is no success says, as an exception."""
    if answer.status < 400:
        # A redirect would take the token elsewhere.
        return BadAnswer(f"the status {answer.status} is not an answer to this request")
    body = answer.read(1 << 20)
    try:
        problem = json.loads(body)
    except (ValueError, RecursionError):
        problem = None
    reason = http.client.responses.get(answer.status, "")
    return refusal(answer.status, reason, problem)
