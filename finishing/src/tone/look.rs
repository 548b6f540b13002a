//! Looks of AgX, as Blender's configuration has them: grades of the logarithm in which middle grey
//! is at 0.4.

use super::log::{LUMINANCE, linear_of_log, log_of_linear};
use super::matrix::{Rgb, dot};
use tessera_protocol::job::LookSpec;

const MIDDLE_GREY: f64 = 0.4;
/// Luminance of Rec. 709's primaries, by which saturation is measured.
const LUMA: Rgb = [0.2126, 0.7152, 0.0722];

/// Grades a colour in the logarithm of the inset Rec. 2020.
pub(super) fn grade(log: Rgb, look: LookSpec) -> Rgb {
    match look {
        LookSpec::Punchy => log.map(punchy),
        LookSpec::Greyscale => {
            let luminance = dot(log.map(linear_of_log), LUMINANCE);
            [log_of_linear(luminance); 3]
        }
        LookSpec::VeryHighContrast => contrast(log, 1.57, 0.9),
        LookSpec::HighContrast => contrast(log, 1.4, 0.95),
        LookSpec::MediumHighContrast => contrast(log, 1.2, 1.0),
        LookSpec::BaseContrast => contrast(log, 1.0, 1.0),
        LookSpec::MediumLowContrast => contrast(log, 0.9, 1.05),
        LookSpec::LowContrast => contrast(log, 0.8, 1.1),
        LookSpec::VeryLowContrast => contrast(log, 0.7, 1.15),
    }
}

fn contrast(log: Rgb, contrast: f64, saturation: f64) -> Rgb {
    let steeper = log.map(|v| (v - MIDDLE_GREY) * contrast + MIDDLE_GREY);
    let luma = dot(steeper, LUMA);
    steeper.map(|v| luma + saturation * (v - luma))
}

/// Darker shadows, for each channel and for all of them, and a power.
fn punchy(log: f64) -> f64 {
    let darker = shadows(shadows(log, 0.2), 0.35);
    if darker > 0.0 { libm::pow(darker, 1.0912) } else { darker }
}

/// Two parabolas that leave 0.1 with this slope and meet the values of before at 0.4. Below, the
/// slope stays; above, nothing changes.
fn shadows(log: f64, slope: f64) -> f64 {
    const FIRST: f64 = 0.1;
    const LAST: f64 = 0.4;
    let half = (LAST - FIRST) / 2.0;
    let (below, above) = (log - FIRST, log - LAST);
    // The parabolas meet half-way, where their slopes are equal too.
    let middle = (FIRST + LAST) / 2.0 + (slope - 1.0) * half / 4.0;
    if below < 0.0 {
        FIRST + slope * below
    } else if below < half {
        let bend = middle - FIRST - slope * half;
        FIRST + slope * below + bend * (below / half) * (below / half)
    } else if above < 0.0 {
        let bend = middle - LAST + half;
        LAST + above + bend * (above / half) * (above / half)
    } else {
        log
    }
}
