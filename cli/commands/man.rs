//! `man`: writes manual pages, one for each command.

use crate::args::Cli;
use crate::args::man::ManArgs;
use crate::error::{CliError, Status};
use clap::CommandFactory;

/// `tessera man`.
pub(crate) fn run(args: &ManArgs) -> Result<Status, CliError> {
    clap_mangen::generate_to(Cli::command(), &args.folder)
        .map_err(|error| CliError::from(error).context(format!("`{}`", args.folder.display())))?;
    Ok(Status::Done)
}
