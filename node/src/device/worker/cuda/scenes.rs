//! Scenes on the device. They are uploaded once and kept while there is room; the least recently
//! used one is removed first. Requests none.

use super::driver::{Call, Event, Memory, Pinned, Stream, is_out_of_memory};
use crate::device::worker::message::CallError;
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
    /// Event of the last byte's arrival; None during the upload.
    ready: Option<Event>,
    last_used: u64,
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

    /// Makes room for a new scene. The scenes in `in_use` are not removed.
    pub(super) fn begin(
        &mut self,
        id: u64,
        bytes: u64,
        view: &[u8],
        in_use: &[u64],
    ) -> Result<(), SceneFault> {
        let view = DeviceScene::from_bytes(view)
            .ok_or(SceneFault::Malformed("its view has a false length"))?;
        self.scenes.remove(&id);
        while self.bytes().saturating_add(bytes) > self.budget && self.give_up_one(in_use) {}
        let memory = loop {
            match Memory::allocate(bytes.max(1)) {
                Ok(memory) => break memory,
                Err(error) if is_out_of_memory(&error) && self.give_up_one(in_use) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let view = view.at(memory.address);
        self.clock += 1;
        self.scenes.insert(id, Scene { memory, view, ready: None, last_used: self.clock });
        Ok(())
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
