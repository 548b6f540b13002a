"""The examples of `examples/`, run as they are."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

from .support import FarmTest, library

EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples")


def has(package: str) -> bool:
    """Whether a package is there: NumPy for arrays, bpy where this is Blender's Python."""
    return importlib.util.find_spec(package) is not None


class ExamplesTest(FarmTest):
    """Each with the farm of the environment."""

    ran: set[str] = set()

    def run_one(self, name: str, *arguments: str) -> list[str]:
        """Runs one, which must succeed; its lines."""
        self.ran.add(name)
        environment = {**os.environ, "PYTHONPATH": os.path.dirname(EXAMPLES)}
        command = [sys.executable, os.path.join(EXAMPLES, name), *arguments]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_render(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            lines = self.run_one("render.py", library("cornell-box.gltf"), folder)
            names = [f"cornell-box.{n:04}.png" for n in (1, 2, 3)]
            self.assertEqual(lines, [os.path.join(folder, name) for name in names])
            self.assertEqual(sorted(os.listdir(folder)), names)

    def test_asynchronous(self) -> None:
        scenes = [library("cornell-box.gltf"), library("spinning-cube.gltf")]
        with tempfile.TemporaryDirectory() as folder:
            lines = self.run_one("asynchronous.py", folder, *scenes)
            self.assertEqual(
                sorted(os.path.basename(line) for line in lines), sorted(os.listdir(folder))
            )
            self.assertEqual(len(lines), 2)

    def test_nodes(self) -> None:
        lines = self.run_one("nodes.py")
        self.assertTrue(any(": ready, " in line for line in lines), lines)

    @unittest.skipUnless(has("bpy"), "this is not Blender's Python")
    def test_blender(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            lines = self.run_one("blender.py", "--", folder)
            self.assertEqual(lines[-1], os.path.join(folder, "Scene.0000.png"))
            self.assertGreater(os.path.getsize(lines[-1]), 10_000)

    @unittest.skipUnless(has("numpy"), "NumPy is not there")
    def test_compute(self) -> None:
        (line,) = self.run_one("compute.py")
        self.assertRegex(line, r"^\(32, 48, 3\) float32 52\.666")

    @classmethod
    def tearDownClass(cls) -> None:
        super().tearDownClass()
        needs = {"compute.py": "numpy", "blender.py": "bpy"}
        missed = {name for name, package in needs.items() if not has(package)}
        assert cls.ran == set(os.listdir(EXAMPLES)) - missed - {"__pycache__"}, cls.ran
