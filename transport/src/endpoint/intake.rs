//! The thread that reads the coordinator's UDP socket and passes each packet to its connection.
//! Owns no connection.
//!
//! quinn reads a socket for 50 us at a time and then lets all other tasks of its runtime run. Among
//! the tasks of a thousand busy nodes its next turn is tens of milliseconds away, the socket's
//! buffer overflows meanwhile, and signs of life are lost among the results. In a thread of its own
//! it competes with nothing but what the system runs. Connections are handled by the runtime that
//! accepts them, as before.

use quinn::Endpoint;
use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Keeps the thread reading; when dropped, the thread serves the open connections to their end and
/// refuses others.
#[derive(Debug)]
pub(crate) struct Intake {
    /// Nothing is ever sent: the thread sees it dropped.
    _open: oneshot::Sender<()>,
}

/// Opens an endpoint by `open`, whose socket is read by a thread of its own.
pub(crate) fn endpoint(
    open: impl FnOnce() -> io::Result<Endpoint> + Send + 'static,
) -> io::Result<(Endpoint, Intake)> {
    let (stays_open, dropped) = oneshot::channel();
    let (tell, opened) = mpsc::channel();
    let read = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let endpoint = runtime.block_on(async { open() })?;
        // Whoever asked waits for it.
        let _ = tell.send(endpoint.clone());
        runtime.block_on(serve_until(dropped, endpoint));
        Ok(())
    };
    let thread = std::thread::Builder::new().name("quic-intake".into()).spawn(read)?;
    match opened.recv() {
        Ok(endpoint) => Ok((endpoint, Intake { _open: stays_open })),
        Err(mpsc::RecvError) => Err(failure(thread)),
    }
}

async fn serve_until(dropped: oneshot::Receiver<()>, endpoint: Endpoint) {
    let _ended = dropped.await;
    endpoint.set_server_config(None);
    endpoint.wait_idle().await;
}

/// Why the thread ended before it had an endpoint.
fn failure(thread: JoinHandle<io::Result<()>>) -> io::Error {
    match thread.join() {
        Ok(Err(error)) => error,
        Ok(Ok(())) | Err(_) => io::Error::other("the thread that reads the socket ended"),
    }
}
