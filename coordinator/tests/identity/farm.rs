//! A coordinator in a folder of its own, and peers that dial it. Everything that waits has a
//! deadline.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use tessera_coordinator::{Config, Coordinator, RunningCoordinator};
use tessera_protocol::client::Role;
use tessera_protocol::{Fingerprint, Hello, NodeId};
use tessera_transport::error::Ended;
use tessera_transport::{CloseCode, ConnectError, Identity, Lifetimes, Link, Timing, connect};

/// How long anything may take before the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn hello() -> Hello {
    Hello::ours(Fingerprint([5; 32]))
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Certificates of so many seconds, nodes' with a grace of a minute.
pub(crate) fn lives(node: u64, user: u64) -> Lifetimes {
    Lifetimes {
        node: secs(node),
        user: secs(user),
        node_grace: secs(60),
        user_grace: Duration::ZERO,
    }
}

pub(crate) struct Farm {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) coordinator: RunningCoordinator,
}

impl Farm {
    pub(crate) async fn start(lifetimes: Lifetimes) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = start(folder.path(), lifetimes).await;
        Self { folder, coordinator }
    }

    /// A farm with other settings.
    pub(crate) async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = start_with(folder.path(), change).await;
        Self { folder, coordinator }
    }

    pub(crate) fn person(&self, role: Role, name: &str) -> Identity {
        self.coordinator.issue(role, name, None).unwrap()
    }

    pub(crate) fn node(&self, name: &str) -> Identity {
        let id = NodeId(uuid::Uuid::now_v7());
        self.coordinator.issue(Role::Node, name, Some(id)).unwrap()
    }

    pub(crate) async fn dial(&self, identity: &Identity) -> Result<Link, ConnectError> {
        let address = self.coordinator.local_address().into();
        let ours = hello();
        let dialled = connect(&address, identity, &ours, Timing::default());
        tokio::time::timeout(PATIENCE, dialled).await.expect("an answer in time")
    }
}

pub(crate) async fn start(data: &Path, lifetimes: Lifetimes) -> RunningCoordinator {
    start_with(data, |config| config.lifetimes = lifetimes).await
}

/// Starts a coordinator with other settings.
pub(crate) async fn start_with(
    data: &Path,
    change: impl FnOnce(&mut Config),
) -> RunningCoordinator {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut config = Config::new(data.join("data"), listen, Fingerprint([5; 32]));
    config.lifetimes = lives(3600, 3600);
    (config.disk_reserve_bytes, config.frame_reserve_bytes) = (0, Some(0));
    change(&mut config);
    Coordinator::start(config).await.unwrap()
}

/// Why the coordinator closes this connection.
pub(crate) async fn closed(link: &Link) -> (Option<CloseCode>, String) {
    let ended = tokio::time::timeout(PATIENCE, link.connection.closed()).await;
    match Ended::from(ended.expect("the connection is closed in time")) {
        Ended::Closed { code, reason } => (code, reason),
        other => panic!("{other:?}"),
    }
}
