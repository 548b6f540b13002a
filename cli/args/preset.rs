//! Options of `preset`.

use super::farm::{FarmArgs, ListArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What to do with presets.
#[derive(Debug, Subcommand)]
pub enum PresetCommand {
    /// List the presets of the farm
    List(ListArgs),
    /// Print the template of a preset
    Show(ShowArgs),
    /// Publish a template under a name, for all who submit (admins)
    Publish(PublishArgs),
    /// Take a preset away (admins); jobs that were made of it stay
    Remove(RemoveArgs),
}

/// Options of `preset show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Name of the preset
    pub name: String,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `preset publish`.
#[derive(Debug, Args)]
#[command(
    after_help = "A preset brings no files: a scene that it renders is a parameter of the type \
        file. It is used by tessera submit preset:NAME --set PARAMETER=VALUE, on the pages, and by \
        programs."
)]
pub struct PublishArgs {
    /// Name of the preset: letters, digits and . _ - @
    pub name: String,
    /// The template, as for submit
    #[arg(value_name = "TEMPLATE.toml")]
    pub file: PathBuf,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}

/// Options of `preset remove`.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Name of the preset
    pub name: String,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
}
