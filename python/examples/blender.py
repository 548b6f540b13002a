"""Renders what is open in Blender: `blender -b FILE.blend -P blender.py -- FOLDER`."""

import os
import sys
import tempfile

import bpy

from tessera_farm import Farm, Render

folder = sys.argv[sys.argv.index("--") + 1]
scene = bpy.context.scene
shown = scene.render
percent = shown.resolution_percentage / 100
with tempfile.TemporaryDirectory() as exported, Farm() as farm:
    glb = os.path.join(exported, f"{scene.name}.glb")
    bpy.ops.export_scene.gltf(filepath=glb, export_cameras=True, export_lights=True)
    job = farm.submit(
        Render(
            glb,
            width=max(1, round(shown.resolution_x * percent)),
            height=max(1, round(shown.resolution_y * percent)),
            spp=16,
            formats=["png"],
            # The units of Blender's exporter, unless it is told otherwise.
            options={"lights": "photometric"},
        )
    )
    farm.wait(job)
    for path in farm.fetch(job, folder):
        print(path)
