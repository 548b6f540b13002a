//! What records and snapshots of version 3 held where it differs from now, so that a farm keeps its
//! jobs over the change. Written no more.
//!
//! A job's spec named no pool.

use crate::journal::Record;
use crate::journal::snapshot::SnapshotPart;
use crate::journal_v4::{FormerKind, FromV4, JOB_VARIANT, accepted, job_part};
use serde::Deserialize;
use tessera_protocol::CodecError;
use tessera_protocol::job::JobSpec;

#[derive(Deserialize)]
struct Spec {
    name: String,
    priority: u8,
    kind: FormerKind,
    device_bytes: u64,
}

impl From<Spec> for JobSpec {
    fn from(former: Spec) -> Self {
        let Spec { name, priority, kind, device_bytes } = former;
        Self { name, priority, kind: kind.into(), device_bytes, pool: None }
    }
}

/// What can be read from its bytes of version 3, without the version byte.
pub(crate) trait FromV3: Sized {
    fn from_v3(bytes: &[u8]) -> Result<Self, CodecError>;
}

impl FromV3 for Record {
    fn from_v3(bytes: &[u8]) -> Result<Self, CodecError> {
        let Some((&JOB_VARIANT, rest)) = bytes.split_first() else { return Self::from_v4(bytes) };
        accepted::<Spec>(rest)
    }
}

impl FromV3 for SnapshotPart {
    fn from_v3(bytes: &[u8]) -> Result<Self, CodecError> {
        let Some((&JOB_VARIANT, rest)) = bytes.split_first() else { return Self::from_v4(bytes) };
        job_part::<Spec>(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::snapshot::Part;
    use crate::journal_v4::tests::accepted_of;

    /// One that predicts 77 bytes.
    fn accepted() -> (Record, Vec<u8>) {
        accepted_of(3, &[77])
    }

    #[test]
    fn a_job_of_version_3_is_read_and_is_for_any_node() {
        let (first, bytes) = accepted();
        for version in [2, 3] {
            let mut bytes = bytes.clone();
            bytes[0] = version;
            let record = Record::from_bytes(&bytes).unwrap();
            let (Record::JobAccepted { spec, owner, .. }, Record::JobAccepted { spec: before, .. }) =
                (&record, &first)
            else {
                panic!("{record:?}")
            };
            let expected = JobSpec { device_bytes: 77, ..(**before).clone() };
            assert_eq!((&**spec, owner.as_str(), spec.pool.as_ref()), (&expected, "ada", None));
            let again = record.to_bytes().unwrap();
            assert_eq!(Record::from_bytes(&again).unwrap(), record);
        }
    }

    #[test]
    fn a_job_of_a_snapshot_of_version_3_is_read() {
        let (record, bytes) = accepted();
        let Record::JobAccepted { job, spec, owner, .. } = record else { panic!("a job") };
        // The same beginning; then a time as of the record, no fingerprint, no end, no failure.
        let part = [&bytes[..], &[0, 0, 0]].concat();
        let SnapshotPart(Part::Job(part)) = SnapshotPart::from_bytes(&part).unwrap() else {
            panic!("a job")
        };
        assert_eq!((part.id, part.owner, part.spec.pool), (job, owner, None));
        assert_eq!((part.spec.kind, part.spec.device_bytes), (spec.kind, 77));
    }
}
