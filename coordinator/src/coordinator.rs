//! A coordinator in this process: opens the data folder, replays the journal, and runs the tasks. A
//! process can run several.

use crate::access::tokens::Ledger;
use crate::access::web::WebAccess;
use crate::access::{Access, Kept, Members, audit_upkeep, keep};
use crate::api::{Api, Askers, Context};
use crate::blobs::GuardedBlobs;
use crate::changes::Publisher;
use crate::clock::Clock;
use crate::config::Config;
use crate::coordinator_error::CoordinatorError;
use crate::driver::{Driver, Event, Surroundings};
use crate::entrance::{Entrance, reachable};
use crate::farm_log::FarmLog;
use crate::folder::DataFolder;
use crate::fsck;
use crate::housekeeping::{self, Keeping};
use crate::live::{self, Board};
use crate::logs::Logs;
use crate::meters::Meters;
use crate::opened::{Begin, Tokens, open_aside};
use crate::openings::{asking_limits, open_logs, open_uploads, upload_limit, writer_limits};
use crate::quic::{self, Shared};
use crate::resolve::order::ResolveOrder;
use crate::resolve::orders;
use crate::result_memory::ResultMemory;
use crate::spool::Spools;
use crate::store::{StoreError, StoreQueue, StoreWriter};
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use tessera_core::{Census, Core};
use tessera_protocol::access::TokenScope;
use tessera_protocol::client::{AuditReport, RequestError, Role};
use tessera_protocol::{Hello, NodeId};
use tessera_transport::validity::now_secs;
use tessera_transport::{CloseCode, Identity, JoinToken, PeerIdentity, Server, TokenUse};
use tokio::sync::{RwLock, mpsc, oneshot};
use tokio::task::JoinHandle;

/// Most events that wait for the driver. Senders of more events wait.
const EVENTS_WAITING_MAX: usize = 1024;

/// What every connection needs.
fn shared(
    config: &Config,
    context: &Arc<Context>,
    (blobs, log): (GuardedBlobs, Arc<FarmLog>),
) -> Shared {
    Shared {
        hello: Hello::ours(config.fingerprint),
        api: Api::new(context.clone()),
        access: context.access.clone(),
        blobs: Arc::new(blobs),
        spools: context.spools.clone(),
        files: Arc::default(),
        store_rests: quic::Rest::default(),
        events: context.events.clone(),
        result_memory: context.result_memory.clone(),
        result_rate: config.limits.result_rate,
        next_session: AtomicU64::new(0),
        gate: quic::limits::Gate::new(config.limits),
        rivals: quic::Rivals::default(),
        log,
        meters: context.meters.clone(),
        live: context.live.clone(),
        logs: context.logs.clone(),
        live_places: quic::live::places(),
    }
}

fn surroundings(
    config: &Config,
    clock: Clock,
    (writer, resolver): (Arc<StoreWriter>, mpsc::UnboundedSender<ResolveOrder>),
    publisher: Publisher,
    (live, logs, meters): (Arc<Board>, Logs, Arc<Meters>),
) -> Surroundings {
    Surroundings {
        clock,
        writer,
        resolver,
        publisher,
        live,
        logs,
        meters,
        snapshot_records: config.snapshot_records.max(1),
        log: Arc::new(FarmLog::new()),
        tracer: config.tracer.clone(),
    }
}

/// Outcome of a start.
type Started = Result<RunningCoordinator, CoordinatorError>;

/// Entry point that starts a coordinator.
#[derive(Debug)]
pub struct Coordinator;

impl Coordinator {
    /// Opens the data folder (and makes it if it is absent), continues its open jobs, and listens.
    /// Must be called within a tokio runtime.
    pub async fn start(config: Config) -> Result<RunningCoordinator, CoordinatorError> {
        Self::start_with(config, None).await
    }

    /// Starts with what is open already; None opens it.
    pub(crate) async fn start_with(config: Config, begin: Option<Begin>) -> Started {
        let clock = Clock::start();
        let opened = open_aside(config.clone(), clock, begin).await?;
        let uploads = open_uploads(&opened.folder)?;
        let logs = open_logs(&opened.folder, config.lines.clone())?;
        let (blobs, spools) = (GuardedBlobs::new(opened.blobs), opened.spools.reader());
        let writer =
            Arc::new(StoreWriter::start(opened.journal, opened.spools, writer_limits(&config))?);
        let members = Members::new(opened.members, writer.queue(), config.lifetimes);
        let lists = (Arc::new(members), writer.queue());
        let entrance = Entrance::open(&config, &opened.folder, opened.keys, lists);
        let Entrance { server, address, kept, admin, access } =
            entrance.inspect_err(|_| writer.stop())?;
        opened.folder.sync().inspect_err(|_| writer.stop())?;
        writer.keep_audit_head(access.log.head().clone());
        let (events, events_receiver) = mpsc::channel(EVENTS_WAITING_MAX);
        let (orders, orders_receiver) = mpsc::unbounded_channel();
        let (publisher, changes) = Publisher::new();
        let (live, meters) = (Arc::<Board>::default(), Arc::new(Meters::new(config.fingerprint)));
        let watched = (live.clone(), logs.clone(), meters.clone());
        let around = surroundings(&config, clock, (writer.clone(), orders), publisher, watched);
        let (joining, bearing) = by_use(opened.tokens);
        let context = Arc::new(Context {
            access: access.clone(),
            ledger: Ledger::new(joining, writer.queue()),
            web: WebAccess::new(bearing, writer.queue()),
            blobs: blobs.clone(),
            spools: spools.clone(),
            clock,
            events: events.clone(),
            writer,
            changes,
            result_memory: ResultMemory::new(config.result_memory_bytes),
            uploads: uploads.clone(),
            upload_limit: upload_limit(&config),
            askers: Askers::new(asking_limits(&config)),
            submitting: RwLock::new(()),
            meters,
            live: live.clone(),
            logs,
            tracer: config.tracer.clone(),
            standing: None,
            term_key: config.store.term_key(),
            targets: OnceLock::new(),
        });
        let shared = Arc::new(shared(&config, &context, (blobs.clone(), around.log.clone())));
        let keeping = Keeping { grace: config.blob_grace, jobs: config.keep_jobs };
        let sweeping = housekeeping::run(keeping, (blobs.clone(), uploads), clock, events.clone());
        check_inputs(&opened.core, &blobs);
        let showing = live::keep(live, events.clone());
        let asked = (shared.files.clone(), events);
        let resolver = tokio::spawn(orders::run(orders_receiver, (blobs, spools), asked));
        let driver = Driver::new(opened.core, opened.sequences, around).run(events_receiver);
        let driver = tokio::spawn(driver);
        let serving = tokio::spawn(quic::serve(server.clone(), shared));
        let keeping = keep_access(access, kept, context.writer.queue(), showing);
        tracing::info!(%address, data = %config.data.display(), "coordinator listens");
        Ok(RunningCoordinator {
            address,
            admin,
            context,
            server,
            driver: Some(driver),
            resolver,
            housekeeping: tokio::spawn(sweeping),
            serving,
            keeping: tokio::spawn(keeping),
            _folder: opened.folder,
        })
    }
}

/// Keeps identities and the audit log in order, and shows what is live, for as long as the
/// coordinator runs.
async fn keep_access(
    access: Arc<Access>,
    kept: Kept,
    queue: StoreQueue,
    showing: impl Future<Output = ()>,
) {
    let audit = audit_upkeep::run(access.clone(), queue);
    tokio::join!(keep(access, kept), audit, showing);
}

/// Parts the join tokens from those that HTTP requests are made with.
pub(crate) fn by_use(tokens: Tokens) -> (Tokens, Tokens) {
    tokens.into_iter().partition(|(_, record)| record.purpose == TokenUse::Join)
}

/// Checks the input files of open jobs, on another thread: nobody waits for it.
fn check_inputs(core: &Core, blobs: &GuardedBlobs) {
    let (inputs, blobs) = (fsck::Inputs::of(core), blobs.store());
    tokio::task::spawn_blocking(move || inputs.check(&*blobs));
}

/// A view of a running coordinator, for a supervisor.
#[derive(Clone, Debug)]
pub struct Probe(mpsc::Sender<Event>);

impl Probe {
    /// Asks by these events.
    pub(crate) fn of(events: mpsc::Sender<Event>) -> Self {
        Self(events)
    }

    /// Asks the driver, so that the answer shows that its loop runs. None if the driver has ended.
    pub async fn census(&self) -> Option<Census> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Event::Census(reply)).await.ok()?;
        answer.await.ok()
    }
}

/// A running coordinator. If it is dropped without [`Self::shutdown`], it stops like a killed
/// process.
pub struct RunningCoordinator {
    address: SocketAddr,
    admin: Identity,
    context: Arc<Context>,
    server: Arc<Server>,
    driver: Option<JoinHandle<Result<(), StoreError>>>,
    resolver: JoinHandle<()>,
    housekeeping: JoinHandle<()>,
    serving: JoinHandle<()>,
    keeping: JoinHandle<()>,
    _folder: DataFolder,
}

impl RunningCoordinator {
    /// Returns the address on which it listens.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the identity of the farm's first admin.
    pub fn admin(&self) -> &Identity {
        &self.admin
    }

    /// Returns the coordinator's requests, for another transport in this process.
    pub fn api(&self) -> Api {
        Api::new(self.context.clone())
    }

    /// Returns a view that outlives a borrow.
    pub fn probe(&self) -> Probe {
        Probe(self.context.events.clone())
    }

    /// Creates an identity of this farm with a new key, for nodes and clients within this process.
    /// A name that is held gets another key of the same identity. Others enrol with a token.
    pub fn issue(
        &self,
        role: Role,
        name: &str,
        node: Option<NodeId>,
    ) -> Result<Identity, CoordinatorError> {
        let access = &self.context.access;
        let peer = PeerIdentity::new(role, name, node)?;
        let mut identity = access.members.issue(&access.authority(), peer, now_secs())?;
        identity.coordinator = Some(reachable(self.address).into());
        Ok(identity)
    }

    /// Creates a join token for this scope in the name of the coordinator. The token is durable on
    /// return.
    pub async fn create_token(&self, scope: TokenScope) -> Result<JoinToken, RequestError> {
        let now = self.context.clock.now().secs();
        self.context
            .ledger
            .create(&self.context.access.authority(), scope, "the coordinator", now)
            .await
    }

    /// Checks the store against its own records, blobs and spools.
    pub async fn audit(&self) -> Result<AuditReport, RequestError> {
        self.api().audit().await
    }

    /// Waits until the coordinator ends by itself, which happens if its store fails. Changes that
    /// are not durable are then not acknowledged, and a new start continues from the durable ones.
    pub async fn failed(&mut self) -> CoordinatorError {
        let Some(driver) = &mut self.driver else {
            return CoordinatorError::Task("it has ended".into());
        };
        let ended = driver.await;
        self.driver = None;
        match ended {
            Ok(Ok(())) => CoordinatorError::Task("it has ended".into()),
            Ok(Err(error)) => error.into(),
            Err(error) => CoordinatorError::Task(error.to_string()),
        }
    }

    /// Stops the coordinator: tells every peer, makes pending changes durable, and releases the
    /// data folder.
    pub async fn shutdown(mut self) -> Result<(), CoordinatorError> {
        self.context.live.close();
        self.server.close(CloseCode::ShuttingDown, "the coordinator stops").await;
        let mut result = Ok(());
        // The driver may have ended already.
        let _ = self.context.events.send(Event::Stop).await;
        if let Some(driver) = self.driver.take() {
            result = match driver.await {
                Ok(ended) => ended.map_err(CoordinatorError::from),
                Err(error) => Err(CoordinatorError::Task(error.to_string())),
            };
        }
        self.housekeeping.abort();
        self.keeping.abort();
        audit_upkeep::enter_counts(&self.context.access, true).await;
        let writer = self.context.writer.clone();
        let logs = self.context.logs.clone();
        let stop = move || {
            logs.stop();
            writer.stop();
        };
        let stopped = tokio::task::spawn_blocking(stop).await;
        for task in [&mut self.serving, &mut self.resolver] {
            if let Err(error) = task.await {
                tracing::error!(%error, "a task of the coordinator has failed");
            }
        }
        result.and(stopped.map_err(|error| CoordinatorError::Task(error.to_string())))
    }
}

impl std::fmt::Debug for RunningCoordinator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RunningCoordinator({})", self.address)
    }
}

impl Drop for RunningCoordinator {
    fn drop(&mut self) {
        if let Some(driver) = &self.driver {
            driver.abort();
        }
        self.context.live.close();
        self.serving.abort();
        self.keeping.abort();
        self.resolver.abort();
        self.housekeeping.abort();
        // Wait for the store's thread. The folder's lock is released next, and nothing may write to
        // the folder after that.
        self.context.logs.stop();
        self.context.writer.stop();
    }
}
