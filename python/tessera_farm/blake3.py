"""BLAKE3, which names all files of a farm: by the package `blake3` where it is, else by Python's
whole numbers, whose bits are the lanes of a vector."""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Sequence
from typing import Any, BinaryIO, Union

Buffer = Union[bytes, bytearray, memoryview]
_Words = list[int]

_CHUNK = 1024
# Chunks that are hashed together: a whole subtree, so a power of two.
_PIECE_CHUNKS = 4096
_PIECE = _CHUNK * _PIECE_CHUNKS

_IV = (
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
    0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
)  # fmt: skip
_ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
_START, _END, _PARENT, _ROOT = 1, 2, 4, 8


def _schedule() -> tuple[tuple[int, ...], ...]:
    rounds = [tuple(range(16))]
    for _ in range(6):
        rounds.append(tuple(rounds[-1][at] for at in _ORDER))
    return tuple(rounds)


_ROUNDS = _schedule()
_MIXED = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip


class _Lanes:
    """Lanes of 64 bits in whole numbers, each with a word of 32 bits."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.ones = int.from_bytes(b"\1\0\0\0\0\0\0\0" * lanes, "little")
        self.mask = self.ones * 0xFFFFFFFF

    def same(self, word: int) -> int:
        """The same word in each lane."""
        return self.ones * word

    def load(self, words: Sequence[int]) -> int:
        """One word for each lane."""
        return int.from_bytes(array("Q", words).tobytes(), sys.byteorder)

    def strided(self, words: memoryview) -> int:
        """The same from a view of native words."""
        wide = array("I", bytes(8 * self.lanes))
        wide[sys.byteorder != "little" :: 2] = array("I", words.tobytes())
        return int.from_bytes(wide.tobytes(), sys.byteorder)

    def words(self, lanes: int) -> list[int]:
        """The words of the lanes."""
        return array("Q", lanes.to_bytes(8 * self.lanes, sys.byteorder)).tolist()

    def rounds(self, v: _Words, m: _Words) -> None:
        """The seven rounds."""
        mask = self.mask
        for order in _ROUNDS:
            for index, (ia, ib, ic, id_) in enumerate(_MIXED):
                a, b, c, d = v[ia], v[ib], v[ic], v[id_]
                a = (a + b + m[order[2 * index]]) & mask
                d ^= a
                d = ((d >> 16) | (d << 16)) & mask
                c = (c + d) & mask
                b ^= c
                b = ((b >> 12) | (b << 20)) & mask
                a = (a + b + m[order[2 * index + 1]]) & mask
                d ^= a
                d = ((d >> 8) | (d << 24)) & mask
                c = (c + d) & mask
                b ^= c
                v[ia], v[ib], v[ic], v[id_] = a, ((b >> 7) | (b << 25)) & mask, c, d


def _compress(
    on: _Lanes, cv: _Words, m: _Words, counter: tuple[int, int], length: int, flags: int
) -> _Words:
    v = list(cv) + [on.same(word) for word in _IV[:4]]
    v += [counter[0], counter[1], on.same(length), on.same(flags)]
    on.rounds(v, m)
    return [v[at] ^ v[at + 8] for at in range(8)]


def _native(data: Buffer) -> memoryview:
    words = array("I", data)
    if sys.byteorder != "little":
        words.byteswap()
    return memoryview(words)


def _chunks(on: _Lanes, data: Buffer, first: int) -> list[tuple[int, ...]]:
    """The chaining values of whole chunks, as many as there are lanes."""
    words = _native(data)
    cv: _Words = [on.same(word) for word in _IV]
    counters = range(first, first + on.lanes)
    low = on.load([counter & 0xFFFFFFFF for counter in counters])
    high = on.load([counter >> 32 for counter in counters])
    for block in range(16):
        m = [on.strided(words[16 * block + at :: 256]) for at in range(16)]
        flags = (_START if block == 0 else 0) | (_END if block == 15 else 0)
        cv = _compress(on, cv, m, (low, high), 64, flags)
    return list(zip(*(on.words(lanes) for lanes in cv)))


def _last_chunk(data: Buffer, counter: int, root: int) -> tuple[int, ...]:
    """The chaining value of a chunk of 0 to 1024 bytes."""
    on = _Lanes(1)
    cv: _Words = list(_IV)
    blocks = [bytes(data[at : at + 64]) for at in range(0, len(data), 64)] or [b""]
    for index, block in enumerate(blocks):
        last = index == len(blocks) - 1
        flags = (_START if index == 0 else 0) | ((_END | root) if last else 0)
        m = _native(block.ljust(64, b"\0")).tolist()
        at = (counter & 0xFFFFFFFF, counter >> 32)
        cv = _compress(on, cv, m, at, len(block), flags)
    return tuple(cv)


class Blake3:
    """A hash that is fed piece by piece, as those of `hashlib` are."""

    def __init__(self) -> None:
        self._pieces: list[tuple[int, ...]] = []
        self._rest = bytearray()

    def update(self, data: Buffer) -> None:
        """Adds bytes."""
        self._rest += data
        at = 0
        # The last piece stays: it may be the root.
        while len(self._rest) - at > _PIECE:
            piece = bytes(self._rest[at : at + _PIECE])
            at += _PIECE
            first = len(self._pieces) * _PIECE_CHUNKS
            self._pieces += _merged(_chunks(_Lanes(_PIECE_CHUNKS), piece, first), 0)
        del self._rest[:at]

    def hexdigest(self) -> str:
        """The hash of what was added, as 64 hexadecimal digits."""
        rest, first = bytes(self._rest), len(self._pieces) * _PIECE_CHUNKS
        whole = max(0, (len(rest) - 1) // _CHUNK)
        values = []
        if whole:
            values = _chunks(_Lanes(whole), rest[: whole * _CHUNK], first)
        alone = not self._pieces and not values
        values.append(_last_chunk(rest[whole * _CHUNK :], first + whole, _ROOT if alone else 0))
        if self._pieces:
            values = self._pieces + _merged(values, 0)
        root = _merged(values, _ROOT)[0]
        return b"".join(word.to_bytes(4, "little") for word in root).hex()


def _merged(values: list[tuple[int, ...]], root: int) -> list[tuple[int, ...]]:
    """The value of the tree above these, from the left in pairs. One alone is its own."""
    while len(values) > 1:
        pairs = len(values) // 2
        on = _Lanes(pairs)
        m = [on.load([pair[at] for pair in values[0 : 2 * pairs : 2]]) for at in range(8)]
        m += [on.load([pair[at] for pair in values[1 : 2 * pairs : 2]]) for at in range(8)]
        flags = _PARENT | (root if len(values) == 2 else 0)
        zero = on.same(0)
        cv = _compress(on, [on.same(word) for word in _IV], m, (zero, zero), 64, flags)
        odd = values[2 * pairs :]
        values = list(zip(*(on.words(lanes) for lanes in cv))) + odd
    return values


def hasher() -> Any:
    """A new hash with `update` and `hexdigest`: of the package `blake3`, if it is there."""
    try:
        from blake3 import blake3
    except ImportError:
        return Blake3()
    return blake3()


def of_bytes(data: Buffer) -> str:
    """The BLAKE3 of bytes, as 64 hexadecimal digits."""
    hashed = hasher()
    hashed.update(data)
    return str(hashed.hexdigest())


def of_stream(stream: BinaryIO) -> tuple[str, int]:
    """The BLAKE3 of what is left of a stream, and its length in bytes."""
    hashed, length = hasher(), 0
    while True:
        piece = stream.read(_PIECE)
        if not piece:
            return str(hashed.hexdigest()), length
        hashed.update(piece)
        length += len(piece)


def of_file(path: str | os.PathLike[str]) -> tuple[str, int]:
    """The BLAKE3 of a file, and its length in bytes.

    Raises:
        OSError: The file cannot be read.
    """
    with open(path, "rb") as stream:
        return of_stream(stream)
