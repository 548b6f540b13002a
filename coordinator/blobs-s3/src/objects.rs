//! The objects of a store, asked from threads that block: puts, heads, lists and deletes, with a
//! limit on time, retries and memory.

use crate::address::{BlobAddress, Direct};
use crate::connector::Connector;
use crate::credentials::Credentials;
use crate::failure::Failure;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as Key;
use object_store::signer::{Method, Signer};
use object_store::{
    BackoffConfig, GetOptions, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode,
    PutOptions, PutPayload, RetryConfig,
};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// Longest time for a question with a short answer, beside its tries.
const SHORT: Duration = Duration::from_secs(90);
/// Longest pause before a request is made again.
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// Most tries of a request. Those of the longest patience are fewer.
const TRIES: usize = 1000;
/// Pause before a put is made again that broke in the middle.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a signed address holds. A reader that is slower continues with another one.
const SIGNED_FOR: Duration = Duration::from_secs(600);
/// Longest time without any part of a list or a file.
const SILENT: Duration = Duration::from_secs(30);
/// Longest file that is put at once; others go in parts.
const AT_ONCE: u64 = 16 << 20;
/// Bytes of a part. S3 takes 10,000 parts, so this is enough for 80 GB.
const PART: u64 = 8 << 20;
/// Parts of one file that are under way.
const PARTS: usize = 3;
/// Longest time for results to be put, beside a second for each MiB: they can go to a disk as well.
const PUT_WITHIN: Duration = Duration::from_secs(5);
/// Files that are put at a time, so that at most 200 MB of them are in memory.
const PUTS: usize = 8;

/// The bucket, below the prefix of an address. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Objects(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    s3: AmazonS3,
    prefix: String,
    puts: Semaphore,
    /// How long is tried, and the longest time for a question with a short answer.
    patience: Duration,
    short: Duration,
    direct: Direct,
    /// None while it ends.
    runtime: Option<Runtime>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The last owner may be a task, which must not wait for one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Objects {
    /// Makes a client. Asks nothing of the service. The error says what is wrong.
    pub(crate) fn new(address: &BlobAddress, credentials: &Credentials) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("tessera-s3")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        // Tries are bounded by time, and their number by more than that.
        let backoff = BackoffConfig { max_backoff: PAUSE_MAX, ..BackoffConfig::default() };
        let retry = RetryConfig { backoff, max_retries: TRIES, retry_timeout: address.patience };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&address.bucket)
            .with_virtual_hosted_style_request(address.is_virtual)
            .with_allow_http(true)
            .with_retry(retry)
            .with_http_connector(Connector::new(address)?);
        if let Some(region) = &address.region {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = &address.endpoint {
            builder = builder.with_endpoint(host_of(endpoint, address));
        }
        if let Credentials::Key { id, secret, token } = credentials {
            builder = builder.with_access_key_id(id).with_secret_access_key(secret);
            if let Some(token) = token {
                builder = builder.with_token(token);
            }
        }
        let s3 = builder.build().map_err(|error| error.to_string())?;
        let (prefix, puts) = (address.prefix.clone(), Semaphore::new(PUTS));
        let (patience, short) = (address.patience, SHORT + address.patience);
        let (direct, runtime) = (address.direct, Some(runtime));
        Ok(Self(Arc::new(Shared { s3, prefix, puts, patience, short, direct, runtime })))
    }

    /// Name of an object below the prefix.
    pub(crate) fn key(&self, name: &str) -> Key {
        match self.0.prefix.is_empty() {
            true => Key::from(name),
            false => Key::from(format!("{}/{name}", self.0.prefix)),
        }
    }

    /// Runs a request, and waits for it on a thread that may block.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let (told, answer) = std::sync::mpsc::sync_channel(1);
        let runtime = self.0.runtime.as_ref().ok_or(Failure::Ending)?;
        runtime.spawn(async move {
            // Nobody waits any more only if the thread has ended.
            let _ = told.send(request.await);
        });
        answer.recv().map_err(|_| Failure::Ending)?
    }

    /// Runs a request with a short answer.
    fn ask<T, F>(&self, request: impl FnOnce(Self) -> F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let (request, short) = (request(self.clone()), self.0.short);
        self.wait(
            async move { tokio::time::timeout(short, request).await.map_err(|_| Failure::Late)? },
        )
    }

    /// Returns length and time of an object; None if it is absent.
    pub(crate) fn head(&self, key: Key) -> Result<Option<ObjectMeta>, Failure> {
        let found = self.ask(|own| async move { Ok(own.0.s3.head(&key).await?) });
        match found {
            Err(failure) if failure.is_absent() => Ok(None),
            found => found.map(Some),
        }
    }

    /// Returns the bytes of a small object; None if it is absent.
    pub(crate) fn small(&self, key: Key, most: u64) -> Result<Option<Bytes>, Failure> {
        let read = self.ask(|own| async move {
            let options = GetOptions::new().with_range(Some(0..most));
            Ok(own.0.s3.get_opts(&key, options).await?.bytes().await?)
        });
        match read {
            Err(failure) if failure.is_absent() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Puts a small object. With `new` only if none is there. Returns whether it was put.
    pub(crate) fn put_small(&self, key: Key, bytes: Bytes, new: bool) -> Result<bool, Failure> {
        let mode = if new { PutMode::Create } else { PutMode::Overwrite };
        let put = self.ask(|own| async move {
            let options = PutOptions::from(mode);
            Ok(own.0.s3.put_opts(&key, PutPayload::from(bytes), options).await.map(drop)?)
        });
        match put {
            Err(failure) if new && failure.is_there() => Ok(false),
            put => put.map(|()| true),
        }
    }

    /// Stores a file as an object, if none is there. Returns whether it was stored now.
    pub(crate) fn put_file(&self, key: Key, path: &Path, length: u64) -> Result<bool, Failure> {
        let file = Arc::new(File::open(path).map_err(|error| of_file(&error))?);
        // The same bytes do no harm, but would take a while.
        if length > AT_ONCE && self.head(key.clone())?.is_some_and(|there| there.size == length) {
            return Ok(false);
        }
        let own = self.clone();
        self.wait(async move {
            let _place = own.0.puts.acquire().await.map_err(|_| Failure::Ending)?;
            let until = tokio::time::Instant::now() + own.0.patience;
            loop {
                // A put that broke in the middle may have happened, which does no harm.
                match own.try_put(&key, &file, length).await {
                    Err(failure) if failure.may_pass() && tokio::time::Instant::now() < until => {
                        tokio::time::sleep(PAUSE).await;
                    }
                    put => return put,
                }
            }
        })
    }

    async fn try_put(&self, key: &Key, file: &Arc<File>, length: u64) -> Result<bool, Failure> {
        if length <= AT_ONCE {
            let payload = PutPayload::from(piece(file, 0, length).await?);
            let put = self.0.s3.put_opts(key, payload, PutOptions::from(PutMode::Create));
            return match put.await.map_err(Failure::from) {
                Err(failure) if failure.is_there() => Ok(false),
                put => put.map(|_| true),
            };
        }
        let mut upload = self.0.s3.put_multipart(key).await?;
        let put = parts(&mut *upload, file, length).await;
        if put.is_err() {
            // What is left of it is for the bucket's own rule about unfinished uploads.
            let _ = upload.abort().await;
        }
        put.map(|()| true)
    }

    /// Deletes an object. Harmless if it is absent.
    pub(crate) fn delete(&self, key: Key) -> Result<(), Failure> {
        let gone = self.ask(|own| async move { Ok(own.0.s3.delete(&key).await?) });
        match gone {
            Err(failure) if failure.is_absent() => Ok(()),
            gone => gone,
        }
    }

    /// Puts pieces as an object, if none is there. Gives up soon.
    pub(crate) fn put_pieces(&self, key: Key, pieces: Vec<Bytes>) -> Result<(), Failure> {
        let own = self.clone();
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        let within = PUT_WITHIN + Duration::from_secs((bytes >> 20) as u64);
        self.wait(async move {
            let _place = own.0.puts.acquire().await.map_err(|_| Failure::Ending)?;
            let options = PutOptions::from(PutMode::Create);
            let put = own.0.s3.put_opts(&key, PutPayload::from_iter(pieces), options);
            let put = tokio::time::timeout(within, put).await.map_err(|_| Failure::Late)?;
            match put.map_err(Failure::from) {
                Err(failure) if !failure.is_there() => Err(failure),
                _ => Ok(()),
            }
        })
    }

    /// Makes an object like another one. The service does it.
    pub(crate) fn copy(&self, from: Key, to: Key) -> Result<(), Failure> {
        self.ask(|own| async move { Ok(own.0.s3.copy(&from, &to).await?) })
    }

    /// Returns a range of an object.
    pub(crate) fn range(&self, key: Key, range: Range<u64>) -> Result<Bytes, Failure> {
        self.ask(|own| async move { Ok(own.0.s3.get_range(&key, range).await?) })
    }

    /// Deletes objects, without waiting for it. What stays behind is found later.
    pub(crate) fn forget(&self, keys: Vec<Key>) {
        let Some(runtime) = self.0.runtime.as_ref().filter(|_| !keys.is_empty()) else { return };
        let own = self.clone();
        runtime.spawn(async move {
            // Many with one request, which not every service takes.
            let all = stream::iter(keys.clone().into_iter().map(Ok));
            let mut deleted = own.0.s3.delete_stream(all.boxed());
            let mut gone = true;
            while let Some(one) = deleted.next().await {
                gone &= one.is_ok();
            }
            let left = if gone { Vec::new() } else { keys };
            for key in left {
                if let Err(error) = own.0.s3.delete(&key).await {
                    tracing::debug!(%error, "an object of results is not deleted yet");
                }
            }
        });
    }

    /// Visits all objects below a name.
    pub(crate) fn list(
        &self,
        below: &str,
        visit: &mut dyn FnMut(ObjectMeta),
    ) -> Result<(), Failure> {
        let mut list = self.0.s3.list(Some(&self.key(below))).fuse().boxed();
        let short = self.0.short;
        loop {
            // The list is lent to the runtime, and comes back with its next part.
            let (rest, part) = self.wait(async move {
                let part = tokio::time::timeout(short, many(&mut list)).await;
                Ok((list, part.map_err(|_| Failure::Late)??))
            })?;
            list = rest;
            if part.is_empty() {
                return Ok(());
            }
            part.into_iter().for_each(&mut *visit);
        }
    }

    /// Returns an address by which whoever has it can get or put an object for a few minutes. None
    /// if that is switched off, or if the peer is on another machine and the service only on this
    /// one.
    pub(crate) fn signed(&self, method: Method, key: Key, here: bool) -> Option<String> {
        let direct = self.0.direct;
        if direct == Direct::Off || direct == Direct::Here && !here {
            return None;
        }
        let signed =
            self.ask(|own| async move { Ok(own.0.s3.signed_url(method, &key, SIGNED_FOR).await?) });
        let signed = signed.inspect_err(|error| tracing::warn!(%error, "no address can be signed"));
        signed.ok().map(String::from)
    }

    /// Begins to read an object from a byte on.
    pub(crate) async fn stream(&self, key: &Key, bytes: Range<u64>) -> Result<Pieces, Failure> {
        let options = GetOptions::new().with_range(Some(bytes));
        let got = tokio::time::timeout(self.0.short, self.0.s3.get_opts(key, options)).await;
        Ok(Pieces(got.map_err(|_| Failure::Late)??.into_stream()))
    }
}

/// The bytes of an object as they come.
pub(crate) struct Pieces(BoxStream<'static, object_store::Result<Bytes>>);

impl Pieces {
    /// Returns the next bytes; None at their end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let next = tokio::time::timeout(SILENT, self.0.next()).await;
        Ok(next.map_err(|_| Failure::Late)?.transpose()?)
    }
}

/// With the bucket in the host's name, the endpoint must have it.
fn host_of(endpoint: &str, address: &BlobAddress) -> String {
    match endpoint.split_once("://") {
        Some((scheme, host)) if address.is_virtual => {
            format!("{scheme}://{}.{host}", address.bucket)
        }
        _ => endpoint.to_owned(),
    }
}

/// Returns what a list has next, up to a page of the service; nothing at its end.
async fn many(
    list: &mut BoxStream<'static, object_store::Result<ObjectMeta>>,
) -> Result<Vec<ObjectMeta>, Failure> {
    let mut part = Vec::new();
    while part.len() < 1000 {
        match list.next().await {
            Some(entry) => part.push(entry?),
            None => break,
        }
    }
    Ok(part)
}

/// Puts a file in parts, some of them at a time.
async fn parts(
    upload: &mut dyn MultipartUpload,
    file: &Arc<File>,
    length: u64,
) -> Result<(), Failure> {
    let mut under_way = tokio::task::JoinSet::new();
    let mut at = 0;
    loop {
        while under_way.len() < PARTS && at < length {
            let count = PART.min(length - at);
            let bytes = piece(file, at, count).await?;
            under_way.spawn(upload.put_part(PutPayload::from(bytes)));
            at += count;
        }
        match under_way.join_next().await {
            Some(put) => put.map_err(|_| Failure::Ending)??,
            None => break,
        }
    }
    upload.complete().await?;
    Ok(())
}

async fn piece(file: &Arc<File>, from: u64, count: u64) -> Result<Bytes, Failure> {
    let file = file.clone();
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = vec![0; count as usize];
        file.read_exact_at(&mut bytes, from).map(|()| Bytes::from(bytes))
    });
    let read = read.await.map_err(|_| Failure::Ending)?;
    read.map_err(|error| of_file(&error))
}

fn of_file(error: &std::io::Error) -> Failure {
    let what = format!("the file that is to be stored cannot be read: {error}");
    Failure::Store { what, kind: error.kind() }
}
