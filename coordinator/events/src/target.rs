//! A target: its queue, its counts, and the way to it.

use crate::event::Event;
use crate::mail::{self, Mailer};
use crate::queue::{Queue, WAITING_MAX};
use crate::wanted::Wanted;
use crate::webhook::{self, Webhook};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tessera_coordinator::api::TargetFigures;
use tokio::sync::Notify;

/// The way to a target.
#[derive(Debug)]
pub(crate) enum Way {
    Webhook(Webhook),
    Mail(Mailer),
}

/// A target.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    wanted: Wanted,
    way: Way,
    queue: Mutex<Queue>,
    /// Wakes the courier.
    pushed: Notify,
    /// Set where the queue has changed since it was kept.
    changed: AtomicBool,
    delivered: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    is_failing: AtomicBool,
}

impl Target {
    /// A target with events that it did not get before the start.
    pub(crate) fn new(name: String, (wanted, way): (Wanted, Way), waiting: Vec<Event>) -> Self {
        let mut queue = Queue::default();
        let dropped: u64 = waiting.into_iter().map(|event| queue.push(Arc::new(event))).sum();
        Self {
            name,
            wanted,
            way,
            queue: Mutex::new(queue),
            pushed: Notify::new(),
            changed: AtomicBool::new(false),
            delivered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            dropped: AtomicU64::new(dropped),
            is_failing: AtomicBool::new(false),
        }
    }

    /// Returns whether it gets only the events of jobs that name it.
    pub(crate) fn is_on_request(&self) -> bool {
        self.wanted.on_request.is_some()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event, if the target wants it.
    pub(crate) fn offer(&self, event: &Arc<Event>) {
        if !self.wanted.takes(event) {
            return;
        }
        let dropped = self.queue().push(event.clone());
        self.give_up(dropped, "more than are kept were waiting");
        self.changed.store(true, Relaxed);
        self.pushed.notify_one();
    }

    /// Gives up events that are too old.
    pub(crate) fn expire(&self, now: u64) {
        let dropped = self.queue().expire(now);
        self.give_up(dropped, "they waited for a day");
    }

    fn give_up(&self, dropped: u64, why: &str) {
        if dropped == 0 {
            return;
        }
        self.changed.store(true, Relaxed);
        let before = self.dropped.fetch_add(dropped, Relaxed);
        // A target that is down for long says it now and then.
        let step = WAITING_MAX as u64;
        if before == 0 || before / step != (before + dropped) / step {
            let (target, total) = (&self.name, before + dropped);
            tracing::error!(target, dropped, total, why, "events are given up");
        }
    }

    /// Waits until an event waits.
    pub(crate) async fn wait(&self) {
        while self.queue().len() == 0 {
            self.pushed.notified().await;
        }
    }

    /// Returns how long events are gathered before they are sent.
    pub(crate) fn gather(&self) -> Duration {
        match &self.way {
            Way::Webhook(_) => Duration::ZERO,
            Way::Mail(mailer) => mailer.gather,
        }
    }

    /// Begins a delivery of the oldest events; None if there are none.
    pub(crate) fn begin(&self) -> Option<(Vec<Arc<Event>>, u64)> {
        let most = match &self.way {
            Way::Webhook(_) => webhook::EVENTS_MAX,
            Way::Mail(_) => mail::EVENTS_MAX,
        };
        let (events, dropped) = self.queue().begin(most);
        (!events.is_empty()).then_some((events, dropped))
    }

    /// Sends events, and says what went wrong. Changes no queue.
    pub(crate) async fn send(&self, events: (&[Arc<Event>], u64), now: u64) -> Result<(), String> {
        match &self.way {
            Way::Webhook(webhook) => webhook.post(events, now).await,
            Way::Mail(mailer) => mailer.send(events, now).await,
        }
    }

    /// Ends a delivery that was taken.
    pub(crate) fn delivered(&self, (events, dropped): (&[Arc<Event>], u64)) {
        self.queue().end(Some(dropped));
        self.changed.store(true, Relaxed);
        self.delivered.fetch_add(events.len() as u64, Relaxed);
        if self.is_failing.swap(false, Relaxed) {
            let (target, count) = (&self.name, events.len());
            tracing::info!(target, count, "the target takes events again");
        }
    }

    /// Ends a delivery that failed, for so many times in a row; the next one comes after a pause.
    pub(crate) fn failed(&self, problem: &str, (times, pause): (u32, Duration)) {
        self.queue().end(None);
        self.failed.fetch_add(1, Relaxed);
        self.is_failing.store(true, Relaxed);
        // After the first one, and then less and less often.
        if times.is_power_of_two() {
            let (target, waiting, secs) = (&self.name, self.queue().len(), pause.as_secs());
            tracing::warn!(
                target,
                problem,
                times,
                waiting,
                again_in = secs,
                "events are not \
                delivered"
            );
        }
    }

    /// Returns whether the queue has changed since this was asked last.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Relaxed)
    }

    /// Returns the events that wait.
    pub(crate) fn waiting(&self) -> Vec<Event> {
        self.queue().waiting().iter().map(|event| (**event).clone()).collect()
    }

    /// Returns the counts.
    pub(crate) fn figures(&self) -> TargetFigures {
        TargetFigures {
            name: self.name.clone(),
            kind: match &self.way {
                Way::Webhook(_) => "webhook",
                Way::Mail(_) => "mail",
            },
            delivered: self.delivered.load(Relaxed),
            failed: self.failed.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            waiting: self.queue().len() as u64,
            is_failing: self.is_failing.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Allow;
    use crate::config::{Url, WebhookConfig};
    use crate::event::EventKind;
    use crate::queue::AGE_MAX;
    use crate::secret::Secret;
    use std::collections::BTreeSet;

    fn target() -> Target {
        let wanted = Wanted { kinds: BTreeSet::from([EventKind::Test]), ..Wanted::default() };
        let url = Url {
            is_tls: false,
            host: "127.0.0.1".into(),
            port: 9,
            authority: "127.0.0.1:9".into(),
            path: "/".into(),
        };
        let (name, secret) = ("studio".to_owned(), Secret::of("a-secret-of-the-studio"));
        let config = WebhookConfig { name: name.clone(), url, secret, wanted: wanted.clone() };
        let way = Way::Webhook(Webhook::new(&config, Arc::new(Allow::default()), None));
        Target::new(name, (wanted, way), vec![Event::of_test("kept", 1)])
    }

    fn counts(target: &Target) -> [u64; 4] {
        let figures = target.figures();
        [figures.delivered, figures.failed, figures.dropped, figures.waiting]
    }

    #[test]
    fn figures_follow_what_becomes_of_events() {
        let target = target();
        assert_eq!(counts(&target), [0, 0, 0, 1], "what was kept waits");
        for at in 0..WAITING_MAX as u64 {
            target.offer(&Arc::new(Event::of_test("x", at)));
        }
        assert_eq!(counts(&target), [0, 0, 1, WAITING_MAX as u64]);
        target.begin().expect("events");
        target.failed("a reason", (1, Duration::ZERO));
        assert!(target.figures().is_failing && target.take_changed());
        let (events, dropped) = target.begin().expect("events");
        assert_eq!((events.len(), dropped), (webhook::EVENTS_MAX, 1));
        target.delivered((&events, dropped));
        assert_eq!(counts(&target), [100, 1, 1, 900]);
        assert!(!target.figures().is_failing);
        target.expire(AGE_MAX * 2);
        assert_eq!(counts(&target), [100, 1, 901, 0]);
        assert!(target.begin().is_none());
    }

    #[test]
    fn a_target_waits_for_no_event_that_it_does_not_want() {
        let target = target();
        let other = Event { kind: EventKind::Done, ..Event::of_test("x", 1) };
        target.offer(&Arc::new(other));
        assert_eq!(counts(&target), [0, 0, 0, 1]);
    }

    #[tokio::test]
    async fn a_loopback_address_that_is_not_listed_is_not_dialled() {
        let target = target();
        let events = [Arc::new(Event::of_test("x", 1))];
        let problem = target.send((&events, 0), 1).await.unwrap_err();
        assert!(problem.contains("127.0.0.1 is a loopback address"), "{problem}");
    }
}
