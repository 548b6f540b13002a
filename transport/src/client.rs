//! The client's side: requests, watching and blobs. Prints nothing and retries nothing.

use crate::blob::{self, BlobError, Target, Wanted};
use crate::close::CloseCode;
use crate::endpoint::address::Address;
use crate::endpoint::dial::connect;
use crate::endpoint::link::Link;
use crate::error::ConnectError;
use crate::identity::Identity;
use crate::stream::frame::{FrameError, FrameReceiver, FrameSender, open_both, within};
use crate::timing::Timing;
use std::path::Path;
use std::time::Duration;
use tessera_protocol::client::{Progress, Request, RequestError, Response};
use tessera_protocol::live::{LiveTile, Watched};
use tessera_protocol::logs::{LogPage, LogQuery};
use tessera_protocol::news::JobsNews;
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{BlobHash, Hello, JobId};

/// Longest wait for an answer. An audit reads the whole store.
const RESPONSE_WITHIN: Duration = Duration::from_secs(120);

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The coordinator refused the request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The connection or the stream failed. It is not known whether the request was executed.
    #[error("the coordinator did not answer")]
    Frame(#[from] FrameError),
    /// The answer belongs to another kind of request.
    #[error("the coordinator's answer does not fit the request")]
    Unexpected,
}

/// A connection of a user or an admin to a farm.
#[derive(Debug)]
pub struct FarmClient {
    link: Link,
}

impl FarmClient {
    /// Connects to the farm of this identity.
    pub async fn connect(
        address: &Address,
        identity: &Identity,
        hello: &Hello,
    ) -> Result<Self, ConnectError> {
        Ok(Self { link: connect(address, identity, hello, Timing::default()).await? })
    }

    /// Creates a client over an existing link.
    pub fn new(link: Link) -> Self {
        Self { link }
    }

    /// Returns the underlying link.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Sends a request and waits for its only answer. [`Response::Error`] becomes
    /// [`ClientError::Request`]. [`Request::Watch`] goes through [`Self::watch`].
    pub async fn request(&self, request: &Request) -> Result<Response, ClientError> {
        let (mut sender, mut receiver) = self.ask(request).await?;
        sender.finish();
        match receiver.expect(RESPONSE_WITHIN).await? {
            Response::Error(error) => Err(error.into()),
            response => Ok(response),
        }
    }

    /// Watches a job: its progress now and after each change, until it has ended.
    pub async fn watch(&self, job: JobId) -> Result<Watch, ClientError> {
        let (mut sender, receiver) = self.ask(&Request::Watch(job)).await?;
        sender.finish();
        Ok(Watch { receiver })
    }

    /// Follows all jobs: those that are open or have ended since a time, and then what changes.
    pub async fn watch_all(&self, since: Option<u64>) -> Result<AllNews, ClientError> {
        let (mut sender, receiver) = self.ask(&Request::WatchAll { since }).await?;
        sender.finish();
        Ok(AllNews { receiver })
    }

    /// Watches live tiles of a frame or a job, until it has ended.
    pub async fn live(&self, what: Watched) -> Result<LiveTiles, ClientError> {
        let (mut sender, receiver) = self.ask(&Request::Live(what)).await?;
        sender.finish();
        Ok(LiveTiles { receiver })
    }

    /// Follows lines of a log: those that are asked for, and further ones as they come.
    pub async fn follow_logs(&self, query: LogQuery) -> Result<LogPages, ClientError> {
        let (mut sender, receiver) = self.ask(&Request::FollowLogs(Box::new(query))).await?;
        sender.finish();
        Ok(LogPages { receiver })
    }

    /// Requests a backup of the farm, in pieces that are in the order of the file.
    pub async fn backup(&self) -> Result<Backup, ClientError> {
        let (mut sender, receiver) = self.ask(&Request::Backup).await?;
        sender.finish();
        Ok(Backup { receiver })
    }

    async fn ask(&self, request: &Request) -> Result<(FrameSender, FrameReceiver), ClientError> {
        let (mut sender, receiver) = open_both(&self.link.connection, StreamKind::Request).await?;
        sender.send(request).await?;
        Ok((sender, receiver))
    }

    /// Sends the file `source`, with hash and length from [`hash_file`]; see [`blob::put`].
    pub async fn put_blob(
        &self,
        blob: (BlobHash, u64),
        source: &Path,
        progress: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<u64, BlobError> {
        blob::put(&self.link.connection, blob, source, &self.link.timing, progress).await
    }

    /// Fetches a blob of at most `length_max` bytes into a file, continuing a former
    /// fetch; see [`blob::get`].
    pub async fn get_blob(
        &self,
        wanted: impl Into<Wanted>,
        length_max: u64,
        target: Target<'_>,
        progress: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<u64, BlobError> {
        let wanted = wanted.into();
        blob::get(&self.link.connection, wanted, length_max, target, &self.link.timing, progress)
            .await
    }

    /// Closes the connection.
    pub async fn close(self) {
        self.link.close(CloseCode::Done, "done").await;
    }
}

/// A job that is being watched.
#[derive(Debug)]
pub struct Watch {
    receiver: FrameReceiver,
}

impl Watch {
    /// Returns the next change; None once the job has ended. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Progress>, ClientError> {
        match self.receiver.receive().await? {
            None => Ok(None),
            Some(Response::Progress(progress)) => Ok(Some(*progress)),
            Some(Response::Error(error)) => Err(error.into()),
            Some(_) => Err(ClientError::Unexpected),
        }
    }
}

/// News of all jobs that are being received.
#[derive(Debug)]
pub struct AllNews {
    receiver: FrameReceiver,
}

impl AllNews {
    /// Returns the next news; None if the coordinator stops. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<JobsNews>, ClientError> {
        match self.receiver.receive().await? {
            None => Ok(None),
            Some(Response::News(news)) => Ok(Some(*news)),
            Some(Response::Error(error)) => Err(error.into()),
            Some(_) => Err(ClientError::Unexpected),
        }
    }
}

/// Live tiles that are being received.
#[derive(Debug)]
pub struct LiveTiles {
    receiver: FrameReceiver,
}

impl LiveTiles {
    /// Returns the next live tile, checked; None once there will be no more. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<LiveTile>, ClientError> {
        match self.receiver.receive().await? {
            None => Ok(None),
            Some(Response::Live(tile)) if tile.check().is_ok() => Ok(Some(*tile)),
            Some(Response::Error(error)) => Err(error.into()),
            Some(_) => Err(ClientError::Unexpected),
        }
    }
}

/// Lines of a log that are being received.
#[derive(Debug)]
pub struct LogPages {
    receiver: FrameReceiver,
}

impl LogPages {
    /// Returns the next lines, sometimes none; None once there will be no more. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<LogPage>, ClientError> {
        match self.receiver.receive().await? {
            None => Ok(None),
            Some(Response::Logs(page)) => Ok(Some(*page)),
            Some(Response::Error(error)) => Err(error.into()),
            Some(_) => Err(ClientError::Unexpected),
        }
    }
}

/// A backup that is being received.
#[derive(Debug)]
pub struct Backup {
    receiver: FrameReceiver,
}

impl Backup {
    /// Returns the next piece; None after the last one.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        match within(RESPONSE_WITHIN, self.receiver.receive()).await? {
            None => Ok(None),
            Some(Response::Backup(bytes)) => Ok(Some(bytes)),
            Some(Response::Error(error)) => Err(error.into()),
            Some(_) => Err(ClientError::Unexpected),
        }
    }
}

/// Returns hash and length of a file, which is read completely and in steps. Blocks.
pub fn hash_file(path: &Path) -> std::io::Result<(BlobHash, u64)> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(std::fs::File::open(path)?)?;
    Ok((BlobHash(*hasher.finalize().as_bytes()), hasher.count()))
}
