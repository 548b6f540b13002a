//! Access control: the authority in use, every live connection, and the upkeep of both. Serves no
//! stream; the transports ask this module.

mod audit_level;
pub(crate) mod audit_limits;
pub(crate) mod audit_log;
pub(crate) mod audit_upkeep;
pub(crate) mod bearers;
mod denied;
pub(crate) mod links;
mod live;
mod live_peer;
pub(crate) mod members;
mod standing;
pub(crate) mod tokens;
mod upkeep;
pub(crate) mod vouched;
pub(crate) mod web;

pub(crate) use audit_level::{LevelError, level};
pub(crate) use audit_log::Log;
pub(crate) use denied::Denied;
pub use denied::DeniedError;
pub(crate) use live::Admitted;
pub(crate) use live_peer::{LivePeer, PeerConnection, Refusal};
pub(crate) use members::Members;
pub(crate) use upkeep::{Kept, KeptError, keep};

pub(crate) use audit_limits::Cause;

use crate::farm_files::{FarmFile, FarmFiles};
use crate::store::{Commit, StoreError, StoreQueue};
use crate::sync::lock;
use audit_limits::{EntryLimits, Summary};
use live::Live;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tessera_protocol::NodeId;
use tessera_protocol::access::DeniedIdentity;
use tessera_protocol::client::Role;
use tessera_transport::server::ServeError;
use tessera_transport::validity::now_secs;
use tessera_transport::{Authority, AuthorityError, Credential, PeerIdentity};

/// The farm's access control.
pub(crate) struct Access {
    authority: RwLock<Arc<Authority>>,
    denied: Arc<Denied>,
    pub(crate) members: Arc<Members>,
    live: Arc<Live>,
    /// What happened to nodes' identities lately: when, and a note for people.
    notes: Mutex<BTreeMap<NodeId, (u64, String)>>,
    /// Folder of the authority.
    folder: PathBuf,
    doors: TellDoors,
    pub(crate) log: Arc<Log>,
    limits: Mutex<EntryLimits>,
    /// To the writer of the store.
    queue: StoreQueue,
    /// The farm's files in a store elsewhere; None if they are in the data folder alone.
    files: Option<FarmFiles>,
}

/// Announces a new authority to everything that listens for connections.
pub(crate) type TellDoors = Box<dyn Fn(&Authority) -> Result<(), ServeError> + Send + Sync>;

impl Access {
    /// Creates the access control of a farm. `doors` announces a new authority to everything that
    /// listens for connections.
    pub(crate) fn new(
        (authority, folder): (Authority, PathBuf),
        (denied, members): (Denied, Arc<Members>),
        log: Log,
        doors: TellDoors,
        (queue, files): (StoreQueue, Option<FarmFiles>),
    ) -> Self {
        Self {
            doors,
            authority: RwLock::new(Arc::new(authority)),
            denied: Arc::new(denied),
            members,
            live: Arc::default(),
            notes: Mutex::default(),
            folder,
            log: Arc::new(log),
            limits: Mutex::default(),
            queue,
            files,
        }
    }

    /// Returns all denied identities.
    pub(crate) fn denied(&self) -> Vec<DeniedIdentity> {
        self.denied.list()
    }

    /// Checks that an identity is not denied before it gets a certificate. The error is a message
    /// for the peer.
    pub(crate) fn admits(&self, peer: &PeerIdentity) -> Result<(), String> {
        match self.denied.get(peer.number) {
            Some(entry) => Err(live_peer::denial(&entry)),
            None => Ok(()),
        }
    }

    /// Adds a durable entry to the deny-list and closes the identity's connections. Without an
    /// entry, takes the identity off the list. Returns whether it was on the list before. Blocks.
    pub(crate) fn deny(
        &self,
        number: u64,
        entry: Option<DeniedIdentity>,
    ) -> Result<bool, DeniedError> {
        let there = self.denied.get(number).is_some();
        if entry.is_some() || there {
            self.denied.change(number, entry)?;
            self.keep_file(FarmFile::DenyList).map_err(DeniedError::Elsewhere)?;
            self.sweep(now_secs());
        }
        Ok(there)
    }

    /// Returns the authority that signs certificates now.
    pub(crate) fn authority(&self) -> Arc<Authority> {
        self.authority.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the authority and trusts the former one for the time `overlap`. The caller must
    /// announce the new authority to the listeners. Blocks.
    pub(crate) fn rotate(
        &self,
        overlap: Option<Duration>,
    ) -> Result<Arc<Authority>, AuthorityError> {
        let mut authority = self.authority.write().unwrap_or_else(PoisonError::into_inner);
        let overlap = overlap.unwrap_or_else(|| authority.lifetimes().longest());
        let rotated = authority.rotate(&self.folder, now_secs(), overlap)?;
        self.keep_file(FarmFile::Authority).map_err(AuthorityError::Elsewhere)?;
        *authority = Arc::new(rotated);
        Ok(authority.clone())
    }

    /// Brings a file of the farm into the store, if that has them, durably. Blocks.
    fn keep_file(&self, file: FarmFile) -> Result<(), String> {
        match &self.files {
            Some(files) => files.keep(file, &self.queue).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Takes over the authority and the deny-list of the coordinator that leads.
    pub(crate) fn follow(&self, authority: Authority, denied: &Denied) {
        *self.authority.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(authority);
        self.denied.follow(denied);
    }

    /// Announces an authority to everything that listens for connections.
    pub(crate) fn tell_doors(&self, authority: &Authority) -> Result<(), ServeError> {
        (self.doors)(authority)
    }

    /// Ends the trust in the former authority once its time is over; returns None before that.
    /// Blocks.
    fn end_overlap(&self) -> Result<Option<Arc<Authority>>, AuthorityError> {
        let mut authority = self.authority.write().unwrap_or_else(PoisonError::into_inner);
        let Some(alone) = authority.past_overlap(&self.folder, now_secs())? else {
            return Ok(None);
        };
        self.keep_file(FarmFile::Authority).map_err(AuthorityError::Elsewhere)?;
        *authority = Arc::new(alone);
        Ok(Some(authority.clone()))
    }

    /// Adds an entry to the audit log, which is synced on return: on the disk, and in a store
    /// elsewhere if that has entries.
    pub(crate) async fn tell(
        &self,
        who: String,
        what: &'static str,
        about: String,
    ) -> std::io::Result<()> {
        let log = self.log.clone();
        let told =
            tokio::task::spawn_blocking(move || log.append((now_secs(), &who), what, &about)).await;
        told.map_err(std::io::Error::other)??;
        if self.log.is_elsewhere() {
            // A commit takes the entries that wait.
            let (commit, done) = Commit::new();
            let stopped = |_| std::io::Error::other(StoreError::Stopped);
            self.queue.send(commit).map_err(std::io::Error::other)?;
            done.await.map_err(stopped)?;
        }
        Ok(())
    }

    /// Adds an entry, unless its cause has had too many: then it is counted.
    pub(crate) async fn tell_within(
        &self,
        cause: Cause<'_>,
        what: &'static str,
        about: String,
    ) -> std::io::Result<()> {
        let who = match cause {
            Cause::Action(who) | Cause::Failure(who) | Cause::Stranger(who) => who,
        };
        let newest = format!("{what}: {about}");
        match lock(&self.limits).take(cause, &newest, now_secs()) {
            true => {}
            false => return Ok(()),
        }
        self.tell(who.to_owned(), what, about).await
    }

    /// Enters that somebody was refused. A log that cannot be written is reported and refuses
    /// nobody more.
    pub(crate) async fn tell_refusal(&self, cause: Cause<'_>, what: &'static str, about: String) {
        if let Err(error) = self.tell_within(cause, what, about).await {
            tracing::error!(%error, "the audit log cannot be written");
        }
    }

    /// Returns whether an identity's failures are only counted now.
    pub(crate) fn is_failing(&self, who: &str) -> bool {
        lock(&self.limits).is_failing(who, now_secs())
    }

    /// Returns the counts of entries that are due.
    pub(crate) fn due_counts(&self, now_secs: u64, all: bool) -> Vec<Summary> {
        lock(&self.limits).due(now_secs, all)
    }

    /// Admits a connection until the returned value is dropped. A peer with an expired certificate
    /// is admitted too, so that it can renew it.
    pub(crate) fn admit(
        &self,
        connection: Box<dyn PeerConnection>,
        credential: Credential,
    ) -> Admitted {
        let lists = (self.denied.clone(), self.members.clone());
        let peer = Arc::new(LivePeer::new(connection, credential, lists));
        self.live.admit(peer)
    }

    /// Returns the number of connections of each role whose peers have a certificate.
    pub(crate) fn connections(&self) -> [(Role, u64); 5] {
        let peers = self.live.peers();
        let of = |role| peers.iter().filter(|peer| peer.peer().role == role).count() as u64;
        [Role::Node, Role::Viewer, Role::Artist, Role::Operator, Role::Admin]
            .map(|role| (role, of(role)))
    }

    /// Closes the connections whose peers have lost their access.
    pub(crate) fn sweep(&self, now_secs: u64) {
        for peer in self.live.peers() {
            if let Err(refusal) = peer.check_unless_renewing(now_secs) {
                tracing::warn!(peer = %peer.peer(), reason = refusal.text, "connection closed");
                peer.close(&refusal);
            }
        }
    }
}
