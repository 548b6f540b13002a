//! Options of `preview`.

use super::farm::FarmArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of `preview`.
#[derive(Debug, Args)]
#[command(
    after_help = "A finished frame is shown as its PNG or JPEG file has it, or else its EXR file \
        as sRGB. A frame that is being rendered is shown as far as tiles arrive while this waits \
        for them.\n\nA video is made by ffmpeg, which must be installed; its name's ending says \
        which kind. A frame that is not finished shows the one before it."
)]
pub struct PreviewArgs {
    /// Job, by its id, the beginning of one, or its name
    pub job: String,
    /// Frame to show [default: the last finished one, or else the first one of the job]
    #[arg(long, value_name = "N")]
    pub frame: Option<u32>,
    /// Form of the picture: kitty (also Ghostty, WezTerm, Konsole), sixel (256 colours), blocks
    /// (coloured characters, two pixels each), or auto, the best that the terminal says it knows
    #[arg(
        long = "as",
        value_name = "FORM",
        value_enum,
        default_value = "auto",
        hide_possible_values = true
    )]
    pub form: Form,
    /// Width in characters [default: the terminal's]
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(4..=1000))]
    pub columns: Option<u16>,
    /// Exposure to add, in stops; reads the EXR file where there is one
    #[arg(long, value_name = "EV", default_value_t = 0.0, value_parser = stops)]
    pub exposure: f64,
    /// How long to wait for tiles of a frame that is being rendered, in seconds
    #[arg(
        long,
        value_name = "SECS",
        default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    pub within: u64,
    /// Write a video of the finished frames to this file instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["frame", "form", "columns", "within"])]
    pub video: Option<PathBuf>,
    /// Frames of the video in a second
    #[arg(long, value_name = "N", default_value_t = 24.0, value_parser = rate, requires = "video")]
    pub fps: f64,
    /// Replace the file of the video
    #[arg(long, requires = "video")]
    pub overwrite: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// How a picture is told to a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// The best that the terminal says it knows
    Auto,
    /// Pixels, by the protocol of kitty, Ghostty, WezTerm and Konsole
    Kitty,
    /// Pixels of 256 colours, by the protocol of the VT340
    Sixel,
    /// Coloured characters, two pixels each
    Blocks,
}

fn stops(text: &str) -> Result<f64, String> {
    between(text, -32.0, 32.0)
}

fn rate(text: &str) -> Result<f64, String> {
    between(text, 0.1, 240.0)
}

fn between(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(format!("it is not within {least} and {most}")),
    }
}
