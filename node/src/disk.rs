//! Small steps on disk that several parts need: whole files under their final names, and what an
//! error means.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes `parts` one after another to `path`: under a temporary name first, then synced, then
/// renamed, so that the final name never stands for half a file. The rename itself is not synced:
/// after a power cut the file may be missing, never cut.
pub(crate) fn write_whole(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let written = (|| {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.sync_data()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // Nobody reads the temporary name, but it takes room, and room may be what is missing.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Removes a file that may be gone already.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes a folder's entries durable: names made or renamed in it before.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The disk, or the share of it that this user may have, is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
