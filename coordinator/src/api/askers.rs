//! What each person is asking for now: requests and watched jobs, with a share of both.

use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tessera_core::Owner;
use tessera_protocol::client::RequestError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most requests of one person that are worked on at a time. The others wait, so that one person
/// takes a bounded part of the coordinator's time.
const AT_ONCE_MAX: usize = 8;

/// Something that a person has of the coordinator while it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Watcher,
    Request,
}

/// How much of each kind there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) watchers: u32,
    pub(crate) requests: u32,
}

impl Counts {
    fn of(&mut self, kind: Kind) -> &mut u32 {
        match kind {
            Kind::Watcher => &mut self.watchers,
            Kind::Request => &mut self.requests,
        }
    }
}

/// Counts of all persons.
#[derive(Debug)]
pub(crate) struct Askers {
    most: Counts,
    askers: Mutex<BTreeMap<Owner, Asker>>,
}

#[derive(Debug)]
struct Asker {
    counts: Counts,
    turns: Arc<Semaphore>,
}

impl Askers {
    /// Nobody yet. `most`: what one person may have.
    pub(crate) fn new(most: Counts) -> Arc<Self> {
        Arc::new(Self { most, askers: Mutex::default() })
    }

    /// Counts one more of a kind until the returned value is dropped.
    pub(crate) fn enter(
        self: &Arc<Self>,
        owner: &Owner,
        kind: Kind,
    ) -> Result<Entered, RequestError> {
        let most = *{ self.most }.of(kind);
        let mut askers = lock(&self.askers);
        let asker = askers.entry(owner.clone()).or_insert_with(|| Asker {
            counts: Counts::default(),
            turns: Arc::new(Semaphore::new(AT_ONCE_MAX)),
        });
        let count = asker.counts.of(kind);
        if *count >= most {
            let (what, option) = match kind {
                Kind::Watcher => ("jobs are watched", "--watchers-per-user"),
                Kind::Request => ("requests are being answered", "--requests-per-user"),
            };
            return Err(RequestError::Unavailable(format!(
                "{most} {what} for `{owner}`, and no more are taken of one user; end some, or \
                 wait. Who runs the coordinator may raise the limit ({option})"
            )));
        }
        *count += 1;
        let turns = asker.turns.clone();
        Ok(Entered { askers: self.clone(), owner: owner.clone(), kind, turns, _turn: None })
    }

    /// Counts one more request, and waits for its turn among those of its person.
    pub(crate) async fn request(self: &Arc<Self>, owner: &Owner) -> Result<Entered, RequestError> {
        let mut entered = self.enter(owner, Kind::Request)?;
        let turn = entered.turns.clone().acquire_owned().await;
        entered._turn = turn.ok();
        Ok(entered)
    }

    /// Returns the counts of everybody who has some.
    pub(crate) fn counts(&self) -> BTreeMap<Owner, Counts> {
        let askers = lock(&self.askers);
        askers.iter().map(|(owner, asker)| (owner.clone(), asker.counts)).collect()
    }
}

/// A counted request or watcher.
#[derive(Debug)]
pub(crate) struct Entered {
    askers: Arc<Askers>,
    owner: Owner,
    kind: Kind,
    turns: Arc<Semaphore>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut askers = lock(&self.askers.askers);
        let Some(asker) = askers.get_mut(&self.owner) else { return };
        *asker.counts.of(self.kind) -= 1;
        if asker.counts == Counts::default() {
            askers.remove(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    // promise: P8
    #[test]
    fn requests_and_watchers_of_one_user_are_limited() {
        let askers = Askers::new(Counts { watchers: 2, requests: 1 });
        let (ada, bob) = (Owner::new(3, "ada"), Owner::new(4, "bob"));
        let held: Vec<_> =
            (0..2).map(|_| askers.enter(&ada, Kind::Watcher).expect("room")).collect();
        let request = askers.enter(&ada, Kind::Request).expect("room");
        let text = askers.enter(&ada, Kind::Watcher).unwrap_err().to_string();
        assert!(text.contains("2 jobs are watched for `ada`"), "{text}");
        assert!(text.contains("--watchers-per-user"), "{text}");
        assert!(askers.enter(&ada, Kind::Request).is_err());
        assert!(askers.enter(&bob, Kind::Watcher).is_ok(), "others are not affected");
        drop((held, request));
        assert!(askers.counts().is_empty());
    }

    // promise: P8
    #[tokio::test]
    async fn a_few_requests_of_one_user_are_worked_on_at_a_time() {
        let askers = Askers::new(Counts { watchers: 1, requests: 20 });
        let (ada, bob) = (Owner::new(3, "ada"), Owner::new(4, "bob"));
        let mut held = Vec::new();
        for _ in 0..AT_ONCE_MAX {
            held.push(askers.request(&ada).await.expect("room"));
        }
        let soon = |owner| {
            let request = askers.request(owner);
            async move { tokio::time::timeout(Duration::from_millis(20), request).await.is_ok() }
        };
        assert!(!soon(&ada).await, "it waits for its turn");
        assert!(soon(&bob).await, "others do not");
        held.pop();
        assert!(soon(&ada).await);
    }
}
