//! Why a node has no work, or gets less than it could: one variant for each reason, with its facts.

use super::{Text, brief, text};
use tessera_protocol::ids::{Fingerprint, JobId};
use tessera_protocol::node::NodeLimit;

/// Why a node gets no work, or not all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has not been there since the coordinator started.
    Unseen,
    /// Its connection is lost since a moment.
    Away,
    /// It said that it leaves.
    Left { why: String },
    /// It did not come back.
    Lost { why: String },
    /// It was taken off the list.
    Removed { why: String },
    /// It is connected, and ends what it has before it leaves.
    Leaving,
    /// An operator has drained it.
    Drained { by: String, name: String, here: bool },
    /// Attempt after attempt failed there.
    Unfit { why: String, secs: u64, name: String },
    /// It lists no device.
    NoDevice,
    /// Its devices are tested.
    Testing { said: String },
    /// Its devices are quarantined by itself.
    Devices { said: String },
    /// It gave a wrong result, and another node may work.
    Wrong { reason: String, name: String },
    /// It gave a wrong result, and works because nobody else does.
    WrongAlone { reason: String, name: String },
    /// It may have given a wrong result.
    Doubted { reason: String, name: String },
    /// It cannot do some jobs.
    Unable { jobs: usize, job: JobId, reason: String },
    /// Some jobs exceed a limit of it.
    Limited { jobs: usize, job: JobId, limit: NodeLimit, reason: String },
    /// It keeps failing some jobs.
    Failing { jobs: usize, job: JobId, reason: String, name: String },
    /// Jobs have first results of another build.
    OtherBuild { fingerprint: Fingerprint, jobs: usize },
    /// Its sandbox is not complete.
    Unconfined { said: String },
    /// It works.
    AtWork { units: u32, jobs: usize },
    /// Nodes work on a job; `most`: as many as may.
    JobAtWork { units: u32, nodes: usize, most: Option<u32> },
    /// It asks for no units: it is starting, or has all that it wants.
    Full { units: u32 },
    /// No job has a unit for it.
    NoJob { open: usize },
}

impl Standing {
    /// Returns the word of the reason.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Unseen => "unseen",
            Self::Away => "away",
            Self::Left { .. } => "left",
            Self::Lost { .. } => "lost",
            Self::Removed { .. } => "removed",
            Self::Leaving => "leaving",
            Self::Drained { .. } => "drained",
            Self::Unfit { .. } => "unfit",
            Self::NoDevice => "no_device",
            Self::Testing { .. } => "testing",
            Self::Devices { .. } => "devices",
            Self::Wrong { .. } => "wrong",
            Self::WrongAlone { .. } => "wrong_alone",
            Self::Doubted { .. } => "doubted",
            Self::Unable { .. } => "unable",
            Self::Limited { .. } => "limited",
            Self::Failing { .. } => "failing",
            Self::OtherBuild { .. } => "fingerprint",
            Self::Unconfined { .. } => "unconfined",
            Self::AtWork { .. } | Self::JobAtWork { .. } => "at_work",
            Self::Full { .. } => "full",
            Self::NoJob { .. } => "no_job",
        }
    }

    /// Returns why, and what helps.
    pub(crate) fn text(&self) -> Text {
        match self {
            Self::Unseen => brief("not seen since the coordinator started", START),
            Self::Away => brief("connection lost; its leases are kept for a while", ""),
            Self::Left { why } | Self::Lost { why } => brief(why.clone(), START),
            Self::Removed { why } => brief(
                why.clone(),
                "start it again: it comes back onto the list, unless its identity is denied",
            ),
            Self::Leaving => brief("leaving", "start it again once it has left"),
            Self::Drained { by, name, here } => drained(by, name, *here),
            Self::Unfit { why, secs, name } => unfit(why, *secs, name),
            Self::NoDevice => brief("it has no device", "start it with a device that may work"),
            Self::Testing { said } => brief(said.clone(), ""),
            Self::Devices { said } => {
                brief(said.clone(), "`tessera doctor` there says whether the device is in order")
            }
            Self::Wrong { reason, name } => {
                suspected("quarantined: it gave a wrong result", reason, name)
            }
            Self::WrongAlone { reason, name } => suspected(
                "it gave a wrong result, and gets work only because no other node may have any",
                reason,
                name,
            ),
            Self::Doubted { reason, name } => {
                suspected("in doubt, so that all its results are checked", reason, name)
            }
            Self::Unable { jobs, job, reason } => brief(
                format!("not able to do {jobs} open jobs, such as {job}: {reason}"),
                "a newer build or driver there would do; others take those jobs",
            ),
            Self::Limited { jobs, job, limit, reason } => text(
                format!("{}, by its limit of {}: {reason}", passed(*jobs, *job), limit.name()),
                format!("to end that, {}", limit.remedy()),
            ),
            Self::Failing { jobs, job, reason, name } => failing(*jobs, *job, reason, name),
            Self::OtherBuild { fingerprint, jobs } => text(
                format!(
                    "fingerprint {fingerprint} differs from the first results of {jobs} open jobs"
                ),
                "run the same build everywhere",
            ),
            Self::Unconfined { said } => brief(
                format!("sandbox: {said}"),
                "a newer kernel, or one with that switched on, confines more",
            ),
            Self::AtWork { units, jobs } => {
                brief(format!("works: it holds {units} units of {jobs} jobs"), "")
            }
            Self::JobAtWork { units, nodes, most } => job_at_work(*units, *nodes, *most),
            Self::Full { units } => brief(
                format!("asks for no more units: it holds {units}, and is starting or preparing"),
                "",
            ),
            Self::NoJob { open: 0 } => brief("no job is open", "submit one"),
            Self::NoJob { open } => brief(
                format!("none of {open} open jobs has a unit for it"),
                "`tessera explain JOB` says what each waits for",
            ),
        }
    }
}

const START: &str = "start it again on its machine, or take it off the list: \
    `tessera nodes remove`";

fn unfit(why: &str, secs: u64, name: &str) -> Text {
    let help = format!(
        "`tessera doctor` there finds what is wrong; `tessera undrain {name}` gives it work at once"
    );
    brief(format!("{why}; it gets work again in {secs} s"), help).ends_in(secs)
}

fn passed(jobs: usize, job: JobId) -> String {
    format!("passed over for {jobs} open jobs, such as {job}")
}

fn failing(jobs: usize, job: JobId, reason: &str, name: &str) -> Text {
    text(
        format!("{}, while others may have them: {reason}", passed(jobs, job)),
        format!(
            "once it is in order (`tessera doctor`), `tessera undrain {name}` or its restart ends \
                that"
        ),
    )
}

fn job_at_work(units: u32, nodes: usize, most: Option<u32>) -> Text {
    let at_work = format!("{units} units are in work on {nodes} nodes");
    match most {
        Some(most) => brief(
            format!("{at_work}, and no more than {most} may work on it (--max-nodes)"),
            "`tessera job set JOB --no-max-nodes` lets all work on it",
        ),
        None => brief(at_work, ""),
    }
}

fn drained(by: &str, name: &str, here: bool) -> Text {
    let later = if here { "" } else { ": no work when it comes back" };
    brief(
        format!("drained by `{by}`{later}"),
        format!("`tessera undrain {name}` gives it work again"),
    )
}

fn suspected(what: &str, reason: &str, name: &str) -> Text {
    let end = format!("once it is in order (`tessera doctor`), `tessera undrain {name}` ends that");
    text(format!("{what}: {reason}"), end)
}
