"""Sends files by their hashes: only what the farm lacks, and from where an upload stopped."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

from . import blake3
from .connection import Connections, Upload, refused
from .errors import (
    BadAnswer,
    Conflict,
    Corrupt,
    Malformed,
    TesseraError,
    TimedOut,
    TooOften,
    Unavailable,
    Unreachable,
)
from .models import field, listed, mapping

Progress = Callable[[int, int], None]
"""Called with the bytes that are sent and the bytes that have to be."""

# Hashes of one question: well below the longest message.
_ASKED_MAX = 16_384
# Tries in a row that bring no byte across.
_VAIN_MAX = 6


@dataclass(frozen=True)
class Source:
    """A file, or bytes, with their BLAKE3 and length."""

    hash: str
    length: int
    path: str | None = None
    data: bytes | None = None

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> Source:
        """Hashes a file.

        Raises:
            OSError: It cannot be read.
        """
        hashed, length = blake3.of_file(path)
        return cls(hashed, length, path=os.fspath(path))

    @classmethod
    def of_bytes(cls, data: bytes) -> Source:
        """Hashes bytes."""
        return cls(blake3.of_bytes(data), len(data), data=data)

    def open(self) -> io.BufferedIOBase:
        """Opens it for reading."""
        if self.data is not None:
            return io.BytesIO(self.data)
        assert self.path is not None
        return open(self.path, "rb")


def missing(farm: Connections, hashes: Sequence[str]) -> list[str]:
    """Those of the hashes that the farm lacks."""
    found = []
    for at in range(0, len(hashes), _ASKED_MAX):
        _, told = farm.ask("POST", "/api/v1/blobs/missing", list(hashes[at : at + _ASKED_MAX]))
        found += [str(one) for one in listed(told, "the missing files")]
    return found


def send_all(farm: Connections, sources: Sequence[Source], progress: Progress | None = None) -> int:
    """Sends those of the files that the farm lacks; how many bytes they have.

    Raises:
        Refused: The farm refuses a file: too long, too many of this owner, no room.
        Corrupt: A file changed after it was hashed.
        Unreachable, TimedOut: No byte came across in six tries.
    """
    by_hash = {source.hash: source for source in sources}
    wanted = [by_hash[hashed] for hashed in missing(farm, sorted(by_hash)) if hashed in by_hash]
    total, before, shown = sum(source.length for source in wanted), 0, 0
    for source in wanted:
        base = before

        def told(held: int) -> None:
            nonlocal shown
            # While the farm still writes what came before a cut, it says that it holds nothing.
            shown = max(shown, base + held)
            if progress is not None:
                progress(shown, total)

        _send(farm, source, told)
        before += source.length
    return total


def _send(farm: Connections, source: Source, told: Callable[[int], None]) -> None:
    held, vain, pause = 0, 0, 0.25
    while True:
        now, whole = _held(farm, source)
        if whole:
            return told(source.length)
        vain = 0 if now > held else vain + 1
        held = now
        told(held)
        try:
            held, whole = _put(farm, source, held)
            if whole:
                return told(source.length)
        except (Unreachable, TimedOut, Conflict, Unavailable, TooOften) as error:
            # What arrived stays; another upload of the same file may be on its way.
            if vain >= _VAIN_MAX:
                raise error
        if vain >= _VAIN_MAX:
            raise BadAnswer("the farm takes no more of a file, and does not say why")
        time.sleep(min(pause * 2**vain, 4.0) if vain else 0.05)


def _held(farm: Connections, source: Source) -> tuple[int, bool]:
    path = f"/api/v1/blobs/{source.hash}/held?length={source.length}"
    return _read_held(farm.ask("GET", path)[1], source)


def _read_held(value: Any, source: Source) -> tuple[int, bool]:
    of: dict[str, Any] = mapping(value, "an upload")
    held = field(of, "held", int)
    if not 0 <= held <= source.length:
        raise BadAnswer(f"{held} bytes of {source.length} are said to be there")
    return held, field(of, "whole", bool)


def _put(farm: Connections, source: Source, held: int) -> tuple[int, bool]:
    path = f"/api/v1/blobs/{source.hash}?length={source.length}&offset={held}"
    headers = {"Content-Type": "application/octet-stream"}
    with source.open() as stream:
        body = Upload(stream, held, source.length - held)
        answer = farm.begin("PUT", path, body, headers, fresh=held > 0)
        try:
            if answer.status == 200:
                return _read_held(answer.json(), source)
            problem = refused(answer)
        finally:
            answer.close()
    if isinstance(problem, Malformed) and problem.status == 422:
        name = source.path or "an array"
        raise Corrupt(f"{name} changed after it was hashed: {problem.detail}") from problem
    assert isinstance(problem, TesseraError)
    raise problem
