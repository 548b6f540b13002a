//! Finished frames of a job. In memory, each is its position and a place on the shelf; what its
//! files are is read from there when somebody asks.

use crate::state::shelf::{Shelf, Slot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tessera_protocol::codec;
use tessera_protocol::status::FrameFile;

/// Facts about a finished frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DoneFrame {
    pub(crate) files: Vec<FrameFile>,
    /// Cost of a frame that was sampled in rounds.
    pub(crate) spent: Option<Spent>,
}

/// Cost of a finished frame, if it differs between frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spent {
    pub(crate) units: u32,
    pub(crate) camera_samples: u64,
    /// Largest number of samples per pixel.
    pub(crate) samples: u32,
}

/// Sums over finished frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DoneSums {
    /// Units and camera samples of frames whose cost differs.
    pub(crate) units: u64,
    pub(crate) camera_samples: u64,
    /// Number of the frames whose cost does not differ.
    pub(crate) alike: u32,
    /// Bytes of all files.
    pub(crate) bytes: u64,
}

impl DoneSums {
    fn add(&mut self, done: &DoneFrame) {
        match done.spent {
            Some(spent) => {
                self.units += u64::from(spent.units);
                self.camera_samples += spent.camera_samples;
            }
            None => self.alike += 1,
        }
        self.bytes += done.files.iter().map(|file| file.length).sum::<u64>();
    }
}

/// The finished frames of one job.
#[derive(Debug)]
pub(crate) struct DoneFrames {
    shelf: Arc<dyn Shelf>,
    slots: BTreeMap<u32, Slot>,
    sums: DoneSums,
}

impl DoneFrames {
    pub(crate) fn new(shelf: Arc<dyn Shelf>) -> Self {
        Self { shelf, slots: BTreeMap::new(), sums: DoneSums::default() }
    }

    pub(crate) fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn sums(&self) -> DoneSums {
        self.sums
    }

    pub(crate) fn contains(&self, position: u32) -> bool {
        self.slots.contains_key(&position)
    }

    /// Adds a frame; false if it is there already.
    pub(crate) fn insert(&mut self, position: u32, done: &DoneFrame) -> Result<(), String> {
        if self.contains(position) {
            return Err("a frame is finished twice".to_owned());
        }
        let bytes = codec::encode(done).map_err(|error| error.to_string())?;
        self.slots.insert(position, self.shelf.put(&bytes));
        self.sums.add(done);
        Ok(())
    }

    /// Reads a frame. A shelf that has lost it gives none, and says so ([`Shelf::is_lost`]).
    pub(crate) fn read(&self, position: u32) -> Option<DoneFrame> {
        let bytes = self.shelf.get(*self.slots.get(&position)?)?;
        codec::decode(&bytes).ok()
    }

    /// Returns the positions of all frames.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.keys().copied()
    }

    /// Reads all frames.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, DoneFrame)> + '_ {
        self.positions().filter_map(|position| Some((position, self.read(position)?)))
    }

    /// Reads all frames, and sums them up anew.
    pub(crate) fn summed(&self) -> DoneSums {
        let mut sums = DoneSums::default();
        self.iter().for_each(|(_, done)| sums.add(&done));
        sums
    }
}

impl Drop for DoneFrames {
    fn drop(&mut self) {
        self.slots.values().for_each(|slot| self.shelf.free(*slot));
    }
}

// The places are not compared: two shelves may have the same bytes in different places.
impl PartialEq for DoneFrames {
    fn eq(&self, other: &Self) -> bool {
        self.sums == other.sums
            && self.slots.len() == other.slots.len()
            && self.iter().eq(other.iter())
    }
}

/// One finished frame, not read yet.
#[derive(Clone, Copy)]
pub(crate) struct Done<'a> {
    pub(crate) frames: &'a DoneFrames,
    pub(crate) position: u32,
}

impl Done<'_> {
    /// Reads what the frame is.
    pub(crate) fn read(&self) -> Option<DoneFrame> {
        self.frames.read(self.position)
    }
}

impl fmt::Debug for Done<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Done({})", self.position)
    }
}
