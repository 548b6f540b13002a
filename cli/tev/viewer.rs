//! The connection to tev: a thread that writes what it is given, since the protocol's crate blocks.
//! A viewer that is slow makes only this command wait.

use crate::error::{CliError, Status};
use crate::live_pictures::Patch;
use std::collections::BTreeSet;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tev_client::{PacketCreateImage, PacketUpdateImage, TevClient};
use tokio::sync::mpsc;

/// Patches that wait to be written.
const WAITING_MAX: usize = 16;
/// Longest time of a dial, and of a write of which tev takes nothing.
const WITHIN: Duration = Duration::from_secs(5);
/// Where tev listens unless it is told otherwise.
const DEFAULT_PORT: u16 = 14158;

const CHANNELS: [&str; 3] = ["R", "G", "B"];

/// Something to write: name and size of a picture, and pixels of it.
type Order = (String, (u32, u32), Patch);

/// A viewer that listens.
#[derive(Debug)]
pub(crate) struct Viewer {
    orders: Mutex<Option<mpsc::Sender<Order>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl Viewer {
    /// Connects to tev at `HOST:PORT`, or at a host with tev's own port.
    pub(crate) async fn connect(address: &str) -> Result<Self, CliError> {
        let text = address.to_owned();
        let dialled = tokio::task::spawn_blocking(move || dial(&text)).await;
        let stream = dialled.unwrap_or_else(|error| Err(io::Error::other(error)));
        let stream = stream.map_err(|error| {
            CliError::new(Status::Failure, format!("tev does not answer at {address}: {error}"))
                .hint("start tev first; it listens at 127.0.0.1:14158 unless --hostname says else")
        })?;
        let (orders, waiting) = mpsc::channel(WAITING_MAX);
        let failed = Arc::new(Mutex::new(None));
        let told = failed.clone();
        let write = move || {
            if let Err(error) = write(stream, waiting) {
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        };
        let thread = std::thread::Builder::new().name("tev".into()).spawn(write);
        let thread = thread.map_err(|error| CliError::new(Status::Failure, error))?;
        let (orders, thread) = (Mutex::new(Some(orders)), Mutex::new(Some(thread)));
        Ok(Self { orders, thread, failed })
    }

    /// Gives the viewer pixels of a picture, which it makes when it first hears of it.
    pub(super) async fn send(
        &self,
        name: String,
        size: (u32, u32),
        patch: Patch,
    ) -> Result<(), CliError> {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let sent = match orders {
            Some(orders) => orders.send((name, size, patch)).await.is_ok(),
            None => false,
        };
        if sent { Ok(()) } else { Err(self.gone()) }
    }

    /// Waits until everything is written.
    pub(super) async fn end(&self) -> Result<(), CliError> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let joined = tokio::task::spawn_blocking(|| thread.map(JoinHandle::join)).await;
        let is_whole = matches!(joined, Ok(None | Some(Ok(()))));
        match self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            true if is_whole => Ok(()),
            _ => Err(self.gone()),
        }
    }

    fn gone(&self) -> CliError {
        let why = match &*self.failed.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => format!(": {error}"),
            None => String::new(),
        };
        CliError::new(Status::Failure, format!("tev is gone{why}"))
    }
}

fn dial(address: &str) -> io::Result<TcpStream> {
    let places = match address.to_socket_addrs() {
        Ok(places) => places,
        Err(_) if !address.contains(':') => (address, DEFAULT_PORT).to_socket_addrs()?,
        Err(error) => return Err(error),
    };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for place in places {
        match TcpStream::connect_timeout(&place, WITHIN) {
            Ok(stream) => {
                stream.set_write_timeout(Some(WITHIN))?;
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Writes orders until there are no more, or tev is gone.
fn write(stream: TcpStream, mut orders: mpsc::Receiver<Order>) -> io::Result<()> {
    let mut tev = TevClient::wrap(stream);
    let mut made = BTreeSet::new();
    while let Some((name, (width, height), patch)) = orders.blocking_recv() {
        if !made.contains(&name) {
            // The first picture is shown; later ones come into the list.
            let grab_focus = made.is_empty();
            tev.send(PacketCreateImage {
                image_name: &name,
                grab_focus,
                width,
                height,
                channel_names: &CHANNELS,
            })?;
            made.insert(name.clone());
        }
        tev.send(PacketUpdateImage {
            image_name: &name,
            grab_focus: false,
            channel_names: &CHANNELS,
            channel_offsets: &[0, 1, 2],
            channel_strides: &[3, 3, 3],
            x: patch.left,
            y: patch.top,
            width: patch.width,
            height: patch.height,
            data: &patch.values,
        })?;
    }
    Ok(())
}
