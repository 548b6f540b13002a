//! Shares: what the jobs of one owner may have together. They follow from the jobs alone, so that
//! they are the same after a restart.

use crate::books::Books;
use crate::owner::Owner;
use crate::settings::PerUser;
use crate::state::job::Job;
use std::collections::BTreeSet;
use tessera_protocol::client::RequestError;
use tessera_protocol::ids::BlobHash;

/// Returns the files that jobs name which have not ended.
pub(crate) fn named_files(books: &Books) -> BTreeSet<BlobHash> {
    let open = books.farm().jobs().filter(|job| !job.is_final());
    open.flat_map(|job| job.kind().files()).map(|(_, hash, _)| hash).collect()
}

/// Returns the files and the files of finished frames of all jobs, but not of one owner's.
pub(crate) fn known_blobs(books: &Books, without: Option<&Owner>) -> BTreeSet<BlobHash> {
    let is_swept = |job: &Job| without.is_some_and(|owner| owner.id() == job.owner_id());
    let mut known = BTreeSet::new();
    for job in books.farm().jobs().filter(|job| !is_swept(job)) {
        known.extend(job.kind().files().iter().map(|(_, hash, _)| *hash));
        known.extend(frame_files(job));
    }
    known
}

/// Returns the files of the finished frames of an owner's jobs.
pub(crate) fn frame_files_of(books: &Books, owner: &Owner) -> Vec<BlobHash> {
    let own = books.farm().jobs().filter(|job| owner.id() == job.owner_id());
    own.flat_map(frame_files).collect()
}

fn frame_files(job: &Job) -> impl Iterator<Item = BlobHash> {
    job.frames().done().iter().flat_map(|(_, done)| done.files).map(|file| file.hash)
}

/// Checks that a job may be added to those of its owner, or be opened again. `again`: it is one of
/// them already.
pub(crate) fn check_share(books: &Books, job: &Job, again: bool) -> Result<(), RequestError> {
    let owner = job.held_by();
    let used = books.farm().usage().of_owner(&owner);
    let PerUser { jobs, frames, units, spec_bytes } = books.settings().per_user;
    let (own_frames, done) = (u64::from(job.frames().len()), job.frames().done().len());
    // Of a job that has ended, its finished frames are counted already.
    let new_frames = if again { own_frames - u64::from(done) } else { own_frames };
    let new_bytes = if again { 0 } else { job.spec_bytes() };
    let (new_units, _) = job.grid().first_work();
    let new_units = u64::from(new_units) * new_frames;
    let rules = [
        (used.jobs, 1, jobs, "open jobs", "--jobs-per-user"),
        (used.frames, new_frames, frames, "frames", "--frames-per-user"),
        (used.units, new_units, units, "open units", "--units-per-user"),
        (used.spec_bytes, new_bytes, spec_bytes, "bytes of jobs", "--job-mib-per-user"),
    ];
    for (used, new, most, what, option) in rules {
        if new > 0 && used.saturating_add(new) > most {
            return Err(RequestError::Unavailable(refusal(
                &owner,
                (used, new, most),
                what,
                option,
            )));
        }
    }
    Ok(())
}

fn refusal(owner: &Owner, (used, new, most): (u64, u64, u64), what: &str, option: &str) -> String {
    format!(
        "`{owner}` has {used} {what}, and this job adds {new}; one user may have {most}. Wait \
         until some jobs have ended, cancel some (`tessera cancel`), or forget ended ones \
         (`tessera forget`); who runs the coordinator may raise the limit ({option})"
    )
}
