//! What glTF's material extensions look like, each against its formula. Energy, pdfs and
//! stacks of them are layered.rs's.

use crate::math::sampling::slanted;
use crate::surface::layered::PLAIN;
use tessera_kernels::test_hooks::{LayeredSurface, bsdf, layered};
use tessera_layout::*;
use tessera_support::builder::*;

const UP: [f32; 3] = [0.0, 0.0, 1.0];

/// Nothing below and no reflection of its own: what is seen is the layer alone.
const NOTHING: LayeredSurface =
    LayeredSurface { base_color: [0.0; 3], f0: [0.0; 3], f90: 0.0, ..PLAIN };

/// The same direction mirrored at the surface.
fn mirrored([x, y, z]: [f32; 3]) -> [f32; 3] {
    [-x, -y, z]
}

/// What an orthographic camera sees of a wall that faces it, in an environment of `texel` (column,
/// row) of 16 x 8.
fn wall(look: Material, layers: Option<Layers>, texel: impl Fn(u32, u32) -> [f32; 3]) -> [f64; 3] {
    let mut builder = Builder::default();
    let look = match layers {
        Some(layers) => builder.add_layered(look, layers),
        None => builder.add_material(look),
    };
    builder.quad([[-9.0, -9.0, 0.0], [9.0, -9.0, 0.0], [9.0, 9.0, 0.0], [-9.0, 9.0, 0.0]], look);
    builder.map(16, 8, texel);
    builder.camera = camera_at([0.0, 0.0, 4.0], CameraKind::Orthographic, 0.02);
    seen(builder, 256)
}

fn seen(builder: Builder, samples: u32) -> [f64; 3] {
    let unit = whole(4, 4, samples, 6);
    let means = means(&builder.finish(), &unit);
    [0, 1, 2].map(|channel| channel_mean(&means, &unit, channel))
}

#[track_caller]
fn assert_near(got: [f64; 3], want: [f64; 3], margin: f64) {
    let far = got.iter().zip(want).any(|(got, want)| (got - want).abs() > margin);
    assert!(!far, "{got:?}, not {want:?}");
}

/// ClearCoatTest's columns: over something black, a coat is the plain dielectric of the coat's
/// roughness.
#[test]
fn a_coat_over_black_is_a_dielectric_of_its_own_roughness() {
    for roughness in [0.1, 0.3, 0.6] {
        let coated = LayeredSurface { clearcoat: 1.0, clearcoat_roughness: roughness, ..NOTHING };
        let half = LayeredSurface { clearcoat: 0.5, ..coated };
        for cosine in [1.0, 0.8, 0.4] {
            let (wo, wi) = (slanted(cosine), mirrored(slanted(0.97 * cosine)));
            let [got, ..] = layered(&coated, wo, wi);
            let [want, ..] = bsdf(&[0.0, 0.0, 0.0, 0.0, roughness, 0.04], wo, wi);
            let what = format!("roughness {roughness}, cosine {cosine}");
            assert!((got / want - 1.0).abs() < 0.03, "{what}: {got}, not {want}");
            let [partly, ..] = layered(&half, wo, wi);
            assert!((partly / got - 0.5).abs() < 1e-4, "{what}: {partly} is not half of {got}");
        }
    }
}

#[test]
fn sheen_is_seen_at_grazing_angles_in_its_colour() {
    let velvet = LayeredSurface { sheen_color: [0.8, 0.4, 0.2], sheen_roughness: 0.3, ..NOTHING };
    let [ahead, ..] = layered(&velvet, UP, UP);
    let [red, green, blue, _] = layered(&velvet, slanted(0.3), slanted(0.3));
    assert!(ahead < 0.01 * red, "{ahead} ahead, {red} at the edge");
    assert!(
        (red / green - 2.0).abs() < 1e-3 && (green / blue - 2.0).abs() < 1e-3,
        "{red} {green} {blue}"
    );
    assert_eq!(layered(&NOTHING, slanted(0.3), slanted(0.3))[0], 0.0);
}

/// SpecularTest's rows: the factor takes the whole reflection away, the colour that of the middle
/// alone.
#[test]
fn a_specular_colour_tints_the_middle_and_leaves_the_edge_white() {
    let diffuse = LayeredSurface { f0: [0.0; 3], f90: 0.0, ..PLAIN };
    for (wo, wi) in [(UP, slanted(0.5)), (slanted(0.3), mirrored(slanted(0.3)))] {
        let (got, want) = (layered(&diffuse, wo, wi)[0], wi[2] / std::f32::consts::PI);
        assert!((got / want - 1.0).abs() < 1e-3, "{got}, not {want}");
    }
    let tinted =
        LayeredSurface { base_color: [0.0; 3], f0: [0.04, 0.02, 0.01], roughness: 0.1, ..PLAIN };
    let [red, green, blue, _] = layered(&tinted, UP, UP);
    assert!(
        (red / green - 2.0).abs() < 0.01 && (green / blue - 2.0).abs() < 0.01,
        "{red} {green} {blue}"
    );
    let edge = slanted(0.01);
    let [red, _, blue, _] = layered(&tinted, edge, mirrored(edge));
    assert!(blue > 0.97 * red && red > 0.0, "{red} {blue}");
}

#[test]
fn a_brushed_highlight_is_wide_along_its_grain() {
    let tilt = unit([0.5, 0.0, 1.0]);
    let [along, across] = [tilt, [0.0, tilt[0], tilt[2]]];
    let at = |anisotropy: f32, wi: [f32; 3]| {
        let metal = LayeredSurface { metallic: 1.0, roughness: 0.4, anisotropy, ..PLAIN };
        layered(&metal, UP, wi)[0]
    };
    assert!((at(0.0, along) / at(0.0, across) - 1.0).abs() < 1e-4);
    assert!(at(0.8, along) > 3.0 * at(0.8, across), "{} {}", at(0.8, along), at(0.8, across));
    assert!(at(0.8, along) > 1.5 * at(0.0, along), "{} {}", at(0.8, along), at(0.0, along));
}

#[test]
fn a_smooth_wall_gives_back_what_its_index_says() {
    for ior in [1.33f32, 1.5, 2.42, 1e6] {
        let look = Material { ior, ..material([0.0; 3], 0.0, 0.0) };
        let share = ((f64::from(ior) - 1.0) / (f64::from(ior) + 1.0)).powi(2);
        let got = wall(look, None, |_, _| [1.0; 3]);
        assert_near(got, [share; 3], 0.002 + 0.01 * share);
    }
}

#[test]
fn a_thin_pane_tints_the_light_that_it_does_not_reflect() {
    let pane = Layers { transmission: 1.0, ..Layers::NONE };
    let look = material([1.0, 0.5, 0.25], 0.0, 0.0);
    // Light from behind, which is where the map's edges are; then from the camera's side.
    let is_behind = |column: u32| !(4..12).contains(&column);
    let lit = |behind: bool| wall(look, Some(pane), |x, _| [f32::from(is_behind(x) == behind); 3]);
    assert_near(lit(true), [0.96, 0.48, 0.24], 0.01);
    assert_near(lit(false), [0.04; 3], 0.005);
}

#[test]
fn the_archived_model_reflects_its_specular_colour() {
    let with = |diffuse: [f32; 3], specular_color: [f32; 3]| {
        let flags = layers_flags::SPECULAR_GLOSSINESS;
        wall(
            material(diffuse, 0.0, 0.0),
            Some(Layers { flags, specular_color, ..Layers::NONE }),
            |_, _| [1.0; 3],
        )
    };
    assert_near(with([0.0; 3], [0.9, 0.3, 0.1]), [0.9, 0.3, 0.1], 0.01);
    assert_near(with([0.8, 0.4, 0.2], [0.0; 3]), [0.8, 0.4, 0.2], 0.02);
}

/// A ray that meets a ball of glass beside its middle is bent by 2 (asin b - asin (b / n)): a band
/// of light behind the ball, as narrow as the angles between colours, is seen in one colour.
#[test]
fn a_ball_of_glass_with_dispersion_parts_the_colours() {
    const DISPERSION: f32 = 5.0;
    const BESIDE: f64 = 0.6;
    // KHR_materials_dispersion: the indices of red and blue lie this far from green's.
    let spread = (1.5 - 1.0) * 0.025 * f64::from(DISPERSION);
    let angle = |ior: f64| 2.0 * (BESIDE.asin() - (BESIDE / ior).asin());
    let angles = [-1.0, 0.0, 1.0].map(|side| angle(1.5 + side * spread));
    let look = |dispersion: f32, band: f64| {
        let mut builder = Builder::default();
        let layers = Layers { transmission: 1.0, ..Layers::NONE };
        let inside =
            Medium { half_spread: Medium::half_spread_of(1.5, dispersion), ..Medium::GLASS };
        let glass = builder.add_closed(material([1.0; 3], 0.0, 0.0), layers, inside);
        builder.sphere(256, glass);
        // Bent towards the axis, a ray leaves towards -Z, and as far to -X as it is bent.
        builder.map(2048, 4, |column, _| {
            let bent = std::f64::consts::TAU * (1.0 - (f64::from(column) + 0.5) / 2048.0);
            [f32::from((bent - band).abs() < 0.012); 3]
        });
        builder.camera = camera_at([BESIDE as f32, 0.0, 4.0], CameraKind::Orthographic, 0.001);
        seen(builder, 1024)
    };
    let clear = look(0.0, angles[1]);
    assert!(clear.iter().all(|share| *share > 0.8), "{clear:?}");
    for (channel, band) in angles.into_iter().enumerate() {
        let seen = look(DISPERSION, band);
        for (other, share) in seen.into_iter().enumerate() {
            assert!(
                if other == channel { share > 0.8 } else { share < 0.1 },
                "band of {channel}: {seen:?}"
            );
        }
    }
}
