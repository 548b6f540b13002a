//! Which jobs of a plan wait for which, and for what of them; which read frames of others, and
//! which are not to begin before a time.

use crate::coordinator::CLOCK_START;
use crate::world::plan::{JobPlan, Plan};
use crate::world::random::{Random, mix};
use tessera_protocol::compute::{ComputeSpec, FromJob, InputArray};
use tessera_protocol::frames::FrameSet;
use tessera_protocol::ids::{BlobHash, FrameNumber};
use tessera_protocol::job::{After, JobKind, RawJobSpec, Until};

/// Latest frames of a job that another one may have as well.
const FRAMES_MAX: usize = 3;
/// Name of the input that is a frame of another job.
const PICTURE: &str = "picture";

impl Plan {
    /// Lets some jobs wait for others that are submitted before them. It has a chance of its own:
    /// everything else is as it would be without.
    pub(crate) fn add_waits(&mut self) {
        let mut random = Random::new(mix(mix(self.heal_at) ^ self.nodes.len() as u64 ^ 0xaf7e));
        if !random.permille(400) {
            return;
        }
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        order.sort_by_key(|index| (self.jobs[*index].submit_at, *index));
        for place in 1..order.len() {
            if random.permille(600) {
                let before = order[random.index(place)];
                self.let_wait(order[place], before, &mut random);
            }
            if random.permille(150) {
                let before = order[random.index(place)];
                self.let_wait(order[place], before, &mut random);
            }
        }
    }

    /// Lets some jobs begin only some time after they are submitted. It has a chance of its own.
    pub(crate) fn add_starts(&mut self) {
        let mut random = Random::new(mix(mix(self.heal_at) ^ self.nodes.len() as u64 ^ 0x57a7));
        if !random.permille(400) {
            return;
        }
        for job in &mut self.jobs {
            let later = random.between(1_000, 25_000);
            if random.permille(400) {
                job.spec.not_before = Some((CLOCK_START + job.submit_at + later) / 1000);
            }
        }
    }

    fn let_wait(&mut self, index: usize, before: usize, random: &mut Random) {
        let (on, until) = (self.jobs[before].clone(), Until::ALL[random.index(3)]);
        let job = &mut self.jobs[index];
        if job.spec.after.iter().any(|after| after.job == on.id) {
            return;
        }
        if until == Until::Frames && !take_frames(job, &on) {
            return;
        }
        if until == Until::Success && random.permille(700) {
            read_frames(job, &on);
        }
        job.spec.after.push(After { job: on.id, until });
        let spec = RawJobSpec::from(job.spec.clone());
        job.spec = spec.check().expect("a plan makes sound specs");
    }
}

/// Lets a kernel read the frames of a job that it waits for, if it can.
fn read_frames(job: &mut JobPlan, on: &JobPlan) {
    let JobKind::Compute(compute) = &mut job.spec.kind else { return };
    let Ok(array) = on.spec.kind.frame_array(None) else { return };
    let takes_frames = job.spec.after.iter().any(|after| after.until == Until::Frames);
    if takes_frames || reads_picture(compute) || !compute.runs_users_kernel() {
        return;
    }
    let numbers: Vec<FrameNumber> = on.spec.kind.frames().iter().collect();
    // All of this job's frames read the only one, or each the one of its number.
    if numbers.len() > 1 {
        let some = numbers.iter().rev().take(FRAMES_MAX).copied();
        compute.frames = FrameSet::from_frames(some).expect("a few frames are a set");
    }
    let picture = InputArray {
        name: PICTURE.to_owned(),
        hash: BlobHash::default(),
        length: 0,
        element: array.element,
        shape: array.shape,
        from: Some(FromJob { job: on.id, file: array.file }),
    };
    // They are in the order of their names.
    compute.inputs.insert(0, picture);
}

fn reads_picture(compute: &ComputeSpec) -> bool {
    compute.inputs.iter().any(|input| input.name == PICTURE)
}

/// Gives a job frames of another one, if it waits for frames of no other.
fn take_frames(job: &mut JobPlan, on: &JobPlan) -> bool {
    let reads = job.spec.kind.compute().is_some_and(reads_picture);
    if reads || job.spec.after.iter().any(|after| after.until == Until::Frames) {
        return false;
    }
    let numbers: Vec<FrameNumber> = on.spec.kind.frames().iter().collect();
    let some = numbers.iter().rev().take(FRAMES_MAX).copied();
    let frames = FrameSet::from_frames(some).expect("a few frames are a set");
    match &mut job.spec.kind {
        JobKind::Render(render) => render.frames = frames,
        JobKind::Compute(compute) => compute.frames = frames,
    }
    true
}
