//! Shares of uploaded files, what everybody has, and sweeps of everything of one owner.

use super::caller::Caller;
use super::context::{Context, blocking};
use super::naming::find_owner;
use super::roles;
use crate::blobs::{BlobRead, BlobSink, Blobs, GuardedBlobs, SinkError};
use crate::driver::{Ask, BlobQuestion, Event};
use crate::uploads::{UploadLimit, Uploads, Writing};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use tessera_core::{Owner, Sweep};
use tessera_protocol::BlobHash;
use tessera_protocol::client::{RequestError, Response, Role};
use tessera_protocol::usage::{OwnerUsage, Swept};
use tessera_transport::{BlobStore, files};
use tokio::sync::{mpsc, oneshot};

/// The parts of the disk that files without a job of one owner may take, where no number is set:
/// a quarter.
const PARTS: u64 = 4;

/// The blobs as one person uploads them: each counts for that person.
pub(crate) struct OwnBlobs {
    pub(super) blobs: GuardedBlobs,
    pub(super) uploads: Arc<Uploads>,
    pub(super) limit: UploadLimit,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) owner: Owner,
}

impl OwnBlobs {
    /// Checks that the owner, who has `own` bytes, may have this many. Blocks.
    fn check(&self, own: u64, wanted: u64) -> Result<(), String> {
        let unusable = |error| format!("the coordinator's disk cannot be used: {error}");
        let most = match self.limit.bytes {
            Some(most) => most,
            None => (files::free_bytes(&self.limit.root).map_err(unusable)? + own) / PARTS,
        };
        if wanted <= most {
            return Ok(());
        }
        let named = self.named()?;
        let files = self.uploads.files_of(&self.owner);
        let named = files.iter().filter(|(hash, _)| named.contains(hash));
        let in_use: u64 = named.map(|(_, length)| length).sum();
        if wanted.saturating_sub(in_use) <= most {
            return Ok(());
        }
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        Err(format!(
            "`{owner}` has {} MiB of files here that no open job uses, and this one adds {} MiB; \
             one user may have {} MiB. They are deleted some time after their last use; an admin \
             can delete them now (`tessera sweep --owner {owner}`), and who runs the coordinator \
             may raise the limit (--uploads-per-user)",
            mib(own.saturating_sub(in_use)),
            mib(wanted.saturating_sub(own)),
            mib(most),
            owner = self.owner,
        ))
    }

    /// Asks the core which files open jobs name. Blocks.
    fn named(&self) -> Result<Arc<BTreeSet<BlobHash>>, String> {
        let (reply, named) = oneshot::channel();
        let stopping = "the coordinator is stopping";
        self.events
            .blocking_send(Event::AboutBlobs(BlobQuestion::NamedFiles(reply)))
            .map_err(|_| stopping)?;
        Ok(named.blocking_recv().map_err(|_| stopping)?)
    }

    /// Begins an upload of the owner. Blocks.
    pub(super) fn upload(&self, hash: BlobHash, length: u64) -> Result<Box<dyn BlobSink>, String> {
        let writing = self
            .uploads
            .begin(&self.owner, (hash, length), |own, wanted| self.check(own, wanted))?;
        let upload = match self.blobs.upload(hash, length) {
            Ok(upload) => upload,
            Err(error) => {
                drop(writing);
                if !self.blobs.is_kept(hash) {
                    self.uploads.forget(hash);
                }
                return Err(error.to_string());
            }
        };
        Ok(Box::new(OwnUpload { upload, _writing: writing }))
    }
}

impl BlobStore for OwnBlobs {
    fn open(&self, hash: BlobHash) -> io::Result<Option<Box<dyn BlobRead>>> {
        BlobStore::open(&self.blobs, hash)
    }

    fn begin(&self, hash: BlobHash, length: u64) -> Result<Box<dyn BlobSink>, String> {
        self.upload(hash, length)
    }
}

struct OwnUpload {
    upload: Box<dyn BlobSink>,
    _writing: Writing,
}

impl BlobSink for OwnUpload {
    fn held(&self) -> u64 {
        self.upload.held()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.upload.write(bytes)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.upload.finish()
    }
}

/// Returns what each owner has: to operators of all owners, to others of themselves.
pub(super) async fn usage(context: &Context, caller: &Caller) -> Result<Response, RequestError> {
    let jobs = context.send(Event::Usage).await?;
    let named = context.send(|reply| Event::AboutBlobs(BlobQuestion::NamedFiles(reply))).await?;
    let mut rows: BTreeMap<Owner, OwnerUsage> = BTreeMap::new();
    fn row<'a>(rows: &'a mut BTreeMap<Owner, OwnerUsage>, owner: &Owner) -> &'a mut OwnerUsage {
        let new = || OwnerUsage {
            owner: owner.name().to_owned(),
            owner_id: owner.id(),
            ..OwnerUsage::default()
        };
        rows.entry(owner.clone()).or_insert_with(new)
    }
    for (owner, used) in jobs {
        let row = row(&mut rows, &owner);
        (row.jobs, row.jobs_ended, row.frames) = (used.jobs, used.jobs_ended, used.frames);
        (row.units, row.spec_bytes) = (used.units, used.spec_bytes);
        row.frame_bytes = used.frame_bytes;
    }
    for (hash, owner, length) in context.uploads.all() {
        let row = row(&mut rows, &owner);
        row.files += 1;
        let bytes =
            if named.contains(&hash) { &mut row.named_bytes } else { &mut row.unnamed_bytes };
        *bytes += length;
    }
    for (owner, counts) in context.askers.counts() {
        let row = row(&mut rows, &owner);
        (row.watchers, row.requests) = (counts.watchers.into(), counts.requests.into());
    }
    let nodes = context.access.members.nodes();
    for held in context.result_memory.held() {
        let number = nodes.get(&held.node).map_or(0, |(number, _)| *number);
        let owner = Owner::new(number, &format!("node:{}", held.name));
        row(&mut rows, &owner).result_bytes += held.kib << 10;
    }
    let all = caller.role().covers(Role::Operator);
    let rows = rows.into_iter().filter(|(owner, _)| all || *owner == caller.owner());
    let mut rows: Vec<OwnerUsage> = rows.map(|(_, row)| row).collect();
    rows.sort_by(|one, other| (&one.owner, one.owner_id).cmp(&(&other.owner, other.owner_id)));
    Ok(Response::Usage(rows))
}

/// Deletes all jobs of an owner, their frames, and the files that no other job names. With
/// `dry_run` it only says what would be deleted.
pub(super) async fn sweep(
    context: &Context,
    caller: &Caller,
    owner: &str,
    dry_run: bool,
) -> Result<Response, RequestError> {
    let owner = find_owner(context, caller, owner)?;
    let ask = |sweep| Ask::Sweep { owner: owner.clone(), sweep, caller: roles::owner(caller) };
    if dry_run {
        let mut answer = context.ask(ask(Sweep::Count)).await?;
        if let Response::Swept(swept) = &mut answer {
            let _still = context.submitting.write().await;
            let without = Some(owner.clone());
            let known = context
                .send(|reply| Event::AboutBlobs(BlobQuestion::Known { without, reply }))
                .await?;
            let files = context.uploads.files_of(&owner).into_iter();
            for (_, length) in files.filter(|(hash, _)| !known.contains(hash)) {
                swept.files += 1;
                swept.file_bytes += length;
            }
        }
        return Ok(answer);
    }
    // First what needs no record, so that it is done also when the disk is full.
    let before = sweep_files(context, &owner, Vec::new()).await?;
    let of = owner.clone();
    let frames =
        context.send(|reply| Event::AboutBlobs(BlobQuestion::FrameFiles { of, reply })).await?;
    let mut answer = context.durably(ask(Sweep::Forget)).await?;
    if let Response::Swept(swept) = &mut answer {
        let after = sweep_files(context, &owner, frames).await?;
        swept.files = before.files + after.files;
        swept.file_bytes = before.file_bytes + after.file_bytes;
    }
    Ok(answer)
}

/// Deletes at once the files of an owner, and these others, that no job knows.
pub(super) async fn sweep_files(
    context: &Context,
    owner: &Owner,
    others: Vec<BlobHash>,
) -> Result<Swept, RequestError> {
    // A job that is being accepted has its files, and is not among those of the core yet.
    let _still = context.submitting.write().await;
    let known = context
        .send(|reply| Event::AboutBlobs(BlobQuestion::Known { without: None, reply }))
        .await?;
    let (blobs, uploads, owner) = (context.blobs.clone(), context.uploads.clone(), owner.clone());
    blocking(move || {
        let mut swept = Swept::default();
        for (hash, length) in uploads.files_of(&owner) {
            if !known.contains(&hash) && blobs.delete_now(hash) {
                swept.files += 1;
                swept.file_bytes += length;
                uploads.forget(hash);
            }
        }
        let others = others.into_iter().filter(|hash| !known.contains(hash));
        let frames = others.filter(|hash| blobs.delete_now(*hash)).count();
        tracing::info!(%owner, files = swept.files, bytes = swept.file_bytes, frames, "swept");
        swept
    })
    .await
}
