"""Blender's pictures beside Tessera's: what an artist exports is what is drawn.

    python compare.py TESSERA        (Python 3.11 with bpy==4.5.15; run.sh does it)

Prints the ratio of Tessera's mean to Cycles' for each scene, with Cycles' own standard error from
eight seeds. Ends with status 1 if a ratio is further from 1 than its bound, or a standard error is
above 1 %.
"""

import pathlib
import subprocess
import sys
import tempfile

import bpy
import numpy as np
import scenes

SEEDS = 8
ERROR_MAX = 0.01


def pixels(path):
    """Linear colours of an EXR file: rows from below, (height, width, 3)."""
    image = bpy.data.images.load(str(path), check_existing=False)
    image.colorspace_settings.name = "Non-Color"
    width, height = image.size
    values = np.empty(width * height * 4, dtype=np.float32)
    image.pixels.foreach_get(values)
    return values.reshape(height, width, 4)[..., :3].astype(np.float64)


def middle(picture):
    """The middle quarter of a picture, where lamps and balls are."""
    height, width = picture.shape[:2]
    return picture[3 * height // 8 : 5 * height // 8, 3 * width // 8 : 5 * width // 8]


class Bench:
    """A folder for files, and what was found."""

    def __init__(self, tessera, folder):
        self.tessera, self.folder, self.failed = tessera, pathlib.Path(folder), False

    def cycles(self, scene, samples, part):
        """Mean of a part of Cycles' picture, and its standard error."""
        means = []
        for seed in range(SEEDS):
            scene.cycles.samples, scene.cycles.seed = samples // SEEDS, seed
            scene.render.filepath = str(self.folder / "cycles.exr")
            bpy.ops.render.render(write_still=True)
            means.append(part(pixels(self.folder / "cycles.exr")).mean())
        return np.mean(means), np.std(means, ddof=1) / SEEDS**0.5

    def ours(self, scene, samples, part, options, lights):
        """Mean of the same part of Tessera's picture of what Blender exports."""
        glb, exr = self.folder / "scene.glb", self.folder / "ours.exr"
        bpy.ops.export_scene.gltf(
            filepath=str(glb),
            export_lights=True,
            export_cameras=True,
            export_import_convert_lighting_mode=lights,
        )
        size = f"{scene.render.resolution_x}x{scene.render.resolution_y}"
        command = [self.tessera, "render", str(glb), "-o", str(exr), "--size", size, "-q"]
        command += ["--spp", str(samples), "--depth", "32", "--device", "cpu", *options]
        subprocess.run(command, check=True)
        return part(pixels(exr)).mean()

    def say(self, name, ours, cycles, bound):
        """Prints a line of the table, and keeps whether it is right."""
        mean, error = cycles
        ratio, relative = ours / mean, error / mean
        good = abs(ratio - 1.0) <= bound and relative <= ERROR_MAX
        self.failed |= not good
        verdict = "" if good else "  WRONG"
        print(
            f"{name:28} {ratio:7.4f} of Cycles' {mean:.5f} +- {relative:.2%}, "
            f"within {bound:.0%}{verdict}",
            flush=True,
        )


def whole(picture):
    return picture


def main():
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(sys.argv[1], folder)
        for name in scenes.LAMPS:
            scene = scenes.lamp_over_floor(name)
            cycles = bench.cycles(scene, 256, middle)
            plain = bench.ours(scene, 64, middle, ["--env", "none"], "COMPAT")
            bench.say(f"{name}, unitless", plain, cycles, 0.02)
            options = ["--env", "none", "--lights", "photometric"]
            standard = bench.ours(scene, 64, middle, options, "SPEC")
            bench.say(f"{name}, standard", standard, cycles, 0.02)
        for name in scenes.MATERIALS:
            scene = scenes.ball(name)
            cycles = bench.cycles(scene, 512, middle)
            grey = f"{scenes.GREY_WORLD}"
            ours = bench.ours(scene, 256, middle, ["--env", ",".join([grey] * 3)], "COMPAT")
            bench.say(f"ball of {name}", ours, cycles, 0.03)
        scene = scenes.room()
        cycles = bench.cycles(scene, 4096, whole)
        ours = bench.ours(scene, 512, whole, ["--env", "none"], "COMPAT")
        bench.say("room behind a window", ours, cycles, 0.05)
        print("test result: " + ("FAILED" if bench.failed else "ok. 1 passed"))
        sys.exit(bench.failed)


main()
