//! A lane holds the resources of one unit in progress: its workspace on the device, its results in
//! page-locked memory, and its events.

use super::driver::{Call, Event, Memory, Pinned, Stream};
use crate::device::worker::message::CallError;
use tessera_kernels::cuda::{DeviceScene, Plan, Step};
use tessera_kernels::host::RayCounts;

/// Number of parts of a unit whose ends are reported.
const PARTS: usize = 8;
/// Size of the counts in bytes.
const COUNTS_BYTES: usize = size_of::<RayCounts>();

/// The resources of one unit.
pub(crate) struct Lane {
    workspace: Option<Memory>,
    results: Option<Pinned>,
    start: Event,
    parts: [Event; PARTS],
    done: Event,
    copied: Event,
    /// Number of parts whose ends are recorded.
    recorded: usize,
    film_bytes: usize,
}

/// The streams that units share. Units compute one after another, and results are copied at the
/// same time.
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
            name: "a unit has a fixed number of parts".into(),
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
            film_bytes: 0,
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
        self.film_bytes = plan.film_bytes() as usize;
        let results = self.film_bytes + COUNTS_BYTES;
        if self.results.as_ref().is_none_or(|memory| memory.len() < results) {
            self.results = None;
            self.results = Some(Pinned::allocate(results)?);
        }
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

    /// Enqueues everything that the unit needs, up to the copy of its results. Stops early and
    /// returns false if `stop` says so.
    pub(super) fn tell(
        &mut self,
        plan: &Plan,
        scene: &DeviceScene,
        streams: Streams,
        mut launch: impl FnMut(Stream, &Step) -> Call<()>,
        stop: impl Fn() -> bool,
    ) -> Call<bool> {
        let (Some(workspace), Some(results)) = (&self.workspace, &mut self.results) else {
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
            // SAFETY: both ranges are in the workspace, which has the plan's size; the results are
            // not touched before `copied`.
            unsafe {
                streams.download.download(address, results, 0, self.film_bytes)?;
                streams.download.download(counts, results, self.film_bytes, COUNTS_BYTES)?;
            }
        }
        streams.download.record(&self.copied)?;
        Ok(whole)
    }

    /// Waits for the unit's end, and reports the progress after each part, of 1000. Returns the
    /// unit's device time in nanoseconds.
    pub(super) fn wait(&mut self, mut progress: impl FnMut(u16)) -> Call<u64> {
        for (index, part) in self.parts[..self.recorded].iter().enumerate() {
            part.wait()?;
            progress(((index + 1) * 1000 / PARTS) as u16);
        }
        self.done.wait()?;
        let nanos = self.done.nanos_since(&self.start)?;
        self.copied.wait()?;
        Ok(nanos)
    }

    /// Returns the bytes of the sums, and the ray counts, after the unit's end.
    pub(super) fn results(&mut self) -> (&[u8], [u64; 4]) {
        let Some(results) = &mut self.results else { return (&[], [0; 4]) };
        let (film, rest) = results.bytes().split_at(self.film_bytes);
        let counts = RayCounts::from_bytes(&std::array::from_fn(|index| rest[index]));
        (film, [counts.closest, counts.any, counts.clamped, counts.non_finite])
    }
}
