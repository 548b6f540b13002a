"""Scenes made with Blender: lamps over a floor, a room behind a window, a row of materials.

Each is exported by Blender's own glTF exporter, as an artist would, and rendered by Cycles with the
same camera. Lengths in metres.
"""

import math

import bpy


def begin(width, height):
    """Empties Blender. Returns its scene, set up for a comparison of means: Cycles without clamps,
    filters of caustics or adaptive sampling."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.engine = "CYCLES"
    scene.render.resolution_x, scene.render.resolution_y = width, height
    scene.render.resolution_percentage = 100
    scene.render.image_settings.file_format = "OPEN_EXR"
    scene.render.image_settings.color_depth = "32"
    cycles = scene.cycles
    cycles.device = "CPU"
    cycles.use_adaptive_sampling = False
    cycles.use_denoising = False
    cycles.sample_clamp_direct = cycles.sample_clamp_indirect = 0.0
    cycles.caustics_reflective = cycles.caustics_refractive = True
    cycles.blur_glossy = 0.0
    cycles.max_bounces = cycles.diffuse_bounces = cycles.glossy_bounces = 32
    cycles.transmission_bounces = cycles.transparent_max_bounces = 32
    cycles.pixel_filter_type = "BOX"
    return scene


def material(name, **inputs):
    """A Principled material; the names of its inputs have underscores for spaces."""
    made = bpy.data.materials.new(name)
    made.use_nodes = True
    node = next(n for n in made.node_tree.nodes if n.type == "BSDF_PRINCIPLED")
    for key, value in inputs.items():
        node.inputs[key.replace("_", " ")].default_value = value
    return made


def matte(name, grey):
    """Lambert's diffuse reflection."""
    return material(
        name, Base_Color=(grey, grey, grey, 1.0), Roughness=1.0, Specular_IOR_Level=0.0
    )


def box(name, size, place, look):
    """A box of a size about a place."""
    bpy.ops.mesh.primitive_cube_add(size=1.0, location=place)
    made = bpy.context.object
    made.name, made.scale = name, size
    made.data.materials.append(look)


def camera(scene, place, turn, degrees=60.0):
    """The scene's camera; `turn` in degrees about x, y and z."""
    data = bpy.data.cameras.new("camera")
    data.angle = math.radians(degrees)
    made = bpy.data.objects.new("camera", data)
    made.location = place
    made.rotation_euler = [math.radians(angle) for angle in turn]
    scene.collection.objects.link(made)
    scene.camera = made


def lamp(scene, kind, place=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0), **values):
    """A lamp of Blender: SUN, POINT or SPOT."""
    data = bpy.data.lights.new(kind.lower(), kind)
    for key, value in values.items():
        setattr(data, key, value)
    made = bpy.data.objects.new(kind.lower(), data)
    made.location = place
    made.rotation_euler = [math.radians(angle) for angle in turn]
    scene.collection.objects.link(made)


LAMPS = {
    "sun": ("SUN", {"energy": 3.0, "angle": 0.001}),
    "point": ("POINT", {"energy": 100.0, "shadow_soft_size": 0.001}),
    "spot": ("SPOT", {"energy": 200.0, "shadow_soft_size": 0.001, "spot_size": 1.2}),
    "spot-blend-0": (
        "SPOT",
        {"energy": 200.0, "shadow_soft_size": 0.001, "spot_size": 1.2, "spot_blend": 0.0},
    ),
}


def lamp_over_floor(name):
    """One lamp straight above a matte floor, which the camera sees from above."""
    scene = begin(64, 64)
    bpy.ops.mesh.primitive_plane_add(size=20.0)
    bpy.context.object.data.materials.append(matte("floor", 0.8))
    kind, values = LAMPS[name]
    lamp(scene, kind, place=(0.0, 0.0, 2.0), **values)
    camera(scene, (0.0, 0.0, 4.0), (0.0, 0.0, 0.0), 20.0)
    return scene


def room():
    """A room with a window of glass in the sun. The sun is wide, so that Cycles finds it by chance:
    it casts no shadow rays through glass."""
    scene = begin(64, 48)
    wall = matte("wall", 0.8)
    # White: glTF tints once a face, Blender with the root of the colour.
    white = (1.0, 1.0, 1.0, 1.0)
    glass = material(
        "glass", Base_Color=white, Transmission_Weight=1.0, Roughness=0.0, IOR=1.45
    )
    box("floor", (4.2, 4.2, 0.1), (0.0, 0.0, -0.05), wall)
    box("ceiling", (4.2, 4.2, 0.1), (0.0, 0.0, 2.55), wall)
    box("back", (4.2, 0.1, 2.5), (0.0, 2.05, 1.25), wall)
    box("front", (4.2, 0.1, 2.5), (0.0, -2.05, 1.25), wall)
    box("left", (0.1, 4.0, 2.5), (-2.05, 0.0, 1.25), wall)
    # The right wall has a hole of 1.6 by 1.2 m.
    box("below", (0.1, 4.0, 0.8), (2.05, 0.0, 0.4), wall)
    box("above", (0.1, 4.0, 0.5), (2.05, 0.0, 2.25), wall)
    box("beside", (0.1, 1.2, 1.2), (2.05, 1.4, 1.4), wall)
    box("beside too", (0.1, 1.2, 1.2), (2.05, -1.4, 1.4), wall)
    box("pane", (0.01, 1.6, 1.2), (2.05, 0.0, 1.4), glass)
    lamp(scene, "SUN", turn=(0.0, 55.0, 0.0), energy=20.0, angle=math.radians(12.0))
    camera(scene, (-0.5, -1.9, 1.3), (88.0, 0.0, 0.0), 90.0)
    return scene


MATERIALS = {
    "matte": {"Roughness": 1.0, "Specular_IOR_Level": 0.0},
    "plastic": {"Roughness": 0.4},
    "metal": {"Roughness": 0.3, "Metallic": 1.0},
    "coat": {"Roughness": 0.8, "Coat_Weight": 1.0, "Coat_Roughness": 0.1},
    "emission": {"Emission_Color": (0.6, 0.4, 0.2, 1.0), "Emission_Strength": 1.0},
    "alpha": {"Roughness": 0.6, "Alpha": 0.5},
}
GREY_WORLD = 0.7


def ball(name):
    """A ball of a material before a grey world."""
    scene = begin(48, 48)
    world = bpy.data.worlds.new("world")
    world.use_nodes = True
    grey = (GREY_WORLD, GREY_WORLD, GREY_WORLD, 1.0)
    world.node_tree.nodes["Background"].inputs["Color"].default_value = grey
    scene.world = world
    bpy.ops.mesh.primitive_uv_sphere_add(segments=64, ring_count=32, radius=1.0)
    made = bpy.context.object
    bpy.ops.object.shade_smooth()
    look = material(name, **{"Base_Color": (0.6, 0.5, 0.3, 1.0), **MATERIALS[name]})
    made.data.materials.append(look)
    camera(scene, (0.0, 0.0, 6.0), (0.0, 0.0, 0.0), 25.0)
    return scene
