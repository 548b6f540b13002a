//! The session with the coordinator: enrols, dials, dials again, carries messages both ways.
//! Decides nothing about work.

use super::event::{Event, Session};
use crate::backoff::Backoff;
use crate::config::Config;
use crate::scene::chain;
use crate::status::NodeError;
use quinn::Connection;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::node::{CoordinatorToNode, Heartbeat, NodeToCoordinator};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{Fingerprint, Hello, NodeId};
use tessera_transport::enrol::{Applicant, enrol};
use tessera_transport::error::{ConnectFailure, Ended};
use tessera_transport::frame::{open_both, open_one_way, within};
use tessera_transport::renew::{self, renew_kept};
use tessera_transport::{
    Address, CloseCode, ConnectError, EnrolError, FrameError, FrameReceiver, FrameSender, Identity,
    JoinToken, Link, Timing, connect,
};
use tokio::sync::{mpsc, oneshot, watch};

/// Messages that may wait to be written. Leases bound what a node has to say; a coordinator that
/// lets more than this pile up does not read, and its session is given up.
const OUTGOING_MAX: usize = 4096;
/// Heartbeats that may wait; older news is worth nothing.
const HEARTBEATS_MAX: usize = 2;
/// A session that lasted so long was a good one: the next wait is the first again.
const GOOD_SESSION: Duration = Duration::from_secs(5);
/// How long the last messages may take on a friendly goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// Keeps a session standing for as long as the node lives.
pub(super) struct Dialler {
    address: Address,
    identity_folder: PathBuf,
    token: Option<JoinToken>,
    name: String,
    pool: Option<String>,
    node: NodeId,
    hello: Hello,
    timing: Timing,
    backoff: Backoff,
    /// The coordinator says that the certificate is over: nothing else comes before its renewal.
    renew_first: bool,
    /// The identity that is here has been over for too long: the token, if it is good, gets
    /// another.
    enrol_again: bool,
    events: mpsc::UnboundedSender<Event>,
    /// What stands now, for whoever fetches.
    connection: watch::Sender<Option<Connection>>,
}

/// How a try to reach the coordinator ended.
enum Failed {
    /// Later it may work.
    ForNow(String),
    /// Only a person can help.
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
        let address = config.coordinator.parse().map_err(NodeError::Address)?;
        let token =
            config.token.as_deref().map(str::parse).transpose().map_err(NodeError::Token)?;
        if !tessera_transport::peer::is_name(&config.name) {
            return Err(NodeError::Name(config.name.clone()));
        }
        if token.is_none() && !Identity::is_at(&identity_folder) {
            return Err(NodeError::NoToken(identity_folder));
        }
        Ok(Self {
            address,
            identity_folder,
            token,
            name: config.name.clone(),
            pool: config.pool.clone(),
            node,
            hello: Hello::ours(fingerprint),
            timing: config.timing,
            backoff: Backoff::new(*node.0.as_bytes()),
            renew_first: false,
            enrol_again: false,
            events,
            connection,
        })
    }

    /// Runs until `stop` says so (or goes), or until there is no hope.
    pub(super) async fn run(mut self, mut stop: oneshot::Receiver<()>) {
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
                    if stopped {
                        link.close(CloseCode::Done, "the node leaves").await;
                        return;
                    }
                    // The shell owns the other end and outlives this task; if it is gone, no task
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
                // It may be allowed again while this process runs.
                self.backoff.slow();
                Failed::ForNow(chain(&error))
            }
            (ConnectError::Expired { .. }, _) if self.token.is_some() && !self.enrol_again => {
                self.enrol_again = true;
                Failed::ForNow(format!("{error}; enrolling again by the token file"))
            }
            _ => Failed::ForGood(NodeError::Connect(error)),
        })?;
        if std::mem::take(&mut self.renew_first) || renew::is_due(&link.connection, &identity) {
            match renew_kept(&link.connection, &identity, &self.identity_folder, self.timing).await
            {
                Ok(_) => tracing::info!("certificate looked after"),
                // While the certificate holds, the session is as good with the old one.
                Err(error) => tracing::warn!(reason = chain(&error), "certificate not renewed"),
            }
        }
        Ok(link)
    }

    /// Whoever has a pool by certificate cannot be started for another.
    fn check_pool(&self, identity: &Identity) -> Result<(), Failed> {
        match (&identity.peer.pool, &self.pool) {
            (Some(fixed), Some(claimed)) if fixed != claimed => {
                let (fixed, claimed) = (fixed.clone(), claimed.clone());
                Err(Failed::ForGood(NodeError::OtherPool { fixed, claimed }))
            }
            _ => Ok(()),
        }
    }

    /// What the end of a session says about the next try: the certificate is to be renewed first,
    /// or a person must do something.
    fn learn_from(&mut self, connection: &Connection) {
        let Some(Ended::Closed { code, reason }) = connection.close_reason().map(Ended::from)
        else {
            return;
        };
        match code {
            Some(CloseCode::Expired) => self.renew_first = true,
            Some(CloseCode::Denied | CloseCode::NotAllowed) => {
                tracing::error!(reason, "turned away by the coordinator");
                // It may be ended while this process runs, so it goes on dialling: rarely.
                self.backoff.slow();
            }
            _ => {}
        }
    }

    /// The identity of the data folder; a token gets one if there is none, or if it has expired.
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

    /// Carries messages until the session is lost; true where it was stopped instead.
    async fn hold(&self, link: &Link, number: u64, stop: &mut oneshot::Receiver<()>) -> bool {
        let opened = async {
            let control = open_both(&link.connection, StreamKind::NodeControl).await?;
            let telemetry = open_one_way(&link.connection, StreamKind::Telemetry).await?;
            Ok::<_, FrameError>((control, telemetry))
        };
        let ((control, mut incoming), telemetry) = match within(self.timing.answer, opened).await {
            Ok(streams) => streams,
            Err(error) => {
                tracing::warn!(reason = chain(&error), "session lost");
                return false;
            }
        };
        // What the coordinator waits for must not wait behind results.
        control.set_priority(2);
        telemetry.set_priority(1);
        let (outgoing, messages) = mpsc::channel(OUTGOING_MAX);
        let (heartbeats, beats) = mpsc::channel(HEARTBEATS_MAX);
        let mut writing = tokio::spawn(write_messages(control, messages));
        let beating = tokio::spawn(write_heartbeats(telemetry, beats));
        let renewing = self.keep_fresh(link);
        let session = Session { number, connection: link.connection.clone(), outgoing, heartbeats };
        if self.events.send(Event::Connected(session)).is_err() {
            return true;
        }
        self.connection.send_replace(Some(link.connection.clone()));
        let stopped = tokio::select! {
            biased;
            _ = &mut *stop => true,
            reason = self.read_messages(&mut incoming, number) => {
                tracing::warn!(reason, "session lost");
                false
            }
            ended = &mut writing => {
                tracing::warn!(reason = ?ended, "session lost");
                false
            }
        };
        if stopped && !writing.is_finished() {
            // The shell has let go of the session, so what is left to write is short.
            let _ = tokio::time::timeout(GOODBYE, &mut writing).await;
        }
        writing.abort();
        beating.abort();
        renewing.abort();
        if !stopped {
            tessera_transport::close::close(
                &link.connection,
                CloseCode::Failed,
                "the session is given up",
            );
        }
        stopped
    }

    /// Renews the certificate for as long as the connection stands.
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

    /// Hands on what the coordinator says; returns why it ends.
    async fn read_messages(&self, incoming: &mut FrameReceiver, number: u64) -> String {
        loop {
            match incoming.receive::<CoordinatorToNode>().await {
                Ok(Some(CoordinatorToNode::Refused { reason })) => {
                    let _ = self.events.send(Event::Hopeless(NodeError::Refused(reason.clone())));
                    return reason;
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

/// Writes until the senders are gone, then sees that all of it arrives.
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
