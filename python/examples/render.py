"""Renders a scene and fetches its frames: `render.py SCENE FOLDER`."""

import sys

from tessera_farm import Farm, Render

scene, folder = sys.argv[1:3]
with Farm() as farm:
    job = farm.submit(Render(scene, width=160, height=120, spp=16, frames="1-3", formats=["png"]))
    for update in farm.watch(job):
        print(f"{update.job.state}: {update.job.progress:.0%}", file=sys.stderr)
    farm.wait(job)
    for path in farm.fetch(job, folder):
        print(path)
