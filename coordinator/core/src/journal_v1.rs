//! What records and snapshots of version 1 held where it differs from now, so that a farm keeps its
//! jobs over the change. Written no more.
//!
//! The only difference from version 2 is a job's spec, which ended with its kind: it predicted no
//! device bytes.

use crate::journal::Record;
use crate::journal::snapshot::SnapshotPart;
use crate::journal_v2::FromV2;
use crate::journal_v4::{FormerKind, JOB_VARIANT, accepted, job_part};
use serde::Deserialize;
use tessera_protocol::CodecError;
use tessera_protocol::job::JobSpec;

#[derive(Deserialize)]
struct Spec {
    name: String,
    priority: u8,
    kind: FormerKind,
}

impl From<Spec> for JobSpec {
    fn from(former: Spec) -> Self {
        let Spec { name, priority, kind } = former;
        Self { name, priority, kind: kind.into(), device_bytes: 0, pool: None }
    }
}

/// What can be read from its bytes of version 1, without the version byte.
pub(crate) trait FromV1: Sized {
    fn from_v1(bytes: &[u8]) -> Result<Self, CodecError>;
}

impl FromV1 for Record {
    fn from_v1(bytes: &[u8]) -> Result<Self, CodecError> {
        let Some((&JOB_VARIANT, rest)) = bytes.split_first() else { return Self::from_v2(bytes) };
        accepted::<Spec>(rest)
    }
}

impl FromV1 for SnapshotPart {
    fn from_v1(bytes: &[u8]) -> Result<Self, CodecError> {
        let Some((&JOB_VARIANT, rest)) = bytes.split_first() else { return Self::from_v2(bytes) };
        job_part::<Spec>(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Moment;

    /// A job accepted, as version 1 wrote it: the version byte, and no prediction behind the spec's
    /// kind.
    const ACCEPTED: &str = include_str!("journal_v1.hex");

    fn bytes() -> Vec<u8> {
        let digits: Vec<u8> =
            ACCEPTED.trim().bytes().map(|d| (d as char).to_digit(16).unwrap() as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    #[test]
    fn a_job_of_version_1_is_read_and_predicts_nothing() {
        let record = Record::from_bytes(&bytes()).unwrap();
        let Record::JobAccepted { spec, owner, at, .. } = &record else { panic!("{record:?}") };
        assert_eq!((spec.name.as_str(), spec.device_bytes), ("cornell", 0));
        assert_eq!((owner.as_str(), *at), ("ada", Moment(1000)));
        let again = record.to_bytes().unwrap();
        assert_eq!(again[0], crate::journal::RECORD_VERSION);
        assert_eq!(Record::from_bytes(&again).unwrap(), record);
    }

    #[test]
    fn other_records_of_version_1_are_as_they_were() {
        let record = Record::EpochsReserved { up_to: tessera_protocol::ids::Epoch(70) };
        let mut bytes = record.to_bytes().unwrap();
        bytes[0] = 1;
        assert_eq!(Record::from_bytes(&bytes).unwrap(), record);
        bytes[0] = 0;
        assert!(matches!(
            Record::from_bytes(&bytes),
            Err(crate::journal::JournalError::Version(0))
        ));
    }
}
