"""The files of scenes: which are found, and which are refused."""

from __future__ import annotations

import json
import os
import struct
import tempfile
import unittest
from typing import Any

from tessera_farm import SceneError
from tessera_farm.gltf import files_of

ASSET = {"asset": {"version": "2.0"}}
MESHOPT = "EXT_meshopt_compression"


class FilesOfTest(unittest.TestCase):
    """Scenes in a folder of their own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "scene")
        os.makedirs(os.path.join(self.folder, "data"))

    def write(self, name: str, data: bytes) -> str:
        path = os.path.join(self.folder, name)
        with open(path, "wb") as stream:
            stream.write(data)
        return path

    def found(self, document: dict[str, Any]) -> list[str]:
        path = self.write("a.gltf", json.dumps({**ASSET, **document}).encode())
        return [name for name, _ in files_of(path)]

    def test_buffers_and_images_beside_the_scene_are_found_once(self) -> None:
        for name in ("data/b 1.bin", "c.png"):
            self.write(name, b"x")
        document = {
            "buffers": [{"uri": "data/b%201.bin"}, {"uri": "./data/b%201.bin"}, {}],
            "images": [{"uri": "c.png"}, {"uri": "DATA:image/png;base64,AA=="}, {"bufferView": 0}],
        }
        self.assertEqual(self.found(document), ["a.gltf", "data/b 1.bin", "c.png"])

    def test_binary_scenes_are_read(self) -> None:
        self.write("c.png", b"x")
        text = json.dumps({**ASSET, "images": [{"uri": "c.png"}]}).encode()
        head = struct.pack("<4sIIII", b"glTF", 2, 20 + len(text), len(text), 0x4E4F534A)
        path = self.write("a.glb", head + text)
        self.assertEqual([name for name, _ in files_of(path)], ["a.glb", "c.png"])

    def test_placeholders_of_compressed_views_are_not_sent(self) -> None:
        self.write("b.bin", b"x")
        document: dict[str, Any] = {
            "buffers": [{"uri": "b.bin"}, {"uri": "gone.bin"}],
            "bufferViews": [{"buffer": 1, "extensions": {MESHOPT: {"buffer": 0}}}],
        }
        self.assertEqual(self.found(document), ["a.gltf", "b.bin"])

    def test_files_elsewhere_are_refused(self) -> None:
        self.write("../secret.bin", b"x")
        os.symlink("../secret.bin", os.path.join(self.folder, "link.bin"))
        for uri in (
            "../secret.bin", "%2e%2e/secret.bin", "/etc/passwd", "file:///etc/passwd",
            "https://a.example/b.bin", "link.bin", "gone.bin", "a\\b.bin", "data//b.bin", "%ff",
            "a%00", "C:/x", "",
        ):  # fmt: skip
            with self.assertRaises(SceneError, msg=uri):
                self.found({"buffers": [{"uri": uri}]})

    def test_files_that_are_no_scenes_are_refused(self) -> None:
        for data in (b"", b"{", b"[]", b"{}", b"glTF", b"glTF" + b"\xff" * 16, b"[" * 100_000):
            self.assertRaises(SceneError, files_of, self.write("b.gltf", data))
        self.assertRaises(SceneError, files_of, os.path.join(self.folder, "nothing.glb"))
        wrong: list[dict[str, Any]] = [{"buffers": 7}, {"images": [7]}, {"bufferViews": {}}]
        for document in wrong:
            self.assertRaises(SceneError, self.found, document)
