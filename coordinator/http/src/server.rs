//! The listening side: threads of its own, connections with limits, TLS, and the end of all.

use crate::address::{AddressError, HttpConfig, Place, TlsChoice};
use crate::crowd::Crowd;
use crate::inspect::Inspector;
use crate::oidc::{Oidc, OidcError};
use crate::stall::Unstalled;
use crate::state::{Shared, State};
use crate::tls::{self, TlsError};
use crate::{api, guard, metrics, pages, passing, spans};
use axum::extract::ConnectInfo;
use axum::{Router, middleware};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tessera_coordinator::api::Api;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// Threads of the server.
const THREADS: usize = 2;
/// Most connections at a time.
const CONNECTIONS_MAX: usize = 2048;
/// Longest time until a connection's next head is complete, and of a TLS handshake.
const HEAD_WITHIN: Duration = Duration::from_secs(20);
/// Most bytes of a head.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// Most headers of a request.
const HEADERS_MAX: usize = 64;
/// How often the certificate is made or read again.
const RENEW_EVERY: Duration = Duration::from_secs(3600);
/// How long answers may take to end when the server stops.
const END_WITHIN: Duration = Duration::from_secs(2);
/// How long requests wait while a coordinator that stood by begins to lead, and how often they
/// look.
const LEAD_WITHIN: Duration = Duration::from_secs(20);
const LEAD_LOOK: Duration = Duration::from_millis(10);
/// Pause after a failed accept, which is a lack of descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Why HTTP is not served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address is not safe, or not an address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The address is in use, or does not belong to this machine.
    #[error("cannot listen at TCP {address} for HTTP (--http)")]
    Bind {
        /// Address to listen on.
        address: SocketAddr,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The provider for sign-ins cannot be used.
    #[error(transparent)]
    Oidc(#[from] OidcError),
    /// The system has no threads.
    #[error("cannot start the threads of HTTP")]
    Threads(#[source] std::io::Error),
}

/// A running server of HTTP. It ends when it is dropped.
pub struct HttpServer {
    address: SocketAddr,
    place: Place,
    inspector: Option<Arc<dyn Inspector>>,
    oidc: Option<Arc<Oidc>>,
    serving: Serving,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// What is served now. Connections stay while it changes.
#[derive(Clone)]
struct Serving(Arc<RwLock<(Shared, Router)>>);

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HttpServer({})", self.address)
    }
}

impl Serving {
    fn of(state: Shared) -> Self {
        let router = router(state.clone());
        Self(Arc::new(RwLock::new((state, router))))
    }

    fn change(&self, state: Shared) {
        let router = router(state.clone());
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = (state, router);
    }

    fn state(&self) -> Shared {
        self.0.read().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Returns what takes requests. Waits while a coordinator that stood by begins to lead.
    async fn router(&self) -> Router {
        let begun = Instant::now();
        while self.state().api.has_stood_by() && begun.elapsed() < LEAD_WITHIN {
            tokio::time::sleep(LEAD_LOOK).await;
        }
        self.0.read().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

impl HttpServer {
    /// Listens, and serves on threads of its own. Without an inspector, scenes are not looked at
    /// before they are submitted.
    pub fn start(
        config: &HttpConfig,
        api: Api,
        inspector: Option<Arc<dyn Inspector>>,
    ) -> Result<Self, HttpError> {
        let bind = |source| HttpError::Bind { address: config.listen, source };
        config.check()?;
        let listener = TcpListener::bind(config.listen).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let place = Place::of(config, address)?;
        let tls = match &config.tls {
            Some(choice) => Some(Certificate::new(choice.clone(), &place, &api)?),
            None => None,
        };
        let oidc = config.oidc.as_ref().map(|oidc| Oidc::new(oidc, &place.base));
        let oidc = oidc.transpose()?.map(Arc::new);
        let asks = (api.clone(), inspector.clone());
        let state = State::new(asks, (place.clone(), oidc.clone()), address.port());
        let serving = Serving::of(Arc::new(state));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("http")
            .enable_all()
            .build()
            .map_err(HttpError::Threads)?;
        let (stop, stopped) = watch::channel(false);
        let served = serving.clone();
        let serve = move || {
            runtime.block_on(serve(listener, (served, tls), stopped));
            runtime.shutdown_timeout(END_WITHIN);
        };
        let thread = std::thread::Builder::new().name("http".into()).spawn(serve);
        let thread = Some(thread.map_err(HttpError::Threads)?);
        api.serve_web_at(place.base.clone());
        Ok(Self { address, place, inspector, oidc, serving, stop, thread })
    }

    /// Goes on with the requests of another coordinator of this process, at the same address: the
    /// one that leads after it stood by. Streams of the former one end by themselves.
    pub fn go_on_with(&self, api: &Api) {
        api.serve_web_at(self.place.base.clone());
        let asks = (api.clone(), self.inspector.clone());
        let of = (self.place.clone(), self.oidc.clone());
        self.serving.change(Arc::new(State::new(asks, of, self.address.port())));
    }

    /// Returns the address at which other coordinators of the farm reach this one.
    pub fn advertised(&self) -> &str {
        &self.place.advertised
    }

    /// Returns the address that it listens on.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address that people use.
    pub fn base(&self) -> &str {
        &self.place.base
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the threads of HTTP have failed");
        }
    }
}

/// The certificate in use.
struct Certificate {
    choice: TlsChoice,
    settings: RwLock<Arc<ServerConfig>>,
}

impl Certificate {
    fn new(choice: TlsChoice, place: &Place, api: &Api) -> Result<Arc<Self>, TlsError> {
        let settings = RwLock::new(tls::settings(&choice, (place, api))?);
        Ok(Arc::new(Self { choice, settings }))
    }

    fn acceptor(&self) -> TlsAcceptor {
        let settings = self.settings.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(settings.clone())
    }

    /// Makes or reads the certificate again, for as long as the server runs.
    async fn keep(self: Arc<Self>, serving: Serving) {
        loop {
            tokio::time::sleep(RENEW_EVERY).await;
            let state = serving.state();
            match tls::settings(&self.choice, (&state.place, &state.api)) {
                Ok(new) => {
                    *self.settings.write().unwrap_or_else(PoisonError::into_inner) = new;
                }
                Err(error) => {
                    tracing::error!(%error, "the certificate for HTTP stays as it was");
                }
            }
        }
    }
}

async fn serve(
    listener: TcpListener,
    (serving, certificate): (Serving, Option<Arc<Certificate>>),
    mut stopped: watch::Receiver<bool>,
) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "HTTP is not served"),
    };
    if let Some(certificate) = &certificate {
        tokio::spawn(certificate.clone().keep(serving.clone()));
    }
    if let Some(oidc) = &serving.state().oidc {
        // The first page that is looked at can then say whether the provider answers.
        oidc.look();
    }
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let crowd = Crowd::new(CONNECTIONS_MAX / 8);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &room) => accepted,
            _ = stopped.changed() => break,
        };
        let (stream, from, permit) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "no connection of HTTP can be taken now");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let Some(place) = crowd.enter(from.ip()) else { continue };
        let serving = (serving.clone(), from);
        let (certificate, stopped) = (certificate.clone(), stopped.clone());
        tokio::spawn(async move {
            // A browser may be gone at any time.
            let _held: (OwnedSemaphorePermit, _) = (permit, place);
            match certificate {
                None => talk(stream, serving, stopped).await,
                Some(certificate) => {
                    let handshake = certificate.acceptor().accept(stream);
                    if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_WITHIN, handshake).await {
                        talk(stream, serving, stopped).await;
                    }
                }
            }
        });
    }
    let end = room.acquire_many(CONNECTIONS_MAX as u32);
    // Streams of events do not end by themselves.
    let _ = tokio::time::timeout(END_WITHIN, end).await;
}

async fn accept(
    listener: &tokio::net::TcpListener,
    room: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = room.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, from) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, from, permit))
}

/// Serves the requests of one connection.
async fn talk<T>(
    stream: T,
    (serving, from): (Serving, SocketAddr),
    mut stopped: watch::Receiver<bool>,
) where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    let stream = TokioIo::new(Unstalled::new(stream));
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(from));
        let serving = serving.clone();
        async move { TowerToHyperService::new(serving.router().await).call(request).await }
    });
    let connection = http.serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of HTTP ended");
    }
}

fn router(state: Shared) -> Router {
    Router::new()
        .merge(pages::router())
        .merge(metrics::router())
        .merge(passing::router())
        .nest("/api/v1", api::router())
        .fallback(pages::nothing_there)
        .layer(middleware::from_fn_with_state(state.clone(), passing::pass_on))
        .layer(middleware::from_fn_with_state(state.clone(), guard::guard))
        .layer(middleware::from_fn_with_state(state.clone(), passing::take))
        .layer(middleware::from_fn_with_state(state.clone(), metrics::count))
        .layer(middleware::from_fn_with_state(state.clone(), spans::follow))
        .with_state(state)
}
