//! What frames cost: nothing until something has happened to them, and little once they are done.

use crate::allocations::held;
use crate::small_farm::SmallFarm;
use std::sync::Arc;
use std::time::Duration;
use tessera_core::journal::Commit;
use tessera_core::{Caller, Core, Input, Moment, Record, Settings, Shelf, Slot, SnapshotPart};
use tessera_protocol::client::Response;
use tessera_protocol::ids::{BlobHash, Epoch, FrameNumber, JobId, NodeId, UnitIndex};
use tessera_protocol::job::{JobSpec, RenderSpec};
use tessera_protocol::selection::JobChange;
use tessera_protocol::status::{FrameFile, FrameState, JobState};
use tessera_support::inputs;
use uuid::Uuid;

/// As many frames as a job may have.
const MANY: &str = "1-262144";

/// A shelf outside of the memory that is counted, and without any.
#[derive(Debug)]
struct Elsewhere;

impl Shelf for Elsewhere {
    fn put(&self, _: &[u8]) -> Slot {
        Slot(7)
    }

    fn get(&self, _: Slot) -> Option<Vec<u8>> {
        None
    }

    fn free(&self, _: Slot) {}

    fn is_lost(&self) -> bool {
        false
    }
}

fn job(number: u128) -> JobId {
    JobId(Uuid::from_u128(number))
}

fn spec(frames: &str) -> JobSpec {
    let frames = frames.parse().expect("frames");
    inputs::job(RenderSpec { frames, ..inputs::render() })
}

fn cancel(job: JobId) -> Input {
    let caller = Caller { name: "root".to_owned(), id: 1, admin: true };
    inputs::change(inputs::cancel(), job, caller)
}

fn bytes_of(parts: &[SnapshotPart]) -> usize {
    parts.iter().map(|part| part.to_bytes().expect("bytes").len()).sum()
}

// promise: P8
#[test]
fn a_job_of_very_many_frames_takes_16_kib() {
    const JOBS: u128 = 100;
    let mut core = Core::new(Settings::default(), Moment(0));
    let before = held();
    for number in 1..=JOBS {
        core.handle(inputs::submit(job(number), spec(MANY)), Moment(number as u64));
        core.take_step();
    }
    let each = |held: isize| held / JOBS as isize;
    assert!(each(held() - before) < 16 << 10, "{} bytes a job", each(held() - before));
    assert_eq!(core.job_summary(job(1)).expect("a job").frames, 262_144);
    // A start asks for these of every open job.
    assert!(core.frames_in_work(job(1)).is_empty(), "nothing has begun");
    let parts = core.snapshot();
    assert!(bytes_of(&parts) < JOBS as usize * 4096, "{} bytes", bytes_of(&parts));

    let before = held();
    let restored = Core::replay(Settings::default(), parts, [], Moment(1000)).expect("a snapshot");
    assert!(each(held() - before) < 16 << 10, "{} bytes restored", each(held() - before));
    assert_eq!(core.durable_difference(&restored), None);

    let before = held();
    for number in 1..=JOBS {
        core.handle(cancel(job(number)), Moment(2000));
        core.take_step();
    }
    assert!(each(held() - before) < 4 << 10, "{} bytes an end", each(held() - before));
    assert_eq!(core.job_summary(job(1)).expect("a job").frames_failed, 262_144);
}

// promise: P8
#[test]
fn a_finished_frame_takes_48_bytes_of_memory() {
    let (node, all, unit) = (NodeId(Uuid::from_u128(1)), 60_000, UnitIndex(0));
    let frames = format!("1-{all}");
    let spec = Box::new(JobSpec { ..spec(&frames) });
    let begun = [
        Record::EpochsReserved { up_to: Epoch(1 << 40) },
        Record::JobAccepted {
            job: job(1),
            spec,
            owner: "ada".to_owned(),
            owner_id: 294,
            at: Moment(1),
        },
    ];
    let done = |frame: u32| {
        let hash = BlobHash([frame as u8; 32]);
        let commit = Commit { unit, epoch: Epoch(frame.into()), node, hash, check: false };
        let file = FrameFile { format: "exr".into(), hash, length: 9, pixels_sha256: [1; 32] };
        let (job, frame) = (job(1), FrameNumber(frame));
        [
            Record::UnitsCommitted { job, frame, commits: vec![commit] },
            Record::FrameFinished { job, frame, files: vec![file] },
        ]
    };
    let core_of = |frames: u32| {
        let records = begun.iter().cloned().chain((1..=frames).flat_map(done));
        let shelf = Arc::new(Elsewhere);
        Core::replay_onto(shelf, Settings::default(), [], records, Moment(2)).expect("a journal")
    };
    let before = held();
    let few = core_of(20_000);
    let (of_few, before) = (held() - before, held());
    let many = core_of(all);
    let each = (held() - before - of_few) / 40_000;
    assert!(each <= 48, "{each} bytes");
    let counts = [&few, &many].map(|core| core.job_summary(job(1)).expect("a job").frames_done);
    assert_eq!(counts, [20_000, all]);
}

#[test]
fn untouched_frames_fail_with_their_job_and_are_retried() {
    let settings = Settings { settle: Duration::ZERO, ..Settings::default().without_checks() };
    let mut farm = SmallFarm::new(settings, 1, 0);
    farm.job = job(2);
    farm.step(inputs::submit(farm.job, spec("5-8x3,1000")));
    let states = |farm: &SmallFarm| -> Vec<FrameState> {
        let rows = farm.core.frames(farm.job, 0).expect("frames");
        rows.into_iter().map(|row| row.state).collect()
    };
    let numbers: Vec<u32> =
        farm.core.frames(farm.job, 0).expect("rows").iter().map(|row| row.frame.0).collect();
    assert_eq!(numbers, [5, 8, 1000]);
    farm.step(cancel(farm.job));
    let failed = FrameState::Failed("cancelled by `root`".to_owned());
    assert_eq!(states(&farm), vec![failed; 3]);
    assert_eq!(farm.core.job_summary(farm.job).expect("a job").state, JobState::Cancelled);
    farm.restart(true);
    let caller = Caller { name: "root".to_owned(), id: 1, admin: true };
    assert_eq!(farm.change(JobChange::Retry, farm.job, caller), Response::Done);
    assert!(states(&farm).iter().all(|state| matches!(state, FrameState::Open { .. })));
    farm.restart(false);
    let units = farm.core.job_summary(farm.job).expect("a job").units;
    assert_eq!((farm.core.units_open(farm.job), units % 3), (units, 0));
}
