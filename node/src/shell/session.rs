//! The session with the coordinator: enrols, dials, dials again, and carries messages in both
//! directions. Decides nothing about work.

use super::event::{Event, Session};
use super::{live, logs};
use crate::backoff::Backoff;
use crate::config::Config;
use crate::log::NodeLog;
use crate::status::NodeError;
use quinn::Connection;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::node::{CoordinatorToNode, Heartbeat, NodeToCoordinator};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{Fingerprint, Hello, NodeId};
use tessera_transport::close::close;
use tessera_transport::enrol::{Applicant, enrol};
use tessera_transport::error::chain;
use tessera_transport::error::{ConnectFailure, Ended};
use tessera_transport::frame::{open_both, open_one_way, within};
use tessera_transport::generation::{self, GenerationError};
use tessera_transport::renew::{self, renew_kept};
use tessera_transport::{
    Address, CloseCode, ConnectError, EnrolError, FrameError, FrameReceiver, FrameSender, Identity,
    JoinToken, Link, Timing, connect,
};
use tokio::sync::{mpsc, oneshot, watch};

/// Most messages that wait to be written. Leases bound the messages of a node. If more messages
/// wait, the coordinator does not read, and the session is given up.
const OUTGOING_MAX: usize = 4096;
/// Most heartbeats that wait. Old ones are useless.
const HEARTBEATS_MAX: usize = 2;
/// Duration after which a session counts as a good one. The next wait is then the first one again.
const GOOD_SESSION: Duration = Duration::from_secs(5);
/// Longest time for the last messages at a regular end.
const GOODBYE: Duration = Duration::from_secs(2);

/// Why a node ends that was not told why.
const STOPPED: &str = "stopped";

/// File beside the identity with the largest generation of the farm that was seen.
const GENERATION_FILE: &str = "generation";

/// Keeps a session with the coordinator as long as the node lives.
pub(super) struct Dialler {
    address: Address,
    identity_folder: PathBuf,
    token: Option<JoinToken>,
    name: String,
    name_is_fixed: bool,
    pool: Option<String>,
    node: NodeId,
    hello: Hello,
    timing: Timing,
    backoff: Backoff,
    /// Whether the coordinator said that the certificate has expired. It must then be renewed
    /// first.
    renew_first: bool,
    /// Whether the identity expired too long ago. A valid token then gets another one.
    enrol_again: bool,
    events: mpsc::UnboundedSender<Event>,
    /// The present connection, for tasks that fetch blobs.
    connection: watch::Sender<Option<Connection>>,
    log: NodeLog,
}

/// How a try to reach the coordinator failed.
enum Failed {
    /// It may work later.
    ForNow(String),
    /// It cannot work before a person changes something.
    ForGood(NodeError),
}

impl Dialler {
    pub(super) fn new(
        config: &Config,
        identity_folder: PathBuf,
        node: NodeId,
        fingerprint: Fingerprint,
        events: mpsc::UnboundedSender<Event>,
        connection: watch::Sender<Option<Connection>>,
    ) -> Result<Self, NodeError> {
        let address: Address = config.coordinator.parse().map_err(NodeError::Address)?;
        let token =
            config.token.as_deref().map(str::parse).transpose().map_err(NodeError::Token)?;
        if !tessera_transport::peer::is_name(&config.name) {
            return Err(NodeError::Name(config.name.clone()));
        }
        if token.is_none() && !Identity::is_at(&identity_folder) {
            return Err(NodeError::NoToken(identity_folder));
        }
        let backoff = Backoff::among(*node.0.as_bytes(), address.each().len());
        Ok(Self {
            address,
            identity_folder,
            token,
            name: config.name.clone(),
            name_is_fixed: config.name_is_fixed,
            pool: config.pool.clone(),
            node,
            hello: Hello::ours(fingerprint),
            timing: config.timing,
            backoff,
            renew_first: false,
            enrol_again: false,
            events,
            connection,
            log: config.log.clone(),
        })
    }

    /// Runs until it is stopped (or `stop` is dropped), or until no session is possible.
    pub(super) async fn run(mut self, mut stop: oneshot::Receiver<String>) {
        for number in 1.. {
            let tried = tokio::select! {
                tried = self.reach() => tried,
                _ = &mut stop => return,
            };
            match tried {
                Ok(link) => {
                    tracing::info!(coordinator = %self.address, build = link.hello.build,
                        "connected");
                    let begun = tokio::time::Instant::now();
                    let stopped = self.hold(&link, number, &mut stop).await;
                    self.connection.send_replace(None);
                    if let Some(why) = stopped {
                        link.close(CloseCode::Leaving, &why).await;
                        return;
                    }
                    // The shell owns the other end and outlives this task. If it is gone, no task
                    // listens.
                    let _ = self.events.send(Event::Lost(number));
                    if begun.elapsed() >= GOOD_SESSION {
                        self.backoff.reset();
                    }
                    self.learn_from(&link.connection);
                }
                Err(Failed::ForNow(reason)) => {
                    tracing::warn!(coordinator = %self.address, reason, "no session");
                }
                Err(Failed::ForGood(error)) => {
                    let _ = self.events.send(Event::Hopeless(error));
                    return;
                }
            }
            let wait = self.backoff.next();
            tracing::info!(wait_millis = wait.as_millis() as u64, "dialling again after a wait");
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = &mut stop => return,
            }
        }
    }

    async fn reach(&mut self) -> Result<Link, Failed> {
        let identity = self.identity().await?;
        if identity.peer.node != Some(self.node) {
            return Err(Failed::ForGood(NodeError::OtherNode(self.identity_folder.clone())));
        }
        self.check_name(&identity)?;
        self.check_pool(&identity)?;
        let connected = connect(&self.address, &identity, &self.hello, self.timing).await;
        let link = connected.map_err(|error| match (&error, error.failure()) {
            (_, ConnectFailure::Unreachable) => Failed::ForNow(chain(&error)),
            (
                ConnectError::Ended {
                    source: Ended::Closed { code: Some(CloseCode::Denied), .. },
                    ..
                },
                _,
            ) => {
                // The node may be allowed again while this process runs.
                self.backoff.slow();
                Failed::ForNow(chain(&error))
            }
            (ConnectError::Expired { .. }, _) if self.token.is_some() && !self.enrol_again => {
                self.enrol_again = true;
                Failed::ForNow(format!("{error}; enrolling again by the token file"))
            }
            _ => Failed::ForGood(NodeError::Connect(error)),
        })?;
        self.check_generation(&link, &identity)?;
        if std::mem::take(&mut self.renew_first) || renew::is_due(&link.connection, &identity) {
            match renew_kept(&link.connection, &identity, &self.identity_folder, self.timing).await
            {
                Ok(_) => tracing::info!("certificate looked after"),
                // While the certificate is valid, the session can continue with it.
                Err(error) => tracing::warn!(reason = chain(&error), "certificate not renewed"),
            }
        }
        Ok(link)
    }

    /// Refuses a coordinator that is older than one that this node has worked for. It may be
    /// stopped or take over while this process runs.
    fn check_generation(&mut self, link: &Link, identity: &Identity) -> Result<(), Failed> {
        let (Some(found), Some(farm)) =
            (generation::of(&link.connection), identity.authority_pin())
        else {
            return Ok(());
        };
        let file = self.identity_folder.join(GENERATION_FILE);
        match generation::check(&file, farm, found) {
            Ok(()) => Ok(()),
            Err(error @ GenerationError::Older { .. }) => {
                let reason = error.to_string();
                close(&link.connection, CloseCode::Failed, &reason);
                // In another place there may be the one that leads.
                if self.address.each().len() == 1 {
                    self.backoff.slow();
                }
                Err(Failed::ForNow(reason))
            }
            Err(error) => {
                tracing::warn!(reason = chain(&error), "an older coordinator may not be noticed");
                Ok(())
            }
        }
    }

    /// Refuses a name that was asked for and differs from the one in the certificate, which counts.
    fn check_name(&mut self, identity: &Identity) -> Result<(), Failed> {
        let enrolled = &identity.peer.name;
        if *enrolled == self.name {
            return Ok(());
        }
        if self.name_is_fixed {
            let (enrolled, given) = (enrolled.clone(), self.name.clone());
            let folder = self.identity_folder.clone();
            return Err(Failed::ForGood(NodeError::OtherName { enrolled, given, folder }));
        }
        let name = std::mem::replace(&mut self.name, enrolled.clone());
        tracing::info!(enrolled, name, "the name of the enrolment counts, not the host's");
        Ok(())
    }

    /// Refuses a pool that differs from the one in the certificate.
    fn check_pool(&self, identity: &Identity) -> Result<(), Failed> {
        match (&identity.peer.pool, &self.pool) {
            (Some(fixed), Some(claimed)) if fixed != claimed => {
                let (fixed, claimed) = (fixed.clone(), claimed.clone());
                Err(Failed::ForGood(NodeError::OtherPool { fixed, claimed }))
            }
            _ => Ok(()),
        }
    }

    /// Draws conclusions from the end of a session: the certificate must be renewed first, or a
    /// person must do something.
    fn learn_from(&mut self, connection: &Connection) {
        let Some(Ended::Closed { code, reason }) = connection.close_reason().map(Ended::from)
        else {
            return;
        };
        match code {
            Some(CloseCode::Expired) => self.renew_first = true,
            // Only a copy of this very process gets here: others wait, and are refused.
            Some(CloseCode::Replaced) => {
                tracing::error!(
                    reason,
                    "another process has this node's identity: enrol this copy anew, with a token \
                     and a data folder of its own"
                );
                self.backoff.slow();
            }
            Some(CloseCode::Denied | CloseCode::NotAllowed) => {
                tracing::error!(reason, "refused by the coordinator");
                // The denial may end while this process runs, so continue to dial, but rarely.
                self.backoff.slow();
            }
            _ => {}
        }
    }

    /// Returns the identity of the data folder. If there is none, or it has expired, a token gets
    /// one.
    async fn identity(&mut self) -> Result<Identity, Failed> {
        let needed = self.enrol_again || !Identity::is_at(&self.identity_folder);
        let Some(token) = self.token.as_ref().filter(|_| needed) else {
            let loaded = Identity::load(&self.identity_folder);
            return loaded.map_err(|error| Failed::ForGood(NodeError::Identity(error)));
        };
        let applicant = Applicant { token, name: &self.name, node: Some(self.node) };
        match enrol(&self.address, applicant, &self.hello, self.timing).await {
            Ok(identity) => {
                let saved = identity.save(&self.identity_folder);
                saved.map_err(|error| Failed::ForGood(NodeError::Identity(error)))?;
                tracing::info!(node = %self.node, name = self.name, "enrolled");
                self.enrol_again = false;
                Ok(identity)
            }
            Err(EnrolError::Connect(error)) if error.failure() == ConnectFailure::Unreachable => {
                Err(Failed::ForNow(chain(&error)))
            }
            Err(error @ EnrolError::Frame(_)) => Err(Failed::ForNow(chain(&error))),
            Err(error) => Err(Failed::ForGood(NodeError::Enrol(error))),
        }
    }

    /// Carries messages until the session is lost. If it was stopped instead, returns why.
    async fn hold(
        &self,
        link: &Link,
        number: u64,
        stop: &mut oneshot::Receiver<String>,
    ) -> Option<String> {
        let opened = async {
            let control = open_both(&link.connection, StreamKind::NodeControl).await?;
            let telemetry = open_one_way(&link.connection, StreamKind::Telemetry).await?;
            Ok::<_, FrameError>((control, telemetry))
        };
        let ((control, mut incoming), telemetry) = match within(self.timing.answer, opened).await {
            Ok(streams) => streams,
            Err(error) => {
                tracing::warn!(reason = chain(&error), "session lost");
                return None;
            }
        };
        // Messages that the coordinator waits for must not wait behind results.
        control.set_priority(2);
        telemetry.set_priority(1);
        let (outgoing, messages) = mpsc::channel(OUTGOING_MAX);
        let (heartbeats, beats) = mpsc::channel(HEARTBEATS_MAX);
        let mut writing = tokio::spawn(write_messages(control, messages));
        let beating = tokio::spawn(write_heartbeats(telemetry, beats));
        let renewing = self.keep_fresh(link);
        let (live, tiles) = mpsc::channel(live::WAITING_MAX);
        let showing = tokio::spawn(live::write_live(link.connection.clone(), tiles));
        let telling = tokio::spawn(logs::write_lines(link.connection.clone(), self.log.clone()));
        let connection = link.connection.clone();
        let session = Session { number, connection, outgoing, heartbeats, live };
        if self.events.send(Event::Connected(session)).is_err() {
            return Some(STOPPED.to_owned());
        }
        self.connection.send_replace(Some(link.connection.clone()));
        let stopped = tokio::select! {
            biased;
            why = &mut *stop => Some(why.unwrap_or_else(|_| STOPPED.to_owned())),
            reason = self.read_messages(&mut incoming, number) => {
                tracing::warn!(reason, "session lost");
                None
            }
            ended = &mut writing => {
                tracing::warn!(reason = ?ended, "session lost");
                None
            }
        };
        if stopped.is_some() && !writing.is_finished() {
            // The shell has released the session, so only little is left to write.
            let _ = tokio::time::timeout(GOODBYE, &mut writing).await;
        }
        writing.abort();
        beating.abort();
        showing.abort();
        telling.abort();
        renewing.abort();
        if stopped.is_none() {
            tessera_transport::close::close(
                &link.connection,
                CloseCode::Failed,
                "the session is given up",
            );
        }
        stopped
    }

    /// Renews the certificate as long as the connection exists.
    fn keep_fresh(&self, link: &Link) -> tokio::task::JoinHandle<()> {
        let (connection, folder, timing) =
            (link.connection.clone(), self.identity_folder.clone(), self.timing);
        tokio::spawn(async move {
            let identity = match Identity::load(&folder) {
                Ok(identity) => Arc::new(identity),
                Err(error) => {
                    return tracing::error!(reason = chain(&error), "certificate not renewed");
                }
            };
            let told = |renewed: Result<Arc<Identity>, renew::RenewError>| match renewed {
                Ok(_) => tracing::info!("certificate renewed"),
                Err(error) => tracing::warn!(reason = chain(&error), "certificate not renewed"),
            };
            renew::keep_fresh(connection, identity, &folder, timing, told).await;
        })
    }

    /// Passes the coordinator's messages on. Returns the reason of the end.
    async fn read_messages(&self, incoming: &mut FrameReceiver, number: u64) -> String {
        loop {
            match incoming.receive::<CoordinatorToNode>().await {
                Ok(Some(CoordinatorToNode::Refused { reason })) => {
                    let _ = self.events.send(Event::Hopeless(NodeError::Refused(reason.clone())));
                    return reason;
                }
                Ok(Some(CoordinatorToNode::Notice { text })) => {
                    tracing::error!(text, "the coordinator says");
                }
                Ok(Some(message)) => {
                    if self.events.send(Event::Message { session: number, message }).is_err() {
                        return "the node stops".to_owned();
                    }
                }
                Ok(None) => return "the coordinator ended the control stream".to_owned(),
                Err(error) => return chain(&error),
            }
        }
    }
}

/// Writes until the senders are gone, then waits until everything has arrived.
async fn write_messages(
    mut control: FrameSender,
    mut messages: mpsc::Receiver<NodeToCoordinator>,
) -> Result<(), FrameError> {
    while let Some(message) = messages.recv().await {
        control.send(&message).await?;
    }
    control.finish_and_deliver(GOODBYE).await
}

async fn write_heartbeats(
    mut telemetry: FrameSender,
    mut beats: mpsc::Receiver<Heartbeat>,
) -> Result<(), FrameError> {
    while let Some(beat) = beats.recv().await {
        telemetry.send(&beat).await?;
    }
    telemetry.finish();
    Ok(())
}
