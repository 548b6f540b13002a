//! What `fsck` may find: each kind with how bad it is, what it means and what to do. Looks at
//! nothing itself.

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something that was promised is lost, or cannot be told.
    Error,
    /// Nothing is lost; it goes away by itself or may be deleted.
    Note,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A value of the journal has a wrong checksum, or is no such value.
    DamagedValue,
    /// A record between others is not there.
    MissingRecord,
    /// The journal ends before what was made durable.
    LostEnd,
    /// A value is intact and cannot be understood.
    UnreadableValue,
    /// Records contradict each other.
    Contradiction,
    /// A number that is kept is not the number of what it counts.
    Counter,
    /// A unit is neither committed nor to be leased, or both.
    Lease,
    /// The farm's authority is not there.
    NoAuthority,
    /// A spool that holds committed results is not there, or too short.
    LostSpool,
    /// A result in a spool is not what was written.
    DamagedSpool,
    /// A spool holds other results than the journal says.
    SpoolDiffers,
    /// A file that a job needs is not there.
    LostBlob,
    /// A file is not what its name says.
    DamagedBlob,
    /// A file that nobody has put there.
    ForeignFile,
    /// Files that no job names.
    UnnamedBlobs,
    /// Uploads that were interrupted.
    Uploads,
    /// What a crash left behind.
    Leftovers,
}

impl FindingKind {
    /// How bad it is.
    pub fn severity(self) -> Severity {
        match self {
            Self::ForeignFile | Self::UnnamedBlobs | Self::Uploads | Self::Leftovers => {
                Severity::Note
            }
            _ => Severity::Error,
        }
    }

    /// What it means for the farm.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::DamagedValue | Self::MissingRecord | Self::UnreadableValue => {
                "the coordinator will not start: what the journal tells after this cannot be \
                    relied on"
            }
            Self::LostEnd => {
                "the coordinator will not start: jobs, commits or tokens that were acknowledged \
                    are gone from the journal"
            }
            Self::Contradiction => "the coordinator will not start, or shows a farm that never was",
            Self::Counter => "what `tessera jobs` shows is wrong; pictures are not concerned",
            Self::Lease => "a unit would never be rendered, or twice",
            Self::NoAuthority => {
                "the next start makes a new authority, and no node or user of before can connect \
                    any more"
            }
            Self::LostSpool | Self::DamagedSpool => {
                "results that were acknowledged are gone: the frame fails when it is resolved"
            }
            Self::SpoolDiffers => {
                "the frame fails when it is resolved: a unit is missing, foreign or there twice"
            }
            Self::LostBlob => "a frame cannot be fetched any more, or a job cannot be rendered on",
            Self::DamagedBlob => {
                "whoever fetches it refuses it: a frame cannot be had, or a job cannot be rendered \
                    on"
            }
            Self::ForeignFile => "the coordinator never reads it",
            Self::UnnamedBlobs => {
                "uploads that were not followed by a job, or files of jobs that have ended"
            }
            Self::Uploads => "a client that sends the same file again goes on where it stopped",
            Self::Leftovers => "a killed process left them; nothing names them",
        }
    }

    /// What to do about it.
    pub fn action(self) -> &'static str {
        match self {
            Self::DamagedValue | Self::MissingRecord | Self::UnreadableValue | Self::LostEnd => {
                "stop using this disk; `tessera restore` the newest backup into an empty folder, \
                 or save what is \
                 intact with `tessera coordinator --data DIR --export FILE` and submit the open \
                 jobs again"
            }
            Self::Contradiction => {
                "keep the folder as it is, report this, and `tessera restore` the newest backup \
                 into an empty folder"
            }
            Self::Counter | Self::Lease => {
                "report this; a restart of the coordinator derives it from the records again"
            }
            Self::NoAuthority => {
                "put the folder `authority` of a backup back before the next start"
            }
            Self::LostSpool | Self::DamagedSpool | Self::SpoolDiffers => {
                "cancel the job and submit it again (finished frames stay), or `tessera restore` a \
                    backup"
            }
            Self::LostBlob => {
                "submit the same scene or kernel again: that uploads what is missing; a frame is \
                 rendered again \
                 with the same bits by submitting its job again"
            }
            Self::DamagedBlob => {
                "move the file away, and submit the same scene or kernel again: that uploads it \
                 again; a frame is \
                 rendered again with the same bits by submitting its job again"
            }
            Self::ForeignFile => "move it away",
            Self::UnnamedBlobs => {
                "nothing: the coordinator deletes them once they are older than --blob-grace"
            }
            Self::Uploads => {
                "nothing: the coordinator deletes them once they are older than --blob-grace"
            }
            Self::Leftovers => "nothing: the next start deletes them",
        }
    }
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind of thing.
    pub kind: FindingKind,
    /// How bad it is.
    pub severity: Severity,
    /// Where: a value of the journal, a frame, a file.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
    /// What it means.
    pub meaning: &'static str,
    /// What to do.
    pub action: &'static str,
}

impl Finding {
    /// A finding of this kind.
    pub fn new(kind: FindingKind, place: impl Into<String>, problem: impl Into<String>) -> Self {
        let (severity, meaning, action) = (kind.severity(), kind.meaning(), kind.action());
        Self { kind, severity, place: place.into(), problem: problem.into(), meaning, action }
    }
}
