//! Regular upkeep of the audit log: enters what was only counted, and brings the head into the
//! journal where no other commit does.

use super::Access;
use super::audit_limits::Summary;
use crate::store::{Commit, StoreQueue};
use std::sync::Arc;
use std::time::Duration;
use tessera_transport::validity::now_secs;

/// Time between two looks. A head waits no longer for the journal.
const PERIOD: Duration = Duration::from_secs(1);

/// Runs as long as the coordinator runs.
pub(crate) async fn run(access: Arc<Access>, queue: StoreQueue) {
    loop {
        tokio::time::sleep(PERIOD).await;
        enter_counts(&access, false).await;
        if access.log.head().waiting().head.is_some() {
            let (commit, done) = Commit::new();
            // If the writer has ended, the coordinator ends too.
            if queue.send(commit).is_err() || done.await.is_err() {
                return;
            }
        }
    }
}

/// Enters what was only counted, if it is time; at the end of the process everything.
pub(crate) async fn enter_counts(access: &Access, all: bool) {
    for Summary { who, about } in access.due_counts(now_secs(), all) {
        if let Err(error) = access.tell(who, "not entered one by one", about).await {
            tracing::error!(%error, "the audit log cannot be written");
        }
    }
}
