//! Who makes spans asks here whether they are wanted, and offers them. At most so many a second are
//! taken; under more, no further frames begin to be followed.

use crate::share::Share;
use crate::span::{Span, TraceId};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tessera_protocol::{FrameNumber, JobId};

/// Most spans that are taken in a second of one process, in the long run.
pub const SPANS_PER_SECOND: u32 = 1000;
/// Most that are taken at once.
pub const SPANS_BURST: u32 = 2000;

/// The same of answers to people and programs, which have a bound of their own: who asks much takes
/// nothing from the frames.
pub const ANSWERS_PER_SECOND: u32 = 100;
/// Most answers that are taken at once.
pub const ANSWERS_BURST: u32 = 200;

/// Takes what is offered, without waiting.
pub trait Sink<T>: Send + Sync {
    /// Returns whether it was taken.
    fn offer(&self, one: T) -> bool;
}

/// Takes spans, or nothing. Clones share it.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<Inner>>);

struct Inner {
    share: Share,
    room: Mutex<Room>,
    answers: Mutex<Room>,
    sink: Arc<dyn Sink<Span>>,
}

/// What may be taken now.
struct Room {
    per_second: f64,
    burst: f64,
    left: f64,
    at: Instant,
}

impl Room {
    fn new(per_second: u32, burst: u32, at: Instant) -> Self {
        let burst = f64::from(burst);
        Self { per_second: per_second.into(), burst, left: burst, at }
    }

    /// Returns what may be taken at a time.
    fn look(&mut self, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now.max(self.at);
        self.left = (self.left + passed * self.per_second).min(self.burst);
        self.left
    }

    fn take(&mut self, now: Instant) -> bool {
        let is_there = self.look(now) >= 1.0;
        if is_there {
            self.left -= 1.0;
        }
        is_there
    }
}

impl Tracer {
    /// Takes a share of all traces into a sink.
    pub fn into_sink(share: Share, sink: Arc<dyn Sink<Span>>) -> Self {
        let now = Instant::now();
        let room = Mutex::new(Room::new(SPANS_PER_SECOND, SPANS_BURST, now));
        let answers = Mutex::new(Room::new(ANSWERS_PER_SECOND, ANSWERS_BURST, now));
        Self(Some(Arc::new(Inner { share, room, answers, sink })))
    }

    /// Whether spans are wanted at all.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the trace of a frame is wanted. It is the same on every machine with this share.
    pub fn wants(&self, job: JobId, frame: FrameNumber) -> bool {
        let wants = |inner: &Arc<Inner>| inner.share.has(TraceId::of_frame(job, frame));
        self.0.as_ref().is_some_and(wants)
    }

    /// Whether there is room to follow a further frame from its beginning: half of what can be
    /// taken at once, so that the frames that are followed already keep their spans.
    pub fn has_room(&self) -> bool {
        let half = f64::from(SPANS_BURST) / 2.0;
        self.0.as_ref().is_some_and(|inner| locked(&inner.room).look(Instant::now()) >= half)
    }

    /// Offers a span. It never waits. Returns whether it was taken.
    pub fn offer(&self, span: Span) -> bool {
        let Some(inner) = &self.0 else { return false };
        if !inner.share.has(span.trace) {
            return false;
        }
        let room = if span.is_answer { &inner.answers } else { &inner.room };
        let is_room = locked(room).take(Instant::now());
        is_room && inner.sink.offer(span)
    }
}

fn locked(room: &Mutex<Room>) -> MutexGuard<'_, Room> {
    room.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tracer").field(&self.is_on()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[derive(Default)]
    struct Taken(Mutex<Vec<Span>>);

    impl Sink<Span> for Taken {
        fn offer(&self, span: Span) -> bool {
            self.0.lock().unwrap().push(span);
            true
        }
    }

    fn span() -> Span {
        let now = SystemTime::now();
        Span::of_frame(JobId::new(), FrameNumber(1), (now, now))
    }

    #[test]
    fn spans_are_taken_up_to_a_bound_a_second() {
        let start = Instant::now();
        let mut room = Room::new(SPANS_PER_SECOND, SPANS_BURST, start);
        let mut take = |at: u64, count: u32| {
            let now = start + Duration::from_millis(at);
            (0..count).filter(|_| room.take(now)).count()
        };
        assert_eq!(take(0, 20_000), SPANS_BURST as usize);
        // A second of 20,000 spans.
        let taken: usize = (1..=1000).map(|at| take(at, 20)).sum();
        assert!((999..=1001).contains(&taken), "{taken}");
        // A long pause saves no more than is taken at once.
        assert_eq!(take(100_000_000, 20_000), SPANS_BURST as usize);
    }

    #[test]
    fn no_further_frame_is_followed_when_much_is_said() {
        let taken = Arc::new(Taken::default());
        let tracer = Tracer::into_sink(Share::ALL, taken.clone());
        assert!(tracer.has_room());
        for _ in 0..SPANS_BURST * 3 / 4 {
            assert!(tracer.offer(span()));
        }
        // Half of the room comes back in a second.
        assert!(!tracer.has_room() && tracer.offer(span()));
        assert_eq!(taken.0.lock().unwrap().len() as u32, SPANS_BURST * 3 / 4 + 1);
    }

    // promise: P8
    #[test]
    fn who_asks_much_takes_no_spans_from_frames() {
        let taken = Arc::new(Taken::default());
        let tracer = Tracer::into_sink(Share::ALL, taken.clone());
        let now = SystemTime::now();
        let answers = (0..20_000).filter(|_| tracer.offer(Span::of_answer("GET", (now, now))));
        let answers = answers.count() as u32;
        assert!((ANSWERS_BURST..ANSWERS_BURST + ANSWERS_PER_SECOND).contains(&answers));
        assert!((0..SPANS_BURST).all(|_| tracer.offer(span())));
    }

    #[test]
    fn what_is_not_wanted_is_not_taken() {
        let (off, taken) = (Tracer::default(), Arc::new(Taken::default()));
        let none = Share::parse("always_off", None).unwrap();
        let none = Tracer::into_sink(none, taken.clone());
        for tracer in [off, none] {
            assert!(!tracer.wants(JobId::new(), FrameNumber(1)) && !tracer.offer(span()));
        }
        assert!(taken.0.lock().unwrap().is_empty());
    }
}
