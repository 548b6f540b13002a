"""A worker of the rig that draws glass too: runs the rig's own script with its materials of
KHR_materials_transmission replaced.

    VENV/bin/python benches/peers/glass_worker.py JOB.json      # started by glass_compare.py

The rig's scripts run from their first statement to their last, as they are; where the scene is
about to be made (Mitsuba) or has just been made (Cycles, LuxCore), this file puts glass where
opaque dielectrics would stand. Only closed, fully transmissive glass of one index is told: a
dielectric interface (smooth, or GGX by the roughness), tinted by the base colour at each crossing
as glTF says, and absorption by distance. What is thin, textured in its transmission, or has layers
is refused, not drawn as something else.
"""

import json
import os
import sys

import numpy as np

from rig import run_with

SMOOTH = (
    1e-3  # roughness from which a facet is rough: below it Tessera's lobe is as narrow as it gets
)


def glass_of(material):
    """What a glTF material says of glass, or None where it is opaque."""
    extensions = material.get("extensions", {})
    transmission = extensions.get("KHR_materials_transmission")
    if not transmission:
        return None
    name = material.get("name", "")
    volume = extensions.get("KHR_materials_volume")
    known = {"KHR_materials_transmission", "KHR_materials_ior", "KHR_materials_volume"}
    if not volume or not volume.get("thicknessFactor"):
        raise ValueError("glass %r is thin: only closed volumes can be compared" % name)
    if transmission.get("transmissionFactor", 0) != 1 or "transmissionTexture" in transmission:
        raise ValueError(
            "glass %r lets a part of the light through: "
            "only a factor of 1 without a texture can be compared"
            % name
        )
    if set(extensions) - known:
        raise ValueError(
            "glass %r has layers that cannot be compared: %s"
            % (name, sorted(set(extensions) - known))
        )
    colour, distance = volume.get("attenuationColor", [1, 1, 1]), volume.get("attenuationDistance")
    absorption = -np.log(np.maximum(colour, 1e-6)) / distance if distance else np.zeros(3)
    return {
        "ior": extensions.get("KHR_materials_ior", {}).get("ior", 1.5),
        "absorption": [float(x) for x in absorption],
    }


def read_glass(neutral):
    """Lets the rig's reader keep what it knows nothing of, as `glass` of its materials."""
    plain = neutral.load

    def load(path):
        scene = plain(path)
        materials = scene["gltf"].j.get("materials", [])
        for mesh in scene["meshes"]:
            index = mesh["mat_index"]
            mesh["mat"]["glass"] = glass_of(materials[index]) if index >= 0 else None
        return scene

    neutral.load = load


def rough_of(textures, material):
    """Perceptual roughness: a map, or a number; None where the surface is smooth."""
    if textures["rough"] is not None:
        return textures["rough"]
    return material["roughness"] if material["roughness"] > SMOOTH else None


# ---- Mitsuba ----
def without_glass(opaque):
    def make_bsdf(scene, material, *rest):
        if material["glass"]:
            raise ValueError("only Mitsuba's llvm variant has glass here")
        return opaque(scene, material, *rest)

    return make_bsdf


def absorbing(mi, dr):
    """The class of materials around a medium, which only exists where Mitsuba is loaded."""

    class Absorbing(mi.BSDF):
        """A dielectric around a medium. What a path meets from inside came through the medium from
        where it was before: `si.t` is the way.
        """

        def __init__(self, properties):
            mi.BSDF.__init__(self, properties)
            interface = self.interface = properties["interface"]
            self.absorption = mi.Color3f(
                *[properties["absorption_" + channel] for channel in "rgb"]
            )
            self.m_components = [interface.flags(k) for k in range(interface.component_count())]
            self.m_flags = interface.flags()

        def left(self, si):
            inside = mi.Frame3f.cos_theta(si.wi) < 0
            return dr.select(inside, dr.exp(-self.absorption * si.t), 1)

        def sample(self, ctx, si, s1, s2, active):
            sample, weight = self.interface.sample(ctx, si, s1, s2, active)
            return sample, weight * self.left(si)

        def eval(self, ctx, si, wo, active):
            return self.interface.eval(ctx, si, wo, active) * self.left(si)

        def pdf(self, ctx, si, wo, active):
            return self.interface.pdf(ctx, si, wo, active)

        def eval_pdf(self, ctx, si, wo, active):
            value, density = self.interface.eval_pdf(ctx, si, wo, active)
            return value * self.left(si), density

        def to_string(self):
            return "Absorbing[]"

    return Absorbing


def mitsuba_glass(names, scene, material):
    """The description of a glass, as Mitsuba reads it."""
    neutral, bitmap, rgb = (names[key] for key in ("neutral", "bitmap", "rgb"))
    glass = material["glass"]
    textures = neutral.textures(scene, material)
    rough = rough_of(textures, material)
    base = (
        bitmap(textures["base"], True) if textures["base"] is not None else rgb(material["base"])
    )
    interface = {
        "type": "dielectric",
        "int_ior": float(glass["ior"]),
        "ext_ior": 1.0,
        "specular_transmittance": base,
    }
    if rough is not None:
        alpha = np.maximum(np.square(rough), 1e-3)
        alpha = bitmap(alpha.astype(np.float32), True) if alpha.ndim else float(alpha)
        interface.update(type="roughdielectric", distribution="ggx", alpha=alpha)
    if not any(glass["absorption"]):
        return interface
    absorption = {
        "absorption_" + channel: value for channel, value in zip("rgb", glass["absorption"])
    }
    return {"type": "absorbing", "interface": interface, **absorption}


def mitsuba(names):
    """Replaces make_bsdf: glass is a dielectric whose inner side dims light by the way that it
    came.
    """
    opaque = names["make_bsdf"]
    if not names["JIT"]:  # there are no materials of one's own
        names["make_bsdf"] = without_glass(opaque)
        return

    def make_bsdf(scene, material, mirrored, mode, strip):
        if not material["glass"]:
            return opaque(scene, material, mirrored, mode, strip)
        return mitsuba_glass(names, scene, material), None

    names["mi"].register_bsdf("absorbing", absorbing(names["mi"], names["dr"]))
    names["make_bsdf"] = make_bsdf


# ---- Cycles ----
def cycles_material(tree, principled, glass):
    """The importer's Principled node as glass: its colour squared, because the node takes the root
    of it, and absorption as a volume.
    """
    output = next(node for node in tree.nodes if node.type == "OUTPUT_MATERIAL")
    for link in list(output.inputs["Volume"].links):
        tree.links.remove(link)
    tree.links.new(
        principled.outputs[0], output.inputs["Surface"]
    )  # with matte materials the rig has put another node there
    for name in ("Transmission Weight", "IOR", "Alpha"):
        for link in list(principled.inputs[name].links):
            tree.links.remove(link)
    principled.inputs["Transmission Weight"].default_value = 1.0
    principled.inputs["IOR"].default_value = glass["ior"]
    principled.inputs["Alpha"].default_value = 1.0
    base = principled.inputs["Base Color"]
    base.default_value = [x * x for x in base.default_value[:3]] + [1.0]
    if base.links:
        square = tree.nodes.new("ShaderNodeVectorMath")
        square.operation = "MULTIPLY"
        source = base.links[0].from_socket
        tree.links.new(source, square.inputs[0])
        tree.links.new(source, square.inputs[1])
        tree.links.new(square.outputs[0], base)
    most = max(glass["absorption"])
    if most > 0:  # an absorbing volume takes density x (1 - colour) a metre
        volume = tree.nodes.new("ShaderNodeVolumeAbsorption")
        volume.inputs["Density"].default_value = most
        volume.inputs["Color"].default_value = [1 - x / most for x in glass["absorption"]] + [1.0]
        tree.links.new(volume.outputs[0], output.inputs["Volume"])


def cycles(names):
    """Changes what the importer made of the glass."""
    with open(names["J"]["scene"], "rb") as file:
        data = file.read()
    document = (
        data[20 : 20 + int.from_bytes(data[12:16], "little")] if data[:4] == b"glTF" else data
    )
    wanted = {m.get("name"): glass_of(m) for m in json.loads(document).get("materials", [])}
    for material in names["bpy"].data.materials:
        glass = wanted.pop(material.name, None)
        if not glass:
            continue
        tree = material.node_tree
        cycles_material(
            tree, next(node for node in tree.nodes if node.type == "BSDF_PRINCIPLED"), glass
        )
    missed = [name for name, glass in wanted.items() if glass]
    if missed:
        raise ValueError("Blender has no material for %s" % missed)


# ---- LuxCore ----
def luxcore(names):
    """Defines the glass materials again, which the scene takes for those that it has."""
    neutral, scene, texture = names["neutral"], names["sc"], names["texture"]
    for index, mesh in enumerate(scene["meshes"]):
        material = mesh["mat"]
        glass = material["glass"]
        if not glass:
            continue
        textures = neutral.textures(scene, material)
        rough = rough_of(textures, material)
        made = []
        base = (
            texture(made, textures["base"])
            if textures["base"] is not None
            else "%g %g %g" % tuple(material["base"][:3])
        )
        name = "m%d" % index
        lines = [
            "scene.materials.%s.type = %s" % (name, "glass" if rough is None else "roughglass"),
            "scene.materials.%s.kr = 1 1 1" % name,
            "scene.materials.%s.kt = %s" % (name, base),
            "scene.materials.%s.interiorior = %g" % (name, glass["ior"]),
        ]
        if rough is not None:
            alpha = np.maximum(np.square(rough), 1e-3)
            value = texture(made, alpha, "red") if alpha.ndim else "%g" % alpha
            lines += ["scene.materials.%s.%sroughness = %s" % (name, axis, value) for axis in "uv"]
        if any(glass["absorption"]):
            lines = (
                [
                    "scene.volumes.v%s.type = clear" % name,
                    "scene.volumes.v%s.absorption = %g %g %g" % (name, *glass["absorption"]),
                    "scene.volumes.v%s.ior = %g" % (name, glass["ior"]),
                ]
                + lines
                + ["scene.materials.%s.volume.interior = v%s" % (name, name)]
            )
        for properties in made:
            names["scene"].Parse(properties)
        names["scene"].Parse(names["P"]().SetFromString("\n".join(lines) + "\n"))


# Script: the statement before which glass is put in, and how.
PLACES = {
    "peer_mitsuba.py": ("with Clock() as c_load", mitsuba),
    "peer_cycles.py": ("first = render", cycles),
    "peer_luxcore.py": ("first = render", luxcore),
}


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    sys.path.insert(0, job["rig"])
    import neutral

    read_glass(neutral)
    place, put_in = PLACES[job["script"]]
    run_with(os.path.join(job["rig"], job["script"]), place, put_in)


main()
