//! Errors as users see them: the exit status, the message with its causes, and a hint.

use crate::job_table::table_of;
use crate::table::printable_lines;
use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use tessera_coordinator::backup::{ArchiveError, BackupError, RestoreError};
use tessera_coordinator::{AuditError, CoordinatorError, ExportError};
use tessera_http::HttpError;
use tessera_node::NodeError;
use tessera_node::import::ImportError;
use tessera_protocol::client::RequestError;
use tessera_scenes::SceneError;
use tessera_transport::error::{ConnectFailure, Ended};
use tessera_transport::renew::RenewError;
use tessera_transport::{
    BlobError, ClientError, CloseCode, ConnectError, EnrolError, FrameError, IdentityError,
};

/// Exit status of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Done = 0,
    /// Something else failed.
    Failure = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// The job failed.
    JobFailed = 3,
    /// No such job, node, file or frame.
    NotFound = 4,
    /// Not allowed.
    NotAllowed = 5,
    /// The coordinator cannot be reached.
    Unreachable = 6,
    /// Timed out waiting.
    TimedOut = 7,
    /// Some frames failed.
    SomeFramesFailed = 8,
    /// Some files were not written, since something else has their names.
    NotReplaced = 9,
    /// Interrupted; the job continues.
    Interrupted = 130,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        ExitCode::from(status as u8)
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub struct CliError {
    status: Status,
    /// Actions during which the error happened, outermost last.
    contexts: Vec<String>,
    source: Box<dyn Error + Send + Sync>,
    hint: Option<String>,
}

impl CliError {
    /// An error with its causes.
    pub fn new(status: Status, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { status, contexts: Vec::new(), source: source.into(), hint: None }
    }

    /// Makes an error about a file: [`Status::NotFound`] if the file is absent.
    pub fn of_file(source: impl Error + Send + Sync + 'static) -> Self {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&source);
        let mut status = Status::Failure;
        while let Some(error) = cause {
            let io = error.downcast_ref::<std::io::Error>();
            if io.is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
                status = Status::NotFound;
            }
            cause = error.source();
        }
        Self::new(status, source)
    }

    /// Adds what was being done.
    pub fn context(mut self, text: impl Into<String>) -> Self {
        self.contexts.push(text.into());
        self
    }

    /// Adds a hint where there is one.
    pub(crate) fn hint_if(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.hint(text),
            None => self,
        }
    }

    /// Adds a hint, unless there is one already.
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| text.into());
        self
    }

    /// Returns the exit status.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Standard output was closed by its reader, as `head` does: no failure of ours.
    pub fn is_closed_output(&self) -> bool {
        let mut error: Option<&(dyn Error + 'static)> = Some(&*self.source);
        while let Some(current) = error {
            if current
                .downcast_ref::<std::io::Error>()
                .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
            {
                return true;
            }
            error = current.source();
        }
        false
    }

    /// The lines to show: `error: …`, its causes, and the hint.
    pub fn for_people(&self) -> String {
        let mut text = String::from("error: ");
        for context in self.contexts.iter().rev() {
            text += context;
            text += ": ";
        }
        text += &self.source.to_string();
        let mut cause = self.source.source();
        while let Some(error) = cause {
            let part = error.to_string();
            // Transparent wrappers repeat their cause.
            if !text.ends_with(&part) {
                text += &format!("\n  cause: {part}");
            }
            cause = error.source();
        }
        text.push('\n');
        if let Some(hint) = &self.hint {
            text += &format!("hint: {hint}\n");
        }
        // The text may contain names and contents of files.
        printable_lines(&text)
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.for_people().trim_end())
    }
}

impl From<ConnectError> for CliError {
    fn from(error: ConnectError) -> Self {
        let status = match error.failure() {
            ConnectFailure::Unreachable => Status::Unreachable,
            ConnectFailure::NotAllowed => Status::NotAllowed,
            ConnectFailure::Version | ConnectFailure::Local => Status::Failure,
        };
        let hint = error.hint();
        Self::new(status, error).hint_if(hint)
    }
}

impl From<RequestError> for CliError {
    fn from(error: RequestError) -> Self {
        let status = match &error {
            RequestError::NotFound(_) => Status::NotFound,
            RequestError::NotAllowed(_) => Status::NotAllowed,
            RequestError::Invalid(_) | RequestError::Unavailable(_) => Status::Failure,
            RequestError::SeveralNodes(_) => Status::Usage,
            RequestError::Ambiguous { jobs, count, .. } => {
                let meant = table_of(jobs).replace('\n', "\n  ");
                let these = if *count > jobs.len() as u64 { ", such as" } else { ":" };
                let text = format!("{error}{these}\n  {}", meant.trim_end());
                return Self::new(Status::Usage, text)
                    .hint("give more of the id; `--name` selects all jobs of a name");
            }
        };
        Self::new(status, error)
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Request(error) => error.into(),
            ClientError::Frame(FrameError::Ended(Ended::Closed { code: Some(code), .. }))
                if turns_away(code) =>
            {
                let status =
                    if code == CloseCode::Version { Status::Failure } else { Status::NotAllowed };
                Self::new(status, error)
            }
            ClientError::Frame(_) => Self::new(Status::Unreachable, error)
                .hint("it is not known whether the request was done; repeating it is harmless"),
            ClientError::Unexpected => {
                Self::new(Status::Failure, error).hint("install the same version on both sides")
            }
        }
    }
}

/// The coordinator wants nothing more of this peer, and will say so again.
fn turns_away(code: CloseCode) -> bool {
    code == CloseCode::Version || code.turns_away()
}

impl From<RenewError> for CliError {
    fn from(error: RenewError) -> Self {
        match error {
            RenewError::Frame(error) => ClientError::Frame(error).into(),
            RenewError::Keep(error) => error.into(),
            RenewError::Refused(_) => Self::new(Status::NotAllowed, error).hint(
                "ask the farm's administrator for a join token, and enrol again with it: `tessera \
                    enrol --replace --token-file FILE`",
            ),
            _ => Self::new(Status::Failure, error),
        }
    }
}

impl From<EnrolError> for CliError {
    fn from(error: EnrolError) -> Self {
        match error {
            EnrolError::Connect(error) => error.into(),
            EnrolError::Refused(_) => Self::new(Status::NotAllowed, error).hint(
                "an admin makes tokens: `tessera token create --role ROLE`, on the \
                    coordinator's machine",
            ),
            EnrolError::Frame(_) => Self::new(Status::Unreachable, error)
                .hint("try again; if the token counts as used, ask for a new one"),
            _ => Self::new(Status::Failure, error),
        }
    }
}

impl From<IdentityError> for CliError {
    fn from(error: IdentityError) -> Self {
        let status = match error {
            IdentityError::Missing { .. } => Status::NotAllowed,
            _ => Status::Failure,
        };
        Self::new(status, error)
    }
}

impl From<SceneError> for CliError {
    fn from(error: SceneError) -> Self {
        Self::of_file(error)
    }
}

impl From<ImportError> for CliError {
    fn from(error: ImportError) -> Self {
        let status = match &error {
            ImportError::Scene { absent: true, .. } => Status::NotFound,
            _ => Status::Failure,
        };
        Self::new(status, error)
    }
}

impl From<BlobError> for CliError {
    fn from(error: BlobError) -> Self {
        let interrupted = error.is_interruption();
        let status = if interrupted { Status::Unreachable } else { Status::Failure };
        let this = Self::new(status, error);
        if interrupted {
            this.hint("run the command again: it continues where it stopped")
        } else {
            this
        }
    }
}

impl From<CoordinatorError> for CliError {
    fn from(error: CoordinatorError) -> Self {
        let hint = match &error {
            CoordinatorError::Store(error) => error.hint(),
            CoordinatorError::Blobs(error) => error.hint(),
            _ => None,
        };
        Self::new(Status::Failure, error).hint_if(hint)
    }
}

impl From<HttpError> for CliError {
    fn from(error: HttpError) -> Self {
        Self::new(Status::Failure, error)
    }
}

impl From<AuditError> for CliError {
    fn from(error: AuditError) -> Self {
        let hint = match &error {
            AuditError::Store(error) => error.hint(),
            AuditError::Blobs(error) => error.hint(),
            _ => None,
        };
        Self::new(Status::Failure, error).hint_if(hint)
    }
}

impl From<ExportError> for CliError {
    fn from(error: ExportError) -> Self {
        Self::new(Status::Failure, error)
    }
}

impl From<BackupError> for CliError {
    fn from(error: BackupError) -> Self {
        Self::new(Status::Failure, error)
    }
}

impl From<ArchiveError> for CliError {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Read(source) => Self::of_file(source).context("the backup"),
            error => Self::new(Status::Failure, error).hint(
                "nothing was changed; use another backup: what is damaged is not restored in part",
            ),
        }
    }
}

impl From<RestoreError> for CliError {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::Archive(error) => error.into(),
            error => Self::new(Status::Failure, error),
        }
    }
}

impl From<NodeError> for CliError {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::Connect(error) => error.into(),
            NodeError::Enrol(error) => error.into(),
            NodeError::NoToken(_) | NodeError::Refused(_) => Self::new(Status::NotAllowed, error),
            NodeError::OtherName { .. } => Self::new(Status::Usage, error),
            NodeError::Unconfined(_) => Self::new(Status::Failure, error).hint(
                "start the kernel with both, or say `--sandbox on` (TESSERA_SANDBOX=on): workers \
                    can then read what the node's user can read",
            ),
            _ => Self::new(Status::Failure, error),
        }
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::of_file(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_context_causes_and_hint() {
        let error = CliError::from(std::io::Error::other("disk on fire"))
            .context("frame 3")
            .hint("put it out");
        assert_eq!(error.for_people(), "error: frame 3: disk on fire\nhint: put it out\n");
    }

    #[test]
    fn control_characters_of_a_file_do_not_reach_the_terminal() {
        let error = CliError::new(Status::Failure, "a\u{1b}[2J\u{202e}b\r\n\tc");
        assert_eq!(error.for_people(), "error: a\\u{1b}[2J\\u{202e}b \n\tc\n");
    }

    #[test]
    fn the_first_hint_stands() {
        let error = CliError::new(Status::Usage, "wrong").hint("one").hint("two");
        assert!(error.for_people().contains("hint: one"));
    }
}
