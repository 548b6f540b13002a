//! The commands, each in a file with its name. `change` holds `pause`, `resume`, `retry` and
//! `forget`, `drain` holds `undrain`, and `deny` holds `allow`. Their options are in `args`, under
//! the same names.

mod audit;
mod authority;
mod backup;
mod bench;
mod cancel;
mod change;
mod completions;
mod compute;
mod coordinator;
mod cost;
mod cost_rules;
mod deny;
mod diff;
mod doctor;
mod drain;
mod enrol;
mod events;
mod explain;
mod export;
mod fetch;
mod fsck;
pub(crate) mod inspect;
mod job;
mod job_set;
mod jobs;
mod logs;
mod man;
mod members;
pub(crate) mod node;
pub(crate) mod node_detail;
mod nodes;
mod preset;
mod preview;
mod render;
mod restore;
mod store;
mod submit;
mod submit_template;
mod support_bundle;
mod sweep;
mod test_frame;
mod token;
mod usage;
mod wait;
mod watch;
mod watch_all;
mod web;

use crate::args::Command;
use crate::error::{CliError, Status};
use crate::log::Telling;
use tessera_protocol::selection::JobChange;
use tokio::task::block_in_place;

/// Runs a command to its end. `telling`: who is told of it.
pub(crate) async fn run(command: Command, telling: Telling) -> Result<Status, CliError> {
    match command {
        Command::Render(args) => render::run(*args).await,
        Command::Coordinator(args) => coordinator::run(*args, telling).await,
        Command::Web(args) => web::run(args).await,
        Command::Node(args) => node::run(args, telling).await,
        Command::Token(command) => token::run(command).await,
        Command::Members(command) => members::run(command).await,
        Command::Enrol(args) => enrol::run(args).await,
        Command::Submit(args) => submit::run(*args).await,
        Command::Compute(args) => compute::run(*args).await,
        Command::Jobs(args) => jobs::run(args).await,
        Command::Job(args) => job::run(args).await,
        Command::Logs(args) => logs::run(args).await,
        Command::Explain(args) => explain::run(args).await,
        Command::Watch(args) => watch::run(args).await,
        Command::Wait(args) => wait::run(args).await,
        Command::Preview(args) => preview::run(args).await,
        Command::Fetch(args) => fetch::run(args).await,
        Command::Pause(args) => change::run(args, JobChange::Pause).await,
        Command::Resume(args) => change::run(args, JobChange::Resume).await,
        Command::Retry(args) => change::run(args, JobChange::Retry).await,
        Command::Cancel(args) => cancel::run(args).await,
        Command::Forget(args) => change::run(args, JobChange::Forget).await,
        Command::Usage(args) => usage::run(args).await,
        Command::Cost(args) => cost::run(args).await,
        Command::Preset(command) => preset::run(command).await,
        Command::Sweep(args) => sweep::run(args).await,
        // A store elsewhere is read by threads of its own, which are waited for here.
        Command::Fsck(args) => block_in_place(|| fsck::run(args)),
        Command::Backup(args) => backup::run(args).await,
        Command::Restore(args) => block_in_place(|| restore::run(args)),
        Command::Store(command) => block_in_place(|| store::run(command)),
        Command::Nodes(args) => nodes::run(args).await,
        Command::Drain(args) => drain::drain(args).await,
        Command::Undrain(args) => drain::undrain(args).await,
        Command::Deny(args) => deny::deny(args).await,
        Command::Allow(args) => deny::allow(args).await,
        Command::Audit(args) => audit::run(args).await,
        Command::Authority(command) => authority::run(command).await,
        Command::Inspect(args) => inspect::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Events(command) => events::run(command).await,
        Command::Doctor(args) => doctor::run(args).await,
        Command::SupportBundle(args) => support_bundle::run(args).await,
        Command::Bench(args) => bench::run(args).await,
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}
