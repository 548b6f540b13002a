//! The version byte before every record and snapshot part, and the readers of older versions. Owns
//! no form itself. `docs/versions.md` says how a form gets a new version.

use super::error::JournalError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tessera_protocol::{CodecError, VersionError, decode, encode};

/// Reads a value of an older version, without the version byte, and converts it to the present
/// form.
pub(crate) type Reader<T> = fn(&[u8]) -> Result<T, CodecError>;

/// The versions of one durable encoding.
pub(crate) struct Format<T: 'static> {
    /// What is encoded, as errors name it.
    pub(crate) what: &'static str,
    /// Version that is written.
    pub(crate) version: u8,
    /// Older versions that are read, ascending and without a gap up to `version`.
    pub(crate) older: &'static [(u8, Reader<T>)],
}

impl<T: Serialize + DeserializeOwned> Format<T> {
    /// Encodes a value behind its version byte. The store adds a checksum.
    pub(crate) fn to_bytes(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        let mut bytes = vec![self.version];
        bytes.append(&mut encode(value)?);
        Ok(bytes)
    }

    /// Decodes a value behind its version byte.
    pub(crate) fn read(&self, bytes: &[u8]) -> Result<T, JournalError> {
        let (version, rest) = bytes.split_first().ok_or(JournalError::Empty)?;
        let older = self.older.iter().find(|(older, _)| older == version);
        let value = match older {
            Some((_, read)) => read(rest),
            None => {
                let oldest = self.older.first().map_or(self.version, |(oldest, _)| *oldest);
                let reads = (oldest.into(), self.version.into());
                VersionError::check(self.what, (*version).into(), reads)?;
                decode(rest)
            }
        };
        value.map_err(JournalError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Core;
    use crate::journal::Record;
    use crate::settings::Settings;
    use crate::state::snapshot::SnapshotPart;
    use crate::time::Moment;
    use serde::Deserialize;
    use tessera_protocol::ids::{Epoch, JobId, NodeId};
    use tessera_protocol::job::{JobKind, JobSpec, RenderSpec};

    /// A made-up version of a record, older than the one that is written: a drained node was named
    /// by a number, and there was nothing else but reserved epochs.
    #[derive(Serialize, Deserialize)]
    enum OlderRecord {
        EpochsReserved { up_to: Epoch },
        NodeDrained { number: u64 },
    }

    fn node(number: u64) -> NodeId {
        NodeId(uuid::Uuid::from_u128(number.into()))
    }

    fn drained(number: u64, drained: bool) -> Record {
        let (node, by, at) = (node(number), "ada".to_owned(), Moment(0));
        Record::NodeDrained { node, drained, leave: false, by, at }
    }

    /// The migration, as a real one would be.
    fn read_older(bytes: &[u8]) -> Result<Record, CodecError> {
        Ok(match decode(bytes)? {
            OlderRecord::EpochsReserved { up_to } => Record::EpochsReserved { up_to },
            OlderRecord::NodeDrained { number } => drained(number, true),
        })
    }

    /// What a build would have that reads versions 4 and 5.
    const FORMAT: Format<Record> = Format { what: "record", version: 5, older: &[(4, read_older)] };

    #[test]
    fn a_journal_of_an_older_version_is_replayed_and_written_anew() {
        let older = Format::<OlderRecord> { what: "record", version: 4, older: &[] };
        let written = [
            OlderRecord::EpochsReserved { up_to: Epoch(10) },
            OlderRecord::NodeDrained { number: 7 },
        ];
        let read = |value: &OlderRecord| {
            let bytes = older.to_bytes(value).unwrap();
            assert_eq!(bytes[0], 4);
            FORMAT.read(&bytes).unwrap()
        };
        let records: Vec<Record> = written.iter().map(read).collect();
        assert_eq!(records, [Record::EpochsReserved { up_to: Epoch(10) }, drained(7, true)]);

        // They are followed by records of the present version.
        let back = drained(7, false);
        let bytes = FORMAT.to_bytes(&back).unwrap();
        assert_eq!(bytes[0], 5);
        assert_eq!(FORMAT.read(&bytes).unwrap(), back);
        let core = Core::replay(Settings::default(), [], records, Moment(0)).unwrap();
        core.verify().unwrap();
        // The snapshot has the new version and the same content.
        let parts: Vec<_> = core.snapshot();
        let bytes: Vec<_> = parts.iter().map(|part| part.to_bytes().unwrap()).collect();
        let parts = bytes.iter().map(|bytes| SnapshotPart::from_bytes(bytes).unwrap());
        let again = Core::replay(Settings::default(), parts, [], Moment(0)).unwrap();
        assert_eq!(again.snapshot(), core.snapshot());
    }

    #[test]
    fn unknown_versions_are_refused_with_both_numbers() {
        let bytes = FORMAT.to_bytes(&Record::EpochsReserved { up_to: Epoch(1) }).unwrap();
        let refused = |version: u8| {
            let error = FORMAT.read(&[&[version], &bytes[1..]].concat()).unwrap_err();
            assert!(matches!(error, JournalError::Version(_)), "{error:?}");
            error.to_string()
        };
        for (version, advice) in [(3, "a build that reads both"), (6, "the build that wrote it")] {
            let text = refused(version);
            let versions =
                format!("record has version {version}, and this build reads version 4 to 5");
            assert!(text.starts_with(&versions) && text.contains(advice), "{text}");
        }
        assert!(matches!(FORMAT.read(&[]), Err(JournalError::Empty)));
        assert!(matches!(FORMAT.read(&bytes[..1]), Err(JournalError::Damaged(_))));
    }

    #[test]
    fn an_option_that_this_build_does_not_know_is_named() {
        let mut render = RenderSpec::new("a.gltf", Vec::new());
        render.fps = 25.0;
        let spec = Box::new(JobSpec::new("film", JobKind::Render(render)));
        let (job, owner) = (JobId(uuid::Uuid::from_u128(1)), "ada".to_owned());
        let record = Record::JobAccepted { job, spec, owner, owner_id: 3, at: Moment(0) };
        let mut bytes = record.to_bytes().unwrap();
        assert_eq!(Record::from_bytes(&bytes).unwrap(), record);
        // As a newer build could have written it.
        let at = bytes.windows(3).position(|name| name == b"fps").expect("the option is there");
        bytes[at..at + 3].copy_from_slice(b"fpz");
        let text = Record::from_bytes(&bytes).unwrap_err().to_string();
        let expected = "record cannot be read: fpz: this build does not know this option, or this \
            value of it; use the build that the job was made with";
        assert_eq!(text, expected);
    }

    #[test]
    fn records_and_snapshots_of_unknown_versions_are_refused() {
        let record = Record::EpochsReserved { up_to: Epoch(1) }.to_bytes().unwrap();
        let core = Core::replay(Settings::default(), [], [], Moment(0)).unwrap();
        let part = core.snapshot().remove(0).to_bytes().unwrap();
        for version in [0, 2, 255] {
            let bytes = [&[version], &record[1..]].concat();
            let text = Record::from_bytes(&bytes).unwrap_err().to_string();
            let expected = format!("record has version {version}, and this build reads version 1;");
            assert!(text.starts_with(&expected), "{text}");
            let bytes = [&[version], &part[1..]].concat();
            let text = SnapshotPart::from_bytes(&bytes).unwrap_err().to_string();
            let expected = format!(
                "part of a snapshot has version {version}, and this build reads version 1;"
            );
            assert!(text.starts_with(&expected), "{text}");
        }
    }
}
