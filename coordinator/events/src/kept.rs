//! What is kept in the data folder over a start: events that were not delivered, and what was told.
//! Without it, as after a takeover on another machine, the ends of the last minutes are told again.

use crate::event::Event;
use crate::tracker::{Memory, QuarantineKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use tessera_protocol::JobId;
use tessera_transport::files;

/// Name of the file in the data folder.
pub(crate) const FILE: &str = "events.json";
/// Version of the file's form.
const VERSION: u32 = 1;
/// Longest file: 64 targets with a thousand events of 4 KiB.
const BYTES_MAX: u64 = 256 << 20;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct File {
    version: u32,
    horizon: u64,
    ends: Vec<(u64, JobId)>,
    waits: Vec<(JobId, u64)>,
    quarantines: Vec<(QuarantineKey, u64)>,
    #[serde(default)]
    budgets: Vec<(String, u64)>,
    queues: Queues,
}

/// Events that wait, by the name of their target, the oldest first.
pub(crate) type Queues = BTreeMap<String, Vec<Event>>;

/// Reads the file; None if there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<(Memory, Queues)>> {
    let bytes = match files::read_bounded(path, BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let File { version, horizon, ends, waits, quarantines, budgets, queues } =
        serde_json::from_slice(&bytes).map_err(io::Error::other)?;
    if version != VERSION {
        let text = format!("it has version {version}, and this build reads version {VERSION}");
        return Err(io::Error::other(text));
    }
    Ok(Some((Memory { horizon, ends, waits, quarantines, budgets }, queues)))
}

/// Writes the file. Blocks.
pub(crate) fn write(path: &Path, memory: Memory, queues: Queues) -> io::Result<()> {
    let Memory { horizon, ends, waits, quarantines, budgets } = memory;
    let file = File { version: VERSION, horizon, ends, waits, quarantines, budgets, queues };
    let bytes = serde_json::to_vec(&file).map_err(io::Error::other)?;
    // It names jobs and owners.
    files::write_atomically(path, &bytes, files::Access::Secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        assert!(read(&path).unwrap().is_none());
        let memory = Memory {
            horizon: 7,
            ends: vec![(8, JobId::new())],
            waits: vec![(JobId::new(), 9)],
            quarantines: vec![(("n".into(), Some("cuda:0".into()), "wrong".into()), 10)],
            budgets: vec![("Farm Month None".into(), 11)],
        };
        let events = vec![Event::of_test("studio", 11)];
        let queues = Queues::from([("studio".to_owned(), events)]);
        write(&path, memory.clone(), queues.clone()).unwrap();
        assert_eq!(read(&path).unwrap(), Some((memory, queues)));
        std::fs::write(&path, "{\"version\":1").unwrap();
        assert!(read(&path).is_err());
    }
}
