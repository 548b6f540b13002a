//! Which jobs of a plan wait for which, and for what of them.

use crate::world::plan::{JobPlan, Plan};
use crate::world::random::{Random, mix};
use tessera_protocol::frames::FrameSet;
use tessera_protocol::ids::FrameNumber;
use tessera_protocol::job::{After, JobKind, RawJobSpec, Until};

/// Latest frames of a job that another one may have as well.
const FRAMES_MAX: usize = 3;

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

    fn let_wait(&mut self, index: usize, before: usize, random: &mut Random) {
        let (on, until) = (self.jobs[before].clone(), Until::ALL[random.index(3)]);
        let job = &mut self.jobs[index];
        if job.spec.after.iter().any(|after| after.job == on.id) {
            return;
        }
        if until == Until::Frames && !take_frames(job, &on) {
            return;
        }
        job.spec.after.push(After { job: on.id, until });
        let spec = RawJobSpec::from(job.spec.clone());
        job.spec = spec.check().expect("a plan makes sound specs");
    }
}

/// Gives a job frames of another one, if it waits for frames of no other.
fn take_frames(job: &mut JobPlan, on: &JobPlan) -> bool {
    if job.spec.after.iter().any(|after| after.until == Until::Frames) {
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
