"""Templates and presets on a real farm."""

from __future__ import annotations

import asyncio
import os
import uuid

from tessera_farm import AsyncFarm, Malformed, NotFound, SceneError
from tessera_farm.templates import Value

from .support import FarmTest
from .test_farm import external

FILM = """
tessera = 1
name = "film"
description = "a film and a still"

[parameters.scene]
type = "file"

[parameters.spp]
type = "integer"
default = 1
min = 1
max = 64
help = "samples per pixel"

[parameters.seeds]
type = "integer"
list = true
default = [1]

[[steps]]
name = "look"
render = "{scene}"
each = { seed = "{seeds}" }
seed = "{seed}"
size = "32x24"
spp = "{spp}"

[[steps]]
name = "tone"
compute = "builtin:tonemap"
domain = "8x8"
input = ["image=in.npy"]
after = ["look"]
"""


def array() -> bytes:
    """An array of 8 x 8 zeros, as NumPy writes it."""
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (8, 8), }".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + bytes(256)


class TemplateTest(FarmTest):
    """Jobs of one submission."""

    def setUp(self) -> None:
        super().setUp()
        self.folder = f"templates-{uuid.uuid4().hex[:8]}"
        external(self.folder)
        self.path = os.path.join(self.folder, "film.toml")
        with open(self.path, "w", encoding="utf-8") as stream:
            stream.write(FILM)
        with open(os.path.join(self.folder, "in.npy"), "wb") as data:
            data.write(array())

    def test_a_template_is_outlined_planned_and_submitted(self) -> None:
        outline = self.farm.outline(self.path)
        self.assertEqual((outline.name, outline.description), ("film", "a film and a still"))
        self.assertEqual([one.name for one in outline.parameters], ["scene", "seeds", "spp"])
        self.assertIn("has to be set", str(outline.problem))
        values: dict[str, Value] = {"scene": "box.gltf", "seeds": [1, 2], "spp": 2}
        self.assertEqual(self.farm.outline(self.path, values=values).files, ["box.gltf", "in.npy"])
        name = f"film-{uuid.uuid4().hex[:8]}"
        batch = self.farm.submit_template(self.path, values=values, batch=name)
        self.assertEqual(batch.batch, name)
        names = ["film.look.seed=1", "film.look.seed=2", "film.tone"]
        self.assertEqual([job.name for job in batch.jobs], names)
        self.assertEqual([job.values for job in batch.jobs], [{"seed": "1"}, {"seed": "2"}, {}])
        again = self.farm.submit_template(self.path, values=values, batch=name)
        self.assertEqual(again.jobs, batch.jobs)
        self.assertEqual(len(list(self.farm.jobs(batch=name))), 3)
        for job in batch.jobs:
            self.assertEqual(self.farm.wait(job.job, timeout=120).state, "done")
        spec = self.farm.detail(batch.jobs[0].job).spec["kind"]["Render"]
        files = [file["path"] for file in spec["files"]]
        self.assertEqual(files, ["box.gltf", "data/buffer 0.bin"])
        self.assertEqual((spec["spp"], spec["seed"]), (2, 1))

    def test_what_is_wrong_is_said_and_nothing_is_submitted(self) -> None:
        name = f"wrong-{uuid.uuid4().hex[:8]}"
        with self.assertRaisesRegex(ValueError, "spp: 65 is more than 64"):
            over: dict[str, Value] = {"scene": "box.gltf", "spp": 65}
            self.farm.submit_template(self.path, values=over)
        with self.assertRaisesRegex(ValueError, "/etc/passwd` is not beside the template"):
            self.farm.submit_template(self.path, values={"scene": "/etc/passwd"})
        with self.assertRaises((OSError, SceneError)):
            self.farm.submit_template(self.path, values={"scene": "none.gltf"})
        with open(self.path, "a", encoding="utf-8") as stream:
            stream.write("sp = 3\n")
        with self.assertRaisesRegex(ValueError, "no such option"):
            self.farm.submit_template(self.path, values={"scene": "box.gltf"}, batch=name)
        with open(self.path, "w", encoding="utf-8") as stream:
            stream.write("tessera = 1\nname =")
        with self.assertRaises(Malformed):
            self.farm.outline(self.path)
        self.assertEqual(list(self.farm.jobs(batch=name)), [])

    def test_presets_are_published_used_and_taken_away(self) -> None:
        name = f"preset-{uuid.uuid4().hex[:8]}"
        with open(self.path, encoding="utf-8") as stream:
            text = stream.read().replace("in.npy", f"{self.folder}/in.npy")
        published = self.farm.publish_preset(name, text)
        self.assertEqual((published.name, published.template), (name, text))
        self.assertIn(name, [preset.name for preset in self.farm.presets()])
        with self.assertRaises(Malformed):
            self.farm.publish_preset(name, "tessera = 2")
        scene = f"{self.folder}/box.gltf"
        batch = self.farm.submit_template(preset=name, values={"scene": scene})
        self.assertEqual(self.farm.wait(batch.jobs[-1].job, timeout=120).state, "done")
        self.farm.remove_preset(name)
        with self.assertRaises(NotFound):
            self.farm.preset(name)

    def test_the_same_works_for_asyncio(self) -> None:
        async def run() -> int:
            async with AsyncFarm() as farm:
                outline = await farm.outline(self.path)
                batch = await farm.submit_template(self.path, values={"scene": "box.gltf"})
                return len(outline.parameters) + len(batch.jobs)

        self.assertEqual(asyncio.run(run()), 5)
