//! Gets what a finishing unit reads from the farm's store: ranges of objects, several at a time,
//! each result checked by its hash, into the same file that the coordinator would have filled.

use super::InputsError;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use tessera_finishing::{Inputs, pixels_of, write_part_head};
use tessera_protocol::stream::StoredPart;
use tessera_protocol::{Addresses, BlobHash};
use tessera_transport::blob::get_range;
use tokio::task::{AbortHandle, JoinHandle};

/// Ranges that are under way.
const AT_ONCE: usize = 8;
/// Bytes that are under way, or one range.
const BYTES_AT_ONCE: u64 = 64 << 20;
/// Longest range with several parts.
const RANGE_BYTES: u64 = 8 << 20;

/// What a unit reads, and where it is.
pub(crate) struct There {
    pub(crate) addresses: Addresses,
    pub(crate) parts: Vec<StoredPart>,
    /// Whether only the pixels of each result are read.
    pub(crate) is_bands: bool,
}

/// Parts that follow each other in one object.
struct Run {
    parts: Range<usize>,
    object: u32,
    bytes: Range<u64>,
}

/// A range under way, which ends with this value.
struct UnderWay {
    run: Run,
    task: JoinHandle<Option<Vec<u8>>>,
    abort: AbortHandle,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

/// Gets everything into a file without a name in the folder.
pub(crate) async fn fetch(folder: &Path, there: There) -> Result<Inputs, InputsError> {
    let disk = |source| InputsError::Disk { path: folder.to_owned(), source };
    let mut file = tempfile::tempfile_in(folder).map_err(disk)?;
    let mut runs: VecDeque<Run> = runs(&there.parts).into();
    let mut under_way: VecDeque<UnderWay> = VecDeque::new();
    let (mut held, mut bytes) = (0, 0);
    loop {
        while let Some(run) = runs.pop_front() {
            let length = run.bytes.end - run.bytes.start;
            if under_way.len() >= AT_ONCE || held > 0 && held + length > BYTES_AT_ONCE {
                runs.push_front(run);
                break;
            }
            held += length;
            under_way.push_back(begin(&there, run)?);
        }
        let Some(mut next) = under_way.pop_front() else { break };
        let got = (&mut next.task).await.ok().flatten().ok_or(InputsError::NotThere)?;
        held -= next.run.bytes.end - next.run.bytes.start;
        let run = &next.run;
        let parts = there.parts.get(run.parts.clone()).unwrap_or_default().to_vec();
        let (from, is_bands) = (run.bytes.start, there.is_bands);
        let writing = tokio::task::spawn_blocking(move || {
            let written = write(&mut file, &parts, (&got, from), is_bands);
            (file, written)
        });
        let (back, written) = writing.await.map_err(|_| InputsError::Stopping)?;
        file = back;
        bytes += written.map_err(|problem| match problem {
            Problem::Disk(source) => disk(source),
            Problem::Other => InputsError::NotThere,
        })?;
    }
    let parts = there.parts.len() as u32;
    let opened = tokio::task::spawn_blocking(move || Inputs::open(file, parts, bytes)).await;
    opened.map_err(|_| InputsError::Stopping)?.map_err(InputsError::Damaged)
}

fn begin(there: &There, run: Run) -> Result<UnderWay, InputsError> {
    let url = there.addresses.get(run.object as usize).ok_or(InputsError::NotThere)?;
    let range = run.bytes.clone();
    let task = tokio::spawn(async move {
        match range.is_empty() {
            true => Some(Vec::new()),
            false => get_range(&url, range).await,
        }
    });
    let abort = task.abort_handle();
    Ok(UnderWay { run, task, abort })
}

/// Joins parts that follow each other in one object.
fn runs(parts: &[StoredPart]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let (from, length) = (u64::from(part.offset), u64::from(part.length));
        match runs.last_mut() {
            Some(last)
                if last.object == part.object
                    && last.bytes.end == from
                    && last.bytes.end - last.bytes.start + length <= RANGE_BYTES =>
            {
                last.bytes.end += length;
                last.parts.end = index + 1;
            }
            _ => {
                let (parts, bytes) = (index..index + 1, from..from + length);
                runs.push(Run { parts, object: part.object, bytes });
            }
        }
    }
    runs
}

/// Why a range is not written.
enum Problem {
    Disk(std::io::Error),
    /// Its bytes are not what the coordinator has named.
    Other,
}

/// Writes the parts of a range, each after its head. Returns the number of bytes.
fn write(
    file: &mut File,
    parts: &[StoredPart],
    (got, from): (&[u8], u64),
    is_bands: bool,
) -> Result<u64, Problem> {
    let mut written = 0;
    for part in parts {
        let start = (u64::from(part.offset) - from) as usize;
        let bytes = got.get(start..start + part.length as usize).ok_or(Problem::Other)?;
        if BlobHash::of(bytes) != part.hash {
            return Err(Problem::Other);
        }
        let bytes = match is_bands {
            false => bytes,
            true => {
                let pixels = pixels_of(bytes, bytes.len()).map_err(|_| Problem::Other)?;
                bytes.get(pixels).ok_or(Problem::Other)?
            }
        };
        let head = write_part_head(part.place, bytes.len() as u32);
        file.write_all(&head).and_then(|()| file.write_all(bytes)).map_err(Problem::Disk)?;
        written += (head.len() + bytes.len()) as u64;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(object: u32, offset: u32, bytes: &[u8]) -> StoredPart {
        let (length, hash) = (bytes.len() as u32, BlobHash::of(bytes));
        StoredPart { place: offset, object, offset, length, hash }
    }

    #[test]
    fn parts_that_follow_each_other_are_one_range() {
        let parts = [
            part(0, 0, b"ab"),
            part(0, 2, b"cd"),
            part(1, 4, b"e"),
            part(0, 4, b"f"),
            part(0, 6, b"g"),
        ];
        let found: Vec<_> =
            runs(&parts).into_iter().map(|run| (run.object, run.bytes, run.parts)).collect();
        assert_eq!(found, [(0, 0..4, 0..2), (1, 4..5, 2..3), (0, 4..5, 3..4), (0, 6..7, 4..5)]);
        let large = [part(0, 0, &[1]), StoredPart { length: 9 << 20, ..part(0, 1, b"") }];
        assert_eq!(runs(&large).len(), 2);
    }

    #[test]
    fn bytes_with_another_hash_are_not_taken() {
        let mut file = tempfile::tempfile().unwrap();
        let parts = [part(0, 10, b"ab"), part(0, 12, b"cd")];
        assert!(matches!(write(&mut file, &parts, (b"abcd", 10), false), Ok(20)));
        assert!(matches!(write(&mut file, &parts, (b"abce", 10), false), Err(Problem::Other)));
        assert!(matches!(write(&mut file, &parts, (b"abc", 10), false), Err(Problem::Other)));
    }
}
