//! `completions`: prints a script that completes commands in a shell.

use crate::args::completions::CompletionsArgs;
use crate::error::{CliError, Status};

/// `tessera completions`.
pub(crate) fn run(args: &CompletionsArgs) -> Result<Status, CliError> {
    clap_complete::generate(
        args.shell,
        &mut crate::args::command(),
        "tessera",
        &mut std::io::stdout(),
    );
    Ok(Status::Done)
}
