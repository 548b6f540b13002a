//! The command line of Tessera: arguments, output for people and for scripts, hints. Owns no logic
//! that a library user would want.
//!
//! ```text
//! arguments + environment + config files ─► args ─► commands ─► coordinator, node,
//!                                                               transport, scenes
//! ```

pub mod args;
mod bench;
mod blob_place;
mod client;
mod commands;
mod config;
mod doctor;
mod error;
mod events_file;
mod folder_claim;
mod frame_files;
mod heap;
mod idle_exit;
mod inspector;
mod job_id;
mod job_table;
mod json;
mod kernel_text;
mod live_pictures;
mod local_farm;
mod local_time;
mod log;
mod node_lines;
mod notices;
mod openjd;
pub mod pattern;
pub mod picture;
mod place;
mod preview;
mod process_limits;
mod progress;
mod rusage;
mod secrets;
mod service;
mod signals;
mod small_file;
mod srgb;
mod standard;
mod store_place;
mod submission;
mod table;
mod template;
mod template_reader;
mod tev;
pub mod vectors;
mod wake;
mod work_hours;

pub use args::command;
pub use error::{CliError, Status};
pub use work_hours::WorkHours;

use args::{Cli, Command};
use clap::FromArgMatches;
use log::Telling;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs one command line, prints its output, and returns the exit status.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    // Worker processes for a device, a scene or a template: they get no settings, and must confine
    // themselves before there is a second thread.
    match arguments.get(1) {
        Some(first) if first == tessera_node::worker::COMMAND => {
            return tessera_node::worker::main();
        }
        Some(first) if first == tessera_node::import::COMMAND => {
            return tessera_node::import::main();
        }
        Some(first) if first == template_reader::COMMAND => return template_reader::main(),
        _ => {}
    }
    let cli = match parse(arguments) {
        Ok(cli) => cli,
        Err(Refusal::Usage(error)) => {
            // Help and version come this way too. A closed standard output cannot be reported.
            let _ = error.print();
            let is_error = error.use_stderr();
            return if is_error { Status::Usage.into() } else { Status::Done.into() };
        }
        Err(Refusal::Config(error)) => return report(&error),
    };
    let (telemetry, notice) = log::telemetry(&cli.command);
    let telling = log::init(&cli.command, &telemetry);
    if let Some(notice) = notice {
        tracing::warn!("{notice}");
    }
    let code = match run(cli, telling) {
        Ok(status) => status.into(),
        Err(error) => report(&error),
    };
    telemetry.finish();
    code
}

enum Refusal {
    Usage(clap::Error),
    Config(CliError),
}

fn parse(arguments: Vec<OsString>) -> Result<Cli, Refusal> {
    let command = config::apply(args::command(), &arguments).map_err(Refusal::Config)?;
    let matches = command.try_get_matches_from(arguments).map_err(Refusal::Usage)?;
    let mut cli = Cli::from_arg_matches(&matches)
        .map_err(|error| Refusal::Usage(error.format(&mut args::command())))?;
    if let Some((_, matches)) = matches.subcommand() {
        args::note_chosen(&mut cli.command, matches);
    }
    Ok(cli)
}

fn run(cli: Cli, telling: Telling) -> Result<Status, CliError> {
    heap::bound_arenas(&cli.command);
    process_limits::prepare(&cli.command)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| {
            CliError::new(Status::Failure, error).context("cannot start the runtime")
        })?;
    let status = runtime.block_on(commands::run(cli.command, telling));
    // A blocking task that hangs (a dead disk, say) must not keep the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    status
}

fn report(error: &CliError) -> ExitCode {
    if error.is_closed_output() {
        return ExitCode::SUCCESS;
    }
    eprint!("{}", error.for_people());
    error.status().into()
}

impl Command {
    /// Returns whether the command is a service, which runs until it is stopped and writes a log.
    fn is_service(&self) -> bool {
        matches!(self, Self::Coordinator(_) | Self::Node(_))
    }
}
