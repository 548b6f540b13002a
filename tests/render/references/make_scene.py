"""Makes the textured test scene and its sky: tests/render/scenes/textured-knot.glb and sky.hdr.

    python make_scene.py        (needs numpy and Pillow)

A torus knot with base colour, metallic-roughness and normal textures stands on a plane. All of it
is computed here.
"""

import io, json, os, struct
import numpy as np
from PIL import Image

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenes")
SIZE = 128


def knot(turns=2, loops=3, around=24, along=160, radius=0.22):
    """A torus knot as a tube: positions, normals, tangents (xyzw), UVs and triangles."""
    t = np.linspace(0, 2 * np.pi, along + 1)

    def centre(t):
        r = 0.62 + 0.26 * np.cos(loops * t)
        return np.stack(
            [r * np.cos(turns * t), 0.26 * np.sin(loops * t), r * np.sin(turns * t)], -1
        )

    c = centre(t)
    d = centre(t + 1e-4) - centre(t - 1e-4)
    d /= np.linalg.norm(d, axis=-1, keepdims=True)
    side = np.cross(d, c)
    side /= np.linalg.norm(side, axis=-1, keepdims=True)
    up = np.cross(side, d)
    a = np.linspace(0, 2 * np.pi, around + 1)
    n = np.cos(a)[None, :, None] * side[:, None] + np.sin(a)[None, :, None] * up[:, None]
    p = c[:, None] + radius * n
    # The tangent runs along u, made orthogonal to the normal. glTF's bitangent runs against v:
    # cross(n, t) must be -dp/dv, or the texture would be mirrored; where it is, u is turned round.
    du = np.gradient(p, axis=0)
    dv = np.gradient(p, axis=1)
    tangent = du - n * np.sum(du * n, -1, keepdims=True)
    tangent /= np.linalg.norm(tangent, axis=-1, keepdims=True)
    mirrored = np.sum(np.cross(n, tangent) * dv) > 0
    direction = -1.0 if mirrored else 1.0
    tangent = np.concatenate([direction * tangent, np.ones(p.shape[:2] + (1,))], -1)
    uv = np.stack(
        np.broadcast_arrays(direction * 8 * t[:, None] / (2 * np.pi), 2 * a[None, :] / (2 * np.pi)),
        -1,
    )
    i, j = np.meshgrid(np.arange(along), np.arange(around), indexing="ij")
    q = i * (around + 1) + j
    quads = np.stack([q, q + around + 1, q + around + 2, q + 1], -1).reshape(-1, 4)
    tris = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    flat = lambda x, k: np.ascontiguousarray(x.reshape(-1, k), np.float32)
    p, n = flat(p, 3), flat(n, 3)
    face = np.cross(p[tris[:, 1]] - p[tris[:, 0]], p[tris[:, 2]] - p[tris[:, 0]])
    if np.sum(face * n[tris[:, 0]]) < 0:
        tris = tris[:, ::-1]
    return p, n, flat(tangent, 4), flat(uv, 2), np.ascontiguousarray(tris, np.uint32)


def textures():
    """Base colour, metallic-roughness and normal map of glazed bricks, each SIZE x SIZE x 3 bytes.
    """
    y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    row = np.floor(y * 4)
    u, v = (x * 2 + 0.5 * (row % 2)) % 1, (y * 4) % 1
    edge = np.minimum(np.minimum(u, 1 - u) * 2, np.minimum(v, 1 - v))
    height = np.clip(edge / 0.12, 0, 1)
    height = height * height * (3 - 2 * height)
    brick = np.floor(x * 2 + 0.5 * (row % 2)) * 7 + row * 3
    hue = (np.sin(brick * 12.9898) * 43758.5453) % 1
    base = (
        np.stack([0.75 - 0.3 * hue, 0.25 + 0.35 * hue, 0.2 + 0.5 * hue * hue], -1)
        * height[..., None]
    )
    base += np.array([0.55, 0.53, 0.5]) * (1 - height[..., None])
    rough = 0.9 - 0.65 * height
    metal = (hue > 0.6) * (height > 0.5)
    mr = np.stack([np.zeros_like(x), rough, metal], -1)
    gx = (np.roll(height, -1, 1) - np.roll(height, 1, 1)) * 1.2
    gy = (np.roll(height, -1, 0) - np.roll(height, 1, 0)) * 1.2
    n = np.stack([-gx, gy, np.ones_like(x)], -1)
    n /= np.linalg.norm(n, axis=-1, keepdims=True)
    byte = lambda a: np.clip(np.round(a * 255), 0, 255).astype(np.uint8)
    return byte(base), byte(mr), byte(n * 0.5 + 0.5)


class Glb:
    """Collects buffer views and accessors."""

    def __init__(self):
        self.data, self.views, self.accessors = b"", [], []

    def view(self, raw, target=None):
        self.data += b"\0" * (-len(self.data) % 4)
        entry = dict(buffer=0, byteOffset=len(self.data), byteLength=len(raw))
        if target:
            entry["target"] = target
        self.views.append(entry)
        self.data += raw
        return len(self.views) - 1

    def accessor(self, array, kind, bounds=False):
        integer = array.dtype == np.uint32
        entry = dict(
            bufferView=self.view(array.tobytes(), 34963 if integer else 34962),
            count=array.size if integer else len(array),
            componentType=5125 if integer else 5126,
            type=kind,
        )
        if bounds:
            entry.update(min=array.min(0).tolist(), max=array.max(0).tolist())
        self.accessors.append(entry)
        return len(self.accessors) - 1

    def png(self, pixels):
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "PNG", optimize=True)
        return self.view(out.getvalue())

    def write(self, path, document):
        self.data += b"\0" * (-len(self.data) % 4)
        document.update(
            buffers=[dict(byteLength=len(self.data))],
            bufferViews=self.views,
            accessors=self.accessors,
        )
        text = json.dumps(document, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)
        chunks = (
            struct.pack("<II", len(text), 0x4E4F534A)
            + text
            + struct.pack("<II", len(self.data), 0x004E4942)
            + self.data
        )
        open(path, "wb").write(struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks)


def scene():
    g = Glb()
    p, n, t, uv, tris = knot()
    images = [dict(bufferView=g.png(a), mimeType="image/png") for a in textures()]
    solid = dict(
        POSITION=g.accessor(p, "VEC3", True),
        NORMAL=g.accessor(n, "VEC3"),
        TANGENT=g.accessor(t, "VEC4"),
        TEXCOORD_0=g.accessor(uv, "VEC2"),
    )
    ground = np.array([[-3, -0.55, -3], [-3, -0.55, 3], [3, -0.55, 3], [3, -0.55, -3]], np.float32)
    up = np.tile(np.array([[0, 1, 0]], np.float32), (4, 1))
    plane = dict(POSITION=g.accessor(ground, "VEC3", True), NORMAL=g.accessor(up, "VEC3"))
    g.write(
        os.path.join(OUT, "textured-knot.glb"),
        dict(
            asset=dict(version="2.0", generator="tests/render/references/make_scene.py"),
            scene=0,
            scenes=[dict(nodes=[0, 1, 2])],
            nodes=[
                dict(mesh=0, name="knot"),
                dict(mesh=1, name="ground"),
                dict(
                    camera=0,
                    name="view",
                    translation=[0, 1.1, 2.4],
                    rotation=[-0.2079117, 0, 0, 0.9781476],
                ),
            ],
            cameras=[dict(type="perspective", perspective=dict(yfov=0.7, znear=0.01))],
            meshes=[
                dict(
                    primitives=[
                        dict(
                            attributes=solid, indices=g.accessor(tris.ravel(), "SCALAR"), material=0
                        )
                    ]
                ),
                dict(
                    primitives=[
                        dict(
                            attributes=plane,
                            indices=g.accessor(np.array([0, 1, 2, 0, 2, 3], np.uint32), "SCALAR"),
                            material=1,
                        )
                    ]
                ),
            ],
            materials=[
                dict(
                    name="glazed bricks",
                    normalTexture=dict(index=2),
                    pbrMetallicRoughness=dict(
                        baseColorTexture=dict(index=0), metallicRoughnessTexture=dict(index=1)
                    ),
                ),
                dict(
                    name="floor",
                    pbrMetallicRoughness=dict(
                        baseColorFactor=[0.5, 0.5, 0.52, 1], metallicFactor=0, roughnessFactor=0.45
                    ),
                ),
            ],
            textures=[dict(source=k, sampler=0) for k in range(3)],
            samplers=[dict(magFilter=9729, minFilter=9729, wrapS=10497, wrapT=10497)],
            images=images,
        ),
    )


def sky(width=128, height=64):
    """A gradient sky with a soft sun, as uncompressed Radiance RGBE."""
    y, x = np.mgrid[0:height, 0:width]
    theta = (y + 0.5) / height * np.pi
    phi = ((x + 0.5) / width - 0.5) * 2 * np.pi
    d = np.stack([-np.sin(phi) * np.sin(theta), np.cos(theta), np.cos(phi) * np.sin(theta)], -1)
    up = d[..., 1]
    blue = np.array([0.25, 0.45, 0.9]) * (0.4 + 0.6 * np.clip(up, 0, 1))[..., None]
    earth = np.array([0.18, 0.15, 0.12])
    rgb = np.where((up > 0)[..., None], blue + 0.5 * np.exp(-6 * np.abs(up))[..., None], earth)
    sun = np.array([0.5, 0.62, 0.6]) / np.linalg.norm([0.5, 0.62, 0.6])
    rgb = rgb + np.array([1.0, 0.9, 0.75]) * (60 * np.exp((d @ sun - 1) * 260))[..., None]
    top = rgb.max(-1)
    exponent = np.ceil(np.log2(top))
    mantissa = rgb / np.exp2(exponent)[..., None] * 256
    rgbe = np.concatenate([np.clip(mantissa, 0, 255), (exponent + 128)[..., None]], -1).astype(
        np.uint8
    )
    with open(os.path.join(OUT, "sky.hdr"), "wb") as f:
        f.write(
            b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y %d +X %d\n" % (height, width)
            + rgbe.tobytes()
        )


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    scene()
    sky()
