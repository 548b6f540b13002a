//! The command line: commands, their options, and the help that `tessera help` prints. A command's
//! options are in the file of its name; what it does is in the file of that name in `commands`.

pub mod after;
pub mod audit;
pub mod authority;
pub mod backup;
pub mod bench;
pub mod blobs;
pub mod cancel;
pub mod change;
pub mod chosen;
pub mod completions;
pub mod compute;
pub mod coordinator;
pub mod cost;
pub mod deny;
pub mod devices;
pub mod diff;
pub mod doctor;
pub mod drain;
pub mod enrol;
pub mod events;
pub mod explain;
pub mod export;
pub mod exr_depth;
pub mod farm;
pub mod fetch;
pub mod files;
pub mod fsck;
pub mod http;
pub mod import;
pub mod inspect;
pub mod job;
pub mod job_set;
pub mod jobs;
pub mod logs;
pub mod man;
pub mod members;
pub mod node;
pub mod nodes;
pub mod oidc;
pub mod picture;
pub mod preset;
pub mod preview;
pub mod render;
pub mod restore;
pub mod selection;
pub mod start;
pub mod store;
pub mod submit;
pub mod support_bundle;
pub mod sweep;
pub mod time;
pub mod token;
pub mod tries;
pub mod usage;
pub mod wait;
pub mod watch;
pub mod web;

use clap::{ArgMatches, Args, CommandFactory, Parser, Subcommand};
use std::fmt::Write as _;

/// A render farm: the same picture, to the last bit, on any machines.
#[derive(Debug, Parser)]
#[command(
    name = "tessera",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = AFTER_HELP,
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Exit status:
  0 done, 1 another failure, 2 usage, 3 the job failed or was cancelled,
  4 not found, 5 not allowed, 6 coordinator unreachable, 7 timed out waiting,
  8 some frames failed, 130 interrupted (a job on the farm continues)

Settings: a flag overrides its TESSERA_* variable, which overrides tessera.toml
in the working folder, which overrides $XDG_CONFIG_HOME/tessera/config.toml.
TESSERA_CONFIG=FILE reads only that file instead.";

/// The commands as `tessera help` groups them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Render and look", &["render", "inspect", "diff"]),
    (
        "Jobs",
        &[
            "submit", "compute", "preset", "jobs", "job", "explain", "logs", "watch", "wait",
            "preview", "fetch", "pause", "resume", "retry", "cancel", "forget",
        ],
    ),
    (
        "Farm",
        &[
            "coordinator",
            "web",
            "node",
            "nodes",
            "drain",
            "undrain",
            "usage",
            "cost",
            "sweep",
            "events",
            "doctor",
            "support-bundle",
            "bench",
        ],
    ),
    ("Identity", &["token", "enrol", "members", "deny", "allow", "authority", "audit"]),
    ("Data of a coordinator", &["fsck", "backup", "restore", "store"]),
    ("This program", &["completions", "man"]),
];

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Render a scene on this machine
    Render(Box<render::RenderArgs>),
    /// Show what a scene holds, what is ignored, and the memory it needs
    Inspect(inspect::InspectArgs),
    /// Compare two pictures; status 0 if they are identical or close enough
    Diff(diff::DiffArgs),
    /// Submit a scene to a farm; prints the id of the job
    Submit(Box<submit::SubmitArgs>),
    /// Run a CUDA or built-in kernel over a domain on a farm
    Compute(Box<compute::ComputeArgs>),
    /// List, show and publish templates of the farm for all who submit
    #[command(subcommand)]
    Preset(preset::PresetCommand),
    /// List jobs: all, or those of an owner, in a state, of a name
    Jobs(jobs::JobsArgs),
    /// Show one job: its settings, progress and failures; or change it (job set)
    Job(job::JobArgs),
    /// Say why a job, a frame or a node waits, what would help, and when it ends
    Explain(explain::ExplainArgs),
    /// Print what nodes said of a job, a frame or a unit, or of themselves
    Logs(logs::LogsArgs),
    /// Follow a job until it ends, or all jobs
    Watch(watch::WatchArgs),
    /// Wait until a job ends; the exit status says how it ended
    Wait(wait::WaitArgs),
    /// Show a frame of a job in the terminal, or make a video of its frames
    Preview(preview::PreviewArgs),
    /// Download the finished frames of a job
    Fetch(fetch::FetchArgs),
    /// Pause jobs; finished work is kept
    Pause(change::ChangeArgs),
    /// Resume paused jobs
    Resume(change::ChangeArgs),
    /// Render failed frames again, also of cancelled jobs; finished frames are kept
    Retry(change::ChangeArgs),
    /// Cancel jobs; finished frames are kept
    Cancel(cancel::CancelArgs),
    /// Delete ended jobs and their frames
    Forget(change::ChangeArgs),
    /// Run a coordinator, which keeps jobs and assigns their tiles to nodes
    Coordinator(Box<coordinator::CoordinatorArgs>),
    /// Open the farm's pages in a browser, signed in as this identity
    Web(web::WebArgs),
    /// Run a node, which renders for a coordinator
    Node(node::NodeArgs),
    /// List nodes, also absent ones, show one with its devices, or take one off the list
    Nodes(nodes::NodesArgs),
    /// Give a node no new work; it stays connected, or leaves with --leave
    Drain(drain::DrainArgs),
    /// Give work to a drained node again
    Undrain(drain::UndrainArgs),
    /// Show what each user and node has of the farm: jobs, frames, files, memory
    Usage(usage::UsageArgs),
    /// Show device time and what it costs; set prices and budgets (cost rules)
    Cost(cost::CostArgs),
    /// Delete all jobs, frames and files of a user
    Sweep(sweep::SweepArgs),
    /// Try the webhooks and mails of a coordinator
    #[command(subcommand)]
    Events(events::EventsCommand),
    /// Check whether this machine can be a node, or what a coordinator's store promises
    Doctor(doctor::DoctorArgs),
    /// Write what helps others to help into one text, without secrets
    SupportBundle(support_bundle::SupportBundleArgs),
    /// Measure the devices of this machine on standard scenes
    Bench(bench::BenchArgs),
    /// Create, list and revoke tokens: to join the farm, and for programs (--api)
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// List who holds which name, free a name, decide between two copies of an identity
    #[command(subcommand)]
    Members(members::MembersCommand),
    /// Join a farm as this user, using a join token
    Enrol(enrol::EnrolArgs),
    /// Shut a node or a user out of the farm at once, or list who is denied
    Deny(deny::DenyArgs),
    /// Let a denied node or user in again
    Allow(deny::AllowArgs),
    /// Show or rotate the farm's certificate authority
    #[command(subcommand)]
    Authority(authority::AuthorityCommand),
    /// Show the audit log and check its hash chain
    Audit(audit::AuditArgs),
    /// Check the data folder of a stopped coordinator
    Fsck(fsck::FsckArgs),
    /// Write everything that a coordinator keeps to one file, also while it runs
    Backup(backup::BackupArgs),
    /// Create a data folder from a backup
    Restore(restore::RestoreArgs),
    /// Bring a farm's state to PostgreSQL or its files to a bucket, and back
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Print a script that completes commands in a shell
    Completions(completions::CompletionsArgs),
    /// Write manual pages, one for each command
    Man(man::ManArgs),
}

/// Notes what was set, for the commands that hand their options on.
pub fn note_chosen(command: &mut Command, matches: &ArgMatches) {
    match command {
        Command::Submit(args) => {
            let known = submit::SubmitArgs::augment_args(clap::Command::new("submit"));
            args.given = chosen::given(&known, matches);
            args.chosen = chosen::chosen(&known, matches);
        }
        Command::Compute(args) => {
            let known = compute::ComputeArgs::augment_args(clap::Command::new("compute"));
            args.chosen = chosen::chosen(&known, matches);
        }
        _ => {}
    }
}

/// The whole command line, with its help as people see it.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{}\nOptions:\n{{options}}\
         {{after-help}}",
        grouped(&command)
    );
    let command = command.help_template(template);
    take_negative_numbers(hide_env_values(short_usages(named_templates(command))))
}

/// What `submit` takes is more than what `render` takes.
fn named_templates(command: clap::Command) -> clap::Command {
    command.mut_subcommand("submit", |submit| {
        submit.mut_arg("scene", |scene| {
            scene.value_name("SCENE|TEMPLATE|preset:NAME").help(
                "glTF 2.0 scene (.gltf, .glb), template of jobs (.toml, .yaml, .yml, .json), or a \
                 template of the farm",
            )
        })
    })
}

/// The commands that change selected jobs: their usage would name every option that selects.
fn short_usages(command: clap::Command) -> clap::Command {
    let verbs = ["pause", "resume", "retry", "cancel", "forget"];
    verbs.into_iter().fold(command, |command, verb| {
        command.mut_subcommand(verb, |below| {
            below.override_usage(format!("tessera {verb} [OPTIONS] <JOB...|SELECTION|--all>"))
        })
    })
}

/// A heading and a line for each command of every group.
fn grouped(command: &clap::Command) -> String {
    let mut text = String::new();
    let longest = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max();
    let width = longest.unwrap_or_default() + 2;
    for (heading, names) in GROUPS {
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{heading}:");
        for name in *names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:<width$}{about}");
        }
    }
    text
}

/// Help names the environment's variables; their values may be private.
fn hide_env_values(command: clap::Command) -> clap::Command {
    command.mut_args(|argument| argument.hide_env_values(true)).mut_subcommands(hide_env_values)
}

/// A negative number is a value, so that the option's own range is told and not that it looks like
/// an option.
fn take_negative_numbers(command: clap::Command) -> clap::Command {
    let takes_value =
        |option: &clap::Arg| !option.is_positional() && option.get_action().takes_values();
    command
        .mut_args(|option| match takes_value(&option) {
            true => option.allow_negative_numbers(true),
            false => option,
        })
        .mut_subcommands(take_negative_numbers)
}

#[cfg(test)]
mod tests;
