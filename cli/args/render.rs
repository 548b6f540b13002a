//! Options of `render`.

use super::devices::DeviceArgs;
use super::import::ImportArgs;
use super::picture::PictureArgs;
use clap::Args;
use std::path::PathBuf;

/// Options of `render`.
#[derive(Debug, Args)]
#[command(after_help = "With several frames, -o is a pattern: frame.####.exr, frame.%04d.exr or \
        frame.{frame:04}.exr.")]
pub struct RenderArgs {
    /// The picture.
    #[command(flatten)]
    pub picture: PictureArgs,
    /// File to write, .exr, .png or .jpg, in place of a file that is there; may be given more than
    /// once
    #[arg(short, long, value_name = "FILE", required = true)]
    pub output: Vec<PathBuf>,
    /// Write PNG files with 16 bits per channel instead of 8
    #[arg(long, help_heading = "Picture")]
    pub png16: bool,
    /// Number of nodes to run, which share the threads; does not change the picture
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
    /// Print one line of JSON on standard output at the end: what it took, in all and by frame
    #[arg(long)]
    pub json: bool,
    /// Print no progress and no summary
    #[arg(short, long)]
    pub quiet: bool,
}
