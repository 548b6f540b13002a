"""Makes the reference pictures of tests/render with Mitsuba 3: an independent renderer, given the
same model of matter.

    python make.py [NAME ...] [--spp N] [--out DIR]      (needs mitsuba 3.9, numpy, Pillow, OpenEXR)

Every reference is the mean of many passes with other seeds. The material is docs/kernels.md's,
written here from its formulas in Mitsuba's own terms; its directional albedo table is integrated
here, so a wrong table on our side shows.
"""

import argparse, os
import numpy as np
import mitsuba as mi

mi.set_variant("llvm_ad_rgb")
import drjit as dr
import gltf
from material import GltfMaterial

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")

# name: scene file, environment, width, height, depth (scatterings), passes of PASS_SPP samples
REFERENCES = {
    "cornell-box": ("scenes/library/cornell-box.gltf", None, 96, 96, 5),
    "material-row": ("scenes/library/material-row.gltf", "sky.hdr", 128, 64, 5),
    "textured-knot": ("tests/render/scenes/textured-knot.glb", "sky.hdr", 96, 72, 5),
}
PASS_SPP = 1024


def texture(image, raw):
    bitmap = mi.Bitmap(np.array(image, order="C"))
    bitmap.set_srgb_gamma(not raw)
    return mi.load_dict(
        dict(type="bitmap", bitmap=bitmap, raw=raw, wrap_mode="repeat", filter_type="bilinear")
    )


def number(value):
    return mi.load_dict(dict(type="uniform", value=float(value)))


def bsdf(m):
    if m["base_image"] is not None:
        assert list(m["base"]) == [
            1,
            1,
            1,
        ], "factors on textures are not used by the reference scenes"
        base = texture(m["base_image"], False)
    else:
        base = mi.load_dict(
            dict(type="srgb", color=dict(type="rgb", value=list(map(float, m["base"])))["value"])
        )
    rough = (
        texture(m["rough_image"][..., 1:2], True)
        if m["rough_image"] is not None
        else number(m["roughness"])
    )
    metal = (
        texture(m["rough_image"][..., 2:3], True)
        if m["rough_image"] is not None
        else number(m["metallic"])
    )
    result = GltfMaterial(base, rough, metal)
    if m["normal_image"] is not None:
        result = dict(type="normalmap", bsdf=result, normalmap=texture(m["normal_image"], True))
    return dict(type="twosided", bsdf=result)


def shape(name, mesh):
    properties = mi.Properties()
    properties["bsdf"] = mi.load_dict(bsdf(mesh["material"]))
    if max(mesh["material"]["emission"]) > 0:
        properties["emitter"] = mi.load_dict(
            dict(
                type="area",
                radiance=dict(type="rgb", value=[float(x) for x in mesh["material"]["emission"]]),
            )
        )
    smooth = mesh["normal"] is not None
    m = mi.Mesh(
        name,
        len(mesh["position"]),
        len(mesh["faces"]),
        props=properties,
        has_vertex_normals=smooth,
        has_vertex_texcoords=True,
    )
    p = mi.traverse(m)
    flat = lambda a: mi.Float(np.ascontiguousarray(a, np.float32).ravel())
    p["vertex_positions"], p["vertex_texcoords"] = flat(mesh["position"]), flat(mesh["uv"])
    if smooth:
        p["vertex_normals"] = flat(mesh["normal"])
    p["faces"] = mi.UInt32(mesh["faces"].ravel())
    p.update()
    return m


def environment(path):
    """An equirectangular map with row i at (i + 1/2)/height and the centre column towards +Z.

    Mitsuba puts the first and the last row on the poles; with 2h + 1 rows, every odd one a row of
    the file and every even one the mean of its neighbours, its bilinear lookup gives that of the
    file. Its centre column lies towards +Z already.
    """
    rows = np.array(
        mi.Bitmap(path).convert(mi.Bitmap.PixelFormat.RGB, mi.Struct.Type.Float32, False),
        np.float32,
    )
    wide = np.empty((2 * len(rows) + 1,) + rows.shape[1:], np.float32)
    wide[1::2], wide[0], wide[-1] = rows, rows[0], rows[-1]
    wide[2:-1:2] = (rows[1:] + rows[:-1]) / 2
    return dict(type="envmap", bitmap=mi.Bitmap(wide))


def scene(name):
    path, sky, width, height, depth = REFERENCES[name]
    meshes, camera = gltf.load(os.path.join(ROOT, path))
    # Mitsuba's camera looks along +Z with +X to the left; glTF's along -Z with +X to the right.
    turn = np.diag([-1.0, 1.0, -1.0, 1.0])
    d = dict(
        type="scene",
        integrator=dict(type="path", max_depth=depth + 1, rr_depth=depth + 2),
        sensor=dict(
            type="perspective",
            fov=float(camera["yfov"]),
            fov_axis="y",
            near_clip=1e-3,
            far_clip=1e5,
            to_world=mi.ScalarTransform4f(camera["to_world"] @ turn),
            sampler=dict(type="independent"),
            film=dict(
                type="hdrfilm",
                width=width,
                height=height,
                pixel_format="rgb",
                component_format="float32",
                rfilter=dict(type="box"),
            ),
        ),
    )
    if sky:
        d["sky"] = environment(os.path.join(HERE, "..", "scenes", sky))
    d.update({f"mesh{k}": shape(f"mesh{k}", m) for k, m in enumerate(meshes)})
    return mi.load_dict(d)


def write(path, pixels):
    import OpenEXR

    header = dict(compression=OpenEXR.ZIP_COMPRESSION, type=OpenEXR.scanlineimage)
    OpenEXR.File(header, dict(RGB=np.ascontiguousarray(pixels, np.float32))).write(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(REFERENCES))
    parser.add_argument("--spp", type=int, default=65536)
    parser.add_argument("--out", default=HERE)
    arguments = parser.parse_args()
    for name in arguments.names or REFERENCES:
        world, total, passes = scene(name), None, max(2, arguments.spp // PASS_SPP)
        halves = [0, 0]
        for k in range(passes):
            image = np.array(mi.render(world, spp=PASS_SPP, seed=k), np.float64)[..., :3]
            halves[k % 2] = halves[k % 2] + image
        total = (halves[0] + halves[1]) / passes
        a, b = halves[0] / ((passes + 1) // 2), halves[1] / (passes // 2)
        noise = np.mean((a - b) ** 2 / 4 / (total**2 + 1e-2))
        write(os.path.join(arguments.out, f"{name}.exr"), total)
        print(
            f"{name}: {passes * PASS_SPP} spp, mean {total.mean((0, 1))}, "
            f"relMSE of the reference itself about {noise:.2e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
