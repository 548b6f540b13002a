//! What tone maps make of known colours. Values of Blender are those of its configuration (4.5),
//! evaluated by OpenColorIO 2.6, in steps of 8 bits.

use super::*;

fn display(tone_map: ToneMapSpec, gain: f64) -> Display {
    Display { gain, tone_map, look: None }
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b}");
}

#[test]
fn the_srgb_curve_meets_its_known_values() {
    // Mid grey, the point where the two pieces meet, and both ends.
    close(srgb(0.214_041_14) * 255.0, 127.5, 0.01);
    close(srgb(0.003_130_8), 0.040_449_936, 1e-9);
    close(srgb(0.003_130_800_1), 0.040_449_936, 1e-6);
    assert_eq!((srgb(-1.0), srgb(0.0)), (0.0, 0.0));
    close(srgb(1.0), 1.0, 1e-12);
    close(srgb(7.0), 1.0, 1e-12);
}

#[test]
fn exposure_is_in_stops() {
    let brighter = display(ToneMapSpec::Standard, libm::exp2(1.0)).encode([0.25, 0.1, 0.05]);
    let doubled = display(ToneMapSpec::Standard, 1.0).encode([0.5, 0.2, 0.1]);
    assert_eq!(brighter, doubled);
}

#[test]
fn pbr_neutral_keeps_colours_below_its_start() {
    // A base colour with a dielectric's reflection on it becomes the base colour.
    let mapped = pbr_neutral([0.5 + 0.04, 0.3 + 0.04, 0.1 + 0.04]);
    for (mapped, base) in mapped.into_iter().zip([0.5, 0.3, 0.1]) {
        close(mapped, base, 1e-12);
    }
    // Both pieces meet where compression begins, and the brightest values stay below 1.
    let at = |peak: f64| pbr_neutral([peak, 0.2, 0.1])[0];
    close(at(0.8 - 1e-9), at(0.8 + 1e-9), 1e-6);
    let bright = pbr_neutral([1e6, 10.0, 1.0]);
    assert!(bright.iter().all(|v| (0.9..=1.0).contains(v)), "{bright:?}");
}

/// Scene-linear colours: greys, bright and deep ones, one outside Rec. 709, and black.
const COLORS: [[f32; 3]; 9] = [
    [0.18; 3],
    [1.0; 3],
    [8.0, 0.0, 0.0],
    [0.05, 0.1, 0.6],
    [0.02, 0.5, 0.03],
    [30.0, 2.0, 40.0],
    [0.002, 0.004, 0.001],
    [-0.2, 0.3, 0.1],
    [0.0; 3],
];

fn meets(display: Display, expected: [[f64; 3]; 9], tolerance: f64) {
    for (color, expected) in COLORS.into_iter().zip(expected) {
        let shown = display.encode(color).map(|v| v * 255.0);
        let far = shown.iter().zip(expected).any(|(a, b)| (a - b).abs() > tolerance);
        assert!(!far, "{:?} of {color:?}: {shown:?} is not {expected:?}", display.look);
    }
}

#[test]
fn agx_shows_what_blender_shows() {
    let expected = [
        [117.646, 117.635, 117.633],
        [196.601, 196.594, 196.593],
        [255.0, 180.873, 171.115],
        [64.499, 104.814, 184.803],
        [74.065, 167.802, 54.506],
        [255.0, 245.720, 255.0],
        [2.834, 5.926, 0.634],
        [0.0, 138.114, 109.213],
        [0.0, 0.0, 0.0],
    ];
    meets(display(ToneMapSpec::Agx, 1.0), expected, 0.005);
    // What its pictures have, rounded and dithered.
    let shown = [[118.0; 3], [196.0; 3], [255.0, 181.0, 171.0], [65.0, 105.0, 185.0]];
    for (color, expected) in COLORS.into_iter().zip(shown) {
        let found = display(ToneMapSpec::Agx, 1.0).encode(color).map(|v| (v * 255.0).round());
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1.0), "{found:?}");
    }
}

#[test]
fn looks_of_agx_show_what_blender_shows() {
    let look = |look| Display { look: Some(look), ..display(ToneMapSpec::Agx, 1.0) };
    let punchy = [
        [88.313, 88.304, 88.302],
        [176.548, 176.540, 176.539],
        [255.0, 156.480, 144.654],
        [30.583, 78.515, 156.448],
        [38.874, 138.618, 13.891],
        [254.281, 238.063, 255.0],
        [0.499, 0.749, 0.406],
        [0.0, 108.046, 84.967],
        [0.346, 0.346, 0.346],
    ];
    meets(look(LookSpec::Punchy), punchy, 0.005);
    let medium_high = [
        [117.648, 117.635, 117.633],
        [207.516, 207.509, 207.509],
        [255.0, 195.757, 188.744],
        [44.175, 101.342, 195.492],
        [55.541, 176.263, 30.718],
        [255.0, 254.653, 255.0],
        [0.679, 1.961, 0.0],
        [0.0, 141.182, 109.271],
        [0.0, 0.0, 0.0],
    ];
    meets(look(LookSpec::MediumHighContrast), medium_high, 0.005);
    // One colour of each other look.
    let blues = [
        (LookSpec::Greyscale, [117.640, 117.640, 117.640]),
        (LookSpec::VeryHighContrast, [30.315, 97.216, 202.693]),
        (LookSpec::HighContrast, [36.374, 98.610, 201.147]),
        (LookSpec::BaseContrast, [64.498, 104.814, 184.803]),
        (LookSpec::MediumLowContrast, [67.707, 106.034, 182.118]),
        (LookSpec::LowContrast, [71.506, 107.338, 178.777]),
        (LookSpec::VeryLowContrast, [76.212, 108.783, 174.713]),
    ];
    for (name, expected) in blues {
        let shown = look(name).encode(COLORS[3]).map(|v| v * 255.0);
        shown.into_iter().zip(expected).for_each(|(a, b)| close(a, b, 0.005));
    }
}

#[test]
fn filmic_shows_what_blender_shows() {
    let expected = [
        [127.554, 127.554, 127.554],
        [205.845, 205.845, 205.845],
        [250.706, 0.004, 0.004],
        [69.635, 99.013, 185.331],
        [40.600, 177.213, 52.029],
        [255.0, 229.027, 255.0],
        [7.726, 13.373, 4.141],
        [0.004, 152.896, 99.013],
        [0.004, 0.004, 0.004],
    ];
    meets(display(ToneMapSpec::Filmic, 1.0), expected, 0.05);
    // Colours that are so bright that they turn to grey.
    let bright = display(ToneMapSpec::Filmic, 1.0).encode([0.0, 18.186_42, 0.0]);
    close(bright[0] * 255.0, 24.465, 0.5);
}

#[test]
fn every_tone_map_is_sane_at_its_ends() {
    let maps = [ToneMapSpec::Standard, ToneMapSpec::PbrNeutral, ToneMapSpec::Agx];
    for tone_map in maps.into_iter().chain([ToneMapSpec::Filmic]) {
        let grey = |v: f32| display(tone_map, 1.0).encode([v; 3])[1];
        let mut last = grey(0.0);
        assert!(last < 1e-4, "{tone_map:?} shows black as {last}");
        for step in 0..300 {
            let next = grey((step as f32 * 0.1 - 15.0).exp2());
            assert!((last - 1e-9..=1.0).contains(&next), "{tone_map:?}, step {step}");
            last = next;
        }
        assert!(last > 0.98, "{tone_map:?} ends at {last}");
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN] {
            let shown = display(tone_map, 1.0).encode([wrong, 0.5, wrong]);
            assert!(shown.iter().all(|v| !(*v < 0.0 || *v > 1.0)), "{tone_map:?}: {shown:?}");
        }
    }
}

/// What a screen shows of a colour by the bytes of a map, as a browser reads them.
fn shown_by(bytes: &[u8], color: [f32; 3]) -> [f64; 3] {
    let floats: Vec<f64> = bytes
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes(four.try_into().unwrap()).into())
        .collect();
    let (edge, steps) = (floats[0] as usize, floats[1] as usize);
    let (first, last) = (floats[2], floats[3]);
    let (space, rest) = floats[4..].split_at(9);
    let (curve, colors) = rest.split_at(steps + 1);
    assert_eq!(colors.len(), 3 * edge.pow(3));
    let color = color.map(f64::from);
    let place: Vec<f64> = space
        .chunks(3)
        .map(|row| {
            let value = row[0] * color[0] + row[1] * color[1] + row[2] * color[2];
            let log = (value.max(f64::from(f32::MIN_POSITIVE)).log2() - first) / (last - first);
            log.clamp(0.0, 1.0) * (edge - 1) as f64
        })
        .collect();
    let cell: Vec<usize> = place.iter().map(|v| (*v as usize).min(edge - 2)).collect();
    let mut axes = [0, 1, 2];
    let part = |axis: usize| place[axis] - cell[axis] as f64;
    axes.sort_by(|a, b| part(*b).total_cmp(&part(*a)));
    let mut corner = cell[0] + (cell[1] + cell[2] * edge) * edge;
    let mut weights = vec![(corner, 1.0 - part(axes[0]))];
    for (step, axis) in axes.into_iter().enumerate() {
        corner += [1, edge, edge * edge][axis];
        weights.push((corner, part(axis) - axes.get(step + 1).map_or(0.0, |next| part(*next))));
    }
    [0, 1, 2].map(|channel| {
        let sum: f64 = weights.iter().map(|(at, weight)| colors[3 * at + channel] * weight).sum();
        curve[(sum.clamp(0.0, 1.0) * steps as f64).round() as usize]
    })
}

#[test]
fn the_table_of_a_tone_map_shows_what_files_have() {
    for tone_map in [ToneMapSpec::Agx, ToneMapSpec::Filmic] {
        let bytes = screen_map(tone_map).unwrap();
        for color in COLORS {
            let wanted = display(tone_map, 1.0).encode(color);
            for (found, wanted) in shown_by(&bytes, color).into_iter().zip(wanted) {
                close(found * 255.0, wanted * 255.0, 0.5);
            }
        }
    }
    assert!(screen_map(ToneMapSpec::Standard).is_none());
}
