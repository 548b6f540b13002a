//! A user's or an admin's connection: requests and their answers, watching, blobs both ways.

use super::{Closing, Shared, Trouble, clock, renew, serve_streams, wrong_kind};
use crate::access::Standing;
use crate::api::{audit_entries as told, identities as identity, roles as rules, watch};
use crate::driver::{Ask, Event, Question};
use std::sync::Arc;
use tessera_core::Caller;
use tessera_protocol::client::{Request, RequestError, Response};
use tessera_protocol::job::{JobSpec, RawJobSpec};
use tessera_protocol::limits::REASON_MAX;
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{BlobHash, JobId};
use tessera_transport::blob::{serve_get, serve_put};
use tessera_transport::close::cut;
use tessera_transport::validity::now_secs;
use tessera_transport::{BlobStore, FrameSender, Link, Meter, PeerIdentity};
use tokio::sync::oneshot;

/// Blobs in one question at most: a scene's files and room to spare.
const BLOBS_ASKED_MAX: usize = 1 << 16;

/// Serves a client until its connection ends.
pub(super) async fn serve(
    link: Link,
    shared: Arc<Shared>,
    (standing, meter): (Arc<Standing>, Arc<Meter>),
) {
    let _closing = Closing(&link);
    let timing = link.timing;
    serve_streams(link.connection.clone(), timing, meter, move |kind, sender, mut receiver| {
        let (shared, standing) = (shared.clone(), standing.clone());
        async move {
            if kind == StreamKind::Renew {
                return renew::serve(&shared, &standing, sender, receiver, timing).await;
            }
            let mut sender = FrameSender::new(sender);
            match kind {
                StreamKind::BlobGet => {
                    serve_get(&shared.blobs, &mut sender, &mut receiver, &timing).await?;
                    Ok(())
                }
                StreamKind::BlobPut => {
                    rules::check(standing.peer(), rules::BLOB_PUT)
                        .map_err(|error| Trouble::NotAllowed(error.to_string()))?;
                    serve_put(&shared.blobs, &mut sender, &mut receiver, &timing).await?;
                    Ok(())
                }
                StreamKind::Request => {
                    let request: Request = receiver.expect(timing.answer).await?;
                    standing.check(now_secs()).map_err(Trouble::Refused)?;
                    let response =
                        match (rules::check(standing.peer(), rules::needed(&request)), request) {
                            (Err(error), _) => Response::Error(bounded(error)),
                            (Ok(()), Request::Watch(job)) => {
                                return watch::serve(&shared, job, &mut sender).await;
                            }
                            (Ok(()), Request::Backup) => {
                                return send_backup(&shared, standing.peer(), &mut sender).await;
                            }
                            (Ok(()), request) => told(&shared, standing.peer(), request).await,
                        };
                    sender.send(&response).await?;
                    sender.finish();
                    Ok(())
                }
                StreamKind::Clock => clock::tell(&mut sender).await,
                other => Err(wrong_kind(other)),
            }
        }
    })
    .await;
}

/// Answers what changes something after the audit log has told of it: there is no act without its
/// entry.
async fn told(shared: &Arc<Shared>, peer: &PeerIdentity, request: Request) -> Response {
    let Some((what, about)) = told::entry_of(&request) else {
        return answer(shared, peer, request).await;
    };
    if let Err(error) = shared.access.tell(peer.to_string(), what, about.clone()).await {
        return Response::Error(bounded(untellable(&error)));
    }
    let response = answer(shared, peer, request).await;
    if let Response::Error(error) = &response
        && let Err(error) = shared
            .access
            .tell(peer.to_string(), "not done", format!("{what}, {about}: {error}"))
            .await
    {
        tracing::error!(%error, "the audit log cannot be written");
    }
    response
}

async fn answer(shared: &Arc<Shared>, peer: &PeerIdentity, request: Request) -> Response {
    let answered = match request {
        Request::MissingBlobs(blobs) => missing_blobs(shared, blobs).await,
        Request::Submit { job, spec } => submit(shared, peer, job, *spec).await,
        Request::Jobs => question(shared, Question::Jobs).await,
        Request::Job(job) => question(shared, Question::Job(job)).await,
        Request::Frames { job, from } => question(shared, Question::Frames { job, from }).await,
        Request::Nodes => question(shared, Question::Nodes).await,
        Request::Cancel(job) => durably(shared, Ask::Cancel { job, caller: caller(peer) }).await,
        Request::Pause(job) => {
            durably(shared, Ask::Pause { job, pause: true, caller: caller(peer) }).await
        }
        Request::Resume(job) => {
            durably(shared, Ask::Pause { job, pause: false, caller: caller(peer) }).await
        }
        Request::Retry(job) => retry(shared, peer, job).await,
        Request::Forget(job) => durably(shared, Ask::Forget { job, caller: caller(peer) }).await,
        Request::Drain { node, drain } => durably(shared, Ask::Drain { node, drain }).await,
        Request::CreateToken(scope) => identity::create_token(shared, peer, scope).await,
        Request::Tokens { from } => {
            Ok(Response::Tokens(shared.ledger.list(from, shared.clock.now().secs()).await))
        }
        Request::RevokeToken { id } => identity::revoke_token(shared, peer, &id).await,
        Request::Deny { identity, reason } => {
            identity::deny(shared, peer, &identity, Some(reason)).await
        }
        Request::Allow { identity } => identity::deny(shared, peer, &identity, None).await,
        Request::Log { last } => identity::log(shared, last).await,
        Request::Authority => Ok(identity::authority(&shared.access.authority())),
        Request::RotateAuthority { overlap_secs } => {
            identity::rotate(shared, peer, overlap_secs).await
        }
        Request::Denied => Ok(Response::Denied(shared.access.denied())),
        Request::Audit => crate::api::audit::running(shared).await.map(Response::Audit),
        // Served as sequences, before this.
        Request::Watch(_) | Request::Backup => {
            Err(RequestError::Invalid("watching and backups are streams of their own".into()))
        }
    };
    answered.unwrap_or_else(|error| Response::Error(bounded(error)))
}

/// Sends a backup, piece by piece; an error ends it.
async fn send_backup(
    shared: &Arc<Shared>,
    peer: &PeerIdentity,
    sender: &mut FrameSender,
) -> Result<(), Trouble> {
    let begun = async {
        if let Some((what, about)) = told::entry_of(&Request::Backup) {
            let told = shared.access.tell(peer.to_string(), what, about).await;
            told.map_err(|error| untellable(&error))?;
        }
        crate::backup::running(shared, peer).await
    };
    let mut pieces = match begun.await {
        Ok(pieces) => pieces,
        Err(error) => {
            sender.send(&Response::Error(bounded(error))).await?;
            sender.finish();
            return Ok(());
        }
    };
    while let Some(piece) = pieces.recv().await {
        match piece {
            Ok(bytes) => sender.send(&Response::Backup(bytes)).await?,
            Err(error) => sender.send(&Response::Error(bounded(error))).await?,
        }
    }
    sender.finish();
    Ok(())
}

fn bounded(error: RequestError) -> RequestError {
    let cut = |text: String| cut(&text, REASON_MAX).to_owned();
    match error {
        RequestError::NotFound(text) => RequestError::NotFound(cut(text)),
        RequestError::NotAllowed(text) => RequestError::NotAllowed(cut(text)),
        RequestError::Invalid(text) => RequestError::Invalid(cut(text)),
        RequestError::Unavailable(text) => RequestError::Unavailable(cut(text)),
    }
}

fn caller(peer: &PeerIdentity) -> Caller {
    Caller { name: peer.name.clone(), admin: rules::rules_others(peer) }
}

/// What asks for something durable is refused while the disk is full: it would wait, and nobody
/// would know for what.
pub(crate) fn room(shared: &Shared) -> Result<(), RequestError> {
    if shared.writer.has_room() { Ok(()) } else { Err(full()) }
}

fn full() -> RequestError {
    RequestError::Unavailable("the coordinator's disk is full; make room and try again".into())
}

/// There is no act without its entry in the audit log.
fn untellable(error: &std::io::Error) -> RequestError {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded => full(),
        _ => RequestError::Unavailable(format!("the audit log cannot be written: {error}")),
    }
}

fn stopping() -> RequestError {
    RequestError::Unavailable("the coordinator is stopping".into())
}

/// Asks for something durable, if there is room for it.
async fn durably(shared: &Shared, what: Ask) -> Result<Response, RequestError> {
    room(shared)?;
    ask(shared, what).await
}

async fn ask(shared: &Shared, ask: Ask) -> Result<Response, RequestError> {
    let (reply, told) = oneshot::channel();
    shared.events.send(Event::Ask { ask, reply }).await.map_err(|_| stopping())?;
    told.await.map_err(|_| stopping())
}

pub(crate) async fn question(
    shared: &Shared,
    question: Question,
) -> Result<Response, RequestError> {
    let (reply, told) = oneshot::channel();
    shared.events.send(Event::Question { question, reply }).await.map_err(|_| stopping())?;
    told.await.map_err(|_| stopping())
}

/// Runs what reads the disk off the runtime's own threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RequestError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| stopping())
}

async fn missing_blobs(shared: &Shared, asked: Vec<BlobHash>) -> Result<Response, RequestError> {
    if asked.len() > BLOBS_ASKED_MAX {
        return Err(RequestError::Invalid(format!(
            "{} blobs in one question are more than {BLOBS_ASKED_MAX}",
            asked.len()
        )));
    }
    let blobs = shared.blobs.clone();
    let missing = move || asked.into_iter().filter(|hash| blobs.claim(*hash).is_none()).collect();
    Ok(Response::Blobs(blocking(missing).await?))
}

async fn submit(
    shared: &Shared,
    peer: &PeerIdentity,
    job: JobId,
    spec: RawJobSpec,
) -> Result<Response, RequestError> {
    let spec = spec.check().map_err(|error| RequestError::Invalid(error.to_string()))?;
    room(shared)?;
    let blobs = shared.blobs.clone();
    let spec = blocking(move || check_files(&blobs, spec)).await??;
    ask(shared, Ask::Submit { job, spec: Box::new(spec), caller: caller(peer) }).await
}

/// The files of a job that has ended may have been deleted since.
async fn retry(shared: &Shared, peer: &PeerIdentity, job: JobId) -> Result<Response, RequestError> {
    room(shared)?;
    let detail = match question(shared, Question::Job(job)).await? {
        Response::Job(detail) => *detail,
        Response::Error(error) => return Err(error),
        _ => {
            return Err(RequestError::Unavailable(
                "the coordinator does not know its own jobs".into(),
            ));
        }
    };
    let blobs = shared.blobs.clone();
    let found = blocking(move || check_files(&blobs, detail.spec)).await?;
    found.map_err(|error| match error {
        RequestError::Invalid(text) => RequestError::Invalid(format!(
            "{text}: files of jobs that have ended are deleted after the coordinator's \
             --blob-grace; submit the \
             scene again"
        )),
        error => error,
    })?;
    ask(shared, Ask::Retry { job, caller: caller(peer) }).await
}

/// The spec, if all its files are here with the lengths it says.
fn check_files(blobs: &crate::blobs::Blobs, spec: JobSpec) -> Result<JobSpec, RequestError> {
    for (name, hash, expected) in spec.kind.files() {
        let problem = match blobs.find(hash) {
            Err(error) => return Err(RequestError::Unavailable(error.to_string())),
            Ok(None) => "has not been uploaded".to_owned(),
            Ok(Some(_)) => match blobs.claim(hash) {
                Some(length) if length == expected => continue,
                length => format!("has {} bytes, not {expected}", length.unwrap_or(0)),
            },
        };
        return Err(RequestError::Invalid(format!("file {name:?} of the job ({hash}) {problem}")));
    }
    Ok(spec)
}
