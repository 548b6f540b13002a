//! What each person is asking for now: requests and watched jobs, with a share of both.

use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tessera_core::Owner;
use tessera_protocol::client::RequestError;

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
    counts: Mutex<BTreeMap<Owner, Counts>>,
}

impl Members {
    /// Nobody yet. `most`: what one person may have.
    pub(crate) fn new(most: Counts) -> Arc<Self> {
        Arc::new(Self { most, counts: Mutex::default() })
    }

    /// Counts one more of a kind until the returned value is dropped.
    pub(crate) fn enter(
        self: &Arc<Self>,
        owner: &Owner,
        kind: Kind,
    ) -> Result<Entered, RequestError> {
        let most = *{ self.most }.of(kind);
        let mut counts = lock(&self.counts);
        let count = counts.entry(owner.clone()).or_default().of(kind);
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
        Ok(Entered { members: self.clone(), owner: owner.clone(), kind })
    }

    /// Returns the counts of everybody who has some.
    pub(crate) fn counts(&self) -> BTreeMap<Owner, Counts> {
        lock(&self.counts).clone()
    }
}

/// A counted request or watcher.
#[derive(Debug)]
pub(crate) struct Entered {
    members: Arc<Members>,
    owner: Owner,
    kind: Kind,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut counts = lock(&self.members.counts);
        let Some(member) = counts.get_mut(&self.owner) else { return };
        *member.of(self.kind) -= 1;
        if *member == Counts::default() {
            counts.remove(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
