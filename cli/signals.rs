//! Waits for SIGINT and SIGTERM.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals, each time they come.
pub(crate) struct Stops {
    interrupt: Signal,
    terminate: Signal,
}

impl Stops {
    /// Registers for the signals; from now on they do not end the process by themselves.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
