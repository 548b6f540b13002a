//! A small farm for these tests: an authority, a listening server, and the peers that call it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::client::Role;
use tessera_protocol::{Fingerprint, Hello, NodeId};
use tessera_transport::{
    AcceptError, Address, Authority, Identity, Link, PeerIdentity, Server, Timing, connect,
};

pub(crate) const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The farm's limits for peers that are well; short ones for those that should be found silent.
pub(crate) fn short() -> Timing {
    Timing {
        idle: Duration::from_secs(3),
        keep_alive: Duration::from_millis(500),
        dial: Duration::from_secs(3),
        answer: Duration::from_millis(300),
        ..Timing::default()
    }
}

pub(crate) fn hello() -> Hello {
    Hello::ours(Fingerprint([5; 32]))
}

/// A hello of a build that shares no version with this one.
pub(crate) fn strange_hello() -> Hello {
    Hello { oldest: 900, newest: 901, build: "tessera from the future".into(), ..hello() }
}

pub(crate) fn user(name: &str) -> PeerIdentity {
    PeerIdentity::new(Role::Artist, name, None).unwrap()
}

pub(crate) fn node(name: &str) -> PeerIdentity {
    PeerIdentity::new(Role::Node, name, Some(NodeId(uuid::Uuid::now_v7()))).unwrap()
}

pub(crate) struct Farm {
    pub(crate) authority: Authority,
    pub(crate) server: Arc<Server>,
    pub(crate) address: Address,
}

impl Farm {
    pub(crate) fn start(timing: Timing) -> Self {
        let authority = Authority::generate().unwrap();
        let server = Server::bind(LOOPBACK, &authority, timing).unwrap();
        let address = server.local_address().unwrap().into();
        Self { authority, server: Arc::new(server), address }
    }

    pub(crate) fn identity(&self, name: &str) -> Identity {
        self.authority.issue(&user(name)).unwrap()
    }

    /// The next peer that arrives, greeted with `hello`.
    pub(crate) async fn next_peer(&self, hello: &Hello) -> Result<Link, AcceptError> {
        self.server.accept().await.unwrap().establish(hello).await
    }

    /// Both ends of one connection: the server's, then the dialler's.
    pub(crate) async fn pair(&self, identity: &Identity) -> (Link, Link) {
        let ours = hello();
        let (served, dialled) = tokio::join!(
            self.next_peer(&ours),
            connect(&self.address, identity, &ours, Timing::default())
        );
        let (served, dialled) = (served.unwrap(), dialled.unwrap());
        served.welcome();
        (served, dialled)
    }
}
