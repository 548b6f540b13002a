//! The queue of the store's thread. Results in the middle of a frame do not wake it while it
//! collects a group: each waking costs more than to write a short result.

use super::StoreError;
use super::commit::Commit;
use crate::sync::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the thread gets.
pub(super) enum Message {
    Commit(Box<Commit>),
    Stop,
}

impl Message {
    /// Whether somebody waits for it.
    fn is_urgent(&self) -> bool {
        !matches!(self, Self::Commit(commit) if commit.can_wait())
    }
}

/// Queue of commits. Clones share one queue. The queue is not bounded here: results are admitted by
/// a budget.
#[derive(Clone, Debug)]
pub struct StoreQueue(Arc<Queue>);

impl StoreQueue {
    /// Sends a commit. Fails if the writer has ended.
    pub fn send(&self, commit: Commit) -> Result<(), StoreError> {
        self.0.put(Message::Commit(Box::new(commit)))
    }

    /// Ends the writer after the commits that were sent, unless it has ended already.
    pub(super) fn stop(&self) {
        let _ = self.0.put(Message::Stop);
    }
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    messages: VecDeque<Message>,
    waits: Waits,
    has_ended: bool,
}

/// What the thread waits for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Waits {
    /// It works.
    #[default]
    Not,
    /// Any message.
    Any,
    /// A message that somebody waits for.
    Urgent,
}

impl Queue {
    fn put(&self, message: Message) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        if state.has_ended {
            return Err(StoreError::Stopped);
        }
        let wakes = match state.waits {
            Waits::Not => false,
            Waits::Any => true,
            Waits::Urgent => message.is_urgent(),
        };
        state.messages.push_back(message);
        if wakes {
            state.waits = Waits::Not;
            self.wake.notify_one();
        }
        Ok(())
    }
}

/// The end of the queue that the thread has. Nothing more is taken once it is dropped.
pub(super) struct QueueEnd(Arc<Queue>);

/// Creates a queue.
pub(super) fn queue() -> (StoreQueue, QueueEnd) {
    let queue = Arc::new(Queue::default());
    (StoreQueue(queue.clone()), QueueEnd(queue))
}

impl QueueEnd {
    /// Returns the next message, if it is there.
    pub(super) fn take(&self) -> Option<Message> {
        lock(&self.0.state).messages.pop_front()
    }

    /// Waits for the next message for a time.
    pub(super) fn next(&self, most: Duration) -> Option<Message> {
        let until = Instant::now() + most;
        loop {
            match self.take() {
                Some(message) => return Some(message),
                None if Instant::now() < until => self.wait(Waits::Any, until),
                None => return None,
            }
        }
    }

    /// Waits until a moment, or until something comes that somebody waits for.
    pub(super) fn wait_for_urgent(&self, until: Instant) {
        self.wait(Waits::Urgent, until);
    }

    /// Waits for what comes from now on, unless something is there.
    fn wait(&self, what: Waits, until: Instant) {
        let mut state = lock(&self.0.state);
        if !state.messages.is_empty() {
            return;
        }
        state.waits = what;
        while state.waits != Waits::Not {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.0.wake.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.waits = Waits::Not;
    }
}

impl Drop for QueueEnd {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.has_ended = true;
        state.messages.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::contract::{entry, key};

    fn message(with_result: bool) -> Commit {
        let (mut commit, _) = Commit::new();
        commit.results.extend(with_result.then(|| entry(key(1), 0)));
        commit
    }

    /// Waits until a thread waits for something.
    fn wait_until_it_waits(queue: &StoreQueue, what: Waits) {
        while lock(&queue.0.state).waits != what {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_nobody_waits_for_does_not_wake_the_thread() {
        let (queue, end) = queue();
        let far = Instant::now() + Duration::from_secs(600);
        let thread = std::thread::spawn(move || {
            end.wait_for_urgent(far);
            let taken = std::iter::from_fn(|| end.take()).count();
            end.wait_for_urgent(Instant::now());
            taken
        });
        wait_until_it_waits(&queue, Waits::Urgent);
        queue.send(message(true)).unwrap();
        queue.send(message(true)).unwrap();
        assert!(lock(&queue.0.state).waits == Waits::Urgent, "it sleeps on");
        queue.send(message(false)).unwrap();
        assert_eq!(thread.join().unwrap(), 3);
        assert!(matches!(queue.send(message(false)), Err(StoreError::Stopped)));
    }

    #[test]
    fn a_thread_that_has_nothing_is_woken_by_anything() {
        let (queue, end) = queue();
        assert!(end.next(Duration::ZERO).is_none());
        let thread = std::thread::spawn(move || {
            let first = end.next(Duration::from_secs(600));
            (first.is_some(), end.next(Duration::from_secs(600)))
        });
        wait_until_it_waits(&queue, Waits::Any);
        queue.send(message(true)).unwrap();
        queue.stop();
        let (has_first, second) = thread.join().unwrap();
        assert!(has_first && matches!(second, Some(Message::Stop)));
    }
}
