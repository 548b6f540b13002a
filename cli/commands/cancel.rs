//! `cancel`: ends jobs.

use super::change;
use crate::args::cancel::CancelArgs;
use crate::error::{CliError, Status};
use tessera_protocol::selection::JobChange;

/// `tessera cancel`.
pub(crate) async fn run(args: CancelArgs) -> Result<Status, CliError> {
    change::run(args.jobs, JobChange::Cancel { reason: args.reason }).await
}
