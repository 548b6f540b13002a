//! A file that remembers its first write error, for encoders that finish in a destructor and cannot
//! report one.

use crate::{FinishError, Output};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use tessera_protocol::BlobHash;

/// Size of the write buffer in bytes.
const BUFFER_BYTES: usize = 1 << 18;

/// A file that is being written, with a buffer. Nothing is left unless it is finished.
pub(crate) struct OutFile {
    file: BufWriter<Box<dyn Output>>,
    failure: Option<io::Error>,
}

impl OutFile {
    pub(crate) fn new(file: Box<dyn Output>) -> Self {
        Self { file: BufWriter::with_capacity(BUFFER_BYTES, file), failure: None }
    }

    /// Makes the complete file durable. Returns its hash and length, or the first error.
    pub(crate) fn finish(self) -> Result<(BlobHash, u64), FinishError> {
        self.close()?.finish()
    }

    /// Returns the complete file, or the first error.
    pub(crate) fn close(mut self) -> Result<Box<dyn Output>, FinishError> {
        let file = self.flush().and_then(|()| match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.file.into_inner().map_err(io::IntoInnerError::into_error),
        });
        file.map_err(FinishError::Write)
    }

    /// Takes the first error, if there is one. It says more than the encoder's own error.
    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    fn remember<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let (Err(error), None) = (&result, &self.failure) {
            self.failure = Some(match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(error.kind(), error.to_string()),
            });
        }
        result
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.file.write(bytes);
        self.remember(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.file.flush();
        self.remember(result)
    }
}

impl Seek for OutFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        let result = self.file.seek(position);
        self.remember(result)
    }
}
