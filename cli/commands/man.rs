//! `man`: writes manual pages, one for each command.

use crate::args::man::ManArgs;
use crate::error::{CliError, Status};

/// `tessera man`.
pub(crate) fn run(args: &ManArgs) -> Result<Status, CliError> {
    clap_mangen::generate_to(crate::args::command(), &args.folder)
        .map_err(|error| CliError::from(error).context(format!("`{}`", args.folder.display())))?;
    Ok(Status::Done)
}
