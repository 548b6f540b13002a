"""Writes a scene of clear glass that all renderers understand alike: glassware on a table, to be
lit by a map.

    VENV/bin/python benches/peers/glass_scene.py RIG OUT.glb

All pieces are closed, smooth and of one index, 1.5, with no more than air inside: a solid ball, a
bubble (whose inner surface faces its own air), a tumbler turned from one profile, and a bar of
green glass that absorbs. Behind them stand a matte and a metal ball. RIG is the folder of
make_scenes.py, whose shapes and writer these are.
"""

import sys

import numpy as np

sys.path.insert(0, sys.argv[1])
import make_scenes as shapes  # noqa: E402


def glass(builder, name, colour=None, distance=1.0):
    """A clear material; with a colour, what is left of white light after `distance`."""
    index = builder.material(name, (1, 1, 1), rough=0.0, double=False)
    volume = {"thicknessFactor": 0.1}
    if colour:
        volume.update(attenuationColor=list(colour), attenuationDistance=distance)
    extensions = {
        "KHR_materials_transmission": {"transmissionFactor": 1.0},
        "KHR_materials_ior": {"ior": 1.5},
        "KHR_materials_volume": volume,
    }
    builder.j["materials"][index]["extensions"] = extensions
    return index


def inwards(part):
    """A shape that faces what it encloses."""
    position, normal, uv, triangles = part
    return position, -np.asarray(normal), uv, np.asarray(triangles)[:, ::-1]


def turned(centre, profile, around, along):
    """What a closed profile of (radius, height) becomes on a lathe; the profile runs so that the
    glass lies to its left.
    """
    corners = np.array(profile + profile[:1], float)
    length = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])

    def surface(u, v):
        # Rounded corners keep smooth normals smooth: a mean over a fortieth of the length.
        steps = np.linspace(-0.0125, 0.0125, 9)
        radius, height = (
            np.mean(
                [np.interp(((v + s) % 1) * length[-1], length, corners[:, k]) for s in steps], 0
            )
            for k in (0, 1)
        )
        angle = u * 2 * np.pi
        return (
            centre[0] + radius * np.sin(angle),
            centre[1] + height,
            centre[2] + radius * np.cos(angle),
        )

    return shapes.grid(around, along, surface)


def main():
    builder = shapes.Builder()
    x, z = np.eye(3)[0], np.eye(3)[2]
    table = builder.material("table", (0.62, 0.55, 0.47), rough=0.8)
    matte = builder.material("matte", (0.7, 0.16, 0.1), rough=1.0)
    metal = builder.material("metal", (0.9, 0.9, 0.92), rough=0.3, metal=1.0)
    clear = glass(builder, "clear")
    green = glass(builder, "green", (0.35, 0.85, 0.5), 0.5)
    builder.mesh("table", [shapes.quad([-4, 0, -4], z * 8, x * 8)], table)
    builder.mesh("matte ball", [shapes.sphere([0.15, 0.45, -1.1], 0.45, 64)], matte)
    builder.mesh("metal ball", [shapes.sphere([-1.25, 0.4, -0.7], 0.4, 64)], metal)
    builder.mesh("ball", [shapes.sphere([-0.65, 0.401, 0.45], 0.4, 128)], clear)
    bubble = [0.5, 0.351, 0.75]
    builder.mesh(
        "bubble",
        [shapes.sphere(bubble, 0.35, 128), inwards(shapes.sphere(bubble, 0.32, 128))],
        clear,
    )
    # Up the outer side, over the rim, down the inner one.
    profile = [(0.001, 0.0), (0.3, 0.0), (0.36, 0.9), (0.33, 0.9), (0.27, 0.08), (0.001, 0.08)]
    builder.mesh("tumbler", [turned([1.15, 0.001, -0.25], profile, 160, 200)], clear)
    builder.mesh("bar", shapes.box([-0.25, 0.001, -0.2], [0.15, 0.6, 0.1], 0.5), green)
    builder.camera([0.15, 1.5, 4.2], [0.1, 0.35, 0], 32)
    builder.j["extensionsUsed"] = [
        "KHR_materials_transmission",
        "KHR_materials_ior",
        "KHR_materials_volume",
    ]
    builder.save(sys.argv[2])


main()
