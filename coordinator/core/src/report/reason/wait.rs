//! Why none of a job's units is worked on: one variant for each reason, with its facts.

use super::{Text, brief, of_pool, some_of, text};
use crate::schedule::memory::{MemoryLack, size};
use crate::time::Moment;
use tessera_protocol::cost::{Budget, Period};
use tessera_protocol::explain::Ahead;
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::status::Waits;
use tessera_protocol::utc::utc;

/// Why a job waits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wait {
    /// A user has paused the job.
    Paused { by: String, job: JobId },
    /// The coordinator cannot write or measure a frame.
    Disk { frame: FrameNumber, reason: String },
    /// Units lack something outside the job.
    Shortage { reason: String, unit: String, node: String, units: usize, fails_in: u64 },
    /// The coordinator has just started.
    Start { secs: u64 },
    /// No node is connected.
    Nodes,
    /// No node of its pool is connected.
    Pool { pool: String, job: JobId },
    /// No node takes the PTX of its kernel.
    Driver { needs: String, have: String },
    /// No node compiles its kernel.
    Compiler,
    /// No node has a CUDA device.
    Device,
    /// The nodes have another build than that of its first results.
    Build { pinned: String, have: String, pool: Option<String> },
    /// Every node said that it cannot do the job.
    Unable { compute: bool, said: String },
    /// Every node has reached a limit of its own.
    Limits { said: String, fails_in: u64 },
    /// Every node that could have it is out of work.
    OutOfWork { pool: Option<String>, nodes: Vec<(String, Out)> },
    /// The other nodes failed it, or were wrong about it.
    Barred { pool: Option<String>, said: String },
    /// No device has enough memory.
    Memory(MemoryLack),
    /// Results wait until another node has rendered them again.
    Check { results: usize },
    /// The next frame reads one that is being made.
    Feed { frame: FrameNumber },
    /// Its open units have failed, and are tried again.
    Backoff { secs: u64, job: JobId },
    /// Other jobs, or frames of them, are not finished yet.
    After { on: Vec<String>, job: JobId },
    /// The job is not to begin yet.
    NotBefore { at: Moment, secs: u64, job: JobId },
    /// A budget is used up.
    Budget { budget: Budget, currency: String },
    /// Other jobs are served first.
    Turn { ahead: Vec<Ahead>, more: usize, job: JobId },
}

/// Why a connected node is out of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    Draining,
    Drained,
    Quarantined,
    NoDevice(String),
    Other,
}

impl Out {
    fn words(&self, name: &str) -> String {
        match self {
            Self::Draining => format!("`{name}` is draining"),
            Self::Drained => format!("`{name}` is drained"),
            Self::Quarantined => format!("`{name}` is quarantined"),
            Self::NoDevice(said) => format!("`{name}` is without a device that may work ({said})"),
            Self::Other => format!("`{name}` is out of work"),
        }
    }

    fn help(&self, name: &str) -> String {
        match self {
            Self::Draining | Self::Drained | Self::Quarantined => {
                format!("`tessera undrain {name}`")
            }
            Self::NoDevice(_) | Self::Other => format!("`tessera explain {name}` says what helps"),
        }
    }
}

impl Wait {
    /// Returns the class of the reason.
    pub(crate) fn class(&self) -> Waits {
        match self {
            Self::Paused { .. } => Waits::Paused,
            Self::Disk { .. } => Waits::Disk,
            Self::Shortage { .. } => Waits::Shortage,
            Self::Start { .. } => Waits::Start,
            Self::Nodes => Waits::Nodes,
            Self::Pool { .. } => Waits::Pool,
            Self::Driver { .. } => Waits::Driver,
            Self::Compiler => Waits::Compiler,
            Self::Device => Waits::Device,
            Self::Build { .. } | Self::Unable { .. } => Waits::Fingerprint,
            Self::Limits { .. } => Waits::Limits,
            Self::OutOfWork { .. } | Self::Barred { .. } => Waits::OutOfWork,
            Self::Memory(_) => Waits::Memory,
            Self::Check { .. } => Waits::Check,
            Self::Feed { .. } => Waits::Feed,
            Self::Backoff { .. } => Waits::Backoff,
            Self::After { .. } => Waits::After,
            Self::NotBefore { .. } => Waits::NotBefore,
            Self::Budget { .. } => Waits::Budget,
            Self::Turn { .. } => Waits::Turn,
        }
    }

    /// Returns the word of the reason: that of its class, where the class has one reason.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Unable { .. } => "unable",
            Self::Barred { .. } => "barred",
            other => other.class().name(),
        }
    }

    /// Returns why, and what helps.
    pub(crate) fn text(&self) -> Text {
        match self {
            Self::Paused { by, job } => {
                text(format!("paused by `{by}`"), format!("`tessera resume {job}` continues it"))
            }
            Self::Disk { frame, reason } => brief(
                format!("{frame} cannot be written, and is tried again: {reason}"),
                "make room on the coordinator's disk, or put right what it names",
            ),
            Self::Shortage { reason, unit, node, units, fails_in } => brief(
                format!(
                    "waiting: {reason} ({unit} on node `{node}`, {units} units so far; tried \
                        again, and fails after {fails_in} s)"
                ),
                "put right what it names on that node, or start another node",
            ),
            Self::Start { secs } => {
                let why = "the coordinator has just started, and gives nodes a moment to come back";
                brief(why, "").ends_in(*secs)
            }
            Self::Nodes => brief("no node is connected", "start one: `tessera node`"),
            Self::Pool { pool, job } => no_pool(pool, *job),
            Self::Driver { needs, have } => driver(needs, have),
            Self::Compiler => text(
                "waits for a node with a CUDA device and NVRTC to compile the kernel; none is \
                    ready",
                "submit PTX, or from a machine that has NVRTC, and any node with a CUDA device \
                    will do",
            ),
            Self::Device => brief(
                "waits for a node with a CUDA device, which the kernel needs; none is ready",
                "start a node on a machine with an NVIDIA GPU",
            ),
            Self::Build { pinned, have, pool } => build(pinned, have, pool.as_ref()),
            Self::Unable { compute, said } => unable(*compute, said),
            Self::Limits { said, fails_in } => brief(
                format!("waits for a node with more: {said}; it fails in {fails_in} s (--give-up)"),
                "raise what is named on one of them, or start a node with more",
            ),
            Self::OutOfWork { pool, nodes } => out_of_work(pool.as_ref(), nodes),
            Self::Barred { pool, said } => brief(
                format!("waits for another node{} to come back: {said}", of_pool(pool.as_ref())),
                "start another node; for one that keeps failing it, `tessera undrain` ends that \
                    once it is in order (`tessera doctor`)",
            ),
            Self::Memory(lack) => memory(lack),
            Self::Check { results } => brief(
                format!(
                    "{results} of its results wait for another node, which is to render them again"
                ),
                "another node that may have the job, if there is none: `tessera nodes`",
            ),
            Self::Feed { frame } => {
                brief(format!("{frame}, which the next frame reads, is being made"), "")
            }
            Self::Backoff { secs, job } => {
                let why = format!("its open units have failed, and are tried again in {secs} s");
                text(why, format!("`tessera job {job}` says why")).ends_in(*secs)
            }
            Self::After { on, job } => brief(
                format!("waits for {}", some_of(on)),
                format!("what it waits for: `tessera job {job}`"),
            ),
            Self::NotBefore { at, secs, job } => not_before(*at, *job).ends_in(*secs),
            Self::Budget { budget, currency } => budget_used(budget, currency),
            Self::Turn { ahead, more, job } => turn(ahead, *more, *job),
        }
    }
}

fn not_before(at: Moment, job: JobId) -> Text {
    brief(
        format!("begins at {} (--not-before)", utc(at.secs())),
        format!("`tessera job set {job} --at-once` lets it begin now"),
    )
}

fn no_pool(pool: &str, job: JobId) -> Text {
    brief(
        format!("no node of pool `{pool}` is connected"),
        format!(
            "start one with `tessera node --pool {pool}`, or let any node have the job: \
                `tessera job set {job} --any-pool`"
        ),
    )
}

fn driver(needs: &str, have: &str) -> Text {
    text(
        format!("waits for a node that takes its {needs}; none is ready: {have}"),
        "a newer driver there, or PTX for an older version and target, would do; from a .cu file \
            it is made for all",
    )
}

fn build(pinned: &str, have: &str, pool: Option<&String>) -> Text {
    text(
        format!(
            "its first results have the fingerprint {pinned}, and the nodes{} that are connected \
                have {have}",
            of_pool(pool)
        ),
        "run the build of the first results somewhere, or submit the job again",
    )
}

fn unable(compute: bool, said: &str) -> Text {
    let cannot = if compute { "can run it" } else { "knows all its options" };
    brief(
        format!("no node that is connected {cannot}: {said}"),
        "start a node with a newer build or driver: it takes the job up",
    )
}

fn out_of_work(pool: Option<&String>, nodes: &[(String, Out)]) -> Text {
    let said = some_of(nodes.iter().map(|(name, out)| out.words(name)));
    let help = some_of(nodes.iter().map(|(name, out)| out.help(name)));
    brief(
        format!("every node{} that could have it is out of work: {said}", of_pool(pool)),
        format!("give one of them work again, or start another: {help}"),
    )
}

fn memory(lack: &MemoryLack) -> Text {
    let tried = if lack.room >= lack.need { ", where it ran out of memory" } else { "" };
    brief(
        format!(
            "needs {} on a device; of the devices that are ready, the largest has {} free (node \
                `{}`, {}){tried}",
            size(lack.need),
            size(lack.room),
            lack.node,
            lack.device
        ),
        "end what else uses that device, or start a node with a larger one",
    )
}

/// Says that a budget is used up.
pub(crate) fn budget_used(budget: &Budget, currency: &str) -> Text {
    let of = match budget.period {
        Period::Month => "for this month",
        Period::Total => "in all",
    };
    let (amount, whose) = (format!("{} {currency}", budget.amount), &budget.whose);
    brief(
        format!("the budget of {whose} is used up: {} {of}", amount.trim_end()),
        "an admin may raise it (`tessera cost rules --set`); that of a month begins anew with the \
            next one, in UTC",
    )
}

fn turn(ahead: &[Ahead], more: usize, job: JobId) -> Text {
    let named = ahead.iter().map(|one| {
        let units = if one.units == 1 { "unit" } else { "units" };
        format!("{} ({} {units} in work, such as of `{}`)", one.owner, one.units, one.job)
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match more {
        0 => String::new(),
        1 => " and one other".to_owned(),
        more => format!(" and {more} others"),
    };
    let behind = if named.is_empty() { String::new() } else { format!(" behind {named}{more}") };
    brief(
        format!("waits for its turn{behind}"),
        format!(
            "more nodes, or a larger share: `tessera job set {job} --priority N` (above 50 with \
                the role operator)"
        ),
    )
}
