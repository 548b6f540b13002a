//! Copying of a stopped farm's state from one store to another, and the comparison of both.

use super::keys::values_of;
use super::place::{Purpose, StorePlace};
use super::{Changes, Loaded, StoreError};
use crate::folder::{DataFolder, FolderError};
use std::path::Path;

/// Records that are committed at once. sled holds a whole batch in memory.
const RECORDS_AT_ONCE: usize = 256;

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Number of values: records, spools, tokens, members, the snapshot, the audit log's head.
    pub values: u64,
    /// Number of records among them.
    pub records: u64,
    /// BLAKE3 over all keys and values, in order. Both stores have it.
    pub hash: [u8; 32],
}

/// Why the state was not copied. The store that it was in is as it was.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// One of the stores cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was copied is something else.
    #[error(
        "`{to}` has {found} values after the copy, and `{from}` has {wanted} with another hash; \
         the farm is still in `{from}`: empty `{to}`, and try again"
    )]
    Differs {
        /// Where the state is.
        from: String,
        /// Where it was copied to.
        to: String,
        /// Number of values in the source.
        wanted: u64,
        /// Number of values in the target.
        found: u64,
    },
}

/// Copies the state of the farm in `data` from one store to another, empty one, and makes the
/// folder one of that. No coordinator may run. The source is not changed before the copy was read
/// back and compared.
pub fn migrate(
    data: &Path,
    from: &dyn StorePlace,
    to: &dyn StorePlace,
) -> Result<Migration, MigrationError> {
    let folder = DataFolder::open_existing(data)?;
    let mut source = from.open(&folder, Purpose::CopyFrom)?;
    let loaded = source.load()?;
    let mut target = to.open(&folder, Purpose::CopyTo)?;
    if !target.load()?.is_empty() {
        return Err(StoreError::NotEmpty { store: to.describe(&folder) }.into());
    }
    for changes in pieces(&loaded) {
        target.commit(&changes)?;
    }
    let (wanted, found) = (summary(&loaded), summary(&target.load()?));
    if wanted != found {
        let (from, to) = (from.describe(&folder), to.describe(&folder));
        let (wanted, found) = (wanted.values, found.values);
        return Err(MigrationError::Differs { from, to, wanted, found });
    }
    target.close()?;
    source.close()?;
    drop((target, source));
    to.adopt(&folder)?;
    from.leave(&folder)?;
    Ok(wanted)
}

/// Returns the commits that fill an empty store.
fn pieces(loaded: &Loaded) -> impl Iterator<Item = Changes> + '_ {
    let on_disk = loaded.spools.iter().filter(|(_, extent)| extent.length > 0);
    let stored = loaded.spools.iter().flat_map(|(key, extent)| {
        extent.stored.iter().map(|one| ((*key, one.number), Some(one.clone())))
    });
    let first = Changes {
        snapshot: loaded.snapshot.clone(),
        spools: on_disk.map(|(key, value)| (*key, Some(value.clone()))).collect(),
        stored: stored.collect(),
        tokens: loaded.tokens.iter().map(|(key, value)| (*key, Some(value.clone()))).collect(),
        members: loaded.members.iter().map(|(key, value)| (*key, Some(value.clone()))).collect(),
        audit_head: loaded.audit_head.clone(),
        ..Changes::default()
    };
    let records = loaded.records.chunks(RECORDS_AT_ONCE);
    std::iter::once(first)
        .chain(records.map(|slice| Changes { records: slice.to_vec(), ..Changes::default() }))
}

fn summary(loaded: &Loaded) -> Migration {
    let mut hasher = blake3::Hasher::new();
    let mut values = 0;
    for (key, value) in values_of(loaded) {
        values += 1;
        for bytes in [&key, &value] {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        }
    }
    let records = loaded.records.len() as u64;
    Migration { values, records, hash: *hasher.finalize().as_bytes() }
}

impl Loaded {
    /// Returns whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        values_of(self).next().is_none() && self.files.is_empty()
    }
}
