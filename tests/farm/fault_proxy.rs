//! A UDP proxy that does to datagrams what bad networks do: loses, doubles, delays and so reorders
//! them, drops long ones, changes addresses, and parts the two sides. Its chance has a seed; what
//! arrives when has none, since the programs under test are real.

use std::collections::{BTreeMap, BinaryHeap};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a thread waits for a datagram before it looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);
/// Longest datagram that is passed on.
const DATAGRAM_BYTES: usize = 65_536;

/// What the network is like, each way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// Datagrams lost, of a thousand.
    pub(crate) lost: u64,
    /// Datagrams that arrive twice, of a thousand.
    pub(crate) doubled: u64,
    /// Least and longest time on the way; each datagram has its own, so that they overtake each
    /// other.
    pub(crate) delay: (Duration, Duration),
    /// UDP payloads that are longer than this are dropped.
    pub(crate) longest: usize,
}

impl Weather {
    /// Nothing happens to anything.
    pub(crate) fn fair() -> Self {
        Self {
            lost: 0,
            doubled: 0,
            delay: (Duration::ZERO, Duration::ZERO),
            longest: DATAGRAM_BYTES,
        }
    }

    /// A fifth is lost, some arrive twice, 200 ms each way at worst, and everything out of order.
    pub(crate) fn foul() -> Self {
        let delay = (Duration::from_millis(20), Duration::from_millis(200));
        Self { lost: 200, doubled: 30, delay, ..Self::fair() }
    }
}

/// What has happened to datagrams so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) passed: AtomicU64,
    /// Bytes of those that passed.
    pub(crate) bytes: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) doubled: AtomicU64,
    pub(crate) overtaken: AtomicU64,
    pub(crate) too_long: AtomicU64,
    pub(crate) parted: AtomicU64,
}

/// A datagram under way, and the socket that sends it. The one that is due first is the greatest.
struct Flying {
    due: Instant,
    number: u64,
    bytes: Vec<u8>,
    from: Arc<UdpSocket>,
    to: SocketAddr,
}

impl PartialEq for Flying {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Flying {}

impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flying {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

/// The socket by which the server knows a client. One that was replaced is read no more, like a
/// mapping that a NAT forgot.
struct Path {
    socket: Arc<UdpSocket>,
    replaced: AtomicBool,
}

/// What the threads share.
struct Shared {
    server: SocketAddr,
    /// Where clients send to.
    front: Arc<UdpSocket>,
    weather: Mutex<Weather>,
    chance: Mutex<u64>,
    parted: AtomicBool,
    stop: AtomicBool,
    paths: Mutex<BTreeMap<SocketAddr, Arc<Path>>>,
    flying: Mutex<BinaryHeap<Flying>>,
    more: Condvar,
    numbers: AtomicU64,
    seen: Seen,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A proxy between clients that dial its address and one server. Ends with its owner.
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Proxy {
    /// Stands before the server from now on.
    pub(crate) fn start(server: SocketAddr, weather: Weather, seed: u64) -> Proxy {
        let front = UdpSocket::bind((server.ip(), 0)).expect("a free port");
        front.set_read_timeout(Some(LOOK)).expect("a time-out");
        let shared = Arc::new(Shared {
            server,
            front: Arc::new(front),
            weather: Mutex::new(weather),
            chance: Mutex::new(seed),
            parted: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            paths: Mutex::default(),
            flying: Mutex::default(),
            more: Condvar::new(),
            numbers: AtomicU64::new(0),
            seen: Seen::default(),
        });
        let (reading, sending) = (shared.clone(), shared.clone());
        let threads = vec![
            std::thread::spawn(move || reading.read_clients()),
            std::thread::spawn(move || sending.send()),
        ];
        Proxy { shared, threads }
    }

    /// What clients dial.
    pub(crate) fn address(&self) -> String {
        self.shared.front.local_addr().expect("a bound socket has an address").to_string()
    }

    /// From now on the network is like this.
    pub(crate) fn set_weather(&self, weather: Weather) {
        *lock(&self.shared.weather) = weather;
    }

    /// Parts the two sides, or lets them come together.
    pub(crate) fn part(&self, parted: bool) {
        self.shared.parted.store(parted, Relaxed);
    }

    /// Every client has another address from now on; what the server sends to the former one is
    /// lost.
    pub(crate) fn move_clients(&self) {
        for (client, path) in lock(&self.shared.paths).iter_mut() {
            path.replaced.store(true, Relaxed);
            *path = self.shared.open_path(*client);
        }
    }

    /// What has happened so far.
    pub(crate) fn seen(&self) -> &Seen {
        &self.shared.seen
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        self.shared.more.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            drop(thread.join());
        }
    }
}

impl Shared {
    fn read_clients(self: Arc<Self>) {
        let mut buffer = vec![0; DATAGRAM_BYTES];
        while !self.stop.load(Relaxed) {
            let Ok((length, client)) = self.front.recv_from(&mut buffer) else { continue };
            let path =
                lock(&self.paths).entry(client).or_insert_with(|| self.open_path(client)).clone();
            self.pass(&buffer[..length], &path.socket, self.server);
        }
    }

    /// A socket that the server has not heard of, and a thread that carries its answers to the
    /// client.
    fn open_path(self: &Arc<Self>, client: SocketAddr) -> Arc<Path> {
        let socket = UdpSocket::bind((self.server.ip(), 0)).expect("a free port");
        socket.set_read_timeout(Some(LOOK)).expect("a time-out");
        let path = Arc::new(Path { socket: Arc::new(socket), replaced: AtomicBool::new(false) });
        let (shared, reading) = (self.clone(), path.clone());
        std::thread::spawn(move || {
            let mut buffer = vec![0; DATAGRAM_BYTES];
            while !shared.stop.load(Relaxed) && !reading.replaced.load(Relaxed) {
                if let Ok((length, _)) = reading.socket.recv_from(&mut buffer) {
                    shared.pass(&buffer[..length], &shared.front, client);
                }
            }
        });
        path
    }

    /// A number below `bound`, by the seed.
    fn below(&self, bound: u64) -> u64 {
        let mut state = lock(&self.chance);
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % bound.max(1)
    }

    fn pass(&self, bytes: &[u8], from: &Arc<UdpSocket>, to: SocketAddr) {
        let weather = *lock(&self.weather);
        if self.parted.load(Relaxed) {
            self.seen.parted.fetch_add(1, Relaxed);
        } else if bytes.len() > weather.longest {
            self.seen.too_long.fetch_add(1, Relaxed);
        } else if self.below(1000) < weather.lost {
            self.seen.lost.fetch_add(1, Relaxed);
        } else {
            self.seen.passed.fetch_add(1, Relaxed);
            self.seen.bytes.fetch_add(bytes.len() as u64, Relaxed);
            self.fly(bytes, from, to, weather);
            if self.below(1000) < weather.doubled {
                self.seen.doubled.fetch_add(1, Relaxed);
                self.fly(bytes, from, to, weather);
            }
        }
    }

    fn fly(&self, bytes: &[u8], from: &Arc<UdpSocket>, to: SocketAddr, weather: Weather) {
        let (least, longest) = weather.delay;
        let spread = longest.saturating_sub(least).as_micros() as u64;
        let due = Instant::now() + least + Duration::from_micros(self.below(spread + 1));
        let number = self.numbers.fetch_add(1, Relaxed);
        let mut flying = lock(&self.flying);
        if flying.iter().any(|other| other.due > due && other.to == to) {
            self.seen.overtaken.fetch_add(1, Relaxed);
        }
        flying.push(Flying { due, number, bytes: bytes.to_vec(), from: from.clone(), to });
        self.more.notify_one();
    }

    /// Sends what is due, when it is due.
    fn send(&self) {
        let mut flying = lock(&self.flying);
        while !self.stop.load(Relaxed) {
            let now = Instant::now();
            let wait = match flying.peek() {
                Some(first) if first.due <= now => Duration::ZERO,
                Some(first) => first.due - now,
                None => LOOK,
            };
            if !wait.is_zero() {
                flying =
                    self.more.wait_timeout(flying, wait).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            if let Some(Flying { bytes, from, to, .. }) = flying.pop() {
                drop(flying);
                // A system that takes no more loses it, as networks do.
                drop(from.send_to(&bytes, to));
                flying = lock(&self.flying);
            }
        }
    }
}
