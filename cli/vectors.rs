//! Values of options: sizes, points, colours and environment lights. Opens no file.

use crate::srgb::linear_from_srgb;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tessera_protocol::limits::{FRAME_EDGE_MAX, FRAME_PIXELS_MAX};

/// Why a text is no value of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The text is not `WIDTHxHEIGHT`.
    #[error(
        "`{0}` is not a frame size; write it as 1920x1080, with edges of 1 to {FRAME_EDGE_MAX} \
            pixels"
    )]
    Size(String),
    /// More pixels than a frame may have.
    #[error("a frame of {0} has more than {FRAME_PIXELS_MAX} pixels; choose a smaller size")]
    TooManyPixels(String),
    /// The text is not three finite numbers.
    #[error("`{0}` is not three finite numbers; write them as X,Y,Z without spaces")]
    Vector(String),
    /// The text is not `#rrggbb`.
    #[error("`{0}` is not a colour; write #rrggbb in hexadecimal digits, such as #ff8000")]
    Color(String),
    /// The text names no environment light.
    #[error(
        "`{0}` is not an environment; give a .hdr or .exr file, #rrggbb, linear R,G,B, none or auto"
    )]
    Environment(String),
    /// Radiance below zero.
    #[error("`{0}` has a component below 0; radiance is never negative")]
    Negative(String),
}

/// Size of a frame in pixels; both edges are in 1 to [`FRAME_EDGE_MAX`], and their product is at
/// most [`FRAME_PIXELS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSize {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
}

impl FromStr for FrameSize {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let edge = |edge: &str| {
            let is_number = !edge.is_empty() && edge.bytes().all(|byte| byte.is_ascii_digit());
            let pixels = edge.parse().ok().filter(|pixels| (1..=FRAME_EDGE_MAX).contains(pixels));
            pixels.filter(|_| is_number).ok_or_else(|| ValueError::Size(text.to_owned()))
        };
        let (width, height) =
            text.split_once('x').ok_or_else(|| ValueError::Size(text.to_owned()))?;
        let (width, height) = (edge(width)?, edge(height)?);
        if u64::from(width) * u64::from(height) > FRAME_PIXELS_MAX {
            return Err(ValueError::TooManyPixels(text.to_owned()));
        }
        Ok(Self { width, height })
    }
}

impl std::fmt::Display for FrameSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// Three finite numbers, `X,Y,Z`: a point or a direction.
pub fn parse_vector(text: &str) -> Result<[f32; 3], ValueError> {
    let wrong = || ValueError::Vector(text.to_owned());
    let mut parts = text.split(',');
    let mut vector = [0.0f32; 3];
    for value in &mut vector {
        let part = parts.next().ok_or_else(wrong)?;
        *value =
            part.trim().parse().ok().filter(|value: &f32| value.is_finite()).ok_or_else(wrong)?;
    }
    if parts.next().is_some() { Err(wrong()) } else { Ok(vector) }
}

/// Magnitude from which coordinates keep more digits than single precision has: 4 km, where it has
/// steps of half a millimetre.
const FAR: f64 = 4096.0;

/// Three finite numbers, `X,Y,Z`: a point that may be far away. What single precision leaves of it
/// is beside it.
pub fn parse_point(text: &str) -> Result<[[f32; 3]; 2], ValueError> {
    let near = parse_vector(text)?;
    let mut rest = [0.0; 3];
    for ((part, near), rest) in text.split(',').zip(near).zip(&mut rest) {
        let precise: f64 = part.trim().parse().map_err(|_| ValueError::Vector(text.to_owned()))?;
        if precise.abs() >= FAR {
            *rest = (precise - f64::from(near)) as f32;
        }
    }
    Ok([near, rest])
}

/// The linear colour of `#rrggbb`, which is sRGB-encoded.
pub fn parse_color(text: &str) -> Result<[f32; 3], ValueError> {
    let wrong = || ValueError::Color(text.to_owned());
    let digits = text.strip_prefix('#').ok_or_else(wrong)?;
    if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let value = u32::from_str_radix(digits, 16).map_err(|_| wrong())?;
    let [_, red, green, blue] = value.to_be_bytes();
    Ok([red, green, blue].map(|byte| linear_from_srgb(f64::from(byte) / 255.0) as f32))
}

/// Light at infinity as it is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum EnvironmentArg {
    /// Only the scene's own lights; white where it has none.
    Auto,
    /// Only the scene's own lights, also where it has none.
    None,
    /// One linear radiance everywhere, each component finite and >= 0.
    Constant([f32; 3]),
    /// An equirectangular `.hdr` or `.exr` file; not opened yet.
    File(PathBuf),
}

impl FromStr for EnvironmentArg {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        if text == "none" {
            return Ok(Self::None);
        }
        let extension = Path::new(text).extension().and_then(|extension| extension.to_str());
        if extension
            .is_some_and(|found| ["hdr", "exr"].iter().any(|e| found.eq_ignore_ascii_case(e)))
        {
            return Ok(Self::File(text.into()));
        }
        if text.starts_with('#') {
            return parse_color(text).map(Self::Constant);
        }
        let radiance = parse_vector(text).map_err(|_| ValueError::Environment(text.to_owned()))?;
        if radiance.iter().any(|value| *value < 0.0) {
            return Err(ValueError::Negative(text.to_owned()));
        }
        Ok(Self::Constant(radiance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_two_edges_within_the_limits() {
        assert_eq!("1920x1080".parse(), Ok(FrameSize { width: 1920, height: 1080 }));
        assert_eq!("1x32768".parse::<FrameSize>().unwrap().to_string(), "1x32768");
        for text in [
            "", "x", "10", "10x", "x10", "0x10", "10x32769", "+1x1", "1 x1", "1x1x1", "-1x1", "1X1",
        ] {
            assert_eq!(text.parse::<FrameSize>(), Err(ValueError::Size(text.into())), "{text}");
        }
        assert!(matches!("32768x32768".parse::<FrameSize>(), Err(ValueError::TooManyPixels(_))));
        "16384x16384".parse::<FrameSize>().unwrap();
    }

    #[test]
    fn a_vector_is_three_finite_numbers() {
        assert_eq!(parse_vector("1,-2.5,3e2"), Ok([1.0, -2.5, 300.0]));
        assert_eq!(parse_vector("1, 2, 3"), Ok([1.0, 2.0, 3.0]));
        for text in
            ["", "1,2", "1,2,3,4", "1,2,", "1,2,nan", "1,2,inf", "1,2,1e39", "a,b,c", "1;2;3"]
        {
            assert_eq!(parse_vector(text), Err(ValueError::Vector(text.into())), "{text}");
        }
    }

    #[test]
    fn a_colour_is_decoded_to_linear() {
        assert_eq!(parse_color("#000000"), Ok([0.0; 3]));
        assert_eq!(parse_color("#FFffFf"), Ok([1.0; 3]));
        let [red, green, blue] = parse_color("#80000a").unwrap();
        assert!((red - 0.215_860_5).abs() < 1e-7 && green == 0.0);
        assert!((blue - 10.0 / 255.0 / 12.92).abs() < 1e-9);
        for text in ["", "#", "ffffff", "#fff", "#fffffff", "#ggffff", "#+fffff", "#éééa"] {
            assert_eq!(parse_color(text), Err(ValueError::Color(text.into())), "{text}");
        }
    }

    #[test]
    fn an_environment_is_a_file_a_colour_a_radiance_or_none() {
        let file = |path: &str| Ok(EnvironmentArg::File(path.into()));
        assert_eq!("sky.hdr".parse(), file("sky.hdr"));
        assert_eq!("a/#1,2,3.EXR".parse(), file("a/#1,2,3.EXR"));
        assert_eq!("auto".parse(), Ok(EnvironmentArg::Auto));
        assert_eq!("none".parse(), Ok(EnvironmentArg::None));
        assert_eq!("#ffffff".parse(), Ok(EnvironmentArg::Constant([1.0; 3])));
        assert_eq!("0.5,0,20".parse(), Ok(EnvironmentArg::Constant([0.5, 0.0, 20.0])));
        assert_eq!("#ffff".parse::<EnvironmentArg>(), Err(ValueError::Color("#ffff".into())));
        assert_eq!("1,-1,1".parse::<EnvironmentArg>(), Err(ValueError::Negative("1,-1,1".into())));
        for text in ["sky.png", "", "1,2", "None", "hdr"] {
            let error = text.parse::<EnvironmentArg>();
            assert_eq!(error, Err(ValueError::Environment(text.into())), "{text}");
        }
    }
}
