//! Options of `inspect`.

use super::import::ImportArgs;
use super::picture::LightUnitsArg;
use crate::vectors::EnvironmentArg;
use clap::Args;
use std::path::PathBuf;

/// Options of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// glTF 2.0 scene, .gltf or .glb
    pub scene: PathBuf,
    /// Environment light, as for render
    #[arg(long, value_name = "ENV", default_value = "auto")]
    pub env: EnvironmentArg,
    /// Units of the file's punctual lights, as for render
    #[arg(long, value_name = "UNITS", default_value = "radiometric")]
    pub lights: LightUnitsArg,
    /// What reading the scene may take.
    #[command(flatten)]
    pub import: ImportArgs,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
}
