//! The events that wait for one target. Bounded: where there is no room, the oldest are given up,
//! and that is said with the next events that are delivered.

use crate::event::Event;
use std::collections::VecDeque;
use std::sync::Arc;

/// Most events that wait for a target. An event has one or two KiB.
pub(crate) const WAITING_MAX: usize = 1000;
/// Age at which an event is given up, in seconds.
pub(crate) const AGE_MAX: u64 = 24 * 3600;

/// Events that wait for one target, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    events: VecDeque<Arc<Event>>,
    /// How many of the first events are being delivered.
    under_way: usize,
    /// Events that were given up, and of which the target was not told.
    untold: u64,
}

impl Queue {
    /// Adds an event. Returns how many were given up to make room.
    pub(crate) fn push(&mut self, event: Arc<Event>) -> u64 {
        self.events.push_back(event);
        let mut dropped = 0;
        while self.events.len() > WAITING_MAX {
            // What is under way may be delivered already.
            self.events.remove(self.under_way);
            dropped += 1;
        }
        self.untold += dropped;
        dropped
    }

    /// Gives up events that are too old, none while some are under way. Returns their number.
    pub(crate) fn expire(&mut self, now: u64) -> u64 {
        if self.under_way > 0 {
            return 0;
        }
        let before = self.events.len();
        self.events.retain(|event| now.saturating_sub(event.at) < AGE_MAX);
        let dropped = (before - self.events.len()) as u64;
        self.untold += dropped;
        dropped
    }

    /// Begins to deliver the oldest events, so many at most. Also returns how many were given up.
    pub(crate) fn begin(&mut self, most: usize) -> (Vec<Arc<Event>>, u64) {
        let events: Vec<_> = self.events.iter().take(most).cloned().collect();
        self.under_way = events.len();
        (events, self.untold)
    }

    /// Ends a delivery: `told` is how many the target was told to be given up, None if it failed.
    pub(crate) fn end(&mut self, told: Option<u64>) {
        let under_way = std::mem::take(&mut self.under_way);
        if let Some(told) = told {
            self.events.drain(..under_way);
            self.untold = self.untold.saturating_sub(told);
        }
    }

    /// Returns how many events wait.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns all events that wait, the oldest first.
    pub(crate) fn waiting(&self) -> Vec<Arc<Event>> {
        self.events.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64) -> Arc<Event> {
        Arc::new(Event::of_test("x", at))
    }

    /// A queue with events of these times.
    fn filled(times: impl IntoIterator<Item = u64>) -> Queue {
        let mut queue = Queue::default();
        for at in times {
            queue.push(event(at));
        }
        queue
    }

    fn times(events: &[Arc<Event>]) -> Vec<u64> {
        events.iter().map(|event| event.at).collect()
    }

    #[test]
    fn a_full_queue_gives_up_the_oldest_and_says_so() {
        let mut queue = Queue::default();
        let dropped: u64 = (0..WAITING_MAX as u64 + 5).map(|at| queue.push(event(at))).sum();
        assert_eq!((dropped, queue.len()), (5, WAITING_MAX));
        let (events, untold) = queue.begin(2);
        assert_eq!((times(&events), untold), (vec![5, 6], 5));
        queue.end(Some(untold));
        assert_eq!(queue.begin(1).1, 0, "it is said once");
    }

    #[test]
    fn what_is_under_way_is_not_given_up() {
        let mut queue = filled(0..WAITING_MAX as u64);
        let (events, _) = queue.begin(3);
        assert_eq!(queue.push(event(5000)), 1);
        assert_eq!(queue.expire(AGE_MAX * 9), 0);
        queue.end(Some(0));
        assert_eq!((times(&events), times(&queue.begin(1).0)), (vec![0, 1, 2], vec![4]));
        assert_eq!(queue.begin(1).1, 1, "event 3 made room");
    }

    #[test]
    fn a_failed_delivery_keeps_its_events_in_their_order() {
        let mut queue = filled(0..5);
        queue.begin(3);
        queue.end(None);
        assert_eq!(times(&queue.begin(9).0), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn events_of_a_day_ago_are_given_up() {
        let mut queue = filled([10, 20, AGE_MAX]);
        assert_eq!(queue.expire(15 + AGE_MAX), 1);
        assert_eq!(times(&queue.waiting()), [20, AGE_MAX]);
        assert_eq!(queue.begin(9).1, 1);
    }
}
