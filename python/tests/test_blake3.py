"""BLAKE3 without the package: known answers, and the same in pieces."""

from __future__ import annotations

import io
import json
import os
import unittest

from tessera_farm.blake3 import Blake3, of_stream

with open(os.path.join(os.path.dirname(__file__), "blake3.json"), encoding="ascii") as stream:
    KNOWN: dict[str, str] = json.load(stream)
PATTERN = bytes(index % 251 for index in range(max(map(int, KNOWN))))


class Blake3Test(unittest.TestCase):
    """Lengths around blocks, chunks, levels of the tree and pieces."""

    def test_known_answers(self) -> None:
        for length, wanted in KNOWN.items():
            hashed = Blake3()
            hashed.update(PATTERN[: int(length)])
            self.assertEqual(hashed.hexdigest(), wanted, length)

    def test_pieces_of_any_length_give_the_same(self) -> None:
        hashed, at, step = Blake3(), 0, 1
        while at < len(PATTERN):
            hashed.update(PATTERN[at : at + step])
            at, step = at + step, (step * 7) % 300_007
        longest = max(map(int, KNOWN))
        self.assertEqual(hashed.hexdigest(), KNOWN[str(longest)])

    def test_a_stream_has_a_hash_and_a_length(self) -> None:
        hashed, length = of_stream(io.BytesIO(PATTERN[:1025]))
        self.assertEqual((hashed, length), (KNOWN["1025"], 1025))
