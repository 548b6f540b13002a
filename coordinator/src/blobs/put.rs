//! One upload: bytes go to a file named by the hash that they should have, which stays where the upload breaks off.

use super::{BlobError, Blobs, hash_rest};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use tessera_protocol::BlobHash;

/// An upload under way. Dropped before its end, what has come stays for the next one.
#[derive(Debug)]
pub struct BlobPut {
    blobs: Blobs,
    hash: BlobHash,
    length: u64,
    file: File,
    path: PathBuf,
    hasher: blake3::Hasher,
    /// The file is the resumable one, which this upload alone may write.
    claimed: bool,
    done: bool,
}

impl BlobPut {
    pub(super) fn begin(blobs: Blobs, hash: BlobHash, length: u64) -> Result<Self, BlobError> {
        let claimed = blobs.claim(hash);
        let path = if claimed {
            blobs.shared.partial.join(hash.to_string())
        } else {
            blobs.shared.temporary.join(format!("put-{}", uuid::Uuid::now_v7()))
        };
        let opened = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let file = opened.map_err(|source| {
            if claimed {
                blobs.release(hash);
            }
            BlobError::Io { path: path.clone(), source }
        })?;
        let hasher = blake3::Hasher::new();
        let mut put = Self { blobs, hash, length, file, path, hasher, claimed, done: false };
        put.resume().map_err(|source| put.failed(source))?;
        Ok(put)
    }

    /// Takes what an earlier upload left, unless that is too long to be right.
    fn resume(&mut self) -> io::Result<()> {
        if self.file.metadata()?.len() > self.length {
            self.file.set_len(0)?;
        }
        hash_rest(&mut self.file, &mut self.hasher)
    }

    fn failed(&self, source: io::Error) -> BlobError {
        BlobError::Io { path: self.path.clone(), source }
    }

    /// Bytes that are here already: the next byte wanted.
    pub fn offset(&self) -> u64 {
        self.hasher.count()
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        let found = self.offset() + bytes.len() as u64;
        if found > self.length {
            return Err(BlobError::Length { expected: self.length, found });
        }
        self.file.write_all(bytes).map_err(|source| self.failed(source))?;
        self.hasher.update(bytes);
        Ok(())
    }

    /// Ends the upload: the blob is whole, checked and durable on return. Bytes with another hash are deleted; of too few, what
    /// has come stays.
    pub fn finish(mut self) -> Result<(), BlobError> {
        if self.offset() != self.length {
            return Err(BlobError::Length { expected: self.length, found: self.offset() });
        }
        let found = BlobHash(*self.hasher.finalize().as_bytes());
        if found != self.hash {
            self.done = true;
            std::fs::remove_file(&self.path).map_err(|source| self.failed(source))?;
            return Err(BlobError::Hash { expected: self.hash, found });
        }
        if self.blobs.shared.sync {
            self.file.sync_all().map_err(|source| self.failed(source))?;
        }
        self.blobs.install(&self.path, self.hash)?;
        self.done = true;
        Ok(())
    }
}

impl Drop for BlobPut {
    fn drop(&mut self) {
        if self.claimed {
            self.blobs.release(self.hash);
        } else if !self.done {
            // Nobody will find it to resume it.
            drop(std::fs::remove_file(&self.path));
        }
    }
}
