//! The outbox: finished results on disk, until the coordinator says that they are durable or
//! unwanted. Owns the files; does not know the network.
//!
//! A file has `"TBOX"`, u8 version, 32 bytes of fingerprint, u32 length of the header (little
//! endian), the encoded [`ResultHeader`], and the result's bytes. A file with its final name is
//! complete.

use crate::disk::remove_if_there;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tessera_protocol::limits::RESULT_BYTES_MAX;
use tessera_protocol::node::ResultHeader;
use tessera_protocol::{BlobHash, Fingerprint, Lease, VersionError, decode, encode};
use tessera_transport::files::{Access, write_whole};

const MAGIC: [u8; 4] = *b"TBOX";
/// Version of the files. A result of another version is rendered again, which is always possible.
const VERSION: u8 = 1;
/// Length of magic, version, fingerprint and header length.
const PREFIX_BYTES: usize = 4 + 1 + 32 + 4;
/// Longest header. It has a lease, a hash and three numbers, which are far less.
const HEADER_BYTES_MAX: usize = 1024;

/// Why a result cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// There is no room until a result is acknowledged.
    #[error(
        "outbox holds {held} bytes of {limit} and cannot take {wanted} more until results are \
            acknowledged"
    )]
    Full {
        /// Bytes in the outbox.
        held: u64,
        /// Limit of the outbox in bytes.
        limit: u64,
        /// Bytes of the result.
        wanted: u64,
    },
    /// The disk returned an error.
    #[error("cannot use `{path}`")]
    Disk {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// The file has a version that this build does not read.
    #[error("cannot read `{path}`")]
    Version {
        /// Path of the file.
        path: PathBuf,
        /// The version, and the versions that this build reads.
        #[source]
        source: VersionError,
    },
    /// The file differs from what was written.
    #[error("`{path}` is damaged: {problem}")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the damage.
        problem: &'static str,
    },
}

/// Results that wait for their acknowledgement.
#[derive(Debug)]
pub struct Outbox {
    folder: PathBuf,
    fingerprint: Fingerprint,
    bytes_max: u64,
    held: Mutex<BTreeMap<Lease, u64>>,
}

impl Outbox {
    /// Opens the outbox in `folder`. Results that are incomplete, damaged, or from a build with
    /// another fingerprint are removed and logged. Their units will be rendered again.
    pub fn open(
        folder: &Path,
        fingerprint: Fingerprint,
        bytes_max: u64,
    ) -> Result<Self, OutboxError> {
        let outbox = Self {
            folder: folder.to_owned(),
            fingerprint,
            bytes_max,
            held: Mutex::new(BTreeMap::new()),
        };
        let disk = |source| OutboxError::Disk { path: folder.to_owned(), source };
        for entry in fs::read_dir(folder).map_err(disk)? {
            let path = entry.map_err(disk)?.path();
            if path.extension().is_some_and(|extension| extension == "result") {
                match outbox.read_file(&path) {
                    Ok((header, bytes)) if outbox.path(header.lease) == path => {
                        outbox.held().insert(header.lease, bytes.len() as u64);
                        continue;
                    }
                    Ok(_) => {
                        tracing::warn!(file = %path.display(), "result under a foreign name \
                            removed")
                    }
                    Err(OutboxError::Damaged { problem, .. }) => {
                        tracing::warn!(file = %path.display(), problem, "unusable result removed; \
                            its unit will run again");
                    }
                    Err(OutboxError::Version { source, .. }) => {
                        tracing::warn!(file = %path.display(), problem = %source, "unusable \
                            result removed; its unit will run again");
                    }
                    Err(error) => return Err(error),
                }
            }
            remove_if_there(&path).map_err(|source| OutboxError::Disk { path, source })?;
        }
        Ok(outbox)
    }

    /// Stores a result. On return it survives the end of the process. A result of the same lease
    /// replaces the former one.
    pub fn store(&self, header: &ResultHeader, bytes: &[u8]) -> Result<(), OutboxError> {
        let wanted = bytes.len() as u64;
        {
            // Reserve room before the write, so that two writers cannot both use the last of it.
            let mut held = self.held();
            let total: u64 = held.values().sum();
            if total.saturating_add(wanted) > self.bytes_max && !held.is_empty() {
                return Err(OutboxError::Full { held: total, limit: self.bytes_max, wanted });
            }
            held.insert(header.lease, wanted);
        }
        let path = self.path(header.lease);
        let written = encode(header).map_err(io::Error::other).and_then(|encoded| {
            let length = (encoded.len() as u32).to_le_bytes();
            let parts = [&MAGIC[..], &[VERSION], &self.fingerprint.0, &length, &encoded, bytes];
            write_whole(&path, &parts, Access::Secret)
        });
        written.map_err(|source| {
            self.held().remove(&header.lease);
            OutboxError::Disk { path, source }
        })
    }

    /// Reads a stored result.
    pub fn read(&self, lease: Lease) -> Result<(ResultHeader, Bytes), OutboxError> {
        self.read_file(&self.path(lease))
    }

    /// Removes a result that is durable elsewhere, unwanted, or damaged. Harmless if it is not
    /// there.
    pub fn remove(&self, lease: Lease) -> Result<(), OutboxError> {
        self.held().remove(&lease);
        let path = self.path(lease);
        remove_if_there(&path).map_err(|source| OutboxError::Disk { path, source })
    }

    /// Returns the leases whose results are stored, in order.
    pub fn leases(&self) -> Vec<Lease> {
        self.held().keys().copied().collect()
    }

    /// Returns whether a result is stored.
    pub fn holds(&self, lease: Lease) -> bool {
        self.held().contains_key(&lease)
    }

    /// Returns the number of bytes of a stored result; 0 if it is not there.
    pub fn bytes_of(&self, lease: Lease) -> u64 {
        self.held().get(&lease).copied().unwrap_or(0)
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<Lease, u64>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, lease: Lease) -> PathBuf {
        let unit = lease.unit;
        self.folder
            .join(format!("{}-{}-{}-{}.result", unit.job, unit.frame, unit.unit.0, lease.epoch))
    }

    fn read_file(&self, path: &Path) -> Result<(ResultHeader, Bytes), OutboxError> {
        let disk = |source| OutboxError::Disk { path: path.to_owned(), source };
        let damaged = |problem| OutboxError::Damaged { path: path.to_owned(), problem };
        let length = fs::metadata(path).map_err(disk)?.len();
        if length > (PREFIX_BYTES + HEADER_BYTES_MAX + RESULT_BYTES_MAX) as u64 {
            return Err(damaged("longer than any result"));
        }
        let file = fs::read(path).map_err(disk)?;
        let prefix = file.first_chunk::<PREFIX_BYTES>().ok_or_else(|| damaged("cut short"))?;
        if prefix[..4] != MAGIC {
            return Err(damaged("not a result"));
        }
        let reads = (VERSION.into(), VERSION.into());
        VersionError::check("result", prefix[4].into(), reads)
            .map_err(|source| OutboxError::Version { path: path.to_owned(), source })?;
        if prefix[5..37] != self.fingerprint.0 {
            return Err(damaged("made by a build with another fingerprint"));
        }
        let header_length =
            u32::from_le_bytes([prefix[37], prefix[38], prefix[39], prefix[40]]) as usize;
        let encoded = file
            .get(PREFIX_BYTES..PREFIX_BYTES.saturating_add(header_length))
            .ok_or_else(|| damaged("cut short"))?;
        let header: ResultHeader = decode(encoded).map_err(|_| damaged("malformed header"))?;
        let bytes = Bytes::from(file).slice(PREFIX_BYTES + header_length..);
        if bytes.len() != header.length as usize || BlobHash::of(&bytes) != header.hash {
            return Err(damaged("its bytes do not have its hash"));
        }
        Ok((header, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::{Epoch, FrameNumber, JobId, UnitIndex, UnitKey};
    use tessera_transport::files::TEMPORARY_PREFIX;

    const OURS: Fingerprint = Fingerprint([7; 32]);

    fn header(unit: u32, bytes: &[u8]) -> ResultHeader {
        let job = JobId(uuid::Uuid::from_u128(5));
        let unit = UnitKey { job, frame: FrameNumber(3), unit: UnitIndex(unit) };
        ResultHeader {
            lease: Lease { unit, epoch: Epoch(9) },
            hash: BlobHash::of(bytes),
            length: bytes.len() as u32,
            device: 0,
            device_micros: 12,
            waited_micros: 0,
            device_bytes: 0,
            rays: 34,
            first_sample: 5,
        }
    }

    #[test]
    fn results_survive_a_restart_until_they_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path(), OURS, 1000).unwrap();
        let (first, second) = (header(1, b"one"), header(2, b"two!"));
        outbox.store(&first, b"one").unwrap();
        outbox.store(&second, b"two!").unwrap();
        drop(outbox);
        let outbox = Outbox::open(folder.path(), OURS, 1000).unwrap();
        assert_eq!(outbox.leases(), [first.lease, second.lease]);
        assert_eq!(outbox.read(second.lease).unwrap(), (second, Bytes::from_static(b"two!")));
        outbox.remove(first.lease).unwrap();
        outbox.remove(first.lease).unwrap();
        let outbox = Outbox::open(folder.path(), OURS, 1000).unwrap();
        assert_eq!(outbox.leases(), [second.lease]);
    }

    #[test]
    fn a_crash_between_write_and_rename_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path(), OURS, 1000).unwrap();
        let header = header(1, b"one");
        outbox.store(&header, b"one").unwrap();
        let path = outbox.path(header.lease);
        fs::rename(&path, folder.path().join(format!("{TEMPORARY_PREFIX}1"))).unwrap();
        drop(outbox);
        let outbox = Outbox::open(folder.path(), OURS, 1000).unwrap();
        assert!(outbox.leases().is_empty());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn damaged_files_are_dropped_wherever_the_damage_is() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path(), OURS, 1000).unwrap();
        let header = header(1, b"some bytes");
        outbox.store(&header, b"some bytes").unwrap();
        let path = outbox.path(header.lease);
        let whole = fs::read(&path).unwrap();
        for position in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[position] ^= 0x40;
            fs::write(&path, &bytes).unwrap();
            let opened = Outbox::open(folder.path(), OURS, 1000).unwrap();
            // Device time and rays are only for people, and outside the hash. So is the first
            // sample, which the coordinator compares with its own. All other changes must be
            // noticed.
            for lease in opened.leases() {
                let (read, bytes) = opened.read(lease).unwrap();
                assert_eq!(
                    (read.lease, bytes),
                    (header.lease, Bytes::from_static(b"some bytes")),
                    "byte {position}"
                );
            }
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(
                Outbox::open(folder.path(), OURS, 1000).unwrap().leases().is_empty(),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn results_of_another_fingerprint_are_never_offered() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path(), OURS, 1000).unwrap();
        outbox.store(&header(1, b"one"), b"one").unwrap();
        let other = Outbox::open(folder.path(), Fingerprint([8; 32]), 1000).unwrap();
        assert!(other.leases().is_empty());
    }

    #[test]
    fn a_full_outbox_accepts_again_after_an_acknowledgement() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path(), OURS, 8).unwrap();
        outbox.store(&header(1, b"12345"), b"12345").unwrap();
        let second = header(2, b"6789");
        assert!(matches!(outbox.store(&second, b"6789"), Err(OutboxError::Full { .. })));
        outbox.remove(header(1, b"").lease).unwrap();
        outbox.store(&second, b"6789").unwrap();
        assert_eq!(outbox.leases(), [second.lease]);
    }
}
