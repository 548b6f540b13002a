//! The format of a backup: magic bytes, then entries. An entry has a kind, a name, a length, bytes
//! and a BLAKE3 over all of it. The last entry counts the others. Does not interpret the content.

use std::io::{self, Read, Write};
use std::path::Path;
use tessera_protocol::{BlobHash, VersionError};

/// First bytes of every backup. The version follows.
const MAGIC: [u8; 7] = *b"TSRABKP";
const VERSION: u8 = 1;
/// Longest name in bytes: a job's id, a slash and a number, or two file names.
const NAME_BYTES_MAX: usize = 255;
const HASH_BYTES: usize = 32;
const STEP_BYTES: usize = 1 << 20;

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file of the farm's keys and denials, by its path in the data folder.
    Key = 1,
    /// A value of the journal, by its key in hexadecimal.
    Value = 2,
    /// A spool, by job and frame.
    Spool = 3,
    /// A blob, by its hash.
    Blob = 4,
    /// A file of the audit log, by its name.
    Log = 5,
    /// The end, with the number of entries that are not keys.
    End = 255,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Key, Self::Value, Self::Spool, Self::Blob, Self::Log, Self::End]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// Why a file is not a complete backup.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file cannot be read.
    #[error("backup cannot be read")]
    Read(#[source] io::Error),
    /// The file begins with other bytes.
    #[error("it is not a backup of a farm")]
    Foreign,
    /// Another build wrote the backup in a version that this build does not read.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The file ends early.
    #[error("backup is cut short after {0} entries")]
    Cut(u64),
    /// An entry differs from what was written.
    #[error("entry {position} of the backup (`{name}`) is damaged")]
    Damaged {
        /// Position of the entry, counted from 0.
        position: u64,
        /// Name of the entry, as far as it can be read.
        name: String,
    },
    /// Entries are missing, or there are more than were written.
    #[error("backup has {found} entries, and {expected} were written")]
    Count {
        /// Number of entries found.
        found: u64,
        /// Number of entries written.
        expected: u64,
    },
}

/// Content of a backup, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct BackupSummary {
    /// Number of key files.
    pub keys: u64,
    /// Number of values of the journal.
    pub values: u64,
    /// Number of spools of unfinished frames.
    pub spools: u64,
    /// Number of blobs in the backup.
    pub blobs: u64,
    /// Number of files of the audit log.
    pub log: u64,
    /// Bytes of all entries.
    pub bytes: u64,
}

/// Writes the entries of a backup.
pub(super) struct ArchiveWriter<W: Write> {
    out: W,
    count: u64,
}

impl<W: Write> ArchiveWriter<W> {
    /// Writes the first bytes of a backup.
    pub(super) fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&[VERSION])?;
        Ok(Self { out, count: 0 })
    }

    /// Continues after the keys.
    pub(super) fn go_on(out: W) -> Self {
        Self { out, count: 0 }
    }

    /// Writes an entry with these bytes.
    pub(super) fn bytes(&mut self, kind: Kind, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.file(kind, name, bytes.len() as u64, &mut &bytes[..]).map(drop)
    }

    /// Writes an entry with exactly `length` bytes from a reader. Returns their hash.
    pub(super) fn file(
        &mut self,
        kind: Kind,
        name: &str,
        length: u64,
        from: &mut impl Read,
    ) -> io::Result<BlobHash> {
        let head = head(kind, name, length);
        let mut entry = blake3::Hasher::new();
        let mut content = blake3::Hasher::new();
        entry.update(&head);
        self.out.write_all(&head)?;
        let mut left = length;
        let mut buffer = vec![0; STEP_BYTES.min(usize::try_from(length).unwrap_or(STEP_BYTES))];
        while left > 0 {
            let step = &mut buffer[..usize::try_from(left).unwrap_or(STEP_BYTES).min(STEP_BYTES)];
            from.read_exact(step)?;
            entry.update(step);
            content.update(step);
            self.out.write_all(step)?;
            left -= step.len() as u64;
        }
        self.out.write_all(entry.finalize().as_bytes())?;
        self.count += 1;
        Ok(BlobHash(*content.finalize().as_bytes()))
    }

    /// Writes the last entry.
    pub(super) fn end(mut self) -> io::Result<()> {
        let count = self.count;
        self.bytes(Kind::End, "", &count.to_le_bytes())?;
        self.out.flush()
    }
}

fn head(kind: Kind, name: &str, length: u64) -> Vec<u8> {
    let name = &name.as_bytes()[..name.len().min(NAME_BYTES_MAX)];
    let mut head = vec![kind as u8, name.len() as u8];
    head.extend_from_slice(name);
    head.extend_from_slice(&length.to_le_bytes());
    head
}

/// Reads entries. Each entry is checked when its end is reached.
pub(super) struct ArchiveReader<R: Read> {
    from: R,
    /// Number of entries so far, and how many of them are keys.
    position: u64,
    keys: u64,
    summary: BackupSummary,
}

/// Head of an entry whose bytes come next.
pub(super) struct EntryHead {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) length: u64,
    hasher: blake3::Hasher,
}

impl<R: Read> ArchiveReader<R> {
    /// Reads the first bytes of a backup.
    pub(super) fn begin(mut from: R) -> Result<Self, ArchiveError> {
        let mut magic = [0; MAGIC.len() + 1];
        match from.read_exact(&mut magic) {
            Ok(()) if magic[..MAGIC.len()] == MAGIC => {
                let reads = (VERSION.into(), VERSION.into());
                VersionError::check("backup", magic[MAGIC.len()].into(), reads)?;
                Ok(Self { from, position: 0, keys: 0, summary: BackupSummary::default() })
            }
            Ok(()) => Err(ArchiveError::Foreign),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(ArchiveError::Foreign)
            }
            Err(error) => Err(ArchiveError::Read(error)),
        }
    }

    fn exactly(&mut self, bytes: &mut [u8]) -> Result<(), ArchiveError> {
        self.from.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ArchiveError::Cut(self.position),
            _ => ArchiveError::Read(error),
        })
    }

    fn damaged(&self, name: &str) -> ArchiveError {
        ArchiveError::Damaged { position: self.position, name: name.to_owned() }
    }

    /// Returns the next entry; None after the last one, whose count has then been checked. The
    /// caller must read the entry's bytes before the next call.
    pub(super) fn next(&mut self) -> Result<Option<EntryHead>, ArchiveError> {
        let mut start = [0; 2];
        self.exactly(&mut start)?;
        let mut rest = vec![0; usize::from(start[1]) + 8];
        self.exactly(&mut rest)?;
        let (name, length) = rest.split_at(usize::from(start[1]));
        let name = String::from_utf8_lossy(name).into_owned();
        let kind = Kind::from_byte(start[0]).ok_or_else(|| self.damaged(&name))?;
        let length = u64::from_le_bytes(length.try_into().map_err(|_| self.damaged(&name))?);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&start).update(&rest);
        let entry = EntryHead { kind, name, length, hasher };
        if kind != Kind::End {
            return Ok(Some(entry));
        }
        if length != 8 {
            return Err(self.damaged(&entry.name));
        }
        let mut count = Vec::new();
        let found = self.position - self.keys;
        self.read(entry, &mut count)?;
        let expected = u64::from_le_bytes(count.try_into().map_err(|_| self.damaged(""))?);
        if found != expected {
            return Err(ArchiveError::Count { found, expected });
        }
        Ok(None)
    }

    /// Writes the bytes of an entry to `out`, and checks them.
    pub(super) fn read(
        &mut self,
        entry: EntryHead,
        out: &mut impl Write,
    ) -> Result<(), ArchiveError> {
        let EntryHead { kind, name, length, mut hasher } = entry;
        let mut left = length;
        let mut buffer = vec![0; STEP_BYTES.min(usize::try_from(length).unwrap_or(STEP_BYTES))];
        while left > 0 {
            let step = usize::try_from(left).unwrap_or(STEP_BYTES).min(STEP_BYTES);
            self.exactly(&mut buffer[..step])?;
            hasher.update(&buffer[..step]);
            out.write_all(&buffer[..step]).map_err(ArchiveError::Read)?;
            left -= step as u64;
        }
        let mut hash = [0; HASH_BYTES];
        self.exactly(&mut hash)?;
        if *hasher.finalize().as_bytes() != hash {
            return Err(self.damaged(&name));
        }
        self.position += 1;
        self.summary.bytes += length;
        match kind {
            Kind::Key => {
                self.keys += 1;
                self.summary.keys += 1;
            }
            Kind::Value => self.summary.values += 1,
            Kind::Spool => self.summary.spools += 1,
            Kind::Blob => self.summary.blobs += 1,
            Kind::Log => self.summary.log += 1,
            Kind::End => {}
        }
        Ok(())
    }

    /// Returns the counts of what has been read.
    pub(super) fn summary(&self) -> BackupSummary {
        self.summary
    }
}

/// Reads a whole backup and checks every entry.
pub fn verify(path: &Path) -> Result<BackupSummary, ArchiveError> {
    let file = std::fs::File::open(path).map_err(ArchiveError::Read)?;
    let mut reader = ArchiveReader::begin(io::BufReader::new(file))?;
    while let Some(entry) = reader.next()? {
        reader.read(entry, &mut io::sink())?;
    }
    Ok(reader.summary())
}
