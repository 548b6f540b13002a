//! Reads lines as they come, for one reader: each read begins where the last one ended, so there
//! are no queues of readers.

use super::{Logs, Whose};
use std::time::Duration;
use tessera_protocol::logs::{LogPage, LogQuery};
use tokio::sync::watch;

/// Pause between two reads.
const PAUSE: Duration = Duration::from_millis(250);

/// Lines of one job or node as they come.
#[derive(Debug)]
pub(crate) struct Follow {
    logs: Logs,
    whose: Whose,
    query: LogQuery,
    grew: watch::Receiver<u64>,
    has_begun: bool,
}

impl Follow {
    /// Begins with the lines that are asked for.
    pub(crate) fn new(logs: Logs, whose: Whose, query: LogQuery) -> Self {
        let grew = logs.grew();
        Self { logs, whose, query, grew, has_begun: false }
    }

    /// Returns the first lines, which may be none, and then further ones when they come; None if
    /// the coordinator stops. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<LogPage> {
        loop {
            if self.has_begun {
                self.wait().await?;
            }
            let (logs, whose, query) = (self.logs.clone(), self.whose, self.query.clone());
            let read = tokio::task::spawn_blocking(move || logs.page(whose, &query));
            let page = read.await.ok()?;
            let is_first = !std::mem::replace(&mut self.has_begun, true);
            self.query.after = Some(page.next);
            if is_first || !page.lines.is_empty() {
                return Some(page);
            }
        }
    }

    /// Waits until there is a line after those that were read.
    async fn wait(&mut self) -> Option<()> {
        tokio::time::sleep(PAUSE).await;
        loop {
            self.grew.borrow_and_update();
            if self.logs.newest(self.whose) > self.query.after {
                return Some(());
            }
            self.grew.changed().await.ok()?;
        }
    }
}
