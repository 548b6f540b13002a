//! AgX as Blender 4 and 5 show it on an sRGB display (T. Sobotka, further developed by E. Zhou, M.
//! Faderbauer and S. Kapanen).
//!
//! Blender's configuration has the picture's formation as a table of 57 points along each axis, in
//! the logarithm of FilmLight's E-Gamut over 25 stops about middle grey. The table's values follow
//! from constants that are published with it; they are computed here (within 2e-6 of the published
//! ones) and interpolated in the same way, so that a colour gets the value that it has in Blender.
//! Looks move colours before that, in the logarithm of an inset Rec. 2020.

use super::lattice::Lattice;
use super::log::{LOG2, LUMINANCE, linear_of_log, log_of_linear};
use super::look;
use super::matrix::{Matrix, Rgb, dot, inverse, multiply, then, transpose};
use super::screen::ScreenMap;
use super::srgb::srgb;
use std::sync::OnceLock;
use tessera_protocol::job::LookSpec;

/// Rec. 709 from CIE XYZ, as in Blender's configuration.
const REC709_FROM_XYZ: Matrix = [
    [3.240_437_356_492_007, -1.537_130_540_900_054_9, -0.498_528_824_075_693_3],
    [-0.969_267_498_268_759_7, 1.876_013_686_297_703_5, 0.041_556_080_458_799_7],
    [0.055_643_446_387_425_6, -0.204_025_970_087_227_2, 1.057_225_481_361_086_4],
];
/// Rec. 709 from CIE XYZ, as in the table's formation.
const FORMED_FROM_XYZ: Matrix = [
    [3.241_003_232_976_358_7, -1.537_398_969_488_785_5, -0.498_615_881_996_362_9],
    [-0.969_224_252_202_516_4, 1.875_929_983_695_176, 0.041_554_226_340_084_72],
    [0.055_639_419_851_975_47, -0.204_011_206_123_909_94, 1.057_148_977_187_533_3],
];
const REC2020_FROM_XYZ: Matrix = [
    [1.716_663_427_795_880_5, -0.355_673_319_730_139_9, -0.253_368_087_890_247_8],
    [-0.666_673_836_198_886_9, 1.616_455_739_824_698_1, 0.015_768_297_096_133_7],
    [0.017_642_481_784_977_2, -0.042_776_976_382_753_2, 0.942_243_281_018_430_8],
];
const XYZ_FROM_REC2020: Matrix = [
    [0.636_953_506_785_074, 0.144_619_184_669_233_1, 0.168_855_853_922_873_4],
    [0.262_698_338_956_556, 0.678_008_765_772_816_5, 0.059_292_895_270_627_3],
    [0.0, 0.028_073_135_847_557, 1.060_827_234_950_570_7],
];
const E_GAMUT_FROM_XYZ: Matrix = [
    [1.525_052_77, -0.315_913_510_9, -0.122_658_264_6],
    [-0.509_152_56, 1.333_327_409, 0.138_284_365_1],
    [0.095_715_345_37, 0.050_897_443_87, 0.787_955_770_5],
];
const XYZ_FROM_E_GAMUT: Matrix = [
    [0.705_396_850_1, 0.164_041_328_3, 0.081_017_748_65],
    [0.280_130_724_1, 0.820_206_641_5, -0.100_337_365_6],
    [-0.103_781_511_6, -0.072_907_257_03, 1.265_746_519],
];
/// Moves the primaries inwards and turns them: 3, -1 and -2 degrees, by 0.4, 0.22 and 0.13.
const INSET: Matrix = [
    [0.856_627_153_315_983, 0.095_121_240_538_158_8, 0.048_251_606_145_858_3],
    [0.137_318_972_929_847, 0.761_241_990_602_591, 0.101_439_036_467_562],
    [0.111_898_212_999_95, 0.076_799_418_603_190_3, 0.811_302_368_396_859],
];
/// How far the formed picture's primaries move outwards again, without a turn.
const OUTSET: Rgb = [0.4, 0.22, 0.04];
/// Chromaticities of Rec. 709 and of D65.
const PRIMARIES: [[f64; 2]; 3] = [[0.64, 0.33], [0.3, 0.6], [0.15, 0.06]];
const WHITE: [f64; 2] = [0.3127, 0.329];
const MIDDLE_GREY: f64 = 0.18;
/// Stops below and above middle grey in logarithms.
const STOPS: [f64; 2] = [-10.0, 15.0];
/// Points of the tables along an axis.
const FORMATION_EDGE: usize = 57;
const RAIL_EDGE: usize = 37;
/// Power of the values in the table, and of the display that the curve is for.
const POWER: f64 = 2.4;
/// The curve spans 10 stops below middle grey and 6.5 above it.
const CURVE_STOPS: f64 = 16.5;
const CURVE_SLOPE: f64 = 2.4;
const CURVE_POWER: f64 = 1.5;
/// Part of the curve's change of hue that stays.
const HUE_MIX: f64 = 0.4;

/// Converts a linear Rec. 709 colour to a linear Rec. 709 colour of an sRGB display.
pub(super) fn agx(color: Rgb, look: Option<LookSpec>) -> Rgb {
    let (e_gamut_from_709, table) = formation();
    let color = look.map_or(color, |look| looked(color, look));
    let formed = table.at(multiply(e_gamut_from_709, color).map(log_of_linear));
    formed.map(|v| libm::pow(v, POWER))
}

/// The matrix into the table's space, and the table.
fn formation() -> &'static (Matrix, Lattice) {
    static FORMATION: OnceLock<(Matrix, Lattice)> = OnceLock::new();
    FORMATION.get_or_init(|| {
        let formation = Formation::new();
        let value = |point: Rgb| formation.form(point.map(linear_of_stops));
        (e_gamut_from_rec709(), Lattice::new(FORMATION_EDGE, value))
    })
}

/// AgX without a look as tables.
pub(super) fn screen_map() -> ScreenMap {
    let (space, table) = formation();
    ScreenMap::new((*space, LOG2), table, |value| srgb(libm::pow(value, POWER)))
}

/// Applies a look to a linear Rec. 709 colour.
fn looked(color: Rgb, look: LookSpec) -> Rgb {
    static SPACES: OnceLock<([Matrix; 3], Lattice)> = OnceLock::new();
    let ([e_gamut_from_709, inset_from_e_gamut, rec709_from_inset], rail) =
        SPACES.get_or_init(|| {
            let rec2020_from_e_gamut = then(&XYZ_FROM_E_GAMUT, &REC2020_FROM_XYZ);
            let rec709_from_2020 = then(&XYZ_FROM_REC2020, &REC709_FROM_XYZ);
            let back = then(&XYZ_FROM_REC2020, &E_GAMUT_FROM_XYZ);
            let value = |point: Rgb| {
                let color = multiply(&rec2020_from_e_gamut, point.map(linear_of_stops));
                multiply(&back, raise_rec2020(color)).map(stops_of_linear)
            };
            let spaces = [
                e_gamut_from_rec709(),
                then(&rec2020_from_e_gamut, &INSET),
                then(&inverse(&INSET), &rec709_from_2020),
            ];
            (spaces, Lattice::new(RAIL_EDGE, value))
        });
    let raised = rail.at(multiply(e_gamut_from_709, color).map(log_of_linear));
    let inset = multiply(inset_from_e_gamut, raised.map(linear_of_log));
    let graded = look::grade(inset.map(log_of_linear), look);
    multiply(rec709_from_inset, graded.map(linear_of_log))
}

fn e_gamut_from_rec709() -> Matrix {
    then(&inverse(&REC709_FROM_XYZ), &E_GAMUT_FROM_XYZ)
}

fn linear_of_stops(log: f64) -> f64 {
    MIDDLE_GREY * libm::exp2(log * (STOPS[1] - STOPS[0]) + STOPS[0])
}

fn stops_of_linear(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    (libm::log2(value / MIDDLE_GREY) - STOPS[0]) / (STOPS[1] - STOPS[0])
}

/// What the table's values are computed from.
struct Formation {
    rec2020_from_e_gamut: Matrix,
    formed_from_outset: Matrix,
    /// Luminance of the formed Rec. 709's primaries.
    luminance: Rgb,
    /// Scales of the curve below and above its pivot.
    toe: f64,
    shoulder: f64,
}

/// Where middle grey is on the curve: in the logarithm, and shown.
fn pivot() -> [f64; 2] {
    [-STOPS[0] / CURVE_STOPS, libm::pow(MIDDLE_GREY, 1.0 / POWER)]
}

impl Formation {
    fn new() -> Self {
        let [x, y] = pivot();
        let formed_from_2020 = then(&XYZ_FROM_REC2020, &FORMED_FROM_XYZ);
        let rec2020_from_formed = then(&inverse(&FORMED_FROM_XYZ), &REC2020_FROM_XYZ);
        Self {
            rec2020_from_e_gamut: then(&XYZ_FROM_E_GAMUT, &REC2020_FROM_XYZ),
            formed_from_outset: then(&outset(), &formed_from_2020),
            luminance: multiply(&transpose(&rec2020_from_formed), LUMINANCE),
            toe: curve_scale(x, y),
            shoulder: curve_scale(1.0 - x, 1.0 - y),
        }
    }

    /// Forms a linear colour in E-Gamut: Rec. 709 of the display, with the table's power.
    fn form(&self, color: Rgb) -> Rgb {
        let color = raise_rec2020(multiply(&self.rec2020_from_e_gamut, color));
        let color = multiply(&INSET, color);
        let curved = color.map(|v| libm::pow(self.curve(v).max(0.0), POWER));
        let mixed = with_hue(curved, mixed_hue(hue(color), hue(curved)));
        let formed = self.raise_formed(multiply(&self.formed_from_outset, mixed));
        formed.map(|v| libm::pow(v.max(0.0), 1.0 / POWER).min(1.0))
    }

    /// The curve of J. Smith: a line through the pivot that bends into 0 and 1.
    fn curve(&self, value: f64) -> f64 {
        let stops = libm::log2(value.max(f64::MIN_POSITIVE) / MIDDLE_GREY);
        let [x, y] = pivot();
        let run = CURVE_SLOPE * ((stops - STOPS[0]) / CURVE_STOPS - x);
        let bent = |run: f64, scale: f64| {
            let term = run / scale;
            scale * term / libm::pow(1.0 + libm::pow(term, CURVE_POWER), 1.0 / CURVE_POWER)
        };
        if run < 0.0 { y - bent(-run, self.toe) } else { y + bent(run, self.shoulder) }
    }

    /// The same as [`raise_rec2020`] in the display's Rec. 709. The opponent's luminance counts
    /// less the brighter a colour is, or greens that Rec. 709 cannot show would get too bright.
    fn raise_formed(&self, color: Rgb) -> Rgb {
        let weighed = |color: Rgb| {
            let luminance = dot(color, self.luminance);
            let part = libm::pow(luminance.max(0.0), 0.08).min(1.0);
            let opposed = luminance + opponent(color, self.luminance);
            (1.0 - part) * opposed + part * luminance
        };
        raised(color, weighed)
    }
}

/// Scale that makes the curve reach 0, or 1, where the logarithm ends.
fn curve_scale(x: f64, y: f64) -> f64 {
    let run = CURVE_SLOPE * x;
    let bent = libm::pow(run / y, CURVE_POWER) - 1.0;
    libm::pow(libm::pow(run, -CURVE_POWER) * bent, -1.0 / CURVE_POWER)
}

/// Returns the matrix from a space with primaries nearer to white back to Rec. 709. The
/// configuration applies it to Rec. 2020.
fn outset() -> Matrix {
    let moved = [0, 1, 2].map(|primary| {
        [0, 1].map(|axis| {
            let white = WHITE[axis];
            white + (PRIMARIES[primary][axis] - white) * (1.0 - OUTSET[primary])
        })
    });
    then(&xyz_from_rgb(PRIMARIES), &inverse(&xyz_from_rgb(moved)))
}

/// Returns the matrix to XYZ of a space with these primaries and D65 as white of luminance 1.
fn xyz_from_rgb(primaries: [[f64; 2]; 3]) -> Matrix {
    let tristimulus = |[x, y]: [f64; 2]| [x / y, 1.0, (1.0 - x - y) / y];
    let columns = transpose(&primaries.map(tristimulus));
    let scale = multiply(&inverse(&columns), tristimulus(WHITE));
    columns.map(|row| [0, 1, 2].map(|column| row[column] * scale[column]))
}

/// Moves negative values of Rec. 2020 up to 0, all three by the same amount, and makes the colour
/// as bright as before. A colour without negative values does not change.
fn raise_rec2020(color: Rgb) -> Rgb {
    raised(color, |color| dot(color, LUMINANCE) + opponent(color, LUMINANCE))
}

fn raised(color: Rgb, brightness: impl Fn(Rgb) -> f64) -> Rgb {
    let offset = (-color[0].min(color[1]).min(color[2])).max(0.0);
    if offset == 0.0 {
        return color;
    }
    let (before, raised) = (brightness(color), color.map(|v| v + offset));
    let after = brightness(raised);
    let ratio = if after > before { before / after } else { 1.0 };
    raised.map(|v| v * ratio)
}

/// How much the brightest channel of the opponent colour exceeds its luminance.
fn opponent(color: Rgb, luminance: Rgb) -> f64 {
    let most = color[0].max(color[1]).max(color[2]);
    let opposed = color.map(|v| most - v);
    opposed[0].max(opposed[1]).max(opposed[2]) - dot(opposed, luminance)
}

/// Hue of a colour, a full turn being 1; 0 for greys.
fn hue([r, g, b]: Rgb) -> f64 {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    let chroma = most - least;
    if chroma == 0.0 {
        return 0.0;
    }
    let sixths = if r == most {
        (g - b) / chroma
    } else if g == most {
        2.0 + (b - r) / chroma
    } else {
        4.0 + (r - g) / chroma
    };
    wrapped(sixths / 6.0)
}

/// Mixes the hues before and after the curve, the shorter way round.
fn mixed_hue(before: f64, after: f64) -> f64 {
    let turn = after - before;
    let shorter = if turn > 0.5 {
        turn - 1.0
    } else if turn < -0.5 {
        turn + 1.0
    } else {
        turn
    };
    wrapped(before + HUE_MIX * shorter)
}

fn wrapped(turn: f64) -> f64 {
    turn - turn.floor()
}

/// Returns the colour of this hue with the most and the least that a colour has.
fn with_hue([r, g, b]: Rgb, hue: f64) -> Rgb {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    [5.0, 3.0, 1.0].map(|first: f64| {
        let place = 6.0 * wrapped((first + 6.0 * hue) / 6.0);
        most - (most - least) * place.min(4.0 - place).clamp(0.0, 1.0)
    })
}
