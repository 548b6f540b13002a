//! A proxy before the database that can swallow an answer and cut the connection.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// What the next commit that is sent meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It never reaches the database.
    Before = 1,
    /// It happens, and its answer is lost.
    After = 2,
    /// It happens at once or up to half a second later, and the connection is gone before.
    Late = 3,
}

/// A proxy on loopback. Its threads end with the test program.
pub(crate) struct Cutter {
    pub(crate) port: u16,
    next: Arc<AtomicU32>,
    /// How many commits were cut.
    pub(crate) cuts: Arc<AtomicU32>,
}

impl Cutter {
    pub(crate) fn before(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let here = listener.local_addr().unwrap().port();
        let (next, cuts) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let shared = (next.clone(), cuts.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // The database may be away: the client sees a connection that ends.
                if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                    serve(client, server, shared.clone());
                }
            }
        });
        Self { port: here, next, cuts }
    }

    /// Cuts the next commit.
    pub(crate) fn cut(&self, cut: Cut) {
        self.next.store(cut as u32, Ordering::SeqCst);
    }
}

fn serve(client: TcpStream, server: TcpStream, (next, cuts): (Arc<AtomicU32>, Arc<AtomicU32>)) {
    let dumb = Arc::new(AtomicBool::new(false));
    let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let is_dumb = dumb.clone();
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if is_dumb.load(Ordering::SeqCst) || to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    thread::spawn(move || send(client, server, &dumb, (&next, &cuts)));
}

/// Passes on what a client sends, and cuts at a commit if that is asked for.
fn send(
    mut client: TcpStream,
    mut server: TcpStream,
    dumb: &AtomicBool,
    (next, cuts): (&AtomicU32, &AtomicU32),
) {
    let mut bytes = vec![0; 1 << 20];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        let is_commit = bytes[..count].windows(15).any(|text| text == b"SET head = $4, ");
        let cut = if is_commit { next.swap(0, Ordering::SeqCst) } else { 0 };
        if cut == Cut::Before as u32 {
            cuts.fetch_add(1, Ordering::SeqCst);
            break;
        }
        if cut != 0 {
            cuts.fetch_add(1, Ordering::SeqCst);
            dumb.store(true, Ordering::SeqCst);
        }
        if cut == Cut::Late as u32 {
            let _ = client.shutdown(Shutdown::Both);
            thread::sleep(Duration::from_millis(150));
        }
        if server.write_all(&bytes[..count]).is_err() || cut == Cut::Late as u32 {
            // The database reads what was sent before the end.
            let _ = server.shutdown(Shutdown::Write);
            thread::sleep(Duration::from_millis(300));
            return;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Both);
}
