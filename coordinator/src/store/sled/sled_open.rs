//! The call that opens sled. Turns its panics and its errors about damage into sentences. Does not
//! decide whether a folder may be opened.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Memory that sled may use for pages, in bytes.
const CACHE_BYTES: u64 = 64 << 20;
/// Longest time that sled needs to release a store that this process has closed.
const LOCK_WITHIN: Duration = Duration::from_secs(10);

/// Why sled does not open a folder.
#[derive(Debug)]
pub(super) enum OpenFault {
    /// The file system returned an error.
    Io(io::Error),
    /// Description of the damage.
    Damaged(String),
}

/// Opens sled. sled's threads may still hold the lock of a store that this process has just closed.
/// The data folder's lock shows that no other process has the store, so it is safe to wait.
pub(super) fn open(path: &Path) -> Result<sled::Db, OpenFault> {
    let begun = Instant::now();
    loop {
        let config =
            sled::Config::new().path(path).flush_every_ms(None).cache_capacity(CACHE_BYTES);
        match catch_unwind(AssertUnwindSafe(|| config.open())) {
            Ok(Ok(db)) => return Ok(db),
            Ok(Err(sled::Error::Io(source))) if is_lock(&source) => {
                if begun.elapsed() >= LOCK_WITHIN {
                    return Err(OpenFault::Io(source));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(Err(sled::Error::Io(source))) => return Err(OpenFault::Io(source)),
            Ok(Err(sled::Error::Corruption { .. })) => {
                return Err(OpenFault::Damaged("sled finds it damaged".into()));
            }
            Ok(Err(error)) => return Err(OpenFault::Damaged(error.to_string())),
            Err(_) => return Err(OpenFault::Damaged("sled cannot read it".into())),
        }
    }
}

/// sled wraps the error of the lock in a text.
fn is_lock(source: &io::Error) -> bool {
    source.to_string().contains("could not acquire lock")
}
