//! Options of `bench`.

use super::devices::DeviceArgs;
use clap::Args;
use std::path::PathBuf;

/// Options of `bench`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Pictures have 512x512 pixels, depth 8 and no environment; by default a round \
        takes about a second."
)]
pub struct BenchArgs {
    /// Scenes, .gltf or .glb [default: the standard scenes inside the program]
    #[arg(value_name = "SCENE")]
    pub scenes: Vec<PathBuf>,
    /// Number of rounds; the median is reported
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
    /// Compare with a file that --save wrote
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Exit with status 1 if a rate is below this share of the baseline's
    #[arg(long, value_name = "RATIO", requires = "baseline")]
    pub fail_below: Option<f64>,
    /// Write the measurements to a file, in place of one that is there
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// How the devices are used.
    #[command(flatten)]
    pub devices: DeviceArgs,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}
