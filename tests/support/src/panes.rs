//! Thin glass between lamps and floors.

use crate::builder::*;
use tessera_kernels::CheckedScene;
use tessera_layout::*;

/// Thin glass of a colour. Without `reflects` it only dims, so that a picture behind it is known.
pub fn pane(builder: &mut Builder, color: [f32; 3], roughness: f32, reflects: bool) -> u32 {
    let layers =
        Layers { transmission: 1.0, specular: if reflects { 1.0 } else { 0.0 }, ..Layers::NONE };
    builder.add_layered(material(color, 0.0, roughness), layers)
}

/// A square of 20 m about the z axis that faces +z, at a height.
pub fn square(builder: &mut Builder, z: f32, material: u32) -> u32 {
    let corners = [[-10.0, -10.0, z], [10.0, -10.0, z], [10.0, 10.0, z], [-10.0, 10.0, z]];
    builder.quad(corners, material)
}

/// Lights beyond all panes: an environment, a lamp with an area, one without.
#[derive(Clone, Copy, PartialEq)]
pub enum Lamps {
    /// A sky of one colour.
    Environment,
    /// A square of 4 m.
    Area,
    /// A point.
    Point,
    /// All of them.
    All,
}

/// Adds lamps.
pub fn add_lamps(builder: &mut Builder, lamps: Lamps) {
    if matches!(lamps, Lamps::Environment | Lamps::All) {
        builder.constant([0.5, 0.6, 0.7]);
    }
    if matches!(lamps, Lamps::Area | Lamps::All) {
        let mut glowing = material([0.0; 3], 0.0, 1.0);
        glowing.emission = [4.0, 3.0, 2.0];
        let glowing = builder.add_material(glowing);
        let corners = [[-2.0, 2.0, 3.0], [2.0, 2.0, 3.0], [2.0, -2.0, 3.0], [-2.0, -2.0, 3.0]];
        let first = builder.quad(corners, glowing);
        builder.emit(first, 1.0);
        builder.emit(first + 1, 1.0);
    }
    if matches!(lamps, Lamps::Point | Lamps::All) {
        let mut point = light(LightKind::Point, [30.0; 3]);
        point.position = [1.0, 0.5, 4.0];
        builder.lights.push((point, 1.0));
    }
}

/// All that panes touch: several lamps, tinted and veiled and coated panes, rough ones beside them,
/// and a floor behind.
pub fn greenhouse() -> CheckedScene {
    let mut builder = Builder::default();
    let floor = builder.add_material(material([0.7, 0.6, 0.5], 0.0, 0.4));
    square(&mut builder, -1.0, floor);
    let tinted = pane(&mut builder, [0.9, 0.6, 0.8], 0.05, true);
    let mut veil = material([0.5, 0.9, 0.9], 0.0, 0.0);
    (veil.alpha_mode, veil.base_color[3]) = (AlphaMode::Blend as u32, 0.6);
    let layers = Layers {
        transmission: 0.8,
        clearcoat: 0.5,
        sheen_color: [0.1, 0.2, 0.1],
        sheen_roughness: 0.5,
        iridescence: 0.5,
        ..Layers::NONE
    };
    let veil = builder.add_layered(veil, layers);
    let rough = pane(&mut builder, [1.0; 3], 0.3, true);
    for (z, glass, shift) in [(0.0, tinted, 0.0), (0.5, veil, 8.5), (0.8, rough, -9.0)] {
        let first = builder.triangles.len();
        square(&mut builder, 0.0, glass);
        builder.shrink(first, 1.0, [shift, 0.0, z]);
    }
    add_lamps(&mut builder, Lamps::All);
    builder.camera = camera_at([0.0, 0.0, 2.0], CameraKind::Perspective, 0.8);
    builder.finish()
}
