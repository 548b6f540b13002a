//! Where peers arrive: the socket, the identities that a coordinator keeps, and the access control.
//! Serves nothing yet.

use crate::access::{Access, Denied, Kept, Log, Members};
use crate::config::Config;
use crate::coordinator_error::CoordinatorError;
use crate::folder::DataFolder;
use crate::opened::Keys;
use crate::store::StoreQueue;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tessera_transport::{Authority, Identity, Server};

/// Where peers arrive, and what decides who is let in; nothing is served yet.
pub(crate) struct Entrance {
    pub(crate) server: Arc<Server>,
    pub(crate) address: SocketAddr,
    pub(crate) kept: Kept,
    /// The farm's first admin.
    pub(crate) admin: Identity,
    pub(crate) access: Arc<Access>,
}

impl Entrance {
    /// Listens, and makes or renews the identities that the coordinator keeps.
    pub(crate) fn open(
        config: &Config,
        folder: &DataFolder,
        keys: Keys,
        (members, queue): (Arc<Members>, StoreQueue),
    ) -> Result<Self, CoordinatorError> {
        let Keys { authority, audit, files } = keys;
        let server = Arc::new(Server::bind(config.listen, &authority, config.timing)?);
        let address = server.local_address().map_err(CoordinatorError::Socket)?;
        let kept = Kept {
            admin: folder.admin(),
            user: config.user_identity.clone(),
            address: reachable(address),
        };
        let admin = kept.refresh(&authority)?;
        let denied = Denied::open(&folder.denied())?;
        let log = open_log(folder, (audit.0.as_deref(), audit.1))?;
        let listening = server.clone();
        let doors = Box::new(move |authority: &Authority| listening.set_authority(authority));
        let access = Access::new(
            (authority, folder.authority()),
            (denied, members),
            log,
            doors,
            (queue, files),
        );
        let access = Arc::new(access);
        Ok(Self { server, address, kept, admin, access })
    }
}

fn open_log(
    folder: &DataFolder,
    (kept, elsewhere): (Option<&[u8]>, bool),
) -> Result<Log, CoordinatorError> {
    let path = folder.audit_log();
    Log::open(&path, kept, elsewhere).map_err(|source| CoordinatorError::AuditLog { path, source })
}

/// Returns the address that a client on this machine dials.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
