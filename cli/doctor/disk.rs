//! Checks the data folder: it is writable, has room, and is fast enough to keep results before they
//! are sent.

use super::Finding;
use crate::table::bytes;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tessera_transport::error::chain;

/// Room below which a node soon stops for want of it: one large scene and its results.
const ROOM_LEAST: u64 = 2 << 30;
/// Bytes written to measure; more than a drive's own buffer hides, little enough to be over in a
/// moment.
const MEASURED_BYTES: usize = 64 << 20;
/// Below this, results of a GPU wait for the disk.
const BYTES_PER_SECOND_WANTED: f64 = 100e6;
/// Small synced writes that are timed.
const SYNCS: usize = 16;
/// Above this, keeping a result takes longer than rendering a small unit.
const SYNC_WANTED: Duration = Duration::from_millis(50);
/// Folders that lose everything at a restart of the machine, and folders of another machine.
const TMPFS: i64 = 0x0102_1994;
const NFS: i64 = 0x6969;

/// The checks; `cache` is what the node may fill with scene files, bytes.
pub(crate) fn look(data: &Path, cache: u64) -> Vec<Finding> {
    let folder = existing(data);
    let shown = data.display();
    let mut findings = Vec::new();
    match room(&folder) {
        Ok((free, kind)) => {
            findings.push(judge_room(&shown.to_string(), free, cache));
            findings.extend(judge_kind(kind));
        }
        Err(error) => {
            let text = format!("`{shown}`: {}", chain(&error));
            findings.push(Finding::fail("data", text, "choose another: --data DIR"));
        }
    }
    findings.push(match measure(&folder) {
        Ok((rate, sync)) => judge_speed(rate, sync),
        Err(error) => Finding::fail(
            "disk",
            format!("`{}` cannot be written: {}", folder.display(), chain(&error)),
            "give it to the user that the node runs as, or choose another: --data DIR",
        ),
    });
    findings
}

/// The folder, or the nearest one above it that there is.
fn existing(data: &Path) -> PathBuf {
    let absolute = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    absolute.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

fn judge_room(shown: &str, free: u64, cache: u64) -> Finding {
    let text = format!("`{shown}`: {} free", bytes(free));
    if free < ROOM_LEAST {
        return Finding::fail("data", text, "make room, or choose another: --data DIR");
    }
    if free < cache {
        let hint = format!(
            "the node may fill {} with scene files; make that less: --cache MIB",
            bytes(cache)
        );
        return Finding::warn("data", text, hint);
    }
    Finding::ok("data", text)
}

fn judge_kind(kind: i64) -> Option<Finding> {
    let (what, hint) = match kind {
        TMPFS => (
            "is in memory",
            "finished results that are not yet delivered are lost with the machine; use a disk",
        ),
        NFS => (
            "is on another machine",
            "use a local disk: it is faster, and its failure affects only this machine",
        ),
        _ => return None,
    };
    Some(Finding::warn("data", format!("the folder {what}"), hint))
}

fn judge_speed(rate: f64, sync: Duration) -> Finding {
    let text = format!(
        "{:.0} MB/s written and synced, {:.1} ms for a small synced write",
        rate / 1e6,
        sync.as_secs_f64() * 1e3
    );
    if rate < BYTES_PER_SECOND_WANTED || sync > SYNC_WANTED {
        return Finding::warn(
            "disk",
            text,
            "results wait for such a disk; put --data on a faster one",
        );
    }
    Finding::ok("disk", text)
}

/// Free bytes for this user, and the file system's number.
fn room(folder: &Path) -> io::Result<(u64, i64)> {
    let answer = rustix::fs::statfs(folder)?;
    let block = u64::try_from(answer.f_bsize).unwrap_or(0);
    Ok((answer.f_bavail.saturating_mul(block), answer.f_type))
}

/// Bytes per second of a long write, and the median time of a small one, both synced. The file has
/// no name and goes away.
fn measure(folder: &Path) -> io::Result<(f64, Duration)> {
    let mut file = tempfile::tempfile_in(folder)?;
    let piece = vec![0x5a; 1 << 20];
    let start = Instant::now();
    for _ in 0..MEASURED_BYTES / piece.len() {
        file.write_all(&piece)?;
    }
    file.sync_data()?;
    let rate = MEASURED_BYTES as f64 / start.elapsed().as_secs_f64().max(1e-9);
    let mut times = (0..SYNCS).map(|_| small_write(&mut file)).collect::<io::Result<Vec<_>>>()?;
    times.sort();
    Ok((rate, times[times.len() / 2]))
}

fn small_write(file: &mut File) -> io::Result<Duration> {
    let start = Instant::now();
    file.write_all(&[0x5a; 4096])?;
    file.sync_data()?;
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn an_absent_folder_is_judged_by_its_parent() {
        let root = tempfile::tempdir().unwrap();
        let findings = look(&root.path().join("not/yet"), 1 << 20);
        assert!(findings.iter().all(|finding| finding.verdict != Verdict::Fail), "{findings:?}");
        assert!(!root.path().join("not").exists());
    }

    #[test]
    fn room_and_speed_are_judged() {
        let verdicts = [
            judge_room("x", 1 << 30, 1 << 30),
            judge_room("x", 3 << 30, 16 << 30),
            judge_room("x", 30 << 30, 16 << 30),
            judge_speed(5e6, Duration::from_millis(1)),
            judge_speed(5e8, Duration::from_millis(90)),
            judge_speed(5e8, Duration::from_millis(1)),
        ]
        .map(|finding| finding.verdict);
        use Verdict::{Fail, Ok, Warn};
        assert_eq!(verdicts, [Fail, Warn, Ok, Warn, Warn, Ok]);
    }
}
