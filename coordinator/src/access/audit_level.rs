//! Brings the audit log of a data folder and its entries in a store elsewhere together, before
//! anything is added: the store gets what it lacks, and a folder that lacks something, or has
//! something else, gets what the store has.

use super::audit_log::{HEAD_FILE, Head, names};
use crate::folder::DataFolder;
use crate::store::{AuditEntry, AuditLine, Changes, Store, StoreError};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use tessera_protocol::access::LogEntry;
use tessera_transport::files::{self, Access};
use tessera_transport::validity::now_secs;

/// Entries that are read or committed at once.
const AT_ONCE: usize = 2000;

/// Why they cannot be brought together.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LevelError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Brings both together. `head` is the one that the store has. Returns whether the store keeps
/// entries, and the head that it has then. Damage of the folder's log is left for its opening to
/// find.
pub(crate) fn level(
    folder: &DataFolder,
    store: &mut dyn Store,
    head: Option<&[u8]>,
) -> Result<(bool, Option<Vec<u8>>), LevelError> {
    let same = head.map(<[u8]>::to_vec);
    let Some(oldest) = store.audit_after(0, 1)? else { return Ok((false, same)) };
    let kept = Head::kept(head).unwrap_or_else(Head::origin);
    // Without entries, it is a store of before that kept the head alone.
    let from = if oldest.is_empty() { 0 } else { kept.after };
    let (newer, has_kept) = newer(&folder.audit_log(), &kept, from)?;
    if kept.after > 0 && !oldest.is_empty() && !has_kept {
        fetch(folder, store, &kept)?;
    } else if kept.after == 0 || has_kept {
        let given = give(store, newer.into_iter())?;
        return Ok((true, given.or(same)));
    }
    Ok((true, same))
}

/// An entry, and the head after it.
type Entry = (u64, AuditLine, String);

/// Returns the entries of a folder that are newer than one, and whether that of this head is there.
fn newer(folder: &Path, kept: &Head, than: u64) -> io::Result<(Vec<Entry>, bool)> {
    let (mut found, mut has_kept) = (Vec::new(), false);
    let named = match names(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        named => named?,
    };
    for (_, path) in named {
        let mut before: Option<String> = None;
        for line in BufReader::new(File::open(path)?).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            let Some(hash) = before.take() else {
                before = serde_json::from_str::<Head>(&line).ok().map(|head| head.hash);
                continue;
            };
            // What cannot be read is found by the opening.
            let Ok(entry) = serde_json::from_str::<LogEntry>(&line) else { break };
            has_kept |= entry.n == kept.after && entry.hash == kept.hash;
            before = Some(entry.hash.clone());
            if entry.n > than {
                found.push((entry.n, AuditLine { before: hash, line }, entry.hash));
            }
        }
    }
    Ok((found, has_kept))
}

/// Gives entries to the store. Returns its new head.
fn give(
    store: &mut dyn Store,
    entries: impl Iterator<Item = Entry>,
) -> Result<Option<Vec<u8>>, LevelError> {
    let mut given = None;
    let mut entries = entries.peekable();
    while entries.peek().is_some() {
        let mut changes = Changes::default();
        for (after, line, hash) in entries.by_ref().take(AT_ONCE) {
            changes.audit.push((after, line.to_bytes()));
            let head = serde_json::to_vec(&Head { after, hash });
            changes.audit_head = Some(head.map_err(io::Error::from)?);
        }
        store.commit(&changes)?;
        given = changes.audit_head;
    }
    Ok(given)
}

/// Replaces the folder's log by what the store has. The former one is put aside.
fn fetch(folder: &DataFolder, store: &dyn Store, kept: &Head) -> Result<(), LevelError> {
    let path = folder.audit_log();
    if path.exists() {
        let aside = folder.former().join(format!("audit-{}", now_secs()));
        std::fs::create_dir_all(folder.former())?;
        std::fs::rename(&path, &aside)?;
        tracing::info!(kept = %aside.display(), "the audit log of this folder was put aside: the \
            store has another, newer one");
    }
    files::create_private_folder(&path)?;
    let mut file: Option<BufWriter<File>> = None;
    let mut after = 0;
    loop {
        let entries: Vec<AuditEntry> = store.audit_after(after, AT_ONCE)?.unwrap_or_default();
        for (number, bytes) in &entries {
            let line = AuditLine::from_bytes(bytes).map_err(io::Error::other)?;
            let out = match &mut file {
                Some(out) => out,
                None => {
                    let head = Head { after: number.saturating_sub(1), hash: line.before };
                    let mut text = serde_json::to_string(&head).map_err(io::Error::from)?;
                    text.push('\n');
                    let path = path.join("00000001.log");
                    files::write_atomically(&path, text.as_bytes(), Access::Secret)?;
                    let opened = File::options().append(true).open(&path)?;
                    file.insert(BufWriter::new(opened))
                }
            };
            writeln!(out, "{}", line.line)?;
            after = *number;
        }
        if entries.len() < AT_ONCE {
            break;
        }
    }
    if let Some(out) = file {
        out.into_inner().map_err(|error| error.into_error())?.sync_all()?;
    }
    let head = serde_json::to_vec(kept).map_err(io::Error::from)?;
    files::write_atomically(&path.join(HEAD_FILE), &head, Access::Secret)?;
    Ok(())
}
