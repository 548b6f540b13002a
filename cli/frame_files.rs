//! Frame files on this machine: names them, and fetches each whole or not at all.

use crate::error::{CliError, Status};
use crate::pattern::Pattern;
use std::path::{Path, PathBuf};
use tessera_protocol::frames::FrameSet;
use tessera_protocol::status::FrameFile;
use tessera_protocol::{BlobHash, FrameNumber};
use tessera_transport::FarmClient;
use tessera_transport::client::hash_file;

/// Destination of frames: a folder or a pattern.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// `NAME.0001.exr` and so on in a folder.
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The job's name.
        name: String,
    },
    /// Files of one format.
    Pattern {
        /// Their names.
        pattern: Pattern,
        /// `exr`, `png` or `npy`.
        format: &'static str,
    },
}

impl Destination {
    /// A folder where the path has no extension of a frame file or is a folder already, a pattern
    /// otherwise.
    pub(crate) fn new(output: &Path, name: &str, frames: &FrameSet) -> Result<Self, CliError> {
        match format_of(output) {
            Some(format) if !output.is_dir() => Self::file(output, format, frames),
            _ => Ok(Self::Folder { folder: output.to_owned(), name: name.to_owned() }),
        }
    }

    /// A pattern for these frames.
    pub(crate) fn file(
        output: &Path,
        format: &'static str,
        frames: &FrameSet,
    ) -> Result<Self, CliError> {
        let usage = |error| CliError::new(Status::Usage, error);
        let text = output
            .to_str()
            .ok_or_else(|| CliError::new(Status::Usage, "the output path is not UTF-8"))?;
        let pattern: Pattern = text.parse().map_err(usage)?;
        pattern.check_frames(frames).map_err(usage)?;
        Ok(Self::Pattern { pattern, format })
    }

    /// The path of a frame's file; None where this is not its format.
    pub(crate) fn path(&self, frame: FrameNumber, format: &str) -> Option<PathBuf> {
        match self {
            Self::Folder { folder, name } => {
                Some(folder.join(format!("{name}.{:04}.{format}", frame.0)))
            }
            Self::Pattern { pattern, format: own } => {
                (*own == format).then(|| pattern.path_for(frame))
            }
        }
    }
}

/// The frame file format that a path's extension names.
pub(crate) fn format_of(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?;
    ["exr", "png", "npy"].into_iter().find(|format| extension.eq_ignore_ascii_case(format))
}

/// Outcome for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// It was fetched.
    New,
    /// It was there, whole.
    Kept,
}

/// Fetches a frame's file to its path. It gets that name only when it is complete and checked. An
/// equal file that exists already stays, and an interrupted fetch is continued. `progress` gets the
/// number of bytes so far.
pub(crate) async fn fetch(
    client: &FarmClient,
    file: &FrameFile,
    path: &Path,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Fetched, CliError> {
    let about = |error: CliError| error.context(format!("`{}`", path.display()));
    if is_same(path, file.hash, file.length).await {
        return Ok(Fetched::Kept);
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| about(error.into()))?;
    }
    client
        .get_blob(file.hash, file.length, path, &mut |held, _| progress(held))
        .await
        .map_err(|error| about(error.into()))?;
    Ok(Fetched::New)
}

async fn is_same(path: &Path, hash: BlobHash, length: u64) -> bool {
    let path = path.to_owned();
    let same = move || {
        let found =
            std::fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() == length);
        found && hash_file(&path).is_ok_and(|(found, _)| found == hash)
    };
    tokio::task::spawn_blocking(same).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_takes_only_files_of_its_own_format() {
        let frames: FrameSet = "1-3".parse().unwrap();
        let folder = Destination::new(Path::new("out"), "box", &frames).unwrap();
        assert_eq!(folder.path(FrameNumber(7), "png"), Some("out/box.0007.png".into()));
        let pattern = Destination::new(Path::new("f.##.exr"), "box", &frames).unwrap();
        assert_eq!(pattern.path(FrameNumber(7), "exr"), Some("f.07.exr".into()));
        assert_eq!(pattern.path(FrameNumber(7), "png"), None);
        assert!(Destination::new(Path::new("f.exr"), "box", &frames).is_err());
    }
}
