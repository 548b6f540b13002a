//! The kinds of findings of `fsck`: how bad each one is, what it means, and what to do. Reads
//! nothing itself.

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Promised data is lost, or may be lost.
    Error,
    /// Nothing is lost. The finding goes away by itself, or the files can be deleted.
    Note,
}

/// Kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A value of the journal has a wrong checksum, or is not a valid value.
    DamagedValue,
    /// A record in the middle is missing.
    MissingRecord,
    /// The journal ends before its last durable commit.
    LostEnd,
    /// A value is intact but cannot be understood.
    UnreadableValue,
    /// Records contradict each other.
    Contradiction,
    /// A stored count differs from the number of things that it counts.
    Counter,
    /// A unit is neither committed nor ready to be leased, or it is both.
    Lease,
    /// The farm's authority is missing.
    NoAuthority,
    /// A spool with committed results is missing or too short.
    LostSpool,
    /// A result in a spool differs from what was written.
    DamagedSpool,
    /// A spool has other results than the journal says.
    SpoolDiffers,
    /// A file that a job needs is missing.
    LostBlob,
    /// The content of a file does not match its name.
    DamagedBlob,
    /// A file that the coordinator did not write.
    ForeignFile,
    /// The audit log was changed, or has lost entries.
    AuditLog,
    /// Files that no job names.
    UnnamedBlobs,
    /// Uploads that were interrupted.
    Uploads,
    /// Files that a crash left behind.
    Leftovers,
}

impl FindingKind {
    /// Returns how bad the finding is.
    pub fn severity(self) -> Severity {
        match self {
            Self::ForeignFile | Self::UnnamedBlobs | Self::Uploads | Self::Leftovers => {
                Severity::Note
            }
            _ => Severity::Error,
        }
    }

    /// Returns what the finding means for the farm.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::DamagedValue | Self::MissingRecord | Self::UnreadableValue => {
                "the coordinator will not start: what the journal says after this cannot be trusted"
            }
            Self::LostEnd => {
                "the coordinator will not start: jobs, commits or tokens that were acknowledged \
                    are gone from the journal"
            }
            Self::Contradiction => {
                "the coordinator will not start, or shows a farm that never existed"
            }
            Self::Counter => "what `tessera jobs` shows is wrong; pictures are not affected",
            Self::Lease => "a unit would never be rendered, or twice",
            Self::NoAuthority => {
                "the coordinator will not start: a new authority would lock every node and user \
                    out"
            }
            Self::LostSpool => {
                "results that were acknowledged are gone: the next start renders them again"
            }
            Self::DamagedSpool => {
                "results that were acknowledged are gone: the frame fails when it is resolved"
            }
            Self::SpoolDiffers => {
                "the frame fails when it is resolved: a unit is missing, foreign or there twice"
            }
            Self::LostBlob => "a frame cannot be fetched any more, or a job cannot continue",
            Self::DamagedBlob => {
                "every client refuses it: a frame cannot be fetched, or a job cannot continue"
            }
            Self::AuditLog => {
                "entries were changed or removed: what is left does not show all that was done"
            }
            Self::ForeignFile => "the coordinator never reads it",
            Self::UnnamedBlobs => {
                "uploads that were not followed by a job, or files of jobs that have ended"
            }
            Self::Uploads => "a client that sends the same file again continues where it stopped",
            Self::Leftovers => "a killed process left them; nothing names them",
        }
    }

    /// Returns what to do about the finding.
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
                "put the folder `authority` of a backup back; without one, start with \
                 --new-authority, and every node and user enrols again"
            }
            Self::LostSpool => "nothing: the next start renders them again, to the same bits",
            Self::DamagedSpool | Self::SpoolDiffers => {
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
            Self::AuditLog => {
                "find out who could write to the folder; a backup has the entries up to its time; \
                 the coordinator starts, and goes on behind the gap"
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

/// One fault that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Kind of the fault.
    pub kind: FindingKind,
    /// How bad the fault is.
    pub severity: Severity,
    /// Place of the fault: a value of the journal, a frame, or a file.
    pub place: String,
    /// Description of the fault.
    pub problem: String,
    /// Meaning for the farm.
    pub meaning: &'static str,
    /// Action to take, for people.
    pub action: &'static str,
}

impl Finding {
    /// Creates a finding.
    pub fn new(kind: FindingKind, place: impl Into<String>, problem: impl Into<String>) -> Self {
        let (severity, meaning, action) = (kind.severity(), kind.meaning(), kind.action());
        Self { kind, severity, place: place.into(), problem: problem.into(), meaning, action }
    }
}
