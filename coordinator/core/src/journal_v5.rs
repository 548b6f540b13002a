//! What records and snapshots of version 5 held where it differs from now, so that a farm keeps its
//! jobs over the change. Written no more.
//!
//! The lens of a render job had no blades, and no job had a time for its frames: rounds did not say
//! how much of it was spent, nor snapshots how far a rounds had got and how many samples a finished
//! frame had.

use crate::journal::Record;
use crate::journal::snapshot::{Part, SnapshotPart};
use crate::journal_v4::{JOB_VARIANT, accepted, job_part};
use crate::journal_v6::{FormerRender, FormerSpec, FromV6, Wishes};
use crate::state::frame::Spent;
use crate::state::rounds::{TileSet, WrittenRounds};
use serde::Deserialize;
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::job::{ApertureSpec, FocusSpec, LensSpec};
use tessera_protocol::{CodecError, decode};

/// Position of `Record::RoundMeasured` among its variants.
const ROUND_VARIANT: u8 = 21;
/// Positions of `Part::FrameRounds` and `Part::Spent`.
const COURSE_VARIANT: u8 = 10;
const SPENT_VARIANT: u8 = 11;

/// What version 5 added to render jobs.
#[derive(Deserialize)]
struct FormerWishes {
    variant: Option<String>,
    denoise: bool,
    noise: Option<f64>,
}

impl From<FormerWishes> for Wishes {
    fn from(FormerWishes { variant, denoise, noise }: FormerWishes) -> Self {
        Self { variant, denoise, noise, time_secs: None }
    }
}

#[derive(Deserialize)]
struct FormerLens {
    aperture: ApertureSpec,
    focus: FocusSpec,
}

impl From<FormerLens> for LensSpec {
    fn from(FormerLens { aperture, focus }: FormerLens) -> Self {
        Self { aperture, focus, blades: None }
    }
}

type Spec = FormerSpec<FormerRender<FormerLens, FormerWishes>>;

/// `Record::RoundMeasured`.
#[derive(Deserialize)]
struct Round {
    job: JobId,
    frame: FrameNumber,
    round: u32,
    going: TileSet,
}

/// `Part::FrameRounds`.
#[derive(Deserialize)]
struct FormerCourse {
    job: JobId,
    position: u32,
    round: u32,
    ended: Vec<u8>,
}

/// `Part::Spent`.
#[derive(Deserialize)]
struct AllSpent {
    job: JobId,
    frames: Vec<(u32, FormerSpent)>,
}

#[derive(Deserialize)]
struct FormerSpent {
    units: u32,
    camera_samples: u64,
}

/// What can be read from its bytes of version 5, without the version byte.
pub(crate) trait FromV5: Sized {
    fn from_v5(bytes: &[u8]) -> Result<Self, CodecError>;
}

impl FromV5 for Record {
    fn from_v5(bytes: &[u8]) -> Result<Self, CodecError> {
        match bytes.split_first() {
            Some((&JOB_VARIANT, rest)) => accepted::<Spec>(rest),
            Some((&ROUND_VARIANT, rest)) => {
                let Round { job, frame, round, going } = decode(rest)?;
                Ok(Self::RoundMeasured { job, frame, round, going, spent_millis: 0 })
            }
            _ => Self::from_v6(bytes),
        }
    }
}

impl FromV5 for SnapshotPart {
    fn from_v5(bytes: &[u8]) -> Result<Self, CodecError> {
        match bytes.split_first() {
            Some((&JOB_VARIANT, rest)) => job_part::<Spec>(rest),
            Some((&COURSE_VARIANT, rest)) => {
                let FormerCourse { job, position, round, ended } = decode(rest)?;
                let written = WrittenRounds { round, ended, opened: round, spent_millis: 0 };
                Ok(Self(Part::FrameRounds { job, position, written }))
            }
            Some((&SPENT_VARIANT, rest)) => {
                let AllSpent { job, frames } = decode(rest)?;
                let spent = |(position, FormerSpent { units, camera_samples })| {
                    (position, Spent { units, camera_samples, samples: 0 })
                };
                Ok(Self(Part::Spent { job, frames: frames.into_iter().map(spent).collect() }))
            }
            _ => Self::from_v6(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal_v4::tests::{accepted_of, assert_holds};
    use tessera_protocol::encode;
    use tessera_protocol::job::{BladesSpec, JobKind};

    /// Kind and pool of the job that version 1 wrote, behind which a render job of version 5 said
    /// more.
    const WISHES: [u8; 8] = [1, 5, b'n', b'i', b'g', b'h', b't', 1];

    /// The job of version 1 as version 5 wrote it, with the variant "night", denoised, to a noise
    /// of 0.5; and what it asks for.
    fn accepted() -> (Record, Vec<u8>) {
        let noise = encode(&Some(0.5f64)).unwrap();
        let behind = [&WISHES[..], &noise, &[77, 0]].concat();
        let (record, bytes) = accepted_of(5, &behind);
        let Record::JobAccepted { job, mut spec, owner, at } = record else { panic!("a job") };
        let JobKind::Render(render) = &mut spec.kind else { panic!("a render job") };
        (render.variant, render.denoise, render.noise) = (Some("night".into()), true, Some(0.5));
        spec.device_bytes = 77;
        (Record::JobAccepted { job, spec, owner, at }, bytes)
    }

    #[test]
    fn a_job_of_version_5_is_read_and_written_as_it_was() {
        let (record, bytes) = accepted();
        assert_holds(&bytes, &record);
    }

    #[test]
    fn a_lens_of_version_5_is_round() {
        let (aperture, focus) = (ApertureSpec::FStop(2.8), FocusSpec::Point([1.0, 2.0, 3.0]));
        let bytes = encode(&(aperture, focus)).unwrap();
        let lens: LensSpec = decode::<FormerLens>(&bytes).unwrap().into();
        assert_eq!(lens, LensSpec { aperture, focus, blades: None });
    }

    #[test]
    fn what_version_6_adds_is_written_and_read() {
        let (record, _) = accepted();
        let Record::JobAccepted { job, mut spec, owner, at } = record else { panic!("a job") };
        let JobKind::Render(render) = &mut spec.kind else { panic!("a render job") };
        let blades = Some(BladesSpec { count: 6, rotation_degrees: 15.0 });
        let (aperture, focus) = (ApertureSpec::Radius(0.1), FocusSpec::Distance(2.0));
        (render.lens, render.time_secs) = (Some(LensSpec { aperture, focus, blades }), Some(90));
        let record = Record::JobAccepted { job, spec, owner, at };
        assert_eq!(Record::from_bytes(&record.to_bytes().unwrap()).unwrap(), record);
    }

    #[test]
    fn rounds_of_version_5_are_read_and_had_no_time() {
        let job = JobId(uuid::Uuid::from_bytes([0x11; 16]));
        let id = [&[16][..], &[0x11; 16]].concat();
        // Tiles 0 and 2 go on after round 3 of frame 7.
        let record = Record::from_bytes(&[&[5, 21][..], &id, &[7, 3, 1, 5]].concat()).unwrap();
        let going = [0, 2].into_iter().collect();
        let frame = FrameNumber(7);
        let expected = Record::RoundMeasured { job, frame, round: 3, going, spent_millis: 0 };
        assert_eq!(record, expected);
        assert_eq!(Record::from_bytes(&expected.to_bytes().unwrap()).unwrap(), expected);

        let part = |variant: u8, rest: &[u8]| {
            SnapshotPart::from_bytes(&[&[5, variant][..], &id, rest].concat()).unwrap().0
        };
        let written = WrittenRounds { round: 3, ended: vec![0, 2, 0], opened: 3, spent_millis: 0 };
        assert_eq!(part(10, &[4, 3, 3, 0, 2, 0]), Part::FrameRounds { job, position: 4, written });
        let spent = Spent { units: 9, camera_samples: 200, samples: 0 };
        assert_eq!(part(11, &[1, 4, 9, 200]), Part::Spent { job, frames: vec![(4, spent)] });
    }
}
