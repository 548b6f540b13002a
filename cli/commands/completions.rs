//! `completions`: prints a script that completes commands in a shell.

use crate::args::Cli;
use crate::args::completions::CompletionsArgs;
use crate::error::{CliError, Status};
use clap::CommandFactory;

/// `tessera completions`.
pub(crate) fn run(args: &CompletionsArgs) -> Result<Status, CliError> {
    clap_complete::generate(args.shell, &mut Cli::command(), "tessera", &mut std::io::stdout());
    Ok(Status::Done)
}
