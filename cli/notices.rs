//! What a node does with the notices of a cloud: it drains, and hands back what is not done in time. Asks nobody itself.

use std::time::Duration;
use tessera_node::spot::{Cloud, Notice, Spot};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// From a certain notice to the moment when everything must be handed back: the shortest notice is 30 s, and saying so takes a moment.
const HAND_BACK_AFTER: Duration = Duration::from_secs(25);
/// Where another metadata service listens, `HOST:PORT`; for tests.
const METADATA_VARIABLE: &str = "TESSERA_METADATA";

/// Something about this machine's end.
#[derive(Debug)]
pub(crate) enum Heard {
    /// It comes, or is likely to.
    Notice(Notice),
    /// What is not done has to be handed back now.
    Over,
}

/// The notices that a node has had, and the next.
#[derive(Debug)]
pub(crate) struct Notices {
    notices: mpsc::Receiver<Notice>,
    hand_back: Option<Instant>,
}

impl Notices {
    /// Those that a node is to wait for.
    pub(crate) fn of(spot: Spot) -> Self {
        let (sender, notices) = mpsc::channel(1);
        if let Some(cloud) = spot.cloud() {
            tracing::info!(cloud = %Spot::Cloud(cloud), "waits for the notice that this machine is taken back");
            tokio::spawn(listen(cloud, sender));
        }
        Self { notices, hand_back: None }
    }

    /// What comes next; for ever nothing where there is no cloud. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Heard {
        if let Some(at) = self.hand_back {
            tokio::time::sleep_until(at).await;
            self.hand_back = None;
            return Heard::Over;
        }
        match self.notices.recv().await {
            Some(notice) => {
                self.hand_back = notice.certain.then(|| Instant::now() + HAND_BACK_AFTER);
                Heard::Notice(notice)
            }
            None => std::future::pending().await,
        }
    }
}

/// Tells of a likely end once, and of a certain one.
async fn listen(cloud: Cloud, notices: mpsc::Sender<Notice>) {
    let metadata = std::env::var(METADATA_VARIABLE).ok();
    let mut told: Option<Notice> = None;
    while told.as_ref().is_none_or(|told| !told.certain) {
        let notice = cloud.notice(metadata.as_deref(), told.as_ref()).await;
        told = Some(notice.clone());
        if notices.send(notice).await.is_err() {
            return;
        }
    }
}
