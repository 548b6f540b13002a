//! Connects to a farm: chooses the coordinator and the identity, and follows jobs over lost
//! connections.

use crate::args::farm::FarmArgs;
use crate::config;
use crate::error::{CliError, Status};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tessera_protocol::client::{Progress, Request, Response};
use tessera_protocol::status::JobSummary;
use tessera_protocol::{Hello, JobId};
use tessera_transport::generation::{self, GenerationError};
use tessera_transport::renew::{self, Renewal};
use tessera_transport::validity::now_secs;
use tessera_transport::{Address, ClientError, CloseCode, FarmClient, Identity, Timing};
use tokio::task::JoinHandle;

/// Default address of a coordinator.
const DEFAULT_COORDINATOR: &str = "127.0.0.1:7420";
/// First and longest wait between two attempts to reach a coordinator that was there before.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Attempts to find a newer coordinator in another place, and the pause between them. One that
/// leads no more notices it within a second.
const OLDER_TRIES: u32 = 5;
const OLDER_PAUSE: Duration = Duration::from_millis(500);

/// Age at which a connection no longer belongs to a short command. From then on its identity is
/// renewed.
const FRESH_AFTER: Duration = Duration::from_secs(1);

/// Name of the file with the largest generation of a coordinator that was seen, in an identity's
/// folder.
const GENERATION_FILE: &str = "generation";

/// How a command gets connections to its farm.
pub(crate) struct Farm {
    address: Address,
    identity: Mutex<Arc<Identity>>,
    /// Folder that the identity is kept and renewed in; None for one that ends with this process.
    folder: Option<PathBuf>,
}

/// A connection of a command; its identity is kept fresh for as long as it lives.
pub(crate) struct Connected {
    client: FarmClient,
    renewing: Option<JoinHandle<()>>,
}

impl std::ops::Deref for Connected {
    type Target = FarmClient;
    fn deref(&self) -> &FarmClient {
        &self.client
    }
}

impl Connected {
    /// Says goodbye.
    pub(crate) async fn close(self) {
        self.client.link().close(CloseCode::Done, "done").await;
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        if let Some(renewing) = &self.renewing {
            renewing.abort();
        }
    }
}

impl Farm {
    /// The farm of these options.
    pub(crate) fn of(args: &FarmArgs) -> Result<Self, CliError> {
        let folder = identity_folder(args)?;
        let identity = Identity::load(&folder).map_err(|error| {
            CliError::from(error).hint(
                "the coordinator's first start leaves an admin identity in \
                 DATA/admin (--identity DATA/admin); \
                 others get one by `tessera enrol --token-file FILE`",
            )
        })?;
        let address = address(args, &identity)?;
        Ok(Self { address, identity: Mutex::new(Arc::new(identity)), folder: Some(folder) })
    }

    /// A farm that is known already, and an identity that is kept nowhere.
    pub(crate) fn new(address: Address, identity: Identity) -> Self {
        Self { address, identity: Mutex::new(Arc::new(identity)), folder: None }
    }

    fn identity(&self) -> Arc<Identity> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connects. If less than half of the certificate's life is left, the identity is renewed first
    /// and the new one is stored.
    pub(crate) async fn connect(&self) -> Result<Connected, CliError> {
        let hello = Hello::ours(tessera_node::fingerprint());
        let identity = self.identity();
        let mut tries = if self.address.each().len() > 1 { OLDER_TRIES } else { 1 };
        let client = loop {
            let client = FarmClient::connect(&self.address, &identity, &hello).await?;
            tries -= 1;
            match self.check_generation(&client, &identity) {
                Ok(()) => break client,
                Err(error) if tries == 0 => return Err(error),
                // A leader that was stopped, and does not know yet that another one leads.
                Err(_) => tokio::time::sleep(OLDER_PAUSE).await,
            }
        };
        if let Some(folder) = &self.folder
            && renew::is_due(&client.link().connection, &identity)
        {
            let connection = &client.link().connection;
            match renew::renew_kept(connection, &identity, folder, Timing::default()).await {
                Ok(Renewal::Renewed(renewed)) => {
                    *self.identity.lock().unwrap_or_else(PoisonError::into_inner) =
                        Arc::new(renewed);
                }
                Ok(Renewal::NotYet(_)) => {}
                Err(error) if is_expired(&identity) => return Err(error.into()),
                // The command does not need the new certificate, since the present one is still
                // valid.
                Err(error) => tracing::warn!(%error, "the identity's certificate is not renewed"),
            }
        }
        Ok(Connected { renewing: self.keep_fresh(&client), client })
    }

    /// Refuses a coordinator that is older than one that this identity has been used with: that of
    /// a farm that was restored elsewhere.
    fn check_generation(&self, client: &FarmClient, identity: &Identity) -> Result<(), CliError> {
        let found = generation::of(&client.link().connection);
        let (Some(found), Some(farm), Some(folder)) =
            (found, identity.authority_pin(), &self.folder)
        else {
            return Ok(());
        };
        match generation::check(&folder.join(GENERATION_FILE), farm, found) {
            Err(error @ GenerationError::Older { .. }) => {
                Err(CliError::new(Status::Failure, error))
            }
            // Where it cannot be noted, as in a folder that is only read, nothing is noticed.
            Ok(()) | Err(GenerationError::Note { .. }) => Ok(()),
        }
    }

    /// Renews the identity over this connection as long as it exists. Commands that follow a job
    /// may run for days.
    fn keep_fresh(&self, client: &FarmClient) -> Option<JoinHandle<()>> {
        let (connection, folder) = (client.link().connection.clone(), self.folder.clone()?);
        let identity = self.identity();
        Some(tokio::spawn(async move {
            tokio::time::sleep(FRESH_AFTER).await;
            let told = |renewed: Result<Arc<Identity>, _>| {
                if let Err(error) = renewed {
                    tracing::debug!(%error, "certificate not renewed");
                }
            };
            renew::keep_fresh(connection, identity, &folder, Timing::default(), told).await;
        }))
    }

    /// Asks over a connection of its own.
    pub(crate) async fn ask(&self, request: &Request) -> Result<Response, CliError> {
        let client = self.connect().await?;
        let response = client.request(request).await;
        client.close().await;
        Ok(response?)
    }

    /// The identity as it is kept now: a renewal over a former connection has replaced it.
    fn look_again(&self) {
        if let Some(folder) = &self.folder
            && let Ok(identity) = Identity::load(folder)
        {
            *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(identity);
        }
    }

    /// Follows a job to its end, over connections that are lost and coordinators that start again;
    /// `heard` hears of every change. The first connection must come about.
    pub(crate) async fn follow(
        &self,
        job: JobId,
        heard: &mut (dyn FnMut(&Progress) + Send),
    ) -> Result<JobSummary, CliError> {
        self.persist(async |client| follow_once(client, job, heard).await).await
    }

    /// Does what may be done again, over connections that are lost and coordinators that start
    /// again. The first connection must come about.
    pub(crate) async fn persist<T>(
        &self,
        mut work: impl AsyncFnMut(&FarmClient) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let mut backoff = BACKOFF.0;
        let mut reached = false;
        loop {
            self.look_again();
            let lost = match self.connect().await {
                Ok(client) => {
                    (reached, backoff) = (true, BACKOFF.0);
                    match work(&client).await {
                        Ok(done) => {
                            client.close().await;
                            return Ok(done);
                        }
                        Err(error) => error,
                    }
                }
                Err(error) if !reached => return Err(error),
                Err(error) => error,
            };
            if lost.status() != Status::Unreachable {
                return Err(lost);
            }
            tracing::debug!(error = %lost, "connection lost; trying again");
            tokio::time::sleep(backoff).await;
            backoff = (backoff * 2).min(BACKOFF.1);
        }
    }
}

async fn follow_once(
    client: &FarmClient,
    job: JobId,
    heard: &mut (dyn FnMut(&Progress) + Send),
) -> Result<JobSummary, CliError> {
    let mut watch = client.watch(job).await?;
    let mut last = None;
    while let Some(progress) = watch.next().await? {
        heard(&progress);
        last = Some(progress.summary);
    }
    match last.filter(|summary| summary.state.is_final()) {
        Some(summary) => Ok(summary),
        None => {
            Err(CliError::new(Status::Unreachable, "the coordinator stopped reporting on the job"))
        }
    }
}

fn is_expired(identity: &Identity) -> bool {
    identity.validity().is_some_and(|validity| validity.is_expired(now_secs()))
}

/// The answer is to another question: versions that should have refused each other.
pub(crate) fn unexpected() -> CliError {
    ClientError::Unexpected.into()
}

/// Returns the identity folder that the options name.
pub(crate) fn identity_folder(args: &FarmArgs) -> Result<PathBuf, CliError> {
    args.identity.clone().or_else(default_identity).ok_or_else(|| {
        CliError::new(Status::Failure, "this user has no home folder")
            .hint("say where the identity is: --identity DIR")
    })
}

/// Returns the default identity folder; None without a home.
pub(crate) fn default_identity() -> Option<PathBuf> {
    config::user_folder().map(|folder| folder.join("identity"))
}

/// The coordinator of these options, before there is an identity.
pub(crate) fn first_address(args: &FarmArgs) -> Result<Address, CliError> {
    parse(args.coordinator.as_deref().unwrap_or(DEFAULT_COORDINATOR))
}

pub(crate) fn address(args: &FarmArgs, identity: &Identity) -> Result<Address, CliError> {
    match (&args.coordinator, &identity.coordinator) {
        (Some(text), _) => parse(text),
        (None, Some(address)) => Ok(address.clone()),
        (None, None) => parse(DEFAULT_COORDINATOR),
    }
}

fn parse(text: &str) -> Result<Address, CliError> {
    text.parse().map_err(|error| CliError::new(Status::Usage, error).context("--coordinator"))
}
