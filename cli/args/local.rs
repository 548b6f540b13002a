//! Options of commands that need no farm.

use super::picture::PictureArgs;
use crate::vectors::EnvironmentArg;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tessera_node::import::ImportLimits;
use tessera_node::{DeviceSpec, Isa};

/// Options of `render`.
#[derive(Debug, Args)]
#[command(
    after_help = "With several frames, -o is a pattern: `frame.####.exr`, `frame.%04d.exr` or \
        `frame.{frame:04}.exr`."
)]
pub struct RenderArgs {
    /// The picture.
    #[command(flatten)]
    pub picture: PictureArgs,
    /// File to write; .exr or .png says the format. May be given more than once
    #[arg(short, long, value_name = "FILE", required = true)]
    pub output: Vec<PathBuf>,
    /// PNG files have 16 bits a channel instead of 8
    #[arg(long, help_heading = "Picture")]
    pub png16: bool,
    /// Nodes to run; they share the threads; never changes the picture
    #[arg(
        long,
        value_name = "K",
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=64),
        help_heading = "Work",
    )]
    pub nodes: u16,
    /// How the devices are used.
    #[command(flatten)]
    pub devices: DeviceArgs,
    /// What reading the scene may take.
    #[command(flatten)]
    pub import: ImportArgs,
    /// End with one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// No progress and no summary
    #[arg(short, long)]
    pub quiet: bool,
}

/// Which devices to use, and how.
#[derive(Clone, Debug, Args)]
pub struct DeviceArgs {
    /// Devices: auto (CUDA devices that work, else the CPU), cpu, cuda, cuda:INDEX; several by
    /// comma
    #[arg(
        long,
        value_name = "DEVICE",
        value_delimiter = ',',
        env = "TESSERA_DEVICE",
        default_value = "auto",
        help_heading = "Work"
    )]
    pub device: Vec<DeviceSpec>,
    /// Least time, in seconds, without progress of a unit after which a CUDA device's worker is
    /// ended [default: 60]
    #[arg(
        long,
        value_name = "SECS",
        env = "TESSERA_WATCHDOG",
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        help_heading = "Work",
    )]
    pub watchdog: Option<u64>,
    /// Threads of the CPU device [default: all]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=4096),
        help_heading = "Work",
    )]
    pub threads: Option<u32>,
    /// Instruction set of the CPU device: base, x86-64-v2, x86-64-v3 [default: the best]; never
    /// changes the picture
    #[arg(long, value_name = "NAME", help_heading = "Work")]
    pub isa: Option<Isa>,
}

/// What the process that reads a scene may take.
#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// Memory for reading a scene, MiB; one that takes more is refused [default: a quarter of the
    /// machine's, at least 4096]
    #[arg(
        long,
        value_name = "MIB",
        env = "TESSERA_SCENE_MEMORY",
        value_parser = clap::value_parser!(u64).range(64..=1 << 24),
        help_heading = "Limits",
    )]
    pub scene_memory: Option<u64>,
    /// Time for reading a scene, and for each of its frames, in seconds; one that takes longer is
    /// refused [default: 300]
    #[arg(
        long,
        value_name = "SECS",
        env = "TESSERA_SCENE_TIME",
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        help_heading = "Limits",
    )]
    pub scene_time: Option<u64>,
}

impl ImportArgs {
    /// The limits.
    pub fn limits(&self) -> ImportLimits {
        let usual = ImportLimits::default();
        ImportLimits {
            memory_bytes: self.scene_memory.map_or(usual.memory_bytes, |mib| mib << 20),
            time: self.scene_time.map_or(usual.time, Duration::from_secs),
        }
    }
}

/// Options of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// glTF 2.0 scene, .gltf or .glb
    pub scene: PathBuf,
    /// Light at infinity, as for `render`
    #[arg(long, value_name = "ENV", default_value = "none")]
    pub env: EnvironmentArg,
    /// What reading the scene may take.
    #[command(flatten)]
    pub import: ImportArgs,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A picture, .exr or .png
    pub a: PathBuf,
    /// The picture to compare with, the reference of relMSE
    pub b: PathBuf,
    /// Also succeed where relMSE is not above this
    #[arg(long, value_name = "X")]
    pub max_relmse: Option<f64>,
    /// Pixels in a degree of the observer's view, for FLIP [default: 67.02]
    #[arg(
        long,
        value_name = "N",
        default_value_t = crate::picture::PIXELS_PER_DEGREE,
        hide_default_value = true,
    )]
    pub pixels_per_degree: f64,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "A line for each check: ok, warn or fail. Status 1 where one fails.")]
pub struct DoctorArgs {
    /// Also see whether this coordinator can be reached, HOST:PORT
    #[arg(long, value_name = "HOST:PORT", env = "TESSERA_COORDINATOR")]
    pub coordinator: Option<String>,
    /// The node's own folder [default: $XDG_DATA_HOME/tessera/node]
    #[arg(long, value_name = "DIR", env = "TESSERA_NODE_DATA")]
    pub data: Option<PathBuf>,
    /// Disk space that the node may fill with scene files, MiB
    #[arg(long, value_name = "MIB", default_value_t = 16 << 10)]
    pub cache: u64,
    /// Also see whether a coordinator could listen at this UDP address; may be given more than once
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<SocketAddr>,
    /// Also keep every device busy for so many seconds, and compare every result
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub burn: Option<u64>,
    /// How the devices are used.
    #[command(flatten)]
    pub devices: DeviceArgs,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `bench`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "512x512 pixels, depth 8, no environment; samples per pixel such that a round \
        takes about a second."
)]
pub struct BenchArgs {
    /// Scenes, .gltf or .glb [default: the standard ones, which are inside the program]
    #[arg(value_name = "SCENE")]
    pub scenes: Vec<PathBuf>,
    /// Rounds; the median counts
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=1000),
    )]
    pub rounds: u32,
    /// Samples per pixel [default: as many as take about a second]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub spp: Option<u32>,
    /// Compare with what --save has written before
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Status 1 where a rate is below this share of the baseline's
    #[arg(long, value_name = "RATIO", requires = "baseline")]
    pub fail_below: Option<f64>,
    /// Write the measurements to a file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// How the devices are used.
    #[command(flatten)]
    pub devices: DeviceArgs,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Folder to write them to
    pub folder: PathBuf,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// bash, elvish, fish, powershell or zsh
    pub shell: clap_complete::Shell,
}
