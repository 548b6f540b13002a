"""What changes on a farm, as it changes: server-sent events that go on after a cut."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable

from .connection import Answer, Connections, refused
from .errors import BadAnswer, TimedOut, TooOften, Unavailable, Unreachable
from .models import Frame, Job, field, listed, mapping, optional

# Longest line and event that are read, in bytes.
_EVENT_MAX = 32 << 20
# A farm that has nothing to say says so every 15 s.
_QUIET = 45.0
_PAUSE, _PAUSE_MAX = 0.5, 8.0


@dataclass(frozen=True)
class Event:
    """One event."""

    kind: str
    """`hello` after each connection, then `jobs`, `frames`, `nodes` and `through`."""
    data: Any
    """What it says, as docs/openapi.json describes it. `hello` has `resumed`: if it is false,
    something may have been missed, and lists must be read again."""


class Stream:
    """The events of a farm from now on, for ever, over as many connections as it takes.

    Iterate over it; `close` may be called by another thread and ends the iteration.
    """

    def __init__(
        self, farm: Connections, patience: float = 60.0, quiet: float | None = None
    ) -> None:
        self._farm = Connections(farm.settings, quiet or _QUIET, farm.within)
        self._patience = patience
        self._last = ""
        self._answer: Answer | None = None
        self._closed = threading.Event()

    def close(self) -> None:
        """Ends the stream."""
        self._closed.set()
        answer = self._answer
        if answer is not None:
            answer.abort()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Event]:
        """The events.

        Raises:
            Refused: The token may not see them (any more).
            Unreachable, TimedOut: No connection for as long as the patience lasts.
            BadAnswer: What comes is no stream of events.
        """
        pause, lost_at = _PAUSE, time.monotonic()
        while not self._closed.is_set():
            try:
                for event in self._connection():
                    pause, lost_at = _PAUSE, time.monotonic()
                    yield event
                    if self._closed.is_set():
                        return
            except (Unreachable, TimedOut, Unavailable, TooOften):
                if self._closed.is_set():
                    return
                if time.monotonic() + pause - lost_at > self._patience:
                    raise
            self._closed.wait(pause)
            pause = min(pause * 2, _PAUSE_MAX)

    def _connection(self) -> Iterator[Event]:
        headers = {"Accept": "text/event-stream"}
        if self._last:
            headers["Last-Event-ID"] = self._last
        answer = self._farm.begin("GET", "/api/v1/events", headers=headers, fresh=True)
        self._answer = answer
        try:
            if answer.status != 200:
                raise refused(answer)
            kind = answer.headers.get("content-type", "")
            if kind.split(";")[0].strip() != "text/event-stream":
                raise BadAnswer(f"the events come as {kind[:80]!r}")
            yield from self._read(answer)
        finally:
            self._answer = None
            answer.end()

    def _read(self, answer: Answer) -> Iterator[Event]:
        kind, data, size, last = "", [], 0, self._last
        for raw in answer.lines(_EVENT_MAX):
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            size += len(raw)
            if size > _EVENT_MAX:
                raise BadAnswer(f"an event of more than {_EVENT_MAX} bytes")
            if line:
                name, _, value = line.partition(":")
                value = value[1:] if value.startswith(" ") else value
                if name == "event":
                    kind = value
                elif name == "data":
                    data.append(value)
                elif name == "id" and value.isascii() and value.isprintable() and len(value) < 256:
                    last = value
                continue
            if data:
                yield Event(kind or "message", _parsed("\n".join(data)))
            # Only what was handed on counts as read.
            self._last = last
            kind, data, size = "", [], 0


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"an event is not JSON: {text[:80]!r}") from error


@dataclass(frozen=True)
class Update:
    """A job as it is now, and its frames that changed since the update before."""

    job: Job
    frames: list[Frame]


def watch(
    stream: Stream, job: str, read: Callable[[], Job], frames: Callable[[], list[Frame]]
) -> Iterator[Update]:
    """Updates of one job up to its end; the first one has all of its frames.

    `read` and `frames` read the job and all of its frames.
    """
    begun = False
    with stream:
        for event in stream:
            if event.kind == "hello":
                data = mapping(event.data, "a hello")
                if not begun or not field(data, "resumed", bool):
                    begun, now = True, read()
                    yield Update(now, frames())
                    if now.ended:
                        return
            elif event.kind == "jobs":
                data = mapping(event.data, "an event")
                mine = [one for one in field(data, "jobs", list) if _is(one, job)]
                for one in mine:
                    now = Job.read(one)
                    # The files of the last frames are told in an event of their own.
                    yield Update(now, frames() if now.ended else [])
                    if now.ended:
                        return
                if job in listed(data.get("gone", []), "the jobs that are gone"):
                    # Says that it is not there.
                    read()
            elif event.kind == "frames":
                data = mapping(event.data, "an event")
                changed = [one for one in field(data, "frames", list) if _is(one, job)]
                more = job in (optional(data, "more", list) or [])
                told = frames() if more else [Frame.read(one.get("frame")) for one in changed]
                if told:
                    yield Update(read(), told)


def _is(one: Any, job: str) -> bool:
    return isinstance(one, dict) and one.get("job") == job
