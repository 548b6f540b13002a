//! Rough refracting glass: energy from inside and outside, and how much of it goes through.

use super::layered::PLAIN;
use crate::math::sampling::slanted;
use tessera_kernels::test_hooks::*;

const INDICES: [f32; 6] = [1.1, 1.2, 1.33, 1.5, 1.8, 2.5];
const ROUGHNESSES: [f32; 7] = [0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0];

/// White glass met from air, or from inside.
fn glass(index: f32, roughness: f32, inside: bool) -> LayeredSurface {
    let f0 = ((index - 1.0) / (index + 1.0)).powi(2);
    let eta = if inside { 1.0 / index } else { index };
    LayeredSurface { transmission: 1.0, refracts: 1.0, roughness, f0: [f0; 3], eta, ..PLAIN }
}

/// Points in the unit cube of four dimensions that fill it evenly: multiples of powers of the root
/// of x^5 = x + 1.
fn even(at: u32) -> [f32; 4] {
    const ROOT: f64 = 1.167_303_978_261_418_7;
    [1, 2, 3, 4].map(|power| {
        let place = (0.5 + f64::from(at) / ROOT.powi(power)).fract();
        (place as f32).min(0.999_999_9)
    })
}

/// What a white world gives back to a cosine, or to all of them if there is none: shares reflected
/// and let through.
fn shares(surface: &LayeredSurface, cosine: Option<f32>, count: u32) -> [f64; 2] {
    let mut shares = [0.0; 2];
    for at in 0..count {
        let [lobe, x, y, place] = even(at);
        let wo = slanted(cosine.unwrap_or_else(|| place.sqrt().max(1e-3)));
        let sample = layered_sample(surface, wo, [lobe, x, y]);
        if sample[6] > 0.0 {
            shares[usize::from(sample[2] < 0.0)] += f64::from(sample[3]) / f64::from(count);
        }
    }
    shares
}

/// 0.0025 of this is the table's interpolation, the rest is noise.
#[test]
fn rough_glass_keeps_its_energy_on_both_sides() {
    for index in INDICES {
        for roughness in ROUGHNESSES {
            for inside in [false, true] {
                let [back, through] = shares(&glass(index, roughness, inside), None, 250_000);
                let what = format!("index {index}, roughness {roughness}, inside {inside}");
                println!("{what}: {back:.4} + {through:.4} = {:.4}", back + through);
                assert!((0.995..1.005).contains(&(back + through)), "{what}: {back} {through}");
            }
        }
    }
}

/// As above for single directions. Near grazing the table is coarse.
#[test]
fn rough_glass_keeps_the_energy_of_every_direction() {
    for index in INDICES {
        for roughness in ROUGHNESSES {
            for cosine in [0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0] {
                let surface = glass(index, roughness, true);
                let seen: f64 = shares(&surface, Some(cosine), 30_000).iter().sum();
                let what = format!("index {index}, roughness {roughness}, cosine {cosine}");
                assert!((0.975..1.02).contains(&seen), "{what}: {seen}");
            }
        }
    }
}

/// Right values: random walks on the microsurface itself (Heitz et al. 2016, "Multiple-Scattering
/// Microfacet BSDFs with the Smith Model"), 400,000 of them for each. They know every scattering,
/// and are reciprocal: what they let out is what they let in over the square of the index. A single
/// refraction alone lets out up to 0.033 more than they do.
#[test]
fn rough_glass_reflects_as_much_as_its_microsurface() {
    let walks = [
        (1.1, 0.3, 0.0397, 0.2069),
        (1.1, 0.6, 0.0172, 0.1872),
        (1.1, 1.0, 0.0061, 0.1786),
        (1.5, 0.3, 0.0750, 0.5898),
        (1.5, 0.6, 0.0471, 0.5758),
        (1.5, 0.8, 0.0333, 0.5703),
        (1.5, 1.0, 0.0226, 0.5651),
        (2.5, 0.3, 0.2132, 0.8740),
        (2.5, 0.6, 0.1698, 0.8668),
        (2.5, 0.8, 0.1339, 0.8619),
        (2.5, 1.0, 0.0959, 0.8546),
    ];
    for (index, roughness, outside, inside) in walks {
        for (is_inside, want) in [(false, outside), (true, inside)] {
            let [seen, _] = shares(&glass(index, roughness, is_inside), None, 60_000);
            let what = format!("index {index}, roughness {roughness}, inside {is_inside}");
            println!("{what}: {seen:.4}, walks {want}");
            assert!((seen - want).abs() < 0.036, "{what}: {seen}, not {want}");
        }
    }
}

/// The base colour is of what goes through alone, and a surface that lets nothing through has no
/// such lobe.
#[test]
fn what_rough_glass_loses_inside_comes_back_white() {
    let white = glass(1.5, 1.0, true);
    let black = LayeredSurface { base_color: [0.0; 3], ..white };
    let [back, through] = shares(&white, None, 60_000);
    let [same, none] = shares(&black, None, 60_000);
    assert!((back - same).abs() < 0.005 && through > 0.4 && none == 0.0, "{back} {same} {none}");
    let plain = LayeredSurface { transmission: 0.0, ..black };
    let [plain, _] = shares(&plain, None, 60_000);
    assert!(plain < 0.5 * back, "{plain} {back}");
}
