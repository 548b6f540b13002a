//! Huge pages for files of arrays that frames share. Owns when it pays to ask for them.

use std::sync::{Arc, Weak};
use tessera_layout::Region;

/// `MADV_COLLAPSE`, which not every C library names. Linux has it since 6.1.
const COLLAPSE: i32 = 25;
/// Bytes of a file whose pages are joined in one call: a twentieth of a second.
const JOINED_AT_ONCE: usize = 32 << 20;
/// Bytes that are joined for each sample. It costs a sample some 16 ns, a fiftieth of a cheap one,
/// and saves at most a tenth of it.
const BYTES_FOR_SAMPLE: u64 = 8;

/// A file that frames may have.
type SharedFile = Weak<dyn AsRef<[u8]> + Send + Sync>;

/// Files whose pages are small, and the samples that frames with them are to have.
#[derive(Debug, Default)]
pub(super) struct SmallPages(Vec<(SharedFile, u64)>);

impl SmallPages {
    /// Adds a file.
    pub(super) fn add(&mut self, file: &Region) {
        self.0.push((Arc::downgrade(file), 0));
    }

    /// Notes a frame with so many samples. Files that are worth it by now get huge pages, beside
    /// everything else; those that nobody has any more are forgotten.
    pub(super) fn note_frame(&mut self, samples: u64) {
        self.0.retain_mut(|(file, counted)| {
            *counted = counted.saturating_add(samples);
            let Some(file) = file.upgrade() else { return false };
            let is_worth_it = is_worth_it((*file).as_ref().len() as u64, *counted);
            if is_worth_it {
                join_pages(file);
            }
            !is_worth_it
        });
    }
}

fn is_worth_it(bytes: u64, samples: u64) -> bool {
    samples.saturating_mul(BYTES_FOR_SAMPLE) >= bytes
}

/// Has the kernel join the pages of a mapped file into huge ones: most systems make none for files
/// in memory by themselves, and paths look up vertices and texels all over a scene. A hint, on
/// which nothing depends.
fn join_pages(region: Region) {
    let join = move || {
        for piece in (*region).as_ref().chunks(JOINED_AT_ONCE) {
            if Arc::strong_count(&region) == 1 {
                return;
            }
            // SAFETY: the pages are mapped as long as there is the region, and this changes nothing
            // of what they hold.
            unsafe { libc::madvise(piece.as_ptr().cast_mut().cast(), piece.len(), COLLAPSE) };
        }
    };
    // Without a thread for it, pages stay small.
    let _ = std::thread::Builder::new().name("joins pages".into()).spawn(join);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_joined_when_frames_have_enough_samples() {
        let [small, large]: [Region; 2] = [Arc::new(vec![0u8; 800]), Arc::new(vec![0u8; 8000])];
        let mut pages = SmallPages::default();
        pages.add(&small);
        pages.note_frame(99);
        pages.add(&large);
        assert_eq!(pages.0.len(), 2);
        // The smaller one has them with its second frame, the larger one counts from its first.
        pages.note_frame(1);
        assert_eq!(pages.0.len(), 1);
        pages.note_frame(998);
        assert_eq!(pages.0.len(), 1);
        pages.note_frame(u64::MAX);
        assert!(pages.0.is_empty());
    }

    #[test]
    fn files_that_nobody_has_are_forgotten() {
        let file: Region = Arc::new(vec![0u8; 800]);
        let mut pages = SmallPages::default();
        pages.add(&file);
        drop(file);
        pages.note_frame(0);
        assert!(pages.0.is_empty());
    }
}
