//! A gate between a coordinator and its database. It knows a commit by its text and nothing else of
//! what passes: it can hold a commit before the database has it, or the answer after, and it can
//! hold everything, as a network does that has parted.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Only a commit with records has this.
const COMMIT: &[u8] = b"INSERT INTO tessera.journal";
/// The database's word that a commit moved the head.
const MOVED: &[u8] = b"SELECT 1\0";

/// A moment inside a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Point {
    /// The coordinator has sent the statement, and the database does not have it.
    BeforeHead,
    /// The database has the statement; whether the head has moved, nobody knows.
    AfterSend,
    /// The head has moved, and the coordinator does not know.
    AfterHead,
    /// The coordinator has the answer, and has acknowledged nothing yet, or little.
    AfterAnswer,
}

impl Point {
    pub(crate) const ALL: [Self; 4] =
        [Self::BeforeHead, Self::AfterSend, Self::AfterHead, Self::AfterAnswer];
}

/// How far a trap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trap {
    None,
    /// The next commit meets it.
    Armed(Point),
    /// A commit has, and its point is not reached yet.
    Waiting,
    /// The point is reached, and the commit's connection stands still.
    Caught,
    /// What was held passes.
    Passed,
    /// What was held is lost.
    Lost,
}

struct State {
    /// Nothing passes.
    parted: bool,
    trap: Trap,
}

struct Shared {
    target: u16,
    state: Mutex<State>,
    changed: Condvar,
}

/// A gate on loopback. Its threads end with the test program.
pub(crate) struct Gate {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

impl Gate {
    /// A gate before the database on this port.
    pub(crate) fn before(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let state = Mutex::new(State { parted: false, trap: Trap::None });
        let shared = Arc::new(Shared { target, state, changed: Condvar::new() });
        let serving = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                serve(&serving, client);
            }
        });
        Self { port, shared }
    }

    /// Parts the two sides, or lets them hear each other again. What was sent meanwhile arrives
    /// then.
    pub(crate) fn part(&self, parted: bool) {
        self.shared.change(|state| state.parted = parted);
    }

    /// The next commit is caught at this point.
    pub(crate) fn arm(&self, point: Point) {
        self.shared.change(|state| state.trap = Trap::Armed(point));
    }

    /// No commit is caught. False if one was before.
    pub(crate) fn disarm(&self) -> bool {
        let mut free = true;
        self.shared.change(|state| match state.trap {
            Trap::Waiting | Trap::Caught => free = false,
            _ => state.trap = Trap::None,
        });
        free
    }

    /// Waits so long until a commit is caught.
    pub(crate) fn has_caught(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut state = self.shared.lock();
        while state.trap != Trap::Caught {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.shared.wait(state, left);
        }
        true
    }

    /// What is held passes, or is lost.
    pub(crate) fn release(&self, passes: bool) {
        let trap = if passes { Trap::Passed } else { Trap::Lost };
        self.shared.change(|state| state.trap = trap);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, most: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until the two sides hear each other.
    fn pass(&self) {
        let mut state = self.lock();
        while state.parted {
            state = self.wait(state, Duration::from_secs(1));
        }
    }

    /// The point at which a commit that is sent now is caught.
    fn take_armed(&self) -> Option<Point> {
        let mut state = self.lock();
        let Trap::Armed(point) = state.trap else { return None };
        state.trap = Trap::Waiting;
        Some(point)
    }

    /// Stands still until the test says what becomes of the bytes; whether they pass.
    fn stand_still(&self) -> bool {
        self.change(|state| state.trap = Trap::Caught);
        let mut state = self.lock();
        while !matches!(state.trap, Trap::Passed | Trap::Lost) {
            state = self.wait(state, Duration::from_secs(1));
        }
        state.trap == Trap::Passed
    }
}

/// What the two threads of a connection tell each other: the point that the answer is to reach.
type Awaited = Arc<Mutex<Option<Point>>>;

fn serve(shared: &Arc<Shared>, client: TcpStream) {
    let (shared, awaited) = (shared.clone(), Awaited::default());
    std::thread::spawn(move || {
        shared.pass();
        // The database may be away: the client sees a connection that ends.
        let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.target)) else { return };
        let ends = || Some((client.try_clone().ok()?, server.try_clone().ok()?));
        let Some((back, from)) = ends() else { return };
        let (answering, wanted) = (shared.clone(), awaited.clone());
        std::thread::spawn(move || answer(&answering, (from, back), &wanted));
        send(&shared, (client, server), &awaited);
    });
}

fn has(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|found| found == text)
}

fn end((one, other): (TcpStream, TcpStream)) {
    // Either may have ended.
    let _ = one.shutdown(Shutdown::Both);
    let _ = other.shutdown(Shutdown::Both);
}

/// Passes on what a coordinator sends.
fn send(shared: &Shared, (mut client, mut server): (TcpStream, TcpStream), awaited: &Awaited) {
    let mut bytes = vec![0; 1 << 20];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        let bytes = &bytes[..count];
        shared.pass();
        let point = if has(bytes, COMMIT) { shared.take_armed() } else { None };
        let passes = match point {
            Some(Point::BeforeHead) => shared.stand_still(),
            Some(point) => {
                *awaited.lock().unwrap_or_else(PoisonError::into_inner) = Some(point);
                true
            }
            None => true,
        };
        if !passes || server.write_all(bytes).is_err() {
            break;
        }
        if point == Some(Point::AfterSend) {
            shared.change(|state| state.trap = Trap::Caught);
        }
    }
    end((client, server));
}

/// Passes on what the database answers.
fn answer(shared: &Shared, (mut server, mut client): (TcpStream, TcpStream), awaited: &Awaited) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = server.read(&mut bytes) {
        let bytes = &bytes[..count];
        shared.pass();
        let point = awaited.lock().unwrap_or_else(PoisonError::into_inner).take();
        let passes = match point {
            Some(Point::AfterHead) if !has(bytes, MOVED) => {
                // It was refused, so this is not the point.
                shared.change(|state| state.trap = Trap::Armed(Point::AfterHead));
                true
            }
            Some(Point::AfterHead | Point::AfterSend) => shared.stand_still(),
            _ => true,
        };
        if !passes || client.write_all(bytes).is_err() {
            break;
        }
        if point == Some(Point::AfterAnswer) {
            shared.change(|state| state.trap = Trap::Caught);
        }
    }
    end((server, client));
}
