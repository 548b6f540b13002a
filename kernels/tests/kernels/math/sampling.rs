//! Every sampler draws what its pdf says (chi-squared), pdfs integrate to one, and
//! reflection is reciprocal.

use tessera_kernels::test_hooks::*;
use tessera_layout::PixelFilter;
use tessera_support::builder::*;

/// A generator for tests (SplitMix64), not the kernels' own.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 32) as u32
    }

    pub(crate) fn unit(&mut self) -> f32 {
        (self.bits() >> 8) as f32 / (1 << 24) as f32
    }
}

/// Fails where counts differ from expectations more than chance allows once in about 10^6 runs.
/// Cells that expect few are put together.
pub(crate) fn assert_chi_squared(what: &str, counts: &[f64], expected: &[f64]) {
    let (mut statistic, mut cells, mut rest) = (0.0, 0.0, (0.0, 0.0));
    for (count, want) in counts.iter().zip(expected) {
        if *want < 5.0 {
            rest = (rest.0 + count, rest.1 + want);
        } else {
            statistic += (count - want) * (count - want) / want;
            cells += 1.0;
        }
    }
    if rest.1 > 5.0 {
        statistic += (rest.0 - rest.1) * (rest.0 - rest.1) / rest.1;
        cells += 1.0;
    } else {
        assert!(rest.0 < 40.0, "{what}: {} samples where {} are expected", rest.0, rest.1);
    }
    assert!(cells > 3.0, "{what}: too few cells");
    // Wilson and Hilferty 1931: the cube root of chi-squared over its freedom is nearly normal.
    let freedom: f64 = cells - 1.0;
    let spread = (2.0 / (9.0 * freedom)).sqrt();
    let score = ((statistic / freedom).cbrt() - (1.0 - 2.0 / (9.0 * freedom))) / spread;
    assert!(score < 4.8, "{what}: chi-squared {statistic:.1} with {freedom} degrees of freedom");
}

const ROWS: usize = 24;
const COLUMNS: usize = 24;
pub(crate) const CELLS: usize = ROWS * COLUMNS;

/// Cell of a direction: equal steps of z over [-1, 1] and of angle.
pub(crate) fn cell_of(direction: [f32; 3]) -> usize {
    let row = ((f64::from(direction[2]) + 1.0) * 0.5 * ROWS as f64) as usize;
    let turn = f64::from(direction[1]).atan2(f64::from(direction[0])) / std::f64::consts::TAU + 0.5;
    row.min(ROWS - 1) * COLUMNS + ((turn * COLUMNS as f64) as usize).min(COLUMNS - 1)
}

/// Integral of a pdf over every cell, by the midpoint rule on `fine` × `fine` points each.
pub(crate) fn integrate(fine: usize, pdf: impl Fn([f32; 3]) -> f64) -> Vec<f64> {
    let mut cells = vec![0.0; CELLS];
    let share = 2.0 / ROWS as f64 * std::f64::consts::TAU / COLUMNS as f64 / (fine * fine) as f64;
    for (index, cell) in cells.iter_mut().enumerate() {
        for point in 0..fine * fine {
            let row = (index / COLUMNS) as f64 + ((point / fine) as f64 + 0.5) / fine as f64;
            let column = (index % COLUMNS) as f64 + ((point % fine) as f64 + 0.5) / fine as f64;
            let z = row / ROWS as f64 * 2.0 - 1.0;
            let angle = (column / COLUMNS as f64 - 0.5) * std::f64::consts::TAU;
            let radius = (1.0 - z * z).max(0.0).sqrt();
            *cell += share
                * pdf([(radius * angle.cos()) as f32, (radius * angle.sin()) as f32, z as f32]);
        }
    }
    cells
}

pub(crate) fn slanted(cosine: f32) -> [f32; 3] {
    [(1.0 - cosine * cosine).sqrt(), 0.0, cosine]
}

pub(crate) const SAMPLES: usize = 100_000;

#[test]
fn reflections_are_drawn_by_their_pdf() {
    let mut random = Random(1);
    for (metallic, roughness) in [(0.0, 0.4), (0.0, 0.9), (1.0, 0.35), (1.0, 1.0), (0.5, 0.6)] {
        for cosine in [0.95, 0.5, 0.15] {
            let (surface, wo) = ([0.9, 0.5, 0.2, metallic, roughness, 0.04], slanted(cosine));
            let (mut counts, mut lost) = (vec![0.0; CELLS], 0.0);
            for _ in 0..SAMPLES {
                let sample =
                    bsdf_sample(&surface, wo, [random.unit(), random.unit(), random.unit()]);
                if sample[6] > 0.0 {
                    counts[cell_of([sample[0], sample[1], sample[2]])] += 1.0;
                } else {
                    lost += 1.0;
                }
            }
            let pdf = integrate(12, |wi| f64::from(bsdf(&surface, wo, wi)[3]));
            let what = format!("metallic {metallic} roughness {roughness} cosine {cosine}");
            let total: f64 = pdf.iter().sum();
            assert!(
                (total + lost / SAMPLES as f64 - 1.0).abs() < 0.01,
                "{what}: pdf {total}, lost {lost}"
            );
            let expected: Vec<f64> = pdf.iter().map(|d| d * SAMPLES as f64).collect();
            assert_chi_squared(&what, &counts, &expected);
        }
    }
}

#[test]
fn a_reflection_weighs_its_value_over_its_pdf() {
    let mut random = Random(2);
    for _ in 0..20_000 {
        let surface = [
            random.unit(),
            random.unit(),
            random.unit(),
            random.unit(),
            0.1 + 0.9 * random.unit(),
            0.04,
        ];
        let wo = slanted(0.02 + 0.97 * random.unit());
        let sample = bsdf_sample(&surface, wo, [random.unit(), random.unit(), random.unit()]);
        let value = bsdf(&surface, wo, [sample[0], sample[1], sample[2]]);
        if sample[6] > 0.0 {
            for channel in 0..3 {
                let ratio = value[channel] / value[3];
                assert!(
                    (sample[3 + channel] - ratio).abs() <= 1e-4 * ratio.max(1.0),
                    "{surface:?} {sample:?}"
                );
            }
            assert!(
                sample[3..6].iter().all(|weight| (0.0..8.0).contains(weight)),
                "{surface:?} {sample:?}"
            );
        }
    }
}

#[test]
fn reflection_is_reciprocal() {
    let mut random = Random(3);
    for _ in 0..20_000 {
        let surface = [
            random.unit(),
            random.unit(),
            random.unit(),
            random.unit(),
            0.2 + 0.8 * random.unit(),
            0.04,
        ];
        let direction = |random: &mut Random| {
            let flat = shape(Shape::Cosine, [random.unit(), random.unit()]);
            unit([flat[0], flat[1], flat[2] + 0.01])
        };
        let (a, b) = (direction(&mut random), direction(&mut random));
        let (there, back) = (bsdf(&surface, a, b), bsdf(&surface, b, a));
        for channel in 0..3 {
            let (there, back) = (there[channel] / b[2], back[channel] / a[2]);
            assert!(
                (there - back).abs() <= 2e-4 * there.max(back).max(1e-2),
                "{surface:?} {a:?} {b:?}"
            );
        }
    }
}

#[test]
fn a_surface_never_gives_back_more_than_it_gets() {
    for (metallic, roughness) in [(0.0, 0.3), (0.0, 1.0), (1.0, 0.4), (1.0, 1.0), (0.4, 0.7)] {
        for cosine in [1.0, 0.7, 0.3, 0.1] {
            let (white, wo) = ([1.0, 1.0, 1.0, metallic, roughness, 0.04], slanted(cosine));
            let albedo: f64 = integrate(12, |wi| f64::from(bsdf(&white, wo, wi)[0])).iter().sum();
            assert!((0.985..1.006).contains(&albedo), "{metallic} {roughness} {cosine}: {albedo}");
        }
    }
}

#[test]
fn visible_normals_are_drawn_by_their_pdf() {
    let mut random = Random(4);
    for (alpha, cosine) in [(0.2f32, 0.8f32), (0.6, 0.3), (1.0, 0.1)] {
        let wo = slanted(cosine);
        let mut counts = vec![0.0; CELLS];
        for _ in 0..SAMPLES {
            counts[cell_of(visible_normal(alpha, wo, [random.unit(), random.unit()]))] += 1.0;
        }
        let a2 = f64::from(alpha * alpha);
        let expected: Vec<f64> = integrate(12, |h| {
            let [x, y, z] = h.map(f64::from);
            let dot = f64::from(wo[0]) * x + f64::from(wo[2]) * z;
            if z <= 0.0 || dot <= 0.0 {
                return 0.0;
            }
            let spread = x * x + y * y + a2 * z * z;
            let c = f64::from(cosine);
            let masking = 2.0 / (c + (a2 + (1.0 - a2) * c * c).sqrt());
            masking * dot * a2 / (std::f64::consts::PI * spread * spread)
        });
        let expected: Vec<f64> = expected.iter().map(|d| d * SAMPLES as f64).collect();
        assert_chi_squared(&format!("alpha {alpha} cosine {cosine}"), &counts, &expected);
    }
}

#[test]
fn the_hemisphere_is_drawn_by_its_cosine() {
    let mut random = Random(5);
    let mut counts = vec![0.0; CELLS];
    for _ in 0..SAMPLES {
        counts[cell_of(shape(Shape::Cosine, [random.unit(), random.unit()]))] += 1.0;
    }
    let expected =
        integrate(8, |d| f64::from(d[2]).max(0.0) / std::f64::consts::PI * SAMPLES as f64);
    assert_chi_squared("cosine", &counts, &expected);
}

/// Counts over a 20 × 20 grid of the square from -1 to 1 against a pdf given on it.
pub(crate) fn check_flat(
    what: &str,
    mut draw: impl FnMut() -> [f32; 2],
    pdf: impl Fn(f64, f64) -> f64,
) {
    const GRID: usize = 20;
    const FINE: usize = 40;
    let mut counts = vec![0.0; GRID * GRID];
    for _ in 0..SAMPLES {
        let [x, y] =
            draw().map(|v| (((f64::from(v) + 1.0) / 2.0 * GRID as f64) as usize).min(GRID - 1));
        counts[y * GRID + x] += 1.0;
    }
    let mut expected = vec![0.0; GRID * GRID];
    let step = 2.0 / (GRID * FINE) as f64;
    for row in 0..GRID * FINE {
        for column in 0..GRID * FINE {
            let (x, y) = ((column as f64 + 0.5) * step - 1.0, (row as f64 + 0.5) * step - 1.0);
            expected[row / FINE * GRID + column / FINE] += pdf(x, y) * step * step * SAMPLES as f64;
        }
    }
    assert_chi_squared(what, &counts, &expected);
}

#[test]
fn lens_triangle_and_tent_are_drawn_evenly() {
    let mut random = Random(6);
    let mut draw = |which| {
        let at = shape(which, [random.unit(), random.unit()]);
        [at[0], at[1]]
    };
    let inside = |yes: bool, pdf: f64| if yes { pdf } else { 0.0 };
    check_flat(
        "disk",
        || draw(Shape::Disk),
        |x, y| inside(x * x + y * y <= 1.0, 1.0 / std::f64::consts::PI),
    );
    check_flat(
        "triangle",
        || draw(Shape::Triangle),
        |x, y| inside(x >= 0.0 && y >= 0.0 && x + y <= 1.0, 2.0),
    );
    check_flat("tent", || draw(Shape::Tent), |x, y| (1.0 - x.abs()) * (1.0 - y.abs()));
}

#[test]
fn pixel_filters_are_drawn_by_their_curve() {
    let tau = std::f64::consts::TAU;
    let gaussian = |x: f64| (-2.0 * x * x).exp();
    let blackman = |x: f64| {
        let t = tau * (x / 3.3 + 0.5);
        0.35875 - 0.48829 * t.cos() + 0.14128 * (2.0 * t).cos() - 0.01168 * (3.0 * t).cos()
    };
    let flat = |x: f64| f64::from(x.abs() <= 0.5);
    type Curve<'a> = (Shape, f64, &'a dyn Fn(f64) -> f64);
    let curves: [Curve; 3] = [
        (Shape::BoxFilter, 2.0, &flat),
        (Shape::Gaussian, 2.0, &gaussian),
        (Shape::BlackmanHarris, 1.65, &blackman),
    ];
    assert_eq!(
        Shape::BlackmanHarris as u32 - Shape::BoxFilter as u32,
        PixelFilter::BlackmanHarris as u32
    );
    for (which, radius, curve) in curves {
        const BINS: usize = 40;
        let (mut random, mut counts) = (Random(7), [0.0; BINS]);
        for _ in 0..SAMPLES {
            let at = f64::from(shape(which, [random.unit(), random.unit()])[1]);
            counts[(((at / radius + 1.0) / 2.0 * BINS as f64) as usize).min(BINS - 1)] += 1.0;
        }
        let fine: Vec<f64> = (0..BINS * 100)
            .map(|i| curve(((i as f64 + 0.5) / (BINS * 100) as f64 * 2.0 - 1.0) * radius))
            .collect();
        let total: f64 = fine.iter().sum();
        let expected: Vec<f64> =
            fine.chunks(100).map(|bin| bin.iter().sum::<f64>() / total * SAMPLES as f64).collect();
        assert_chi_squared(&format!("{which:?}"), &counts, &expected);
    }
}

fn mapped() -> Builder {
    let mut builder = Builder::default();
    builder.map(16, 8, |x, y| {
        [((x * 7 + y * 3) % 11) as f32 * 0.1, 0.2, if (x, y) == (3, 2) { 9.0 } else { 0.1 }]
    });
    builder.environment.map_from_world = [0.6, 0.0, 0.8, 0.0, 1.0, 0.0, -0.8, 0.0, 0.6];
    builder
}

#[test]
fn the_environment_is_drawn_by_its_pdf() {
    let scene = mapped().finish();
    let (mut random, mut counts) = (Random(8), vec![0.0; CELLS]);
    for _ in 0..SAMPLES {
        let sample = environment_sample(&scene, [random.bits(), random.bits()]);
        let direction = [sample[0], sample[1], sample[2]];
        counts[cell_of(direction)] += 1.0;
        let value = environment(&scene, direction);
        for (drawn, seen) in sample[3..].iter().zip(value) {
            assert!((drawn - seen).abs() < 2e-3 * (1.0 + seen), "{sample:?} {value:?}");
        }
    }
    let pdf = integrate(16, |direction| f64::from(environment(&scene, direction)[3]));
    let total: f64 = pdf.iter().sum();
    assert!((total - 1.0).abs() < 0.005, "{total}");
    let expected: Vec<f64> = pdf.iter().map(|d| d * SAMPLES as f64).collect();
    assert_chi_squared("environment", &counts, &expected);
}

/// Points that are spread evenly are directions that are: under a bright sky, 64 of them tell the
/// light on a floor far better than chance.
#[test]
fn even_points_are_spread_evenly_over_the_map() {
    let scene = mapped().finish();
    let lit = |bits: [u32; 2]| {
        let sample = environment_sample(&scene, bits);
        f64::from(sample[1].max(0.0) * sample[4] / sample[6])
    };
    let mean = |points: &mut dyn FnMut(u32) -> [u32; 2]| {
        (0..64).map(|i| lit(points(i))).sum::<f64>() / 64.0
    };
    let spread = |means: Vec<f64>| {
        let middle = means.iter().sum::<f64>() / means.len() as f64;
        means.iter().map(|mean| (mean - middle).powi(2)).sum::<f64>() / means.len() as f64
    };
    let mut random = Random(9);
    let even = spread((0..128).map(|key| mean(&mut |index| draw(key, index, 3))).collect());
    let chance = spread((0..128).map(|_| mean(&mut |_| [random.bits(), random.bits()])).collect());
    assert!(even < 0.15 * chance, "{even} {chance}");
}

#[test]
fn the_environment_map_is_oriented_as_documented() {
    let mut builder = Builder::default();
    // Row 3 of 8 lies just above the horizon. Column 7 and 8 of 16 touch the centre; 12 is a
    // quarter to the right of it.
    builder.map(16, 8, |x, y| [if y == 0 { 1.0 } else { 0.0 }, x as f32, y as f32]);
    let scene = builder.finish();
    let seen = |direction| environment(&scene, direction);
    assert!((seen([0.0, 0.0, 1.0])[1] - 7.5).abs() < 1e-3, "the centre column is towards +Z");
    assert!(
        (seen([-1.0, 0.0, 0.0])[1] - 11.5).abs() < 1e-3,
        "u grows to the right of who looks out"
    );
    assert!((seen([1.0, 0.0, 0.0])[1] - 3.5).abs() < 1e-3);
    assert!((seen([0.0, 0.0, 1.0])[2] - 3.5).abs() < 1e-3, "the horizon is the middle");
    assert_eq!(seen([0.0, 1.0, 0.0])[0], 1.0, "row 0 is up");
}
