//! Scenes of glTF's material extensions: every layer by a factor and by a texture, volumes in
//! volumes, light from behind.

use crate::builder::*;
use crate::studio::{bright, look, texture, used};
use tessera_kernels::CheckedScene;
use tessera_layout::*;

const GLASS: Layers = Layers { transmission: 1.0, ..Layers::NONE };

fn with_textures(mut layers: Layers, uses: &[(LayersTexture, u32)]) -> Layers {
    for (place, number) in uses {
        layers.textures[*place as usize] = used(*number, *place as u32 & 1);
    }
    layers
}

/// Adds a sphere of this scale at a place.
pub fn ball(builder: &mut Builder, material: u32, scale: f32, at: [f32; 3]) {
    let first = builder.triangles.len();
    builder.sphere(6, material);
    builder.shrink(first, scale, at);
}

/// Glass that absorbs and parts colours around a lamp and a drop of something denser, two more
/// drops that reach out of it, of which one comes before the glass and the other after it, a pane,
/// and a leaf, lit from all sides.
pub fn vitrine() -> CheckedScene {
    let mut builder = Builder::default();
    let plain = builder.add_material(material([0.7, 0.6, 0.5], 0.0, 0.9));
    let absorption = [0.1, 0.4, 1.2];
    let inside =
        Medium { absorption, half_spread: Medium::half_spread_of(1.5, 4.0), ..Medium::GLASS };
    let glass = builder.add_closed(material([0.9, 1.0, 0.95], 0.0, 0.15), GLASS, inside);
    let frosted = builder.add_closed(material([0.8, 0.9, 1.0], 0.0, 0.9), GLASS, Medium::GLASS);
    let dense = Medium { absorption: [2.0, 0.2, 0.1], ..Medium::GLASS };
    let of_index = |ior| Material { ior, ..material([1.0; 3], 0.0, 0.4) };
    let drop = builder.add_closed(of_index(1.9), GLASS, dense);
    let before = builder.add_closed(of_index(1.3), GLASS, Medium { priority: 1, ..dense });
    let after = builder.add_closed(of_index(1.7), GLASS, Medium { priority: -1, ..dense });
    let pane = Layers { transmission: 0.8, ..Layers::NONE };
    let pane = builder.add_layered(material([0.8, 0.9, 1.0], 0.0, 0.3), pane);
    let leaf = Layers {
        diffuse_transmission: 0.7,
        diffuse_transmission_color: [0.5, 0.9, 0.2],
        ..Layers::NONE
    };
    let leaf = builder.add_layered(material([0.3, 0.8, 0.2], 0.0, 0.7), leaf);
    let mut lamp = material([0.2; 3], 0.0, 0.7);
    (lamp.emission, lamp.flags) = ([6.0, 5.0, 4.0], material_flags::DOUBLE_SIDED);
    let lamp = builder.add_material(lamp);
    ball(&mut builder, glass, 1.0, [0.0; 3]);
    ball(&mut builder, drop, 0.45, [-0.2, 0.1, 0.3]);
    ball(&mut builder, frosted, 0.35, [1.1, -0.5, 1.9]);
    ball(&mut builder, before, 0.4, [-0.5, -0.4, 0.7]);
    ball(&mut builder, after, 0.4, [0.1, 0.7, 0.6]);
    ball(&mut builder, plain, 0.2, [0.5, -0.3, 0.2]);
    builder
        .quad([[-3.0, -1.0, 3.0], [3.0, -1.0, 3.0], [3.0, -1.0, -3.0], [-3.0, -1.0, -3.0]], plain);
    builder.quad([[0.9, -0.9, 1.5], [1.9, -0.8, 0.9], [1.8, 1.0, 0.8], [0.8, 0.9, 1.6]], pane);
    builder.quad([[-2.0, -0.8, 1.2], [-0.8, -0.9, 1.6], [-0.7, 0.7, 1.4], [-1.9, 0.8, 1.1]], leaf);
    let inner =
        builder.quad([[0.1, 0.5, -0.2], [0.4, 0.5, -0.2], [0.4, 0.5, 0.2], [0.1, 0.6, 0.2]], lamp);
    let above = builder
        .quad([[-1.4, 2.2, -1.1], [-0.6, 2.3, -0.9], [-0.7, 2.2, 0.2], [-1.3, 2.1, 0.1]], lamp);
    for id in [inner, inner + 1, above, above + 1] {
        builder.emit(id, 1.0);
    }
    let mut point = light(LightKind::Point, [3.0, 4.0, 5.0]);
    point.position = [-1.5, 0.5, -2.0];
    builder.lights.push((point, 1.0));
    builder.map(9, 5, |x, y| [0.2 + x as f32 * 0.1, 0.4, 0.1 + y as f32 * 0.3]);
    builder.camera = look([0.0, 0.1, 4.4]);
    bright(builder)
}

/// Coats, cloth, brushed metal, films and the archived model, each with all of its textures.
pub fn wardrobe() -> CheckedScene {
    wardrobe_of([TexelFormat::Rgba8Srgb, TexelFormat::Rgba8Linear, TexelFormat::Rgba16Linear])
}

/// Coat, cloth, brushed metal, film, tint, the archived model, thin glass, by three textures.
fn textured_layers(colour: u32, data: u32, fine: u32) -> [Layers; 7] {
    use LayersTexture as T;
    let coat = Layers {
        clearcoat: 0.9,
        clearcoat_roughness: 0.6,
        clearcoat_normal_scale: 0.8,
        ..Layers::NONE
    };
    let coat = with_textures(
        coat,
        &[(T::Clearcoat, data), (T::ClearcoatRoughness, fine), (T::ClearcoatNormal, data)],
    );
    let cloth = Layers {
        sheen_color: [0.9, 0.5, 0.7],
        sheen_roughness: 0.8,
        clearcoat: 0.3,
        ..Layers::NONE
    };
    let cloth = with_textures(cloth, &[(T::SheenColor, colour), (T::SheenRoughness, colour)]);
    let (sine, cosine) = (0.6, 0.8);
    let brushed = Layers {
        anisotropy: 0.9,
        anisotropy_cosine: cosine,
        anisotropy_sine: sine,
        ..Layers::NONE
    };
    let brushed = with_textures(brushed, &[(T::Anisotropy, fine)]);
    let film = Layers { iridescence: 0.9, iridescence_thickness_max: 700.0, ..Layers::NONE };
    let film = with_textures(film, &[(T::Iridescence, data), (T::IridescenceThickness, fine)]);
    let tinted = Layers { specular: 0.8, specular_color: [2.0, 0.7, 1.2], ..Layers::NONE };
    let tinted = with_textures(tinted, &[(T::Specular, colour), (T::SpecularColor, colour)]);
    let archived = Layers {
        flags: layers_flags::SPECULAR_GLOSSINESS,
        specular_color: [0.8, 0.6, 0.3],
        ..Layers::NONE
    };
    let archived = with_textures(archived, &[(T::SpecularGlossiness, colour)]);
    let thin = Layers { transmission: 0.9, diffuse_transmission: 0.6, ..Layers::NONE };
    let thin = with_textures(
        thin,
        &[
            (T::Transmission, data),
            (T::DiffuseTransmission, colour),
            (T::DiffuseTransmissionColor, colour),
        ],
    );
    [coat, cloth, brushed, film, tinted, archived, thin]
}

/// The same as [`wardrobe`] with textures of other formats: colours, data, and finer data.
pub fn wardrobe_of([of_colour, of_data, of_fine]: [TexelFormat; 3]) -> CheckedScene {
    let mut builder = Builder::default();
    let repeat = (Wrap::Repeat, Wrap::MirroredRepeat);
    let colour = texture(&mut builder, of_colour, repeat, true, (9, 7));
    let data = texture(&mut builder, of_data, repeat, true, (11, 8));
    let fine = texture(&mut builder, of_fine, repeat, false, (6, 5));
    let [coat, cloth, brushed, film, tinted, archived, thin] = textured_layers(colour, data, fine);
    let mut steel = material([0.9, 0.85, 0.8], 1.0, 0.35);
    (steel.normal_texture, steel.normal_scale) = (used(fine, 0), 0.3);
    let looks = [
        builder.add_layered(material([0.6, 0.1, 0.1], 0.3, 0.6), coat),
        builder.add_layered(material([0.2, 0.2, 0.5], 0.0, 0.9), cloth),
        builder.add_layered(steel, brushed),
        builder.add_layered(material([0.5, 0.4, 0.3], 0.5, 0.2), film),
        builder.add_layered(material([0.4, 0.5, 0.2], 0.0, 0.3), tinted),
        builder.add_layered(material([0.3, 0.6, 0.6], 0.0, 0.5), archived),
        builder.add_layered(material([0.9, 0.8, 0.9], 0.0, 0.4), thin),
    ];
    builder.quad(
        [[-3.0, -1.0, 3.0], [3.0, -1.0, 3.0], [3.0, -1.0, -3.0], [-3.0, -1.0, -3.0]],
        looks[0],
    );
    for (at, look) in looks.into_iter().enumerate() {
        let place =
            [(at % 3) as f32 * 1.2 - 1.2, (at / 3) as f32 * 0.9 - 0.6, (at % 2) as f32 * 0.5];
        ball(&mut builder, look, 0.5, place);
    }
    let lamp = builder
        .add_material(Material { emission: [7.0, 6.0, 5.0], ..material([0.1; 3], 0.0, 1.0) });
    let lit = builder
        .quad([[-0.5, 2.4, 0.6], [-0.4, 2.4, -0.7], [0.8, 2.5, -0.6], [0.7, 2.5, 0.5]], lamp);
    builder.emit(lit, 1.0);
    builder.emit(lit + 1, 1.0);
    for (at, vertex) in builder.vertices.iter_mut().enumerate() {
        let [x, y, z] = vertex.normal;
        vertex.tangent = if vertex.tangent == [0.0; 3] { [z, 0.25, -x] } else { vertex.tangent };
        (vertex.u0, vertex.v0, vertex.uv1) = (x, y, [z, x]);
        vertex.tangent_sign = if at % 7 == 0 { -1.0 } else { 1.0 };
    }
    builder.constant([0.6, 0.7, 0.9]);
    builder.camera = look([0.0, 0.2, 4.6]);
    bright(builder)
}
