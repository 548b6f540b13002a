//! Options of a picture, the same for `render` and `submit`.

use super::exr_depth::ExrDepthArg;
use super::time::parse_ttl;
use crate::vectors::{EnvironmentArg, FrameSize, ValueError, parse_point, parse_vector};
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;
use tessera_protocol::FrameSet;
use tessera_protocol::job::{
    AovSpec, CropSpec, ExrCompressionSpec, FilterSpec, LightUnitsSpec, LookSpec, ToneMapSpec,
};
use tessera_protocol::limits::SPP_MAX;
use tessera_protocol::rounds::ROUND_TILE;

/// What to render, and how.
#[derive(Debug, Args)]
pub struct PictureArgs {
    /// glTF 2.0 scene, .gltf or .glb
    pub scene: PathBuf,

    /// Frame size in pixels [default: the camera's aspect, the longer edge 800; else 800x600]
    #[arg(long, value_name = "WxH", help_heading = "Picture")]
    pub size: Option<FrameSize>,
    /// Part of the frame to render, from its top left pixel X,Y on: the same pixels as in the whole
    /// frame. An EXR file shows its place (data window) in the frame (display window); a PNG file
    /// has its size. Not allowed with --noise or --time
    #[arg(
        long,
        value_name = "X,Y,WxH",
        value_parser = crop,
        allow_hyphen_values = true,
        help_heading = "Picture"
    )]
    pub crop: Option<CropSpec>,
    /// Pixels to render beyond each edge of the frame, or of the crop; beyond the frame they show
    /// what a wider view shows. Not allowed with --noise or --time
    #[arg(long, value_name = "PIXELS", default_value_t = 0, help_heading = "Picture")]
    pub overscan: u32,
    /// Samples per pixel [default: 64]; the maximum with --noise [default: 4096] and --time
    /// [default: 65536]
    #[arg(long, value_name = "N", value_parser = samples, help_heading = "Picture")]
    pub spp: Option<u32>,
    /// Target noise: sample each part of a frame until its noise is at most X: 0.05 for a preview,
    /// 0.01 for a final picture, 0.005 for almost none
    #[arg(long, value_name = "X", help_heading = "Picture")]
    pub noise: Option<f64>,
    /// Time budget per frame (90s, 10m, 2h): keep doubling samples while the next doubling fits;
    /// reports the final --spp
    #[arg(long, value_name = "TIME", value_parser = frame_time, help_heading = "Picture")]
    pub time: Option<u32>,
    /// Maximum number of scatterings of a path; panes of clear glass do not count
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Picture")]
    pub depth: u32,
    /// Hide fireflies: limit the indirect light in each sample, to 1 to 10 for most scenes. The
    /// picture gets darker than the scene and says so [default: no limit]
    #[arg(long, value_name = "X", help_heading = "Picture")]
    pub clamp: Option<f64>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Picture")]
    pub seed: u32,
    /// Pixel reconstruction filter: box, gaussian, blackman-harris
    #[arg(long, value_name = "NAME", default_value = "blackman-harris", help_heading = "Picture")]
    pub filter: FilterArg,
    /// Material variant by name, as inspect lists them [default: the scene's own materials]
    #[arg(long, value_name = "NAME", help_heading = "Picture")]
    pub variant: Option<String>,
    /// Additional layers of EXR files, comma-separated: albedo, normal, depth, position
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Picture")]
    pub aov: Vec<AovArg>,
    /// Denoise the picture; EXR files keep the original in the layer noisy
    #[arg(long, help_heading = "Picture")]
    pub denoise: bool,
    /// Draw nothing behind the scene: the environment lights it, but is not seen, and files have an
    /// alpha (also with --env none)
    #[arg(long, help_heading = "Picture")]
    pub transparent: bool,
    /// Precision of colours in EXR files: half (16 bits, at most 65504) or float (32 bits). Depth,
    /// position and samples have 32 bits. LAYER=half or LAYER=float, comma-separated, chooses for
    /// one layer: half,normal=float
    #[arg(long, value_name = "NAME", default_value = "float", help_heading = "Picture")]
    pub exr_depth: ExrDepthArg,
    /// Compression of EXR files: none, rle, zips, zip, piz; or, with loss, pxr24, b44, b44a
    #[arg(long, value_name = "NAME", default_value = "zip", help_heading = "Picture")]
    pub exr_compression: ExrCompressionArg,
    /// Quality of JPEG files, 1 to 100
    #[arg(long, value_name = "N", default_value_t = 90, help_heading = "Picture")]
    pub jpeg_quality: u8,
    /// Exposure of PNG and JPEG files, in stops; or auto, which meters it in the first frame and
    /// uses it for all of them
    #[arg(
        long,
        value_name = "EV|auto",
        default_value = "0",
        allow_hyphen_values = true,
        help_heading = "Picture"
    )]
    pub exposure: ExposureArg,
    /// Tone map of PNG and JPEG files: standard, pbr-neutral, or agx and filmic as in Blender
    #[arg(long, value_name = "NAME", default_value = "standard", help_heading = "Picture")]
    pub tone_map: ToneMapArg,
    /// Look of --tone-map agx, as in Blender: punchy, greyscale, very-high-contrast,
    /// high-contrast, medium-high-contrast, base-contrast, medium-low-contrast, low-contrast,
    /// very-low-contrast [default: none]
    #[arg(long, value_name = "NAME", help_heading = "Picture")]
    pub look: Option<LookArg>,

    /// Frame to render [default: 0]
    #[arg(long, value_name = "N", conflicts_with = "frames", help_heading = "Time")]
    pub frame: Option<u32>,
    /// Frames to render: 5, 1-100, 1-100x2, or a comma-separated list of these
    #[arg(long, value_name = "SPEC", help_heading = "Time")]
    pub frames: Option<FrameSet>,
    /// Frames per second; frame N shows the time N / fps. 23.976, 29.97 and 59.94 mean 24000/1001,
    /// 30000/1001 and 60000/1001
    #[arg(
        long,
        value_name = "N[/D]",
        default_value = "24",
        value_parser = super::time::parse_fps,
        help_heading = "Time"
    )]
    pub fps: f64,

    /// Environment light: a .hdr or .exr map, #rrggbb, linear R,G,B, none, or auto, which is white
    /// where the scene has no light of its own
    #[arg(long, value_name = "ENV", default_value = "auto", help_heading = "Light")]
    pub env: EnvironmentArg,
    /// Units of the file's punctual lights: radiometric (W/sr, W/m²) or photometric (candela, lux);
    /// Blender exports photometric ones by default
    #[arg(long, value_name = "UNITS", default_value = "radiometric", help_heading = "Light")]
    pub lights: LightUnitsArg,
    /// Brightness factor of the environment
    #[arg(long, value_name = "X", default_value_t = 1.0, help_heading = "Light")]
    pub env_intensity: f32,
    /// Rotation of the environment about +Y, in degrees
    #[arg(
        long,
        value_name = "DEG",
        default_value_t = 0.0,
        allow_hyphen_values = true,
        help_heading = "Light"
    )]
    pub env_rotate: f32,

    /// Animation to play, by name or index, or all; may be given more than once [default: all]
    #[arg(long, value_name = "NAME|INDEX", help_heading = "Time")]
    pub animation: Vec<String>,

    /// Scene of the file, by name or index [default: the file's own]
    #[arg(long = "scene", value_name = "NAME|INDEX", help_heading = "Picture")]
    pub shown_scene: Option<String>,
    /// Camera of the scene, by name or index [default: the first]
    #[arg(long, value_name = "NAME|INDEX", conflicts_with = "eye", help_heading = "Camera")]
    pub camera: Option<String>,
    /// Position of a camera of your own
    #[arg(
        long,
        value_name = "X,Y,Z",
        value_parser = far_point,
        allow_hyphen_values = true,
        requires = "target",
        help_heading = "Camera",
    )]
    pub eye: Option<[[f32; 3]; 2]>,
    /// Point that your camera looks at
    #[arg(
        long,
        value_name = "X,Y,Z",
        value_parser = far_point,
        allow_hyphen_values = true,
        requires = "eye",
        help_heading = "Camera",
    )]
    pub target: Option<[[f32; 3]; 2]>,
    /// Up direction of your camera
    #[arg(
        long,
        value_name = "X,Y,Z",
        value_parser = point,
        allow_hyphen_values = true,
        requires = "eye",
        default_value = "0,1,0",
        help_heading = "Camera",
    )]
    pub up: [f32; 3],
    /// Vertical field of view of your camera, in degrees
    #[arg(
        long,
        value_name = "DEG",
        requires = "eye",
        default_value_t = 45.0,
        help_heading = "Camera"
    )]
    pub vfov: f32,
    /// Shift the view right and up without turning the camera, in frame widths and heights;
    /// verticals stay vertical
    #[arg(
        long,
        value_name = "X,Y",
        value_parser = shift,
        allow_hyphen_values = true,
        default_value = "0,0",
        help_heading = "Camera",
    )]
    pub shift: [f32; 2],
    /// Radius of a thin lens, in metres [default: a pinhole]
    #[arg(long, value_name = "M", group = "aperture", requires = "focus", help_heading = "Camera")]
    pub lens_radius: Option<f32>,
    /// F-number of the lens, as on 35 mm film
    #[arg(long, value_name = "N", group = "aperture", requires = "focus", help_heading = "Camera")]
    pub f_stop: Option<f32>,
    /// Width of the sensor along the longer edge, in millimetres, for --f-stop: Blender's is 36
    /// [default: 35 mm film, 24 high]
    #[arg(long, value_name = "MM", requires = "f_stop", help_heading = "Camera")]
    pub sensor_width: Option<f32>,
    /// Distance in focus, in metres
    #[arg(long, value_name = "M", group = "focus", requires = "aperture", help_heading = "Camera")]
    pub focus_distance: Option<f32>,
    /// Point that is in focus in every frame
    #[arg(
        long,
        value_name = "X,Y,Z",
        value_parser = point,
        allow_hyphen_values = true,
        group = "focus",
        requires = "aperture",
        help_heading = "Camera",
    )]
    pub focus_point: Option<[f32; 3]>,
    /// Number of aperture blades, 3 to 16, which shape out-of-focus highlights [default: 0, round]
    #[arg(long, value_name = "N", requires = "aperture", help_heading = "Camera")]
    pub blades: Option<u8>,
    /// Rotation of the aperture in degrees, counter-clockwise as seen behind the focus; 0 has a
    /// corner at the top
    #[arg(
        long,
        value_name = "DEG",
        allow_hyphen_values = true,
        requires = "blades",
        help_heading = "Camera"
    )]
    pub blade_rotation: Option<f32>,

    /// Tile edge in pixels; does not change the picture [default: 64]. Not allowed with --noise or
    /// --time
    #[arg(long, value_name = "N", help_heading = "Work")]
    pub tile: Option<u32>,
    /// Samples per pixel in one work unit, 0 to choose automatically; does not change the picture.
    /// Not allowed with --noise or --time
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Work")]
    pub unit_samples: u32,
}

impl PictureArgs {
    /// Samples per pixel, or the most.
    pub fn spp(&self) -> u32 {
        let most = match (self.time, self.noise) {
            (Some(_), _) => 65_536,
            (None, Some(_)) => 4096,
            (None, None) => 64,
        };
        self.spp.unwrap_or(most)
    }

    /// Tile edge in pixels.
    pub fn tile(&self) -> u32 {
        let has_rounds = self.noise.is_some() || self.time.is_some();
        self.tile.unwrap_or(if has_rounds { ROUND_TILE } else { 64 })
    }
}

/// What `--exposure` says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExposureArg {
    /// Stops.
    Stops(f32),
    /// Metered in the job's first frame.
    Auto,
}

impl ExposureArg {
    /// Stops of a job that has not been metered.
    pub fn stops(self) -> f32 {
        match self {
            Self::Stops(stops) => stops,
            Self::Auto => 0.0,
        }
    }
}

impl FromStr for ExposureArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let stops = text.parse().map_err(|_| format!("`{text}` is neither a number nor auto"))?;
        Ok(Self::Stops(stops))
    }
}

/// Samples per pixel, 1 to [`SPP_MAX`].
fn samples(text: &str) -> Result<u32, String> {
    let samples = text.parse().ok().filter(|samples| (1..=SPP_MAX).contains(samples));
    samples.ok_or_else(|| format!("`{text}` is not a whole number in 1 to {SPP_MAX}"))
}

/// Seconds of `90s`, `10m` or `2h`; how many there may be, job specs say.
fn frame_time(text: &str) -> Result<u32, String> {
    let secs = parse_ttl(text)?;
    u32::try_from(secs).map_err(|_| format!("`{text}` is too long"))
}

/// A place and a size in pixels; job specs say where it may be.
fn crop(text: &str) -> Result<CropSpec, String> {
    let number = |text: &str| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number)
    };
    let parts = || {
        let (x, rest) = text.split_once(',')?;
        let (y, size) = rest.split_once(',')?;
        let (width, height) = size.split_once('x')?;
        let (x, y, width, height) = (number(x)?, number(y)?, number(width)?, number(height)?);
        Some(CropSpec { x, y, width, height })
    };
    parts().ok_or_else(|| {
        format!("`{text}` is not a crop in pixels; write it as X,Y,WxH, for example 100,50,640x360")
    })
}

/// A point, and what single precision leaves of it.
fn far_point(text: &str) -> Result<[[f32; 3]; 2], ValueError> {
    parse_point(text)
}

fn point(text: &str) -> Result<[f32; 3], ValueError> {
    parse_vector(text)
}

/// Two numbers; job specs say how large they may be.
fn shift(text: &str) -> Result<[f32; 2], String> {
    let numbers = text.split_once(',').and_then(|(x, y)| Some([x.parse().ok()?, y.parse().ok()?]));
    numbers.ok_or_else(|| format!("`{text}` is not two numbers; write them as X,Y without spaces"))
}

/// A name of a closed set, spelled as in job specs.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident($spec:ty), $($text:literal => $value:expr),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $spec);

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok(Self($value)),)+
                    _ => Err(format!("`{text}` is not one of: {}", [$($text),+].join(", "))),
                }
            }
        }
    };
}

named!(
    /// A pixel filter.
    FilterArg(FilterSpec),
    "box" => FilterSpec::Box, "gaussian" => FilterSpec::Gaussian,
    "blackman-harris" => FilterSpec::BlackmanHarris
);
named!(
    /// A layer.
    AovArg(AovSpec),
    "albedo" => AovSpec::Albedo, "normal" => AovSpec::Normal, "depth" => AovSpec::Depth,
    "position" => AovSpec::Position
);
named!(
    /// Units of lights.
    LightUnitsArg(LightUnitsSpec),
    "radiometric" => LightUnitsSpec::Radiometric, "photometric" => LightUnitsSpec::Photometric
);
named!(
    /// The compression of an EXR file.
    ExrCompressionArg(ExrCompressionSpec),
    "none" => ExrCompressionSpec::None, "rle" => ExrCompressionSpec::Rle,
    "zips" => ExrCompressionSpec::Zips, "zip" => ExrCompressionSpec::Zip,
    "piz" => ExrCompressionSpec::Piz, "pxr24" => ExrCompressionSpec::Pxr24,
    "b44" => ExrCompressionSpec::B44, "b44a" => ExrCompressionSpec::B44a
);
named!(
    /// A tone map.
    ToneMapArg(ToneMapSpec),
    "standard" => ToneMapSpec::Standard, "pbr-neutral" => ToneMapSpec::PbrNeutral,
    "agx" => ToneMapSpec::Agx, "filmic" => ToneMapSpec::Filmic
);
named!(
    /// A look of AgX.
    LookArg(LookSpec),
    "punchy" => LookSpec::Punchy, "greyscale" => LookSpec::Greyscale,
    "very-high-contrast" => LookSpec::VeryHighContrast, "high-contrast" => LookSpec::HighContrast,
    "medium-high-contrast" => LookSpec::MediumHighContrast,
    "base-contrast" => LookSpec::BaseContrast,
    "medium-low-contrast" => LookSpec::MediumLowContrast, "low-contrast" => LookSpec::LowContrast,
    "very-low-contrast" => LookSpec::VeryLowContrast
);
named!(
    /// A file format.
    FormatArg(tessera_protocol::job::FormatSpec),
    "exr" => tessera_protocol::job::FormatSpec::Exr,
    "png" => tessera_protocol::job::FormatSpec::Png,
    "png16" => tessera_protocol::job::FormatSpec::Png16,
    "jpeg" => tessera_protocol::job::FormatSpec::Jpeg
);
