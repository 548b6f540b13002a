//! What may stand on the command line. Owns no behaviour.

pub mod audit;
pub mod authority;
pub mod backup;
pub mod bench;
pub mod cancel;
pub mod completions;
pub mod compute;
pub mod coordinator;
pub mod deny;
pub mod devices;
pub mod diff;
pub mod doctor;
pub mod drain;
pub mod enrol;
pub mod farm;
pub mod fetch;
pub mod forget;
pub mod fsck;
pub mod import;
pub mod inspect;
pub mod job;
pub mod man;
pub mod node;
pub mod nodes;
pub mod pause;
pub mod picture;
pub mod render;
pub mod restore;
pub mod retry;
pub mod submit;
pub mod time;
pub mod token;
pub mod wait;
pub mod watch;

use clap::{Parser, Subcommand};

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
  0 done, 1 another failure, 2 usage, 3 the job failed, 4 not found,
  5 not allowed, 6 coordinator unreachable, 7 timed out waiting,
  8 some frames failed, 130 interrupted (the job goes on)

Settings: a flag wins over its TESSERA_* variable, that over `tessera.toml`
in the working folder, that over $XDG_CONFIG_HOME/tessera/config.toml.
TESSERA_CONFIG=FILE reads that file instead of both.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Render a scene on this machine: a whole farm in one process
    #[command(display_order = 10)]
    Render(Box<render::RenderArgs>),
    /// Run a coordinator: it keeps the jobs and deals their tiles to nodes
    #[command(display_order = 20)]
    Coordinator(coordinator::CoordinatorArgs),
    /// Run a node: it renders what a coordinator gives it
    #[command(display_order = 21)]
    Node(node::NodeArgs),
    /// Make, list and revoke join tokens
    #[command(display_order = 22, subcommand)]
    Token(token::TokenCommand),
    /// Get an identity of a farm for this user, by a join token
    #[command(display_order = 23)]
    Enrol(enrol::EnrolArgs),
    /// Submit a scene to a farm; prints the job's id
    #[command(display_order = 30)]
    Submit(Box<submit::SubmitArgs>),
    /// Run a CUDA kernel, or a built-in one, over a domain on a farm
    #[command(display_order = 30)]
    Compute(Box<compute::ComputeArgs>),
    /// List jobs
    #[command(display_order = 31)]
    Jobs(farm::ListArgs),
    /// Show one job: what was asked for, how far it is, what failed
    #[command(display_order = 32)]
    Job(job::JobArgs),
    /// Follow a job to its end
    #[command(display_order = 33)]
    Watch(watch::WatchArgs),
    /// Wait for a job's end; the exit status says how it ended
    #[command(display_order = 34)]
    Wait(wait::WaitArgs),
    /// Fetch the frames of a job that are done
    #[command(display_order = 35)]
    Fetch(fetch::FetchArgs),
    /// Stop work on jobs until they are resumed; what is done stays
    #[command(display_order = 36)]
    Pause(pause::PauseArgs),
    /// Let paused jobs go on
    #[command(display_order = 36)]
    Resume(pause::PauseArgs),
    /// Render the failed frames of jobs again, of cancelled jobs too; frames that are done stay
    #[command(display_order = 36)]
    Retry(retry::RetryArgs),
    /// End jobs; frames that are done stay
    #[command(display_order = 36)]
    Cancel(cancel::CancelArgs),
    /// Forget jobs that have ended, with their frames
    #[command(display_order = 37)]
    Forget(forget::ForgetArgs),
    /// List nodes, or show one with its devices
    #[command(display_order = 40)]
    Nodes(nodes::NodesArgs),
    /// Give a node no new work
    #[command(display_order = 41)]
    Drain(drain::DrainArgs),
    /// Give a node work again
    #[command(display_order = 42)]
    Undrain(drain::DrainArgs),
    /// Shut a node or a person out of the farm, at once; alone, list who is
    #[command(display_order = 43)]
    Deny(deny::DenyArgs),
    /// Let a node or a person in again
    #[command(display_order = 44)]
    Allow(deny::AllowArgs),
    /// Show the audit log, who did what, and check its chain
    #[command(display_order = 45)]
    Audit(audit::AuditArgs),
    /// Show or rotate the farm's authority
    #[command(display_order = 46, subcommand)]
    Authority(authority::AuthorityCommand),
    /// Say what is in a scene, what will be ignored, and how much memory it needs
    #[command(display_order = 50)]
    Inspect(inspect::InspectArgs),
    /// Compare two pictures; status 0 only where they are identical or close enough
    #[command(display_order = 51)]
    Diff(diff::DiffArgs),
    /// Say whether this machine can be a node: clock, disk, network, devices, known answers
    #[command(display_order = 52)]
    Doctor(doctor::DoctorArgs),
    /// Measure the devices of this machine on standard scenes
    #[command(display_order = 53)]
    Bench(bench::BenchArgs),
    /// Check the data folder of a stopped coordinator: every promise against what is on the disk
    #[command(display_order = 24)]
    Fsck(fsck::FsckArgs),
    /// Write everything that a coordinator keeps to one file, while it runs
    #[command(display_order = 25)]
    Backup(backup::BackupArgs),
    /// Make a data folder of a backup
    #[command(display_order = 26)]
    Restore(restore::RestoreArgs),
    /// Print a script that completes commands in a shell
    #[command(display_order = 60)]
    Completions(completions::CompletionsArgs),
    /// Write manual pages, one for each command
    #[command(display_order = 61)]
    Man(man::ManArgs),
}
