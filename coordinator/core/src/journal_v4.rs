//! What records and snapshots of version 4 held where it differs from now, so that a farm keeps its
//! jobs over the change. Written no more.
//!
//! A render job named no material variant and no noise, was not denoised, and its lens had a radius
//! and a distance.

use crate::journal::Record;
use crate::journal::snapshot::{JobPart, Part, SnapshotPart};
use crate::journal_v5::FromV5;
use crate::journal_v6::{FormerRender, FormerSpec, KindOf, Wishes};
use crate::state::job::End;
use crate::time::Moment;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tessera_protocol::ids::{Fingerprint, JobId};
use tessera_protocol::job::{ApertureSpec, FocusSpec, JobSpec, LensSpec};
use tessera_protocol::status::FailureNote;
use tessera_protocol::{CodecError, decode};

/// Position of `Record::JobAccepted`, and of `Part::Job`, among their variants: the first byte of
/// their encodings.
pub(crate) const JOB_VARIANT: u8 = 1;

/// What a job of versions 1 to 4 does.
pub(crate) type FormerKind = KindOf<FormerRender<FormerLens, ()>>;

#[derive(Deserialize)]
pub(crate) struct FormerLens {
    radius: f32,
    focus_distance: f32,
}

impl From<FormerLens> for LensSpec {
    fn from(former: FormerLens) -> Self {
        Self {
            aperture: ApertureSpec::Radius(former.radius),
            focus: FocusSpec::Distance(former.focus_distance),
            blades: None,
        }
    }
}

impl From<()> for Wishes {
    fn from((): ()) -> Self {
        Self::default()
    }
}

type Spec = FormerSpec<FormerRender<FormerLens, ()>>;

/// `Record::JobAccepted`, with a spec of then.
#[derive(Deserialize)]
struct Accepted<S> {
    job: JobId,
    spec: S,
    owner: String,
    at: Moment,
}

/// [`JobPart`], with a spec of then.
#[derive(Deserialize)]
struct JobOfSnapshot<S> {
    id: JobId,
    spec: S,
    owner: String,
    submitted_at: Moment,
    fingerprint: Option<Fingerprint>,
    end: Option<End>,
    failures: Vec<FailureNote>,
}

/// An accepted job whose spec was of the form `S`, from what stands behind the variant.
pub(crate) fn accepted<S: DeserializeOwned + Into<JobSpec>>(
    bytes: &[u8],
) -> Result<Record, CodecError> {
    let Accepted::<S> { job, spec, owner, at } = decode(bytes)?;
    Ok(Record::JobAccepted { job, spec: Box::new(spec.into()), owner, at })
}

/// A snapshot's job whose spec was of the form `S`, from what stands behind the variant.
pub(crate) fn job_part<S: DeserializeOwned + Into<JobSpec>>(
    bytes: &[u8],
) -> Result<SnapshotPart, CodecError> {
    let JobOfSnapshot::<S> { id, spec, owner, submitted_at, fingerprint, end, failures } =
        decode(bytes)?;
    let spec = spec.into();
    let part = JobPart { id, spec, owner, submitted_at, fingerprint, end, failures };
    Ok(SnapshotPart(Part::Job(Box::new(part))))
}

/// What can be read from its bytes of version 4, without the version byte.
pub(crate) trait FromV4: Sized {
    fn from_v4(bytes: &[u8]) -> Result<Self, CodecError>;
}

impl FromV4 for Record {
    fn from_v4(bytes: &[u8]) -> Result<Self, CodecError> {
        let Some((&JOB_VARIANT, rest)) = bytes.split_first() else { return Self::from_v5(bytes) };
        accepted::<Spec>(rest)
    }
}

impl FromV4 for SnapshotPart {
    fn from_v4(bytes: &[u8]) -> Result<Self, CodecError> {
        let Some((&JOB_VARIANT, rest)) = bytes.split_first() else { return Self::from_v5(bytes) };
        job_part::<Spec>(rest)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::journal::RECORD_VERSION;
    use tessera_protocol::job::JobKind;

    /// A job accepted, as version 1 wrote it: owner and time stand behind the kind.
    const ACCEPTED: &str = include_str!("journal_v1.hex");

    /// The job of version 1, and the bytes of one of another version, which has more behind the
    /// kind.
    pub(crate) fn accepted_of(version: u8, behind_kind: &[u8]) -> (Record, Vec<u8>) {
        let digits: Vec<u8> =
            ACCEPTED.trim().bytes().map(|d| (d as char).to_digit(16).unwrap() as u8).collect();
        let mut bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        let record = Record::from_bytes(&bytes).unwrap();
        let Record::JobAccepted { owner, at, .. } = &record else { panic!("{record:?}") };
        // Owner and time stand last: a length, the letters, and the time's own form.
        let tail = 1 + owner.len() + tessera_protocol::encode(at).unwrap().len();
        let place = bytes.len() - tail;
        bytes.splice(place..place, behind_kind.iter().copied());
        bytes[0] = version;
        (record, bytes)
    }

    /// Bytes of a former version hold the record, alone and as the job of a snapshot, and it is
    /// written as it was read.
    pub(crate) fn assert_holds(bytes: &[u8], record: &Record) {
        assert_eq!(&Record::from_bytes(bytes).unwrap(), record);
        let again = record.to_bytes().unwrap();
        assert_eq!(again[0], RECORD_VERSION);
        assert_eq!(&Record::from_bytes(&again).unwrap(), record);
        let Record::JobAccepted { job, spec, owner, .. } = record else { panic!("a job") };
        // The same beginning; then a time as of the record, no fingerprint, no end, no failure.
        let part = [bytes, &[0, 0, 0]].concat();
        let SnapshotPart(Part::Job(part)) = SnapshotPart::from_bytes(&part).unwrap() else {
            panic!("a job")
        };
        assert_eq!((&part.id, &part.owner, &part.spec), (job, owner, &**spec));
    }

    /// One for the pool "gpu" that predicts 77 bytes.
    fn accepted() -> (Record, Vec<u8>) {
        accepted_of(4, &[77, 1, 3, b'g', b'p', b'u'])
    }

    fn expected(before: &JobSpec) -> JobSpec {
        JobSpec { device_bytes: 77, pool: Some("gpu".into()), ..before.clone() }
    }

    #[test]
    fn a_job_of_version_4_is_read_and_asks_for_nothing_new() {
        let (first, bytes) = accepted();
        let record = Record::from_bytes(&bytes).unwrap();
        let (Record::JobAccepted { spec, owner, .. }, Record::JobAccepted { spec: before, .. }) =
            (&record, &first)
        else {
            panic!("{record:?}")
        };
        assert_eq!((&**spec, owner.as_str()), (&expected(before), "ada"));
        let render = spec.kind.render().unwrap();
        assert_eq!((&render.variant, render.denoise, render.noise), (&None, false, None));
        assert_eq!((render.time_secs, render.clamp), (None, None));
        let again = record.to_bytes().unwrap();
        assert_eq!(again.len(), bytes.len() + 5);
        assert_holds(&bytes, &record);
    }

    #[test]
    fn a_lens_of_version_4_has_a_radius_and_a_distance() {
        let bytes = tessera_protocol::encode(&(0.01f32, 2.5f32)).unwrap();
        let lens: LensSpec = decode::<FormerLens>(&bytes).unwrap().into();
        let (aperture, focus) = (ApertureSpec::Radius(0.01), FocusSpec::Distance(2.5));
        assert_eq!(lens, LensSpec { aperture, focus, blades: None });
    }

    #[test]
    fn what_version_5_adds_is_written_and_read() {
        let (record, _) = accepted();
        let Record::JobAccepted { job, mut spec, owner, at } = record else { panic!("a job") };
        let JobKind::Render(render) = &mut spec.kind else { panic!("a render job") };
        (render.variant, render.denoise, render.noise) = (Some("night".into()), true, Some(0.02));
        let record = Record::JobAccepted { job, spec, owner, at };
        assert_eq!(Record::from_bytes(&record.to_bytes().unwrap()).unwrap(), record);
    }
}
