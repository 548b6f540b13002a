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
pub(crate) struct Members {
    most: Counts,
    members: Mutex<BTreeMap<Owner, Member>>,
}

#[derive(Debug)]
struct Member {
    counts: Counts,
    turns: Arc<Semaphore>,
}

impl Members {
    /// Nobody yet. `most`: what one person may have.
    pub(crate) fn new(most: Counts) -> Arc<Self> {
        Arc::new(Self { most, members: Mutex::default() })
    }

    /// Counts one more of a kind until the returned value is dropped.
    pub(crate) fn enter(
        self: &Arc<Self>,
        owner: &Owner,
        kind: Kind,
    ) -> Result<Entered, RequestError> {
        let most = *{ self.most }.of(kind);
        let mut members = lock(&self.members);
        let member = members.entry(owner.clone()).or_insert_with(|| Member {
            counts: Counts::default(),
            turns: Arc::new(Semaphore::new(AT_ONCE_MAX)),
        });
        let count = member.counts.of(kind);
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
        let turns = member.turns.clone();
        Ok(Entered { members: self.clone(), owner: owner.clone(), kind, turns, _turn: None })
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
        let members = lock(&self.members);
        members.iter().map(|(owner, member)| (owner.clone(), member.counts)).collect()
    }
}

/// A counted request or watcher.
#[derive(Debug)]
pub(crate) struct Entered {
    members: Arc<Members>,
    owner: Owner,
    kind: Kind,
    turns: Arc<Semaphore>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut members = lock(&self.members.members);
        let Some(member) = members.get_mut(&self.owner) else { return };
        *member.counts.of(self.kind) -= 1;
        if member.counts == Counts::default() {
            members.remove(&self.owner);
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
        let members = Members::new(Counts { watchers: 2, requests: 1 });
        let (ada, bob) = (Owner::named("ada"), Owner::named("bob"));
        let held: Vec<_> =
            (0..2).map(|_| members.enter(&ada, Kind::Watcher).expect("room")).collect();
        let request = members.enter(&ada, Kind::Request).expect("room");
        let text = members.enter(&ada, Kind::Watcher).unwrap_err().to_string();
        assert!(text.contains("2 jobs are watched for `ada`"), "{text}");
        assert!(text.contains("--watchers-per-user"), "{text}");
        assert!(members.enter(&ada, Kind::Request).is_err());
        assert!(members.enter(&bob, Kind::Watcher).is_ok(), "others are not affected");
        drop((held, request));
        assert!(members.counts().is_empty());
    }

    // promise: P8
    #[tokio::test]
    async fn a_few_requests_of_one_user_are_worked_on_at_a_time() {
        let members = Members::new(Counts { watchers: 1, requests: 20 });
        let (ada, bob) = (Owner::named("ada"), Owner::named("bob"));
        let mut held = Vec::new();
        for _ in 0..AT_ONCE_MAX {
            held.push(members.request(&ada).await.expect("room"));
        }
        let soon = |owner| {
            let request = members.request(owner);
            async move { tokio::time::timeout(Duration::from_millis(20), request).await.is_ok() }
        };
        assert!(!soon(&ada).await, "it waits for its turn");
        assert!(soon(&bob).await, "others do not");
        held.pop();
        assert!(soon(&ada).await);
    }
}
