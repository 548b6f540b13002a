//! Scenes on the device. They are uploaded once and kept while there is room; the least recently
//! used one is removed first. Parts that another scene here has are copied on the device. Requests
//! none.

use super::driver::{Call, Event, Memory, Pinned, Stream, is_out_of_memory};
use crate::device::worker::message::{CallError, ScenePart};
use std::collections::BTreeMap;
use tessera_kernels::cuda::DeviceScene;

/// Size of one piece of an upload in bytes. Two pieces are in progress at a time.
pub(crate) const PIECE_BYTES: usize = 4 << 20;

/// Page-locked pieces, used in turn.
struct Piece {
    memory: Pinned,
    copied: Event,
}

/// One scene in device memory.
#[derive(Debug)]
struct Scene {
    memory: Memory,
    view: DeviceScene,
    parts: Vec<ScenePart>,
    /// Event of the last byte's arrival; None during the upload.
    ready: Option<Event>,
    last_used: u64,
}

impl Scene {
    fn has_one_of(&self, parts: &[ScenePart]) -> bool {
        let has = |part: &ScenePart| self.parts.iter().any(|other| other.is_same(part));
        parts.iter().any(|part| part.bytes > 0 && has(part))
    }
}

impl ScenePart {
    fn is_same(&self, other: &Self) -> bool {
        (self.name, self.bytes) == (other.name, other.bytes)
    }
}

/// Place of a scene on the device, with the event to wait for.
pub(super) struct Resident<'a> {
    pub(super) view: DeviceScene,
    pub(super) bytes: u64,
    pub(super) ready: &'a Event,
}

/// Why a scene is not on the device.
#[derive(Debug)]
pub(super) enum SceneFault {
    /// The scene does not fit.
    OutOfMemory,
    /// The received data is invalid.
    Malformed(&'static str),
    /// The driver has failed.
    Driver(CallError),
}

impl From<CallError> for SceneFault {
    fn from(error: CallError) -> Self {
        if is_out_of_memory(&error) { Self::OutOfMemory } else { Self::Driver(error) }
    }
}

/// All scenes of a device.
pub(super) struct Scenes {
    stream: Stream,
    pieces: [Piece; 2],
    next_piece: usize,
    scenes: BTreeMap<u64, Scene>,
    /// Limit for the bytes of all scenes together. A single scene in use may be larger.
    budget: u64,
    clock: u64,
}

impl Scenes {
    pub(super) fn new(budget: u64) -> Call<Self> {
        let piece = || Ok(Piece { memory: Pinned::allocate(PIECE_BYTES)?, copied: Event::new()? });
        let pieces = [piece()?, piece()?];
        Ok(Self {
            stream: Stream::new()?,
            pieces,
            next_piece: 0,
            scenes: BTreeMap::new(),
            budget,
            clock: 0,
        })
    }

    /// Returns the scene, if all of it has been sent to the device.
    pub(super) fn find(&mut self, id: u64) -> Option<Resident<'_>> {
        self.clock += 1;
        let scene = self.scenes.get_mut(&id)?;
        scene.last_used = self.clock;
        scene.ready.as_ref().map(|ready| Resident {
            view: scene.view,
            bytes: scene.memory.bytes,
            ready,
        })
    }

    /// Makes room for a new scene, copies the parts that another scene has, and returns the
    /// positions of the others. The scenes in `in_use` are not removed, and those with such parts
    /// only where it does not fit beside them.
    pub(super) fn begin(
        &mut self,
        id: u64,
        bytes: u64,
        view: &[u8],
        (parts, in_use): (&[ScenePart], &[u64]),
    ) -> Result<Vec<u32>, SceneFault> {
        let view = DeviceScene::from_bytes(view)
            .ok_or(SceneFault::Malformed("its view has a false length"))?;
        let fits =
            |part: &ScenePart| part.offset.checked_add(part.bytes).is_some_and(|end| end <= bytes);
        if !parts.iter().all(fits) {
            return Err(SceneFault::Malformed("a part lies outside of it"));
        }
        self.scenes.remove(&id);
        let memory = self.make_room(bytes, parts, in_use)?;
        let mut lacking = Vec::new();
        for (position, part) in (0..).zip(parts).filter(|(_, part)| part.bytes > 0) {
            match self.find_part(part) {
                // SAFETY: both ranges are in the memory of their scenes, which are different ones.
                // This stream has written the source before, and the driver waits for the copy
                // before it frees that memory.
                Some(from) => {
                    unsafe { self.stream.copy(memory.address + part.offset, from, part.bytes) }?
                }
                None => lacking.push(position),
            }
        }
        let view = view.at(memory.address);
        self.clock += 1;
        let (parts, last_used) = (parts.to_vec(), self.clock);
        self.scenes.insert(id, Scene { memory, view, parts, ready: None, last_used });
        Ok(lacking)
    }

    /// Allocates memory for a scene with these parts. Scenes that have none of them go first.
    fn make_room(&mut self, bytes: u64, parts: &[ScenePart], in_use: &[u64]) -> Call<Memory> {
        let sources = self.scenes.iter().filter(|(_, scene)| scene.has_one_of(parts));
        let kept: Vec<u64> = in_use.iter().chain(sources.map(|(id, _)| id)).copied().collect();
        while self.bytes().saturating_add(bytes) > self.budget
            && (self.give_up_one(&kept) || self.give_up_one(in_use))
        {}
        loop {
            match Memory::allocate(bytes.max(1)) {
                Err(error)
                    if is_out_of_memory(&error)
                        && (self.give_up_one(&kept) || self.give_up_one(in_use)) => {}
                other => return other,
            }
        }
    }

    /// Returns the address of a part in a scene that is complete.
    fn find_part(&self, part: &ScenePart) -> Option<u64> {
        let complete = self.scenes.values().filter(|scene| scene.ready.is_some());
        let mut found = complete.filter_map(|scene| {
            let other = scene.parts.iter().find(|other| other.is_same(part))?;
            Some(scene.memory.address + other.offset)
        });
        found.next()
    }

    /// Writes the next bytes of a new scene. Bytes of an unwanted scene are ignored.
    pub(super) fn fill(
        &mut self,
        id: u64,
        offset: u64,
        bytes: &[u8],
        last: bool,
    ) -> Result<(), SceneFault> {
        let Some(scene) = self.scenes.get_mut(&id).filter(|scene| scene.ready.is_none()) else {
            return Ok(());
        };
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= scene.memory.bytes);
        if end.is_none() || bytes.len() > PIECE_BYTES {
            return Err(SceneFault::Malformed("it is longer than announced"));
        }
        if !bytes.is_empty() {
            self.next_piece = (self.next_piece + 1) % self.pieces.len();
            let piece = &mut self.pieces[self.next_piece];
            piece.copied.wait()?;
            piece.memory.bytes()[..bytes.len()].copy_from_slice(bytes);
            // SAFETY: the range is in the scene's memory, and the code waits for the piece before
            // it touches it again.
            unsafe {
                self.stream.upload(scene.memory.address + offset, &mut piece.memory, bytes.len())
            }?;
            self.stream.record(&piece.copied)?;
        }
        if last {
            let ready = Event::new()?;
            self.stream.record(&ready)?;
            scene.ready = Some(ready);
        }
        Ok(())
    }

    /// Forgets a scene that is not complete.
    pub(super) fn give_up(&mut self, id: u64) {
        self.scenes.remove(&id);
    }

    /// Removes the least recently used scene. Returns false if all of them are in use.
    pub(super) fn give_up_one(&mut self, in_use: &[u64]) -> bool {
        let free = self.scenes.iter().filter(|(id, _)| !in_use.contains(id));
        let oldest = free.min_by_key(|(_, scene)| scene.last_used).map(|(id, _)| *id);
        oldest.is_some_and(|id| self.scenes.remove(&id).is_some())
    }

    /// Returns the size of all scenes in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.scenes.values().map(|scene| scene.memory.bytes).sum()
    }
}
