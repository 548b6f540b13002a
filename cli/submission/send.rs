//! Sends the files that the coordinator lacks, then the jobs. Tries again after a lost connection,
//! which is harmless.

use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::progress::Uploads;
use futures_util::stream::{self, StreamExt};
use std::path::Path;
use std::time::Duration;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::job::independent_runs;
use tessera_protocol::{BlobHash, JobId, JobSpec, RawJobSpec};
use tessera_transport::{BlobError, FarmClient};

/// Attempts over connections that are lost.
const ATTEMPTS: u32 = 5;
/// Jobs that are on their way at a time.
const AT_A_TIME: usize = 64;
/// Wait between them; doubles.
const BACKOFF: Duration = Duration::from_millis(300);

/// Finds the files of a job on this machine.
pub(crate) trait Sources: Sync {
    /// Their hashes, in any order.
    fn hashes(&self) -> Vec<BlobHash>;

    /// Length and place of one.
    fn source(&self, hash: BlobHash) -> Option<(u64, &Path)>;
}

/// A job that is to be sent. Its id is made once, so that no attempt makes a second job.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    pub(crate) job: JobId,
    pub(crate) spec: JobSpec,
}

/// Submits a job. Returns once the coordinator has it durably.
pub(crate) async fn submit(
    farm: &Farm,
    spec: &JobSpec,
    files: &dyn Sources,
    uploads: &mut Uploads,
) -> Result<JobId, CliError> {
    let job = JobId::new();
    submit_all(farm, &[Sending { job, spec: spec.clone() }], files, uploads).await?;
    Ok(job)
}

/// Submits jobs, each after those of them that it waits for and that stand before it. Returns once
/// the coordinator has all of them durably.
pub(crate) async fn submit_all(
    farm: &Farm,
    jobs: &[Sending],
    files: &dyn Sources,
    uploads: &mut Uploads,
) -> Result<(), CliError> {
    let mut backoff = BACKOFF;
    for attempt in 1.. {
        let client = match farm.connect().await {
            Ok(client) => client,
            Err(error) if attempt == 1 => return Err(error),
            Err(error) if attempt >= ATTEMPTS || error.status() != Status::Unreachable => {
                return Err(error);
            }
            Err(_) => {
                tokio::time::sleep(backoff).await;
                backoff *= 2;
                continue;
            }
        };
        match submit_once(&client, jobs, files, uploads).await {
            Ok(()) => {
                client.close().await;
                return Ok(());
            }
            Err(error) if attempt >= ATTEMPTS || error.status() != Status::Unreachable => {
                return Err(error);
            }
            Err(error) => tracing::warn!(%error, "connection lost while submitting; trying again"),
        }
        tokio::time::sleep(backoff).await;
        backoff *= 2;
    }
    Ok(())
}

/// Names the path once.
fn not_sent(error: BlobError, source: &Path) -> CliError {
    let shown = source.display();
    match error {
        BlobError::File { source, .. } => {
            CliError::from(source).context(format!("cannot read `{shown}`"))
        }
        error => CliError::from(error).context(format!("`{shown}`")),
    }
}

async fn submit_once(
    client: &FarmClient,
    jobs: &[Sending],
    files: &dyn Sources,
    uploads: &mut Uploads,
) -> Result<(), CliError> {
    upload(client, files, uploads).await?;
    for together in independent_runs(jobs, |sending| (sending.job, sending.spec.after.as_slice())) {
        // Many at a time: the coordinator writes them to its disk together.
        let requests = together.iter().map(|sending| {
            let spec = Box::new(RawJobSpec::from(sending.spec.clone()));
            let request = Request::Submit { job: sending.job, spec };
            async move { client.request(&request).await }
        });
        let mut answers = stream::iter(requests).buffer_unordered(AT_A_TIME);
        while let Some(answer) = answers.next().await {
            let Response::Accepted(_) = answer? else { return Err(unexpected()) };
        }
    }
    Ok(())
}

/// Sends the files that the coordinator lacks.
async fn upload(
    client: &FarmClient,
    files: &dyn Sources,
    uploads: &mut Uploads,
) -> Result<(), CliError> {
    let mut hashes = files.hashes();
    hashes.sort();
    hashes.dedup();
    let Response::Blobs(missing) = client.request(&Request::MissingBlobs(hashes)).await? else {
        return Err(unexpected());
    };
    let missing: Vec<_> = missing
        .into_iter()
        .filter_map(|hash| files.source(hash).map(|found| (hash, found)))
        .collect();
    uploads.begin(missing.iter().map(|(_, (length, _))| length).sum());
    for (hash, (length, source)) in missing {
        let before = uploads.sent();
        client
            .put_blob((hash, length), source, &mut |sent, _| uploads.set(before + sent))
            .await
            .map_err(|error| not_sent(error, source))?;
        uploads.set(before + length);
    }
    uploads.end();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_is_named_once() {
        let path = Path::new("a.bin");
        let source = std::io::Error::other("it is gone");
        let error = not_sent(BlobError::File { path: path.to_owned(), source }, path);
        assert_eq!(error.to_string(), "error: cannot read `a.bin`: it is gone");
    }
}
