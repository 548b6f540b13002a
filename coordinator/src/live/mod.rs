//! Live tiles on their way from nodes to those who watch. They are passed on as they came and held
//! in memory only, within bounds. The core, the journal and the way of a commit know nothing of
//! them.

mod board;
mod meters;
mod subject;
#[cfg(test)]
mod tests;

use crate::driver::Event;
pub(crate) use board::{Board, Watcher};
pub(crate) use meters::{LiveMeters, Outcome};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Shortest time between two messages to nodes about what is watched.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// Longest wait until nodes are told again, where nothing happens.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

/// Tells the driver what is watched, whenever that changes, for as long as it lives.
pub(crate) async fn keep(board: Arc<Board>, events: mpsc::Sender<Event>) {
    let mut told = Vec::new();
    loop {
        let due = board.expire(Instant::now());
        let watched = board.watched();
        if watched != told {
            told.clone_from(&watched);
            if events.send(Event::Watched(watched)).await.is_err() {
                return;
            }
            tokio::time::sleep(TELL_EVERY).await;
            continue;
        }
        let due = due.unwrap_or_else(|| Instant::now() + LOOK_EVERY);
        tokio::select! {
            () = board.stirred() => {}
            () = tokio::time::sleep_until(due.into()) => {}
        }
    }
}
