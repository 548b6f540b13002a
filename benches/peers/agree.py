"""Whether two renderers draw the same picture: a Z-test of every pixel, and by how much means
differ where they do.

    VENV/bin/python benches/peers/agree.py RIG SCENES TESSERA [--only NAME] \\
        [--batches 16] [--spp 32] [--size 192x144]

RIG is the folder of compare.py, whose workers draw glass by glass_worker.py, SCENES that of the
shared scenes, TESSERA the program. Every renderer draws each scene in batches with seeds of their
own. Of a pixel's luminance, z is the difference of two renderers' means over the standard error
that their batches show (Welch's). Were both means of one distribution, about 0.945 of the pixels
would lie within 2 (16 batches each). At high counts any difference of model fails the test, so the
size of the difference stands beside it: the mean's, and the middle nine tenths of blocks of 8 x 8
pixels.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = {
    "mitsuba": ("peer_mitsuba.py", {"variant": "llvm_ad_rgb"}),
    "cycles": ("peer_cycles.py", {}),
}
STUDIO, SKY = "env/studio_small_05_1k.hdr", "env/qwantani_afternoon_puresky_1k.hdr"
GLASSWARE = "glassware.glb"  # written by glass_scene.py
# Name, file, environment (a map, one constant radiance, or None), camera (eye; target; degrees)
# where the scene has none that shows it.
SCENES = [
    ("furnace", "generated/furnace_diffuse.glb", 1.0, None),
    ("Cornell", "generated/cornell_box.glb", None, None),
    ("TextureSettingsTest", "TextureSettingsTest.glb", STUDIO, None),
    ("EmissiveStrengthTest", "EmissiveStrengthTest.glb", 0.2, None),
    ("NormalTangentMirrorTest", "NormalTangentMirrorTest.glb", STUDIO, None),
    ("DamagedHelmet", "DamagedHelmet.glb", STUDIO, None),
    ("Spheres", "MetalRoughSpheresNoTextures.glb", STUDIO, None),
    ("Sponza", "Sponza.glb", SKY, ([-5.0, 2.0, 0.0], [5.0, 2.5, 0.0], 60.0)),
    ("DreamApartment", "DreamApartment.glb", SKY, None),
    ("Glassware", GLASSWARE, 1.0, None),
    ("CandleHolder", "GlassHurricaneCandleHolder.glb", 1.0, None),
]
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


class Worker:
    """A renderer of the rig: a process that takes and answers lines of JSON."""

    def __init__(self, rig, kind, job, folder):
        script, extra = PEERS[kind]
        path = os.path.join(folder, kind + ".json")
        with open(path, "w") as file:
            json.dump(dict(job, rig=rig, script=script, **extra), file)
        log = open(os.path.join(folder, kind + ".log"), "w")
        command = [sys.executable, os.path.join(HERE, "glass_worker.py"), path]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=rig
        )
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        answer = (
            json.loads(line) if line else {"ok": False, "error": "the worker died, see its log"}
        )
        if answer.get("ok") is False:
            raise RuntimeError(answer["error"])

    def draw(self, spp, seed, out):
        request = {"cmd": "render", "spp": spp, "seed": seed, "out": out}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        self.answer()

    def close(self):
        self.process.kill()


class Tessera:
    """Our own program, by its command line. The rig puts the centre of a map towards +X, hence
    --env-rotate.
    """

    def __init__(self, program, job):
        camera, env = job["camera"], job["env"]
        vector = lambda key: ",".join("%.9g" % x for x in camera[key])
        light = (
            "none"
            if env is None
            else env["path"] if env["type"] == "hdr" else ",".join("%g" % x for x in env["value"])
        )
        self.command = [
            program,
            "render",
            job["scene"],
            "--env=" + light,
            "--size",
            "%dx%d" % (job["width"], job["height"]),
            "--depth",
            str(job["depth"]),
            "--threads",
            str(job["threads"]),
            "--device",
            "cpu",
            "--filter",
            "box",
            "--env-rotate",
            "90",
            "--eye=" + vector("origin"),
            "--target=" + vector("target"),
            "--up=" + vector("up"),
            "--vfov",
            "%.9g" % camera["vfov"],
            "-q",
        ]

    def draw(self, spp, seed, out):
        subprocess.run(
            self.command + ["--spp", str(spp), "--seed", str(seed), "-o", out],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def close(self):
        pass


def job_of(neutral, file, scene, options):
    _, _, light, view = scene
    loaded = neutral.load(file)
    camera = loaded["camera"] or neutral.auto_camera(loaded["bbox"])
    if view:
        camera = {"origin": view[0], "target": view[1], "up": [0, 1, 0], "vfov": view[2]}
    env = None
    if isinstance(light, float):
        env = {"type": "const", "value": [light] * 3}
    elif light:
        env = {"type": "hdr", "path": os.path.join(options.scenes, light), "scale": 1.0}
    width, height = map(int, options.size.split("x"))
    return {
        "scene": file,
        "env": env,
        "width": width,
        "height": height,
        "depth": 8,
        "threads": 2,
        "materials": "gltf",
        "filter": "box",
        "camera": camera,
        "strip": [],
    }


def batches_of(img, renderer, options, folder):
    """Luminance of every batch: batches x height x width."""
    out = os.path.join(folder, "batch.exr")
    pictures = []
    for batch in range(options.batches):
        renderer.draw(options.spp, 1000 + 17 * batch, out)
        pictures.append(img.read_exr(out).astype(np.float64) @ LUMINANCE)
    renderer.close()
    return np.stack(pictures)


def blocks(picture):
    height, width = (side // 8 for side in picture.shape)
    return picture[: 8 * height, : 8 * width].reshape(height, 8, width, 8).mean((1, 3))


def compared(one, other):
    """Share of pixels with |z| < 2, ratio of the means, and the middle nine tenths of the blocks'
    relative differences.
    """
    first, second = one.mean(0), other.mean(0)
    error = np.sqrt(one.var(0, ddof=1) / len(one) + other.var(0, ddof=1) / len(other))
    # Pixels that are alike without any noise (a sky of one colour) pass.
    alike = np.abs(first - second) <= 2 * error + 1e-5 * np.abs(second)
    difference = (blocks(first) - blocks(second)) / np.maximum(blocks(second), 1e-3)
    low, high = np.percentile(difference, (5, 95))
    return "%.3f  %.4f  %+.3f..%+.3f" % (alike.mean(), first.mean() / second.mean(), low, high)


def measure(rig, scene, options, folder):
    import img
    import neutral

    file = os.path.join(options.scenes, scene[1])
    if scene[1] == GLASSWARE:
        file = os.path.join(folder, GLASSWARE)
        subprocess.run(
            [sys.executable, os.path.join(HERE, "glass_scene.py"), rig, file], check=True
        )
    job = job_of(neutral, file, scene, options)
    drawn = {"tessera": batches_of(img, Tessera(options.tessera, job), options, folder)}
    for kind in PEERS:
        try:
            drawn[kind] = batches_of(img, Worker(rig, kind, job, folder), options, folder)
        except RuntimeError as error:
            print("%s: %s cannot: %s" % (scene[0], kind, error), flush=True)
    names = list(drawn)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            print(
                "%-24s %-18s %s"
                % (scene[0], one + "/" + other, compared(drawn[one], drawn[other])),
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rig")
    parser.add_argument("scenes")
    parser.add_argument("tessera")
    parser.add_argument("--only")
    parser.add_argument("--batches", type=int, default=16)
    parser.add_argument("--spp", type=int, default=32)
    parser.add_argument("--size", default="192x144")
    options = parser.parse_args()
    rig, options.scenes = os.path.abspath(options.rig), os.path.abspath(options.scenes)
    sys.path.insert(0, rig)
    print("%-24s %-18s |z|<2  mean    blocks of 8 x 8, 5 to 95 %%" % ("scene", "renderers"))
    for scene in SCENES:
        if options.only in (None, scene[0]):
            with tempfile.TemporaryDirectory(prefix="agree_") as folder:
                measure(rig, scene, options, folder)


main()
