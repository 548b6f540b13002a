//! Blobs on their way to the store: put together on the disk, checked, and then stored. One whose
//! upload to the store failed keeps its bytes on the disk for the next attempt.

use crate::held::Held;
use std::io::{self, Seek, SeekFrom, Write};
use tempfile::NamedTempFile;
use tessera_coordinator::blobs::{BlobError, BlobSink, BlobWriter, SinkError};
use tessera_protocol::BlobHash;
use tessera_transport::PartFile;
use tessera_transport::client::hash_file;

/// A temporary file whose object gets its name from its bytes at the end.
pub(crate) struct NewBlob {
    pub(crate) file: NamedTempFile,
    pub(crate) held: Held,
}

impl Write for NewBlob {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for NewBlob {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

impl BlobWriter for NewBlob {
    fn finish(self: Box<Self>) -> Result<(BlobHash, u64), BlobError> {
        let path = self.file.path();
        let (hash, length) = hash_file(path).map_err(BlobError::at(path.display()))?;
        self.held.store(hash, (path, length))?;
        Ok((hash, length))
    }
}

/// An upload in its partial file.
pub(crate) struct Part {
    pub(crate) part: PartFile,
    pub(crate) hash: BlobHash,
    pub(crate) held: Held,
}

impl BlobSink for Part {
    fn held(&self) -> u64 {
        self.part.held()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.part.write(bytes)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.part.finish()?;
        let (path, length) = (self.part.path().to_path_buf(), self.part.held());
        self.held.store(self.hash, (&path, length)).map_err(|error| error.source)?;
        // It is stored; what is left on the disk is swept like an upload that nobody continues.
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::warn!(path = %path.display(), %error, "a stored upload cannot be deleted");
        }
        self.part.forget();
        Ok(())
    }
}
