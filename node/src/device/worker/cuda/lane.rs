//! A lane holds the resources of one plan in progress: its workspace on the device, its results in
//! page-locked memory, and its events.

use super::driver::{Call, Event, Memory, Pinned, Stream};
use crate::device::worker::message::CallError;
use tessera_kernels::cuda::{DeviceScene, Plan, Step};

/// Number of parts of a plan whose ends are reported.
const PARTS: usize = 8;

/// The resources of one plan.
pub(crate) struct Lane {
    workspace: Option<Memory>,
    results: Option<Pinned>,
    start: Event,
    parts: [Event; PARTS],
    done: Event,
    copied: Event,
    /// Number of parts whose ends are recorded.
    recorded: usize,
    plan: Option<Plan>,
}

/// The streams that plans share. They compute one after another, and results are copied at the same
/// time.
#[derive(Clone, Copy)]
pub(super) struct Streams {
    pub(super) compute: Stream,
    pub(super) download: Stream,
}

impl Lane {
    pub(super) fn new() -> Call<Self> {
        let parts: Call<Vec<Event>> = (0..PARTS).map(|_| Event::new()).collect();
        let parts = parts?.try_into().map_err(|_| CallError {
            call: "events".into(),
            code: 0,
            name: "a plan has a fixed number of parts".into(),
        })?;
        let (start, done, copied) = (Event::new()?, Event::new()?, Event::new()?);
        Ok(Self {
            workspace: None,
            results: None,
            start,
            parts,
            done,
            copied,
            recorded: 0,
            plan: None,
        })
    }

    /// Makes the lane large enough for a plan. Buffers that are large enough are kept. The device
    /// must not use the lane.
    pub(super) fn fit(&mut self, plan: &Plan) -> Call<()> {
        let bytes = plan.workspace_bytes();
        if self.workspace.as_ref().is_none_or(|memory| memory.bytes < bytes) {
            // Free the old workspace before allocating the new one, since both may not fit.
            self.workspace = None;
            self.workspace = Some(Memory::allocate(bytes)?);
        }
        let results = (plan.film_bytes() + plan.counts_bytes()) as usize;
        if self.results.as_ref().is_none_or(|memory| memory.len() < results) {
            self.results = None;
            self.results = Some(Pinned::allocate(results)?);
        }
        self.plan = Some(plan.clone());
        Ok(())
    }

    /// Returns the device memory of the lane in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.workspace.as_ref().map_or(0, |memory| memory.bytes)
    }

    /// Frees the device memory.
    pub(super) fn shrink(&mut self) -> bool {
        self.workspace.take().is_some()
    }

    /// Enqueues everything that the plan which was fitted needs, up to the copy of its results.
    /// Stops early and returns false if `stop` says so.
    pub(super) fn tell(
        &mut self,
        scene: &DeviceScene,
        streams: Streams,
        mut launch: impl FnMut(Stream, &Step) -> Call<()>,
        stop: impl Fn() -> bool,
    ) -> Call<bool> {
        let (Some(plan), Some(workspace), Some(results)) =
            (&self.plan, &self.workspace, &mut self.results)
        else {
            return Ok(false);
        };
        let address = workspace.address;
        let steps = plan.steps(scene, address).count().max(1);
        self.recorded = 0;
        streams.compute.record(&self.start)?;
        let mut whole = true;
        for (index, step) in plan.steps(scene, address).enumerate() {
            if stop() {
                whole = false;
                break;
            }
            launch(streams.compute, &step)?;
            let part = (index + 1) * PARTS / steps;
            if part > self.recorded && part < PARTS {
                streams.compute.record(&self.parts[self.recorded])?;
                self.recorded += 1;
            }
        }
        streams.compute.record(&self.done)?;
        streams.download.wait_for(&self.done)?;
        if whole {
            let counts = address + plan.counts_offset();
            let (films, after) = (plan.film_bytes() as usize, plan.counts_bytes() as usize);
            // SAFETY: both ranges are in the workspace, which has the plan's size; the results are
            // not touched before `copied`.
            unsafe {
                streams.download.download(address, results, 0, films)?;
                streams.download.download(counts, results, films, after)?;
            }
        }
        streams.download.record(&self.copied)?;
        Ok(whole)
    }

    /// Waits for the plan's end, and reports the progress after each part, of 1000. Returns the
    /// device time of each unit in nanoseconds.
    pub(super) fn wait(&mut self, mut progress: impl FnMut(u16)) -> Call<Vec<u64>> {
        for (index, part) in self.parts[..self.recorded].iter().enumerate() {
            part.wait()?;
            progress(((index + 1) * 1000 / PARTS) as u16);
        }
        self.done.wait()?;
        let nanos = self.done.nanos_since(&self.start)?;
        self.copied.wait()?;
        Ok(self.plan.as_ref().map(|plan| plan.times(nanos)).unwrap_or_default())
    }

    /// Gives the bytes of the sums and the ray counts of each unit, after the plan's end.
    pub(super) fn results(&mut self, mut give: impl FnMut(usize, &[u8], [u64; 4])) {
        let (Some(plan), Some(results)) = (&self.plan, &mut self.results) else { return };
        let (films, rest) = results.bytes().split_at(plan.film_bytes() as usize);
        let counts = plan.counts(&rest[..plan.counts_bytes() as usize]);
        for (index, (film, counts)) in plan.films().zip(counts).enumerate() {
            let rays = [counts.closest, counts.any, counts.clamped, counts.non_finite];
            give(index, &films[film], rays);
        }
    }
}
