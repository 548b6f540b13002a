//! What a scene and its unit make the kernels do, read from the flattened scene: the proof is worth
//! what its scenes use.

use std::collections::BTreeSet;

use tessera_layout::*;
use tessera_support::scenes::Case;

/// Every feature that a proof of the kernels has to use.
pub(crate) const ALL: [&str; 68] = [
    "lobe: dielectric",
    "lobe: metal",
    "lobe: mixed",
    "lobe: smooth",
    "lobe: rough",
    "lobe: multiple scattering",
    "lobe: another index of refraction",
    "layer: specular",
    "layer: coat",
    "layer: coat normal",
    "layer: sheen",
    "layer: pane",
    "layer: volume",
    "layer: absorption",
    "layer: dispersion",
    "layer: nested media",
    "layer: media of other priorities",
    "layer: diffuse transmission",
    "layer: grain",
    "layer: film",
    "layer: specular and glossiness",
    "layer: every texture",
    "light: none",
    "light: clamped",
    "light: point",
    "light: point with a range",
    "light: spot",
    "light: directional",
    "light: triangle",
    "light: textured triangle",
    "light: constant environment",
    "light: environment map",
    "light: turned environment",
    "light: single-sided",
    "light: double-sided",
    "camera: perspective",
    "camera: orthographic",
    "camera: thin lens",
    "camera: lens with blades",
    "camera: near and far",
    "texture: srgb8",
    "texture: linear8",
    "texture: linear16",
    "texture: repeat",
    "texture: clamp",
    "texture: mirror",
    "texture: nearest",
    "texture: bilinear",
    "texture: second coordinates",
    "texture: transform",
    "texture: base colour",
    "texture: metallic-roughness",
    "texture: normal",
    "texture: emission",
    "alpha: opaque",
    "alpha: mask",
    "alpha: blend",
    "surface: unlit",
    "surface: vertex colours",
    "surface: mirrored tangents",
    "aov: albedo",
    "aov: normal",
    "aov: depth",
    "aov: position",
    "aov: half",
    "filter: box",
    "filter: gaussian",
    "filter: blackman-harris",
];

/// The features of one case.
pub(crate) fn of(case: &Case) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let scene: &FlatScene = &case.scene;
    let shown: BTreeSet<u32> = scene.triangles.iter().map(|triangle| triangle.material).collect();
    for material in shown.iter().map(|at| &scene.materials[*at as usize]) {
        surfaces(&mut found, material);
        textures(&mut found, scene, material);
    }
    layers(&mut found, scene, &shown);
    vertices(&mut found, scene);
    lights(&mut found, scene);
    camera(&mut found, &scene.camera);
    unit(&mut found, &case.unit);
    found
}

fn add(found: &mut BTreeSet<&'static str>, name: &'static str, is_used: bool) {
    if is_used {
        found.insert(name);
    }
}

fn surfaces(found: &mut BTreeSet<&'static str>, material: &Material) {
    let (metallic, roughness) = (material.metallic, material.roughness);
    add(found, "lobe: dielectric", metallic == 0.0);
    add(found, "lobe: metal", metallic == 1.0);
    add(found, "lobe: mixed", metallic > 0.0 && metallic < 1.0);
    add(found, "lobe: smooth", roughness < 0.15);
    add(found, "lobe: rough", roughness > 0.5);
    // A rough metal loses a third of what it scatters only once.
    add(found, "lobe: multiple scattering", metallic == 1.0 && roughness > 0.8);
    add(found, "lobe: another index of refraction", material.ior != 1.5);
    add(found, "alpha: opaque", material.alpha_mode == AlphaMode::Opaque as u32);
    add(found, "alpha: mask", material.alpha_mode == AlphaMode::Mask as u32);
    add(found, "alpha: blend", material.alpha_mode == AlphaMode::Blend as u32);
    add(found, "surface: unlit", material.flags & material_flags::UNLIT != 0);
}

fn textures(found: &mut BTreeSet<&'static str>, scene: &FlatScene, material: &Material) {
    let uses = [
        ("texture: base colour", &material.base_color_texture),
        ("texture: metallic-roughness", &material.metallic_roughness_texture),
        ("texture: normal", &material.normal_texture),
        ("texture: emission", &material.emission_texture),
    ];
    for (name, used) in uses.into_iter().filter(|(_, used)| used.texture != NONE) {
        let texture = &scene.textures[used.texture as usize];
        add(found, name, true);
        add(found, "texture: second coordinates", used.uv_set == 1);
        add(found, "texture: transform", used.uv_from_mesh != TextureRef::ABSENT.uv_from_mesh);
        add(found, "texture: srgb8", texture.format == TexelFormat::Rgba8Srgb as u32);
        add(found, "texture: linear8", texture.format == TexelFormat::Rgba8Linear as u32);
        add(found, "texture: linear16", texture.format == TexelFormat::Rgba16Linear as u32);
        for wrap in [texture.wrap_u, texture.wrap_v] {
            add(found, "texture: repeat", wrap == Wrap::Repeat as u32);
            add(found, "texture: clamp", wrap == Wrap::ClampToEdge as u32);
            add(found, "texture: mirror", wrap == Wrap::MirroredRepeat as u32);
        }
        add(found, "texture: nearest", texture.bilinear == 0);
        add(found, "texture: bilinear", texture.bilinear == 1);
    }
}

fn layers(found: &mut BTreeSet<&'static str>, scene: &FlatScene, shown: &BTreeSet<u32>) {
    let numbers =
        shown.iter().map(|at| scene.materials[*at as usize].layers).filter(|number| *number != 0);
    let all: Vec<&Layers> = numbers.map(|number| &scene.layers[number as usize]).collect();
    let media: Vec<&Medium> = all
        .iter()
        .filter(|layers| layers.medium != 0)
        .map(|layers| &scene.media[layers.medium as usize])
        .collect();
    add(found, "layer: nested media", media.len() > 1);
    add(
        found,
        "layer: media of other priorities",
        media.iter().any(|medium| medium.priority != media[0].priority),
    );
    for medium in media {
        add(found, "layer: absorption", medium.absorption != [0.0; 3]);
        add(found, "layer: dispersion", medium.half_spread > 0.0);
    }
    let is_used = |place: usize| all.iter().any(|layers| layers.textures[place].texture != NONE);
    add(found, "layer: every texture", (0..LAYERS_TEXTURES).all(is_used));
    for layers in &all {
        let has_normal = layers.textures[LayersTexture::ClearcoatNormal as usize].texture != NONE;
        add(found, "layer: specular", layers.specular != 1.0);
        add(found, "layer: coat", layers.clearcoat > 0.0);
        add(found, "layer: coat normal", has_normal);
        add(found, "layer: sheen", layers.sheen_color != [0.0; 3]);
        add(found, "layer: pane", layers.transmission > 0.0 && layers.medium == 0);
        add(found, "layer: volume", layers.transmission > 0.0 && layers.medium != 0);
        add(found, "layer: diffuse transmission", layers.diffuse_transmission > 0.0);
        add(found, "layer: grain", layers.anisotropy > 0.0);
        add(found, "layer: film", layers.iridescence > 0.0);
        let is_archived = layers.flags & layers_flags::SPECULAR_GLOSSINESS != 0;
        add(found, "layer: specular and glossiness", is_archived);
    }
}

fn vertices(found: &mut BTreeSet<&'static str>, scene: &FlatScene) {
    for vertex in scene.vertices.iter() {
        add(found, "surface: vertex colours", vertex.color != [1.0; 4]);
        add(found, "surface: mirrored tangents", vertex.tangent_sign == -1.0);
    }
}

fn lights(found: &mut BTreeSet<&'static str>, scene: &FlatScene) {
    add(found, "light: none", scene.lights.is_empty());
    for light in scene.lights.iter() {
        let is = |kind: LightKind| light.kind == kind as u32;
        add(found, "light: point", is(LightKind::Point) && light.range == 0.0);
        add(found, "light: point with a range", is(LightKind::Point) && light.range > 0.0);
        add(found, "light: spot", is(LightKind::Spot));
        add(found, "light: directional", is(LightKind::Directional));
        add(
            found,
            "light: constant environment",
            is(LightKind::Environment) && scene.environment.width == 0,
        );
        add(
            found,
            "light: environment map",
            is(LightKind::Environment) && scene.environment.width > 0,
        );
        if is(LightKind::Triangle) {
            let triangle = &scene.triangles[light.triangle as usize];
            let material = &scene.materials[triangle.material as usize];
            let is_textured = material.emission_texture.texture != NONE;
            let is_double = material.flags & material_flags::DOUBLE_SIDED != 0;
            add(found, "light: triangle", !is_textured);
            add(found, "light: textured triangle", is_textured);
            add(found, "light: single-sided", !is_double);
            add(found, "light: double-sided", is_double);
        }
    }
    let is_turned =
        scene.environment.map_from_world != [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    add(found, "light: turned environment", scene.environment.width > 0 && is_turned);
}

fn camera(found: &mut BTreeSet<&'static str>, camera: &Camera) {
    let is_perspective = camera.kind == CameraKind::Perspective as u32;
    add(found, "camera: perspective", is_perspective && camera.lens_radius == 0.0);
    let has_lens = is_perspective && camera.lens_radius > 0.0;
    add(found, "camera: thin lens", has_lens && camera.blades == 0);
    add(found, "camera: lens with blades", has_lens && camera.blades > 0);
    add(found, "camera: orthographic", camera.kind == CameraKind::Orthographic as u32);
    add(found, "camera: near and far", camera.near > 0.0 && camera.far.is_finite());
}

fn unit(found: &mut BTreeSet<&'static str>, unit: &UnitParams) {
    add(found, "aov: albedo", unit.aovs & Aov::Albedo as u32 != 0);
    add(found, "aov: normal", unit.aovs & Aov::Normal as u32 != 0);
    add(found, "aov: depth", unit.aovs & Aov::Depth as u32 != 0);
    add(found, "aov: position", unit.aovs & Aov::Position as u32 != 0);
    add(found, "aov: half", unit.aovs & Aov::Half as u32 != 0);
    add(found, "light: clamped", unit.clamp > 0.0);
    add(found, "filter: box", unit.filter == PixelFilter::Box as u32);
    add(found, "filter: gaussian", unit.filter == PixelFilter::Gaussian as u32);
    add(found, "filter: blackman-harris", unit.filter == PixelFilter::BlackmanHarris as u32);
}
