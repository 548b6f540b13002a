//! Options of `submit`.

use super::after::AfterArgs;
use super::chosen::Chosen;
use super::export::ExportArg;
use super::farm::FarmArgs;
use super::import::ImportArgs;
use super::picture::{FormatArg, PictureArgs};
use super::tries::TriesArgs;
use clap::Args;

const AFTER_HELP: &str = "\
A scene that ends in .toml is a template: parameters and steps, which become the
jobs of one submission, checked whole before anything is sent (docs/templates.md).
Its options are in the file; --set gives values to its parameters. One that ends in
.yaml, .yml or .json is a template of Open Job Description, and preset:NAME is a
template of the farm (tessera preset list).";

/// Options of `submit`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct SubmitArgs {
    /// The picture.
    #[command(flatten)]
    pub picture: PictureArgs,
    /// File formats, comma-separated: exr, png (8 bits), png16, jpeg
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "exr",
        help_heading = "Picture"
    )]
    pub format: Vec<FormatArg>,
    /// Name of the job and of its files [default: the scene's]
    #[arg(long, value_name = "NAME", help_heading = "Job")]
    pub name: Option<String>,
    /// Share of the job among your own, 0 to 100; operators can raise it above 50 later
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Job")]
    pub priority: u8,
    /// Use only nodes of this pool [default: any node]
    #[arg(long, value_name = "POOL", help_heading = "Job")]
    pub pool: Option<String>,
    /// How often and how long the farm tries.
    #[command(flatten)]
    pub tries: TriesArgs,
    /// Most nodes that work on the job at a time [default: no bound]
    #[arg(long, value_name = "N", help_heading = "Job")]
    pub max_nodes: Option<u32>,
    /// Value of a parameter of a template; may be given more than once
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Job")]
    pub set: Vec<String>,
    /// Also tell this webhook or mail target of the farm about the job; may be given more than once
    #[arg(long, value_name = "TARGET", value_delimiter = ',', help_heading = "Job")]
    pub notify: Vec<String>,
    /// What the job waits for.
    #[command(flatten)]
    pub after: AfterArgs,
    /// Wait until the job ends; the exit status says how it ended
    #[arg(long, conflicts_with = "watch", help_heading = "Job")]
    pub wait: bool,
    /// Follow the job until it ends
    #[arg(long, help_heading = "Job")]
    pub watch: bool,
    /// Check everything and print what would be submitted, without submitting it
    #[arg(long, conflicts_with_all = ["wait", "watch"], help_heading = "Job")]
    pub dry_run: bool,
    /// Render one small frame on the farm first, and say what the job should take and cost
    #[arg(long, help_heading = "Job")]
    pub test_frame: bool,
    /// Check everything and print a template for farms of other kinds: openjd. Its tasks run
    /// tessera render, each on one machine
    #[arg(long, value_name = "FORM", help_heading = "Job")]
    #[arg(conflicts_with_all = ["wait", "watch", "dry_run", "test_frame", "json"])]
    pub export: Option<ExportArg>,
    /// What reading the scene may take.
    #[command(flatten)]
    pub import: ImportArgs,
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Which farm.
    #[command(flatten)]
    pub farm: FarmArgs,
    /// Long names of the options that were on the command line.
    #[arg(skip)]
    pub given: Vec<String>,
    /// The options that are set, as they were written.
    #[arg(skip)]
    pub chosen: Chosen,
}
