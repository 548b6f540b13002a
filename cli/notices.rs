//! When a node has to be gone: by the notices of a cloud, or by what its owner said of its leaving.
//! It drains, hands in what units have, and hands back what cannot be handed in. Asks nobody
//! itself.

use std::time::Duration;
use tessera_node::spot::{Cloud, Notice, Spot};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// From a certain notice to the moment when units are ended at a sample that all their pixels have:
/// some seconds for that, and to deliver what they have.
const HAND_IN_AFTER: Duration = Duration::from_secs(18);
/// From a certain notice to the moment when everything must be handed back: the shortest notice is
/// 30 s, and saying so takes a moment.
const HAND_BACK_AFTER: Duration = Duration::from_secs(25);
/// Where another metadata service listens, `HOST:PORT`; for tests.
const METADATA_VARIABLE: &str = "TESSERA_METADATA";

/// Something about this machine's end.
#[derive(Debug)]
pub(crate) enum Heard {
    /// It comes, or is likely to.
    Notice(Notice),
    /// What is not done has to be handed in now, as far as it is.
    HandIn,
    /// What is not delivered has to be handed back now.
    Over,
}

/// The notices that a node has had, and the next.
#[derive(Debug)]
pub(crate) struct Notices {
    notices: mpsc::Receiver<Notice>,
    hand_in: Option<Instant>,
    over: Option<Instant>,
}

impl Notices {
    /// Those that a node is to wait for.
    pub(crate) fn of(spot: Spot) -> Self {
        let (sender, notices) = mpsc::channel(1);
        if let Some(cloud) = spot.cloud() {
            tracing::info!(cloud = %Spot::Cloud(cloud), "waits for the notice that this machine is \
                taken back");
            tokio::spawn(listen(cloud, sender));
        }
        Self { notices, hand_in: None, over: None }
    }

    /// Units are to be handed in after so long at the latest.
    pub(crate) fn hand_in_after(&mut self, time: Duration) {
        let at = Instant::now() + time;
        self.hand_in = Some(self.hand_in.map_or(at, |known| known.min(at)));
    }

    /// The machine goes, for certain.
    fn end(&mut self) {
        self.hand_in_after(HAND_IN_AFTER);
        self.over.get_or_insert(Instant::now() + HAND_BACK_AFTER);
    }

    /// What comes next; for ever nothing where nothing is to come. May be dropped and called again.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_units_have_is_handed_in_some_seconds_before_the_rest_is_handed_back() {
        let mut notices = Notices::of(Spot::Off);
        assert_eq!((notices.hand_in, notices.over), (None, None));
        notices.end();
        let (hand_in, over) = (notices.hand_in.unwrap(), notices.over.unwrap());
        assert!(hand_in + Duration::from_secs(5) < over);
        // Another one changes nothing, and a later wish neither.
        notices.end();
        notices.hand_in_after(Duration::from_secs(600));
        assert_eq!((notices.hand_in, notices.over), (Some(hand_in), Some(over)));
        notices.hand_in_after(Duration::from_secs(1));
        assert!(notices.hand_in < Some(hand_in));
    }
}
