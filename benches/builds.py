#!/usr/bin/env python3
"""Two builds of tessera beside each other, on the scenes of benches/peers/run.sh.

    benches/builds.py BEFORE NOW SCENES [--rounds N] [--only NAME]...

Both render at the same time, each with one thread on a core of its own, and change cores every
round. What disturbs the machine so disturbs both, and a difference of one percent shows. Prints
the time of NOW over that of BEFORE: the median, and what it is made of. SCENES is the folder of the
shared scenes. Needs two idle cores and `taskset`.
"""

import argparse
import json
import math
import statistics
import subprocess
import tempfile
from pathlib import Path

LIBRARY = Path(__file__).resolve().parent.parent / "scenes" / "library"
STUDIO, SKY = "env/studio_small_05_1k.hdr", "env/qwantani_afternoon_puresky_1k.hdr"
# name, file, light from infinity, samples that take some seconds
SCENES = [
    ("Helmet", "DamagedHelmet.glb", STUDIO, 320),
    ("Cornell", "generated/cornell_box.glb", None, 96),
    ("Sponza", "Sponza.glb", SKY, 400),
    ("DreamApartment", "DreamApartment.glb", SKY, 500),
    ("PineTree", "PineTree.glb", SKY, 320),
    ("Spheres", "MetalRoughSpheresNoTextures.glb", STUDIO, 256),
    ("CandleHolder", "GlassHurricaneCandleHolder.glb", STUDIO, 96),
    ("ManyLights", LIBRARY / "many-lights.gltf", None, 48),
    ("TransmissionTest", "TransmissionTest.glb", STUDIO, 48),
]


def start(binary, core, scene, env, spp, folder):
    """Starts a render on one core; `env` is None for no light but the scene's own."""
    command = ["taskset", "-c", str(core), binary, "render", str(scene)]
    command += ["--output", f"{folder}/{core}.exr", "--size", "320x180", "--spp", str(spp)]
    command += ["--env", str(env or "none"), "--env-rotate", "90"]
    command += ["--threads", "1", "--device", "cpu", "--quiet", "--json"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def seconds(process):
    out, _ = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(process.args)} ended with {process.returncode}")
    return json.loads(out.strip().splitlines()[-1])["render_s"]


def pair(builds, scene, env, spp, rounds, folder):
    """Returns the ratio of each two rounds, in which each build had each core."""
    ratios = []
    for number in range(rounds):
        started = [
            start(build, (at + number) % 2, scene, env, spp, folder)
            for at, build in enumerate(builds)
        ]
        before, now = [seconds(process) for process in started]
        ratios.append(now / before)
    return [math.sqrt(a * b) for a, b in zip(ratios[0::2], ratios[1::2])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("now")
    parser.add_argument("scenes", type=Path)
    parser.add_argument("--rounds", type=int, default=6, help="an even number")
    parser.add_argument("--only", action="append")
    options = parser.parse_args()
    if options.rounds < 2 or options.rounds % 2 != 0:
        parser.error("--rounds takes an even number, so that each build has each core as often")
    with tempfile.TemporaryDirectory() as folder:
        for name, file, env, spp in SCENES:
            if options.only and name not in options.only:
                continue
            env = options.scenes / env if env else None
            ratios = pair(
                (options.before, options.now), options.scenes / file, env, spp, options.rounds,
                folder,
            )
            parts = ", ".join(f"{ratio:.3f}" for ratio in ratios)
            print(f"{name:<17} {statistics.median(ratios):.3f} ({parts})", flush=True)


if __name__ == "__main__":
    main()
