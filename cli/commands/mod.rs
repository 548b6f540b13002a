//! The commands, a file each or a few that belong together.

mod authority;
mod bench;
mod compute;
mod coordinator;
mod deny;
mod diff;
mod doctor;
mod fetch;
mod follow;
mod inspect;
mod jobs;
pub(crate) mod node;
mod node_detail;
mod nodes;
mod render;
mod store;
mod submit;
mod token;

use crate::args::{Cli, Command};
use crate::error::{CliError, Status};
use clap::CommandFactory;

/// Runs a command to its end.
pub(crate) async fn run(command: Command) -> Result<Status, CliError> {
    match command {
        Command::Render(args) => render::run(*args).await,
        Command::Coordinator(args) => coordinator::run(args).await,
        Command::Node(args) => node::run(args).await,
        Command::Token(command) => token::run(command).await,
        Command::Enrol(args) => token::enrol(args).await,
        Command::Submit(args) => submit::run(*args).await,
        Command::Compute(args) => compute::run(*args).await,
        Command::Jobs(args) => jobs::list(args).await,
        Command::Job(args) => jobs::show(args).await,
        Command::Watch(args) => follow::watch(args).await,
        Command::Wait(args) => follow::wait(args).await,
        Command::Fetch(args) => fetch::run(args).await,
        Command::Pause(args) => jobs::pause(args, true).await,
        Command::Resume(args) => jobs::pause(args, false).await,
        Command::Retry(args) => jobs::retry(args).await,
        Command::Cancel(args) => jobs::cancel(args).await,
        Command::Forget(args) => store::forget(args).await,
        Command::Fsck(args) => store::fsck(args),
        Command::Backup(args) => store::backup(args).await,
        Command::Restore(args) => store::restore(args),
        Command::Nodes(args) => nodes::list(args).await,
        Command::Drain(args) => nodes::drain(args, true).await,
        Command::Undrain(args) => nodes::drain(args, false).await,
        Command::Deny(args) => deny::deny(args).await,
        Command::Allow(args) => deny::allow(args).await,
        Command::Audit(args) => authority::audit(args).await,
        Command::Authority(command) => authority::run(command).await,
        Command::Inspect(args) => inspect::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Doctor(args) => doctor::run(args).await,
        Command::Bench(args) => bench::run(args).await,
        Command::Completions(args) => {
            clap_complete::generate(
                args.shell,
                &mut Cli::command(),
                "tessera",
                &mut std::io::stdout(),
            );
            Ok(Status::Done)
        }
        Command::Man(args) => {
            clap_mangen::generate_to(Cli::command(), &args.folder).map_err(|error| {
                CliError::from(error).context(format!("`{}`", args.folder.display()))
            })?;
            Ok(Status::Done)
        }
    }
}
