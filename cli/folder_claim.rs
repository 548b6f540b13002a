//! Which job has the plain names `NAME.0001.exr` in a folder. A hidden record beside the frames
//! says it, so that the frames of two jobs of one name never mix. A fetch keeps the record locked
//! while it writes, and only a record that nobody uses changes hands.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tessera_protocol::JobId;

/// Longest wait for processes that decide about a record. Each takes moments.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Time between two tries.
const WAIT_STEP: Duration = Duration::from_millis(5);
/// Longest record in bytes: a job's id and a line end.
const RECORD_BYTES_MAX: u64 = 64;

/// Who has the plain names.
#[derive(Debug)]
pub(crate) enum Claim {
    /// The job that asked, for as long as this is kept.
    Own(#[expect(dead_code, reason = "keeps the lock")] File),
    /// Another job.
    Other(JobId),
}

/// Content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    Empty,
    Of(JobId),
    /// A file that is no record. It is left as it is.
    Foreign,
}

/// Claims the plain names of `stem` in a folder for a job. The names change hands if no other fetch
/// uses them, and their job has no file there. With `take` its files do not matter.
///
/// # Errors
/// The record cannot be read or written, as in a folder without write access.
pub(crate) fn claim(folder: &Path, stem: &str, job: JobId, take: bool) -> io::Result<Claim> {
    let mut file = open(&record_path(folder, stem))?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => {
                decide(&mut file, (folder, stem), job, take)?;
                file.unlock()?;
            }
            // Somebody writes under the record's names, or decides.
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        match file.try_lock_shared() {
            Ok(()) => match read(&mut file)? {
                Record::Of(owner) if owner == job => return Ok(Claim::Own(file)),
                Record::Of(owner) => return Ok(Claim::Other(owner)),
                Record::Foreign => return Err(io::Error::other("the record has other content")),
                Record::Empty => file.unlock()?,
            },
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if begun.elapsed() > WAIT_MAX {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the record stays locked"));
        }
        std::thread::sleep(WAIT_STEP);
    }
}

/// Path of the record of a stem in a folder.
fn record_path(folder: &Path, stem: &str) -> PathBuf {
    folder.join(format!(".{stem}.tessera"))
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        // What a link leads to is somebody else's.
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }
    options.open(path)
}

/// Gives a record that nobody else uses to the job, if it may have it.
fn decide(
    file: &mut File,
    (folder, stem): (&Path, &str),
    job: JobId,
    take: bool,
) -> io::Result<()> {
    let is_free = match read(file)? {
        Record::Empty => true,
        Record::Of(owner) => owner != job && (take || !has_files(folder, stem)?),
        Record::Foreign => false,
    };
    if is_free {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(format!("{job}\n").as_bytes())?;
    }
    Ok(())
}

fn read(file: &mut File) -> io::Result<Record> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(RECORD_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let text = str::from_utf8(&bytes).unwrap_or("?");
    Ok(match text.trim_end().parse() {
        Ok(job) => Record::Of(job),
        Err(_) if bytes.is_empty() => Record::Empty,
        Err(_) => Record::Foreign,
    })
}

/// Returns whether there is a file of the stem for any frame.
fn has_files(folder: &Path, stem: &str) -> io::Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        if is_of_frame(&entry?.file_name(), stem) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `STEM.0001.exr`, but not a part of such a file.
fn is_of_frame(name: &OsStr, stem: &str) -> bool {
    let rest = name.to_str().and_then(|name| name.strip_prefix(stem)?.strip_prefix('.'));
    let number = rest.and_then(|rest| rest.split_once('.'));
    number.is_some_and(|(number, rest)| {
        !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && !rest.ends_with(".part")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: u128) -> JobId {
        JobId(uuid::Uuid::from_u128(number))
    }

    fn owner(folder: &Path, by: u128, take: bool) -> Option<JobId> {
        match claim(folder, "a", job(by), take).unwrap() {
            Claim::Own(_) => None,
            Claim::Other(owner) => Some(owner),
        }
    }

    #[test]
    fn names_change_hands_only_without_files() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(owner(folder, 1, false), None);
        assert_eq!(owner(folder, 2, false), None);
        std::fs::write(folder.join("a.0001.exr"), "x").unwrap();
        assert_eq!((owner(folder, 1, false), owner(folder, 2, false)), (Some(job(2)), None));
        assert_eq!((owner(folder, 1, true), owner(folder, 2, false)), (None, Some(job(1))));
        std::fs::remove_file(folder.join("a.0001.exr")).unwrap();
        for name in ["a.exr", "a.x1.exr", "a.0001", "b.0001.exr", "a.0001.exr.0123abcd.part"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        assert_eq!(owner(folder, 2, false), None);
    }

    #[test]
    fn names_in_use_do_not_change_hands() {
        let folder = tempfile::tempdir().unwrap();
        let first = claim(folder.path(), "a", job(1), false).unwrap();
        let second = claim(folder.path(), "a", job(1), false).unwrap();
        for take in [false, true] {
            assert_eq!(owner(folder.path(), 2, take), Some(job(1)));
        }
        drop((first, second));
        assert_eq!(owner(folder.path(), 2, false), None);
    }

    #[test]
    fn of_two_jobs_at_once_one_has_the_names() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let barrier = std::sync::Barrier::new(8);
            let own = std::thread::scope(|scope| {
                let claimed = |number: u128| {
                    barrier.wait();
                    let claimed = claim(folder.path(), "a", job(number % 2), false).unwrap();
                    // Both have decided before either lets go.
                    barrier.wait();
                    matches!(claimed, Claim::Own(_)).then_some(number % 2)
                };
                let threads: Vec<_> =
                    (0..8).map(|number| scope.spawn(move || claimed(number))).collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            assert!(!own.is_empty());
            assert!(own.iter().all(|number| *number == own[0]), "{own:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_no_record_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let record = record_path(folder.path(), "a");
        std::fs::write(&record, "notes").unwrap();
        assert!(claim(folder.path(), "a", job(1), true).is_err());
        assert_eq!(std::fs::read(&record).unwrap(), b"notes");
        std::fs::remove_file(&record).unwrap();
        let empty = folder.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        std::os::unix::fs::symlink(&empty, &record).unwrap();
        assert!(claim(folder.path(), "a", job(1), true).is_err());
        assert_eq!(std::fs::read(&empty).unwrap(), b"");
    }
}
