//! Options of `diff`.

use clap::Args;
use std::path::PathBuf;

/// Options of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Picture to compare, .exr, .png or .jpg
    pub a: PathBuf,
    /// Reference picture
    pub b: PathBuf,
    /// Also succeed if relMSE is at most X
    #[arg(long, value_name = "X")]
    pub max_relmse: Option<f64>,
    /// Pixels per degree of the observer's view, for FLIP [default: 67.02]
    #[arg(
        long,
        value_name = "N",
        default_value_t = crate::picture::PIXELS_PER_DEGREE,
        hide_default_value = true,
    )]
    pub pixels_per_degree: f64,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}
