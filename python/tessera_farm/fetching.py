"""Files of finished frames: fetched whole or not at all, several at a time, from where a transfer
stopped, and checked against their hashes."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import BinaryIO, Callable

from . import blake3
from .connection import Connections, refused
from .errors import BadAnswer, Corrupt, TesseraError, TimedOut, TooOften, Unavailable, Unreachable
from .models import FrameFile

_VAIN_MAX = 6
# What no common file system takes in a name, and control characters.
_NEVER = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"/\\|?*\u200e\u200f\u202a-\u202e\u2066-\u2069]')
_FORMAT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*\.)?[a-z0-9]{1,8}")

OnFile = Callable[[str, FrameFile], None]
"""Called with the path of a file that is whole now, and what it is."""


@dataclass(frozen=True)
class Wanted:
    """A file to fetch."""

    job: str
    frame: int
    file: FrameFile


def stem_of(name: str) -> str:
    """A job's name as it is in names of files. Nothing in it leads to another folder."""
    safe = _NEVER.sub("_", name.lstrip(".- \t")).encode()[:128].decode("utf-8", "ignore")
    return safe.rstrip(". ") or "job"


def name_of(stem: str, frame: int, file: FrameFile) -> str:
    """The name of a frame's file: `NAME.0001.exr`, as `tessera fetch` has it."""
    if not _FORMAT.fullmatch(file.format) or frame < 0:
        raise BadAnswer(f"a file of frame {frame} has the format {file.format!r:.80}")
    return f"{stem}.{frame:04}.{file.format}"


def is_there(path: str, file: FrameFile) -> bool:
    """Whether a file has these bytes."""
    try:
        if os.path.getsize(path) != file.length:
            return False
        return blake3.of_file(path)[0] == file.hash
    except OSError:
        return False


def to_memory(farm: Connections, wanted: Wanted, longest: int) -> bytes:
    """The bytes of a file, at most so many.

    Raises:
        Corrupt: They do not have their hash.
    """
    if wanted.file.length > longest:
        raise BadAnswer(f"a file of {wanted.file.length} bytes is longer than {longest}")
    body = bytearray()

    def write(piece: bytes) -> None:
        body.extend(piece)

    _transfer(farm, wanted, lambda: len(body), write, lambda: None)
    if blake3.of_bytes(body) != wanted.file.hash:
        raise Corrupt(f"frame {wanted.frame}: the bytes do not have their hash")
    return bytes(body)


def to_file(
    farm: Connections,
    wanted: Wanted,
    path: str,
    overwrite: bool = False,
    stop: threading.Event | None = None,
) -> bool:
    """Fetches a file to a path, where it appears when it is whole; False if it was there.

    Raises:
        FileExistsError: Something else has the name.
        Corrupt: The bytes do not have their hash, also when they were fetched twice.
    """
    if is_there(path, wanted.file):
        return False
    # Somebody else may have fetched it between the two looks.
    if os.path.lexists(path) and not overwrite and not is_there(path, wanted.file):
        raise FileExistsError(f"{path} is something else; it is replaced with overwrite=True")
    folder, name = os.path.split(path)
    part = os.path.join(folder, f".{name}.{wanted.file.hash[:16]}")

    def check() -> None:
        if stop is not None and stop.is_set():
            raise TimedOut("the transfer was stopped")

    for again in (False, True):
        with _open_part(part) as stream:
            if stream.tell() > wanted.file.length:
                stream.truncate(0)
            _transfer(farm, wanted, stream.tell, stream.write, check)
            stream.flush()
            os.fsync(stream.fileno())
            if is_there(stream.name, wanted.file):
                # Under the lock, so that nobody else takes it for unfinished.
                return _rename(stream.name, path, overwrite, wanted.file)
            os.unlink(stream.name)
        if again:
            break
    raise Corrupt(f"{path}: the bytes do not have their hash")


def _open_part(part: str) -> BinaryIO:
    """Opens the bytes that are there already, or another file while somebody else has those."""
    try:
        import fcntl
    except ImportError:
        # Windows. Two that fetch the same file at once would spoil it, and fetch it again.
        return open(part + ".part", "ab")
    while True:
        stream = open(part + ".part", "ab")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(stream.fileno()), os.stat(stream.name)):
                return stream
        except FileNotFoundError:
            # It became a whole file meanwhile, as with another file in its place.
            pass
        except OSError:
            stream.close()
            return open(f"{part}.{os.getpid()}.{threading.get_ident()}.part", "wb")
        stream.close()


def _rename(part: str, path: str, overwrite: bool, file: FrameFile) -> bool:
    """Gives a file its name; False if somebody else has fetched it meanwhile."""
    try:
        if overwrite:
            os.replace(part, path)
        else:
            _rename_new(part, path)
    except FileExistsError:
        if not is_there(path, file):
            raise
        os.unlink(part)
        return False
    return True


def _rename_new(part: str, path: str) -> None:
    """Gives a file its name if nobody took the name meanwhile."""
    taken = f"{path} is something else; it is replaced with overwrite=True"
    try:
        os.link(part, path)
    except FileExistsError:
        raise FileExistsError(taken) from None
    except OSError:
        # A file system without links.
        if os.path.lexists(path):
            raise FileExistsError(taken) from None
        os.replace(part, path)
        return
    os.unlink(part)


def _transfer(
    farm: Connections,
    wanted: Wanted,
    held: Callable[[], int],
    write: Callable[[bytes], object],
    check: Callable[[], None],
) -> None:
    """Reads what is missing of a file, over as many connections as it takes."""
    path = f"/api/v1/jobs/{wanted.job}/frames/{wanted.frame}/files/{wanted.file.format}"
    length, vain = wanted.file.length, 0
    while held() < length:
        check()
        before = held()
        try:
            _part(farm, path, wanted.file, held, write, check)
        except (Unreachable, Unavailable, TooOften, TimedOut):
            check()
            vain = 0 if held() > before else vain + 1
            if vain >= _VAIN_MAX:
                raise
            time.sleep(min(0.25 * 2**vain, 4.0))


def _part(
    farm: Connections,
    path: str,
    file: FrameFile,
    held: Callable[[], int],
    write: Callable[[bytes], object],
    check: Callable[[], None],
) -> None:
    at, tag = held(), f'"{file.hash}"'
    headers = {"Range": f"bytes={at}-", "If-Range": tag} if at else {}
    answer = farm.begin("GET", path, headers=headers, fresh=at > 0)
    try:
        if answer.status not in (200, 206):
            raise refused(answer)
        if answer.headers.get("etag") != tag:
            raise BadAnswer("the farm has another file in this place")
        begins = f"bytes {at}-"
        ranged = answer.status == 206
        if ranged != (at > 0) or (
            ranged and not answer.headers.get("content-range", "").startswith(begins)
        ):
            raise BadAnswer("the farm sends another part of the file")
        for piece in answer.pieces():
            check()
            if held() + len(piece) > file.length:
                raise BadAnswer("the farm sends more bytes than the file has")
            write(piece)
    finally:
        answer.close()


def fetch_all(
    farm: Connections,
    wanted: Sequence[Wanted],
    folder: str | os.PathLike[str],
    stem: str,
    overwrite: bool = False,
    parallel: int = 4,
    on_file: OnFile | None = None,
) -> list[str]:
    """Fetches files into a folder, so many at a time; their paths in the same order. The first
    failure stops the others, whose parts stay for the next time."""
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, name_of(stem, one.frame, one.file)) for one in wanted]
    stop = threading.Event()

    def one(index: int) -> None:
        if stop.is_set():
            return
        to_file(farm, wanted[index], paths[index], overwrite, stop)
        if on_file is not None:
            on_file(paths[index], wanted[index].file)

    with ThreadPoolExecutor(max(1, min(parallel, 16))) as pool:
        todo = [pool.submit(one, index) for index in range(len(wanted))]
        try:
            done, _ = wait(todo, return_when=FIRST_EXCEPTION)
        except BaseException:
            stop.set()
            raise
        failed = [task for task in done if task.exception() is not None]
        if failed:
            stop.set()
    # The failure itself, and not that others were stopped for it.
    errors = [task.exception() for task in todo]
    first = [error for error in errors if error is not None and not _stopped(error)]
    for error in first or [error for error in errors if error is not None]:
        raise error
    return paths


def _stopped(error: BaseException) -> bool:
    return isinstance(error, TesseraError) and str(error) == "the transfer was stopped"
