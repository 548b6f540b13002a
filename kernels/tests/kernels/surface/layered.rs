//! Surfaces with glTF's extensions, lobe by lobe and in stacks: energy, pdfs, reciprocity, and
//! the plain surface as the case without any.

use crate::math::sampling::{
    CELLS, Random, SAMPLES, assert_chi_squared, cell_of, integrate, slanted,
};
use tessera_kernels::test_hooks::*;
use tessera_support::builder::unit;

/// A white dielectric without extensions.
pub(crate) const PLAIN: LayeredSurface = LayeredSurface {
    base_color: [1.0; 3],
    metallic: 0.0,
    roughness: 0.5,
    f0: [0.04; 3],
    f90: 1.0,
    clearcoat: 0.0,
    clearcoat_roughness: 0.0,
    sheen_color: [0.0; 3],
    sheen_roughness: 0.5,
    transmission: 0.0,
    diffuse_transmission: 0.0,
    diffuse_transmission_color: [1.0; 3],
    anisotropy: 0.0,
    iridescence: 0.0,
    film_ior: 1.3,
    film_thickness: 400.0,
    eta: 1.5,
    refracts: 0.0,
};

const COAT: LayeredSurface = LayeredSurface { clearcoat: 1.0, clearcoat_roughness: 0.3, ..PLAIN };
const SHEEN: LayeredSurface =
    LayeredSurface { sheen_color: [1.0; 3], sheen_roughness: 0.6, ..PLAIN };
const PANE: LayeredSurface = LayeredSurface { transmission: 1.0, ..PLAIN };
const GLASS: LayeredSurface = LayeredSurface { transmission: 1.0, refracts: 1.0, ..PLAIN };
const LEAF: LayeredSurface = LayeredSurface { diffuse_transmission: 0.6, ..PLAIN };
const BRUSHED: LayeredSurface =
    LayeredSurface { anisotropy: 0.6, roughness: 0.4, metallic: 1.0, ..PLAIN };
const FILM: LayeredSurface = LayeredSurface { iridescence: 1.0, ..PLAIN };

/// Everything that there is, by name.
fn all() -> Vec<(&'static str, LayeredSurface)> {
    vec![
        ("plain", PLAIN),
        ("metal", LayeredSurface { metallic: 1.0, ..PLAIN }),
        ("weak specular", LayeredSurface { f0: [0.01; 3], f90: 0.25, ..PLAIN }),
        ("strong specular", LayeredSurface { f0: [0.6; 3], ..PLAIN }),
        ("coat", COAT),
        ("coated metal", LayeredSurface { metallic: 1.0, clearcoat: 0.7, ..COAT }),
        ("sheen", SHEEN),
        ("coated sheen", LayeredSurface { clearcoat: 0.8, clearcoat_roughness: 0.4, ..SHEEN }),
        ("pane", PANE),
        ("half a pane", LayeredSurface { transmission: 0.5, metallic: 0.2, ..PANE }),
        ("glass", GLASS),
        ("frosted glass", LayeredSurface { roughness: 0.7, ..GLASS }),
        ("glass from inside", LayeredSurface { eta: 1.0 / 1.5, ..GLASS }),
        ("half of glass", LayeredSurface { transmission: 0.5, ..GLASS }),
        ("leaf", LEAF),
        (
            "coated leaf with sheen",
            LayeredSurface { clearcoat: 0.5, sheen_color: [0.4; 3], ..LEAF },
        ),
        ("brushed metal", BRUSHED),
        ("brushed plastic", LayeredSurface { metallic: 0.0, ..BRUSHED }),
        ("brushed glass", LayeredSurface { anisotropy: 0.5, ..GLASS }),
        ("brushed glass from inside", LayeredSurface { anisotropy: 0.5, eta: 1.0 / 1.5, ..GLASS }),
        ("film", FILM),
        ("film on metal", LayeredSurface { metallic: 1.0, base_color: [0.9, 0.6, 0.3], ..FILM }),
        ("film on glass", LayeredSurface { iridescence: 0.8, ..GLASS }),
    ]
}

/// Mean weight of samples: all that a white world gives back, and the error of the mean.
fn albedo(surface: &LayeredSurface, cosine: f32, count: u32) -> [f64; 3] {
    let mut random = Random(7);
    let mut sums = [0.0; 3];
    // Turned, because a brushed surface is not the same along its grain and across.
    let [x, _, z] = slanted(cosine);
    let wo = unit([0.8 * x, 0.6 * x, z]);
    for at in 0..count {
        let lobe = (at as f32 + random.unit()) / count as f32;
        let sample =
            layered_sample(surface, wo, [lobe.min(0.999_999), random.unit(), random.unit()]);
        if sample[6] > 0.0 {
            (0..3).for_each(|channel| sums[channel] += f64::from(sample[3 + channel]));
        }
    }
    sums.map(|sum| sum / f64::from(count))
}

#[test]
fn without_extensions_it_is_the_plain_surface() {
    let mut random = Random(11);
    for _ in 0..20_000 {
        let [r, g, b] = [random.unit(), random.unit(), random.unit()];
        let (metallic, roughness) = (random.unit(), random.unit().max(0.05));
        let surface = LayeredSurface { base_color: [r, g, b], metallic, roughness, ..PLAIN };
        let wo = slanted(0.02 + 0.97 * random.unit());
        let direction = shape(Shape::Cosine, [random.unit(), random.unit()]);
        let wi = unit([direction[0], direction[1], direction[2] + 1e-3]);
        let got = layered(&surface, wo, wi);
        let want = bsdf(&[r, g, b, metallic, roughness, 0.04], wo, wi);
        for channel in 0..3 {
            let (got, want) = (got[channel], want[channel]);
            assert!((got - want).abs() <= 3e-4 * want.max(1e-3), "{surface:?}: {got} {want}");
        }
    }
}

/// Share that a white surface gives back at least. The tables of a brushed surface know its
/// roughness in a direction, not its neighbours'.
fn least(surface: &LayeredSurface) -> f64 {
    if surface.anisotropy > 0.0 { 0.97 } else { 0.99 }
}

#[test]
fn white_surfaces_keep_the_energy_that_they_get() {
    for (name, surface) in all().into_iter().filter(|(name, _)| !name.contains("film")) {
        for roughness in [0.0, 0.3, 0.6, 1.0] {
            let surface = LayeredSurface { roughness, ..surface };
            for cosine in [1.0, 0.6, 0.25] {
                // Weights of light from inside rough glass vary more.
                let is_inside = surface.refracts > 0.0 && surface.eta < 1.0;
                let count = if is_inside { 200_000 } else { 20_000 };
                let [seen, ..] = albedo(&surface, cosine, count);
                // 0.006 is noise and the tables' interpolation.
                let most = if surface.anisotropy > 0.0 { 1.025 } else { 1.006 };
                let what = format!("{name}, roughness {roughness}, cosine {cosine}: {seen:.4}");
                println!("{what}");
                assert!((least(&surface)..most).contains(&seen), "{what}");
            }
        }
    }
}

#[test]
fn no_surface_gives_back_more_than_it_gets() {
    let mut random = Random(12);
    for (name, surface) in all() {
        for _ in 0..6 {
            let surface = LayeredSurface {
                base_color: [random.unit(), random.unit(), random.unit()],
                roughness: random.unit(),
                clearcoat: surface.clearcoat * random.unit(),
                sheen_roughness: random.unit(),
                film_thickness: 1200.0 * random.unit(),
                film_ior: 1.0 + random.unit(),
                ..surface
            };
            let cosine = 0.1 + 0.9 * random.unit();
            let seen = albedo(&surface, cosine, 8_000);
            let most = if surface.anisotropy > 0.0 { 1.04 } else { 1.02 };
            assert!(
                seen.iter().all(|share| (0.0..most).contains(share)),
                "{name}: {seen:?} {surface:?}"
            );
        }
    }
}

#[test]
fn layered_directions_are_drawn_by_their_pdf() {
    let mut random = Random(13);
    for (at, (name, surface)) in all().into_iter().enumerate() {
        let surface = LayeredSurface {
            roughness: surface.roughness.max(0.5),
            clearcoat_roughness: surface.clearcoat_roughness.max(0.5),
            ..surface
        };
        {
            let cosine = [0.9, 0.35][at % 2];
            let [x, _, z] = slanted(cosine);
            let wo = unit([0.8 * x, 0.6 * x, z]);
            let (mut counts, mut lost) = (vec![0.0; CELLS], 0.0);
            for _ in 0..SAMPLES {
                let sample =
                    layered_sample(&surface, wo, [random.unit(), random.unit(), random.unit()]);
                if sample[6] > 0.0 {
                    counts[cell_of([sample[0], sample[1], sample[2]])] += 1.0;
                } else {
                    lost += 1.0;
                }
            }
            let pdf = integrate(12, |wi| f64::from(layered(&surface, wo, wi)[3]));
            let total: f64 = pdf.iter().sum();
            let what = format!("{name}, cosine {cosine}");
            let missing = 1.0 - total - lost / SAMPLES as f64;
            assert!(missing.abs() < 0.01, "{what}: pdf {total}, lost {lost}");
            let expected: Vec<f64> = pdf.iter().map(|pdf| pdf * SAMPLES as f64).collect();
            assert_chi_squared(&what, &counts, &expected);
        }
    }
}

#[test]
fn a_layered_direction_weighs_its_value_over_its_pdf() {
    let mut random = Random(14);
    for (name, surface) in all() {
        for _ in 0..2_000 {
            let surface = LayeredSurface { roughness: 0.1 + 0.9 * random.unit(), ..surface };
            let wo = slanted(0.05 + 0.94 * random.unit());
            let sample =
                layered_sample(&surface, wo, [random.unit(), random.unit(), random.unit()]);
            if sample[6] <= 0.0 {
                continue;
            }
            let value = layered(&surface, wo, [sample[0], sample[1], sample[2]]);
            for channel in 0..3 {
                let ratio = value[channel] / value[3];
                let weight = sample[3 + channel];
                assert!(
                    (weight - ratio).abs() <= 1e-4 * ratio.max(1.0),
                    "{name}: {sample:?} {value:?}"
                );
                assert!((0.0..40.0).contains(&weight), "{name}: {sample:?} {surface:?}");
            }
        }
    }
}

/// What lies under a coat or sheen is lit by what they leave only at `wo`, and a film and a
/// refracted lobe are looked at from there too: the rest is reciprocal, through the surface as
/// well.
#[test]
fn surfaces_without_a_top_layer_are_reciprocal() {
    let mut random = Random(15);
    for (name, surface) in all() {
        if surface.clearcoat > 0.0
            || surface.sheen_color != [0.0; 3]
            || surface.iridescence > 0.0
            || surface.refracts > 0.0
        {
            continue;
        }
        for _ in 0..3_000 {
            let surface = LayeredSurface { roughness: 0.25 + 0.75 * random.unit(), ..surface };
            let mut direction = || {
                let flat = shape(Shape::Cosine, [random.unit(), random.unit()]);
                unit([flat[0], flat[1], flat[2] + 0.01])
            };
            let (a, b) = (direction(), direction());
            let below = |d: [f32; 3]| [d[0], d[1], -d[2]];
            for (there, back) in [(b, a), (below(b), below(a))] {
                let (one, two) = (layered(&surface, a, there), layered(&surface, b, back));
                for channel in 0..3 {
                    let (one, two) = (one[channel] / b[2], two[channel] / a[2]);
                    assert!(
                        (one - two).abs() <= 4e-4 * one.max(two).max(1e-2),
                        "{name}: {one} {two}"
                    );
                }
            }
        }
    }
}

/// Snell's law, by the directions that smooth glass sends light to.
#[test]
fn smooth_glass_bends_light_by_its_index() {
    let mut random = Random(16);
    for (eta, cosine) in [(1.5f32, 0.5f32), (1.33, 0.9), (1.0 / 1.5, 0.9)] {
        let surface = LayeredSurface { roughness: 0.0, eta, ..GLASS };
        let mut bent = 0;
        for _ in 0..500 {
            let sample = layered_sample(
                &surface,
                slanted(cosine),
                [random.unit(), random.unit(), random.unit()],
            );
            if sample[6] > 0.0 && sample[2] < 0.0 {
                let want = -(1.0 - cosine * cosine).sqrt() / eta;
                assert!((sample[0] - want).abs() < 0.02, "eta {eta}: {sample:?}");
                bent += 1;
            }
        }
        assert!(bent > 350, "eta {eta}: {bent} of 500 went through");
    }
    let total = LayeredSurface { roughness: 0.0, eta: 1.0 / 1.5, ..GLASS };
    let [seen, ..] = albedo(&total, 0.5, 2_000);
    let through = layered(&total, slanted(0.5), [-0.6, 0.0, -0.8]);
    assert!(seen > 0.98 && through[0] == 0.0, "total reflection keeps all: {seen}, {through:?}");
}

#[test]
fn a_thin_film_has_colours_and_a_film_of_no_thickness_has_not() {
    let black = LayeredSurface { base_color: [0.0; 3], roughness: 0.3, ..FILM };
    let spread = |surface: &LayeredSurface| {
        let [r, g, b] = albedo(surface, 0.9, 4_000);
        (r.max(g).max(b) - r.min(g).min(b)) / (r + g + b)
    };
    assert!(spread(&black) > 0.05, "{}", spread(&black));
    let thin = LayeredSurface { film_thickness: 0.0, ..black };
    assert!(spread(&thin) < 0.02, "{}", spread(&thin));
}
