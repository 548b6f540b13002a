//! The shelf of finished frames: a file without a name that holds what their files are, so that
//! they take no memory. It is filled from the journal at every start, and is gone with the process.

use crate::sync::lock;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tessera_core::{Shelf, Slot};

/// Places are multiples of this many bytes, so that 32 bits name 64 GiB.
const GRAIN: usize = 16;
/// Bytes that are collected before they are written.
const TAIL_BYTES: usize = 64 << 10;
/// Bytes of the length before each piece.
const HEAD: usize = 4;

/// A shelf in a file.
#[derive(Debug)]
pub(crate) struct FileShelf {
    file: File,
    state: Mutex<State>,
    lost: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Grains that are in the file. After them comes the tail.
    written: u32,
    /// Pieces that are not in the file yet. It grows while the disk is full.
    tail: Vec<u8>,
    /// Places to be used again, by their number of grains.
    free: BTreeMap<u32, Vec<u32>>,
}

impl FileShelf {
    /// Creates an empty shelf in a file of a folder, which has no name there.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(folder)?;
        Ok(Self { file, state: Mutex::default(), lost: AtomicBool::new(false) })
    }

    fn lose(&self, error: &io::Error) {
        if !self.lost.swap(true, Ordering::SeqCst) {
            tracing::error!(%error, "what the files of finished frames are cannot be kept");
        }
    }

    fn read(&self, state: &State, grain: u32, bytes: &mut [u8]) -> io::Result<()> {
        let Some(ahead) = grain.checked_sub(state.written) else {
            return self.file.read_exact_at(bytes, u64::from(grain) * GRAIN as u64);
        };
        let from = ahead as usize * GRAIN;
        let kept = state.tail.get(from..from + bytes.len());
        bytes.copy_from_slice(kept.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    /// Returns the bytes of a piece without its length.
    fn piece(&self, state: &State, slot: Slot) -> io::Result<Vec<u8>> {
        let mut bytes = [0; GRAIN];
        self.read(state, slot.0, &mut bytes)?;
        let [a, b, c, d, ..] = bytes;
        let mut piece = vec![0; grains(u32::from_le_bytes([a, b, c, d]) as usize) as usize * GRAIN];
        self.read(state, slot.0, &mut piece)?;
        piece.truncate(HEAD + u32::from_le_bytes([a, b, c, d]) as usize);
        piece.drain(..HEAD);
        Ok(piece)
    }

    fn write_tail(&self, state: &mut State) -> io::Result<()> {
        self.file.write_all_at(&state.tail, u64::from(state.written) * GRAIN as u64)?;
        state.written += (state.tail.len() / GRAIN) as u32;
        state.tail.clear();
        Ok(())
    }
}

/// Grains of a piece of this many bytes and its length.
fn grains(bytes: usize) -> u32 {
    (HEAD + bytes).div_ceil(GRAIN) as u32
}

impl Shelf for FileShelf {
    fn put(&self, bytes: &[u8]) -> Slot {
        let mut state = lock(&self.state);
        let count = grains(bytes.len());
        let mut piece = (bytes.len() as u32).to_le_bytes().to_vec();
        piece.extend_from_slice(bytes);
        piece.resize(count as usize * GRAIN, 0);
        if let Some(slot) = state.free.get_mut(&count).and_then(Vec::pop) {
            let place = u64::from(slot) * GRAIN as u64;
            let written = match slot.checked_sub(state.written) {
                None => self.file.write_all_at(&piece, place),
                Some(ahead) => {
                    let from = ahead as usize * GRAIN;
                    state.tail[from..from + piece.len()].copy_from_slice(&piece);
                    Ok(())
                }
            };
            match written {
                Ok(()) => return Slot(slot),
                Err(_) => state.free.entry(count).or_default().push(slot),
            }
        }
        let slot = state.written.saturating_add((state.tail.len() / GRAIN) as u32);
        if slot.checked_add(count).is_none() {
            self.lose(&io::Error::other("the shelf is full"));
        }
        state.tail.extend_from_slice(&piece);
        if state.tail.len() >= TAIL_BYTES
            && let Err(error) = self.write_tail(&mut state)
        {
            // The tail stays, and is tried again with the next piece.
            tracing::debug!(%error, "the shelf of finished frames is kept in memory");
        }
        Slot(slot)
    }

    fn get(&self, slot: Slot) -> Option<Vec<u8>> {
        let state = lock(&self.state);
        self.piece(&state, slot).inspect_err(|error| self.lose(error)).ok()
    }

    fn free(&self, slot: Slot) {
        let mut state = lock(&self.state);
        if let Ok(piece) = self.piece(&state, slot) {
            state.free.entry(grains(piece.len())).or_default().push(slot.0);
        }
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_as_they_were_put() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = FileShelf::create(folder.path()).unwrap();
        let piece = |number: u32| vec![number as u8; (number % 200) as usize];
        let slots: Vec<Slot> = (0..5000).map(|number| shelf.put(&piece(number))).collect();
        for (number, slot) in (0..).zip(&slots) {
            assert_eq!(shelf.get(*slot), Some(piece(number)), "{number}");
        }
        assert!(shelf.file.metadata().unwrap().len() > 100_000, "most is in the file");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the file has no name");
    }

    #[test]
    fn places_are_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = FileShelf::create(folder.path()).unwrap();
        let slots: Vec<Slot> =
            (0..4000).map(|number: u32| shelf.put(&[number as u8; 90])).collect();
        slots.iter().skip(1).for_each(|slot| shelf.free(*slot));
        let again: Vec<Slot> = (0..3999).map(|_| shelf.put(&[7; 91])).collect();
        let highest = |slots: &[Slot]| slots.iter().map(|slot| slot.0).max();
        assert!(highest(&again) <= highest(&slots));
        assert_eq!(shelf.get(slots[0]), Some(vec![0; 90]));
        assert!(again.iter().all(|slot| shelf.get(*slot) == Some(vec![7; 91])));
        assert!(!shelf.is_lost());
    }

    #[test]
    fn a_shelf_that_cannot_read_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = FileShelf::create(folder.path()).unwrap();
        for _ in 0..1000 {
            shelf.put(&[1; 200]);
        }
        shelf.file.set_len(0).unwrap();
        assert_eq!((shelf.get(Slot(0)), shelf.is_lost()), (None, true));
    }
}
