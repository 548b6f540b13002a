//! Filmic as Blender shows it on an sRGB display with its medium contrast (T. Sobotka).
//!
//! Blender's configuration has two tables: one of 33 points along each axis, which takes bright
//! colours towards grey in a logarithm of 25 stops, and a curve over the lowest 16.5 of them. The
//! first is computed here from what it does, and interpolated in the same way: within half a step
//! of 8 bits in the brightest colours, and less in all others. The curve is a polynomial on each
//! side of middle grey, within 1e-5 of the published one.

use super::lattice::Lattice;
use super::matrix::Rgb;
use super::screen::ScreenMap;
use std::sync::OnceLock;

/// Stops of the logarithm from 1.
const LOG2: [f64; 2] = [-12.473_931_188, 12.526_068_812];
const EDGE: usize = 33;
/// Least value of the table.
const LEAST: f64 = 0.000_175_8;
/// First point whose colours are taken towards grey, and how far at it and each later point.
const FIRST_GREYED: usize = 21;
const GREYED: [f64; 12] = [
    0.000_316_446_7,
    0.001_379_991,
    0.003_405_778,
    0.007_155_037,
    0.014_024_08,
    0.026_551_74,
    0.049_345_93,
    0.090_767_84,
    0.165_990_8,
    0.302_535_2,
    0.550_341_9,
    1.0,
];
/// Part of the logarithm that is shown.
const SHOWN: f64 = 0.66;
/// Middle grey in the shown part.
const PIVOT: f64 = 10.0 / 16.5;
/// Coefficients of the curve from the first power on: up from black, and down from white. The
/// variable is 0 there and 1 in the middle.
const TOE: [f64; 9] = [
    0.034_082,
    0.063_047,
    0.350_13,
    -1.254_064,
    5.091_302,
    -10.267_635,
    12.640_588,
    -8.248_408,
    2.091_169,
];
const SHOULDER: [f64; 7] =
    [0.063_105, 0.230_384, 0.313_934, -0.265_872, 0.804_058, -0.972_02, 0.326_196];

/// Converts a linear Rec. 709 colour to sRGB values in [0, 1].
pub(super) fn filmic(color: Rgb) -> Rgb {
    let log = color.map(|v| {
        let stops = libm::log2(v.max(f64::from(f32::MIN_POSITIVE)));
        (stops - LOG2[0]) / (LOG2[1] - LOG2[0])
    });
    greying().at(log).map(shown)
}

/// The table that takes bright colours towards grey.
fn greying() -> &'static Lattice {
    static GREYING: OnceLock<Lattice> = OnceLock::new();
    GREYING.get_or_init(|| Lattice::new(EDGE, greyed))
}

/// Filmic as tables.
pub(super) fn screen_map() -> ScreenMap {
    let itself = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    ScreenMap::new((itself, LOG2), greying(), shown)
}

/// Value of a display, from one of the table.
fn shown(value: f64) -> f64 {
    curve(value / SHOWN)
}

/// Mixes a colour of the lattice with the grey of its largest channel.
fn greyed(log: Rgb) -> Rgb {
    let largest = log[0].max(log[1]).max(log[2]);
    let point = (largest * (EDGE - 1) as f64).round() as usize;
    let part = point.checked_sub(FIRST_GREYED).map_or(0.0, |index| GREYED[index]);
    let span = LOG2[1] - LOG2[0];
    let most = libm::exp2(largest * span + LOG2[0]);
    log.map(|v| {
        let value = libm::exp2(v * span + LOG2[0]);
        let mixed = value + part * (most - value);
        ((libm::log2(mixed) - LOG2[0]) / span).max(LEAST)
    })
}

fn curve(shown: f64) -> f64 {
    let shown = shown.clamp(0.0, 1.0);
    if shown < PIVOT {
        polynomial(&TOE, shown / PIVOT)
    } else {
        1.0 - polynomial(&SHOULDER, (1.0 - shown) / (1.0 - PIVOT))
    }
}

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    x * coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}
