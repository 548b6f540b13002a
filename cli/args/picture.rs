//! Options of a picture, the same for `render` and `submit`.

use super::time::parse_ttl;
use crate::vectors::{EnvironmentArg, FrameSize, ValueError, parse_vector};
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;
use tessera_protocol::FrameSet;
use tessera_protocol::job::{AovSpec, FilterSpec, ToneMapSpec};
use tessera_protocol::rounds::ROUND_TILE;

/// What to render, and how.
#[derive(Debug, Args)]
pub struct PictureArgs {
    /// glTF 2.0 scene, .gltf or .glb
    pub scene: PathBuf,

    /// Frame size in pixels
    #[arg(long, value_name = "WxH", default_value = "800x600", help_heading = "Picture")]
    pub size: FrameSize,
    /// Samples per pixel [default: 64]; at most with --noise [default: 4096] and --time [default:
    /// 65536]
    #[arg(long, value_name = "N", help_heading = "Picture")]
    pub spp: Option<u32>,
    /// Sample each part of a frame until its noise is at most X: 0.05 for a preview, 0.01 for a
    /// picture to keep, 0.005 for hardly any
    #[arg(long, value_name = "X", help_heading = "Picture")]
    pub noise: Option<f64>,
    /// Double the samples of each frame as long as that fits into so much of the farm's time: 90s,
    /// 10m, 2h; it is told how many they are then
    #[arg(long, value_name = "TIME", value_parser = frame_time, help_heading = "Picture")]
    pub time: Option<u32>,
    /// Scatterings of a path at most
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Picture")]
    pub depth: u32,
    /// Hide fireflies: bound what light that was scattered more than once adds to a sample at a
    /// time, 1 to 10 for most scenes. Pictures get darker than the scene and say so [default: no
    /// bound]
    #[arg(long, value_name = "X", help_heading = "Picture")]
    pub clamp: Option<f64>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Picture")]
    pub seed: u32,
    /// Pixel reconstruction filter
    #[arg(long, value_name = "NAME", default_value = "blackman-harris", help_heading = "Picture")]
    pub filter: FilterArg,
    /// Material variant of the scene by its name, as `inspect` lists them [default: what each
    /// surface names itself]
    #[arg(long, value_name = "NAME", help_heading = "Picture")]
    pub variant: Option<String>,
    /// Further layers of EXR files: albedo, normal, depth, position
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Picture")]
    pub aov: Vec<AovArg>,
    /// Write the picture denoised; EXR files keep it as it was in the layer `noisy`
    #[arg(long, help_heading = "Picture")]
    pub denoise: bool,
    /// Exposure of PNG files in stops
    #[arg(
        long,
        value_name = "EV",
        default_value_t = 0.0,
        allow_hyphen_values = true,
        help_heading = "Picture"
    )]
    pub exposure: f32,
    /// Tone map of PNG files: standard, pbr-neutral, agx
    #[arg(long, value_name = "NAME", default_value = "standard", help_heading = "Picture")]
    pub tone_map: ToneMapArg,

    /// The one frame to render [default: 0]
    #[arg(long, value_name = "N", conflicts_with = "frames", help_heading = "Time")]
    pub frame: Option<u32>,
    /// Frames to render: `5`, `1-100`, `1-100x2`, or a list of them by commas
    #[arg(long, value_name = "SPEC", help_heading = "Time")]
    pub frames: Option<FrameSet>,
    /// Frames per second: frame N shows the time N / fps
    #[arg(long, value_name = "N", default_value_t = 24.0, help_heading = "Time")]
    pub fps: f64,

    /// Light at infinity: a .hdr or .exr map, #rrggbb, linear R,G,B, or none
    #[arg(long, value_name = "ENV", default_value = "none", help_heading = "Light")]
    pub env: EnvironmentArg,
    /// Factor on the environment
    #[arg(long, value_name = "X", default_value_t = 1.0, help_heading = "Light")]
    pub env_intensity: f32,
    /// Turn of the environment about +Y in degrees
    #[arg(
        long,
        value_name = "DEG",
        default_value_t = 0.0,
        allow_hyphen_values = true,
        help_heading = "Light"
    )]
    pub env_rotate: f32,

    /// Camera of the scene, by name or by number [default: the first]
    #[arg(long, value_name = "NAME|INDEX", conflicts_with = "eye", help_heading = "Camera")]
    pub camera: Option<String>,
    /// Where a camera of your own stands
    #[arg(
        long,
        value_name = "X,Y,Z",
        value_parser = point,
        allow_hyphen_values = true,
        requires = "target",
        help_heading = "Camera",
    )]
    pub eye: Option<[f32; 3]>,
    /// What it looks at
    #[arg(
        long,
        value_name = "X,Y,Z",
        value_parser = point,
        allow_hyphen_values = true,
        requires = "eye",
        help_heading = "Camera",
    )]
    pub target: Option<[f32; 3]>,
    /// Which way is up
    #[arg(
        long,
        value_name = "X,Y,Z",
        value_parser = point,
        allow_hyphen_values = true,
        default_value = "0,1,0",
        help_heading = "Camera",
    )]
    pub up: [f32; 3],
    /// Its vertical field of view in degrees
    #[arg(long, value_name = "DEG", default_value_t = 45.0, help_heading = "Camera")]
    pub vfov: f32,
    /// Radius of a thin lens in metres [default: a pinhole]
    #[arg(long, value_name = "M", group = "aperture", requires = "focus", help_heading = "Camera")]
    pub lens_radius: Option<f32>,
    /// The lens by its f-number, as on 35 mm film
    #[arg(long, value_name = "N", group = "aperture", requires = "focus", help_heading = "Camera")]
    pub f_stop: Option<f32>,
    /// Distance in focus in metres
    #[arg(long, value_name = "M", group = "focus", requires = "aperture", help_heading = "Camera")]
    pub focus_distance: Option<f32>,
    /// A point that is in focus in every frame
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
    /// Corners of the lens, 3 to 16, as what is out of focus shows them [default: 0, round]
    #[arg(long, value_name = "N", requires = "aperture", help_heading = "Camera")]
    pub blades: Option<u8>,
    /// Turn of the lens in degrees, counter-clockwise as behind the focus; at 0 a corner is at the
    /// top
    #[arg(
        long,
        value_name = "DEG",
        allow_hyphen_values = true,
        requires = "blades",
        help_heading = "Camera"
    )]
    pub blade_rotation: Option<f32>,

    /// Tile edge in pixels; never changes the picture [default: 64]; not with --noise or --time
    #[arg(long, value_name = "N", help_heading = "Work")]
    pub tile: Option<u32>,
    /// Samples per pixel in one unit of work, 0 for a good choice; never changes the picture; not
    /// with --noise or --time
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

/// Seconds of `90s`, `10m` or `2h`; how many there may be, job specs say.
fn frame_time(text: &str) -> Result<u32, String> {
    let secs = parse_ttl(text)?;
    u32::try_from(secs).map_err(|_| format!("`{text}` is too long"))
}

fn point(text: &str) -> Result<[f32; 3], ValueError> {
    parse_vector(text)
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
                    _ => Err(format!("`{text}` is none of: {}", [$($text),+].join(", "))),
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
    /// A tone map.
    ToneMapArg(ToneMapSpec),
    "standard" => ToneMapSpec::Standard, "pbr-neutral" => ToneMapSpec::PbrNeutral,
    "agx" => ToneMapSpec::Agx
);
named!(
    /// A file format.
    FormatArg(tessera_protocol::job::FormatSpec),
    "exr" => tessera_protocol::job::FormatSpec::Exr,
    "png" => tessera_protocol::job::FormatSpec::Png,
    "png16" => tessera_protocol::job::FormatSpec::Png16
);
