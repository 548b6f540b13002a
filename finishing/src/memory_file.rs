//! A file in memory, no longer than a result.

use crate::{FinishError, Output};
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tessera_protocol::BlobHash;
use tessera_protocol::limits::RESULT_BYTES_MAX;

/// A file whose bytes all its clones have.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryFile(Arc<Mutex<Cursor<Vec<u8>>>>);

impl MemoryFile {
    fn cursor(&self) -> MutexGuard<'_, Cursor<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the bytes. Other clones have none then.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        std::mem::take(&mut *self.cursor()).into_inner()
    }
}

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut cursor = self.cursor();
        let end = cursor.position().saturating_add(bytes.len() as u64);
        if end > RESULT_BYTES_MAX as u64 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        cursor.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for MemoryFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.cursor().seek(position)
    }
}

impl Output for MemoryFile {
    fn finish(self: Box<Self>) -> Result<(BlobHash, u64), FinishError> {
        let cursor = self.cursor();
        let bytes = cursor.get_ref();
        Ok((BlobHash::of(bytes), bytes.len() as u64))
    }
}
