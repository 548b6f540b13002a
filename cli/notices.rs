//! Decides when a node must leave: after a notice of its cloud, or after the time that
//! --hand-in-after gives. The node drains, hands in the samples that units have, and hands back the
//! rest. Asks no cloud itself; see `tessera_node::spot`.

use std::time::Duration;
use tessera_node::spot::{Cloud, Notice, Spot};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Time from a certain notice until running units end early, at a sample that all their pixels
/// have. It leaves some seconds to end and to deliver them.
const HAND_IN_AFTER: Duration = Duration::from_secs(18);
/// Time from a certain notice until everything is handed back. The shortest notice is 30 s, and
/// handing back takes a moment.
const HAND_BACK_AFTER: Duration = Duration::from_secs(25);
/// Variable with the address of another metadata service, `HOST:PORT`; for tests.
const METADATA_VARIABLE: &str = "TESSERA_METADATA";

/// News about the end of the node's machine.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The machine will be taken back, or is likely to be.
    Notice(Notice),
    /// Units must be handed in now, with the samples that they have.
    HandIn,
    /// Undelivered units must be handed back now.
    Over,
}

/// Notices that a node has received, and the deadlines that follow from them.
#[derive(Debug)]
pub(crate) struct Notices {
    notices: mpsc::Receiver<Notice>,
    hand_in: Option<Instant>,
    over: Option<Instant>,
}

impl Notices {
    /// Starts listening for the notices of a cloud, if one is chosen or found.
    pub(crate) fn of(spot: Spot) -> Self {
        let (sender, notices) = mpsc::channel(1);
        if let Some(cloud) = spot.cloud() {
            tracing::info!(cloud = %Spot::Cloud(cloud), "waits for the notice that this machine is \
                taken back");
            tokio::spawn(listen(cloud, sender));
        }
        Self { notices, hand_in: None, over: None }
    }

    /// Sets the latest time for handing units in. An earlier time stays in force.
    pub(crate) fn hand_in_after(&mut self, time: Duration) {
        let at = Instant::now() + time;
        self.hand_in = Some(self.hand_in.map_or(at, |known| known.min(at)));
    }

    /// Sets both deadlines: the machine will certainly be taken back.
    fn end(&mut self) {
        self.hand_in_after(HAND_IN_AFTER);
        self.over.get_or_insert(Instant::now() + HAND_BACK_AFTER);
    }

    /// Waits for the next event; pending forever if none is due. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Heard {
        let due = self.hand_in.or(self.over);
        tokio::select! {
            notice = next_of(&mut self.notices) => {
                if notice.certain {
                    self.end();
                }
                Heard::Notice(notice)
            }
            () = until(due) => match self.hand_in.take() {
                Some(_) => Heard::HandIn,
                None => {
                    self.over = None;
                    Heard::Over
                }
            }
        }
    }
}

async fn next_of(notices: &mut mpsc::Receiver<Notice>) -> Notice {
    match notices.recv().await {
        Some(notice) => notice,
        None => std::future::pending().await,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Reports a likely end once, and then a certain one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handing_in_leaves_seconds_before_handing_back() {
        let mut notices = Notices::of(Spot::Off);
        assert_eq!((notices.hand_in, notices.over), (None, None));
        notices.end();
        let (hand_in, over) = (notices.hand_in.unwrap(), notices.over.unwrap());
        assert!(hand_in + Duration::from_secs(5) < over);
        // Another notice changes nothing, and neither does a later request.
        notices.end();
        notices.hand_in_after(Duration::from_secs(600));
        assert_eq!((notices.hand_in, notices.over), (Some(hand_in), Some(over)));
        notices.hand_in_after(Duration::from_secs(1));
        assert!(notices.hand_in < Some(hand_in));
    }
}
