//! A proxy whose target changes, as an address does that follows the primary.

use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// A proxy on loopback. Its threads end with the test program.
pub(crate) struct Relay {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

struct State {
    /// Nobody is let through without one.
    target: Option<u16>,
    /// Both ends of every connection so far.
    open: Vec<TcpStream>,
}

impl Relay {
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let here = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { target: Some(port), open: Vec::new() }));
        let shared = state.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // The target may be away: the client sees a connection that ends.
                connect(client, shared.lock().unwrap());
            }
        });
        Self { port: here, state }
    }

    /// Cuts what is open. Later connections go to this port.
    pub(crate) fn aim(&self, port: Option<u16>) {
        let mut state = self.state.lock().unwrap();
        state.target = port;
        for end in state.open.drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

fn connect(client: TcpStream, mut state: MutexGuard<'_, State>) {
    let Some(port) = state.target else { return };
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return };
    for (from, to) in [(&client, &server), (&server, &client)] {
        let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        state.open.push(from.try_clone().unwrap());
        thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
}
