//! A span, and the ids that everybody gives the same one: a frame is a trace, whose id follows from
//! job and frame alone, on every machine and after every restart.

use std::borrow::Cow;
use std::time::SystemTime;
use tessera_protocol::{FrameNumber, JobId, Lease};

/// Longest text of a value in bytes.
const TEXT_MAX: usize = 512;

/// Id of a trace. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub [u8; 16]);

/// Id of a span within its trace. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// Returns the trace of a frame.
    pub fn of_frame(job: JobId, frame: FrameNumber) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("tessera trace 1");
        hasher.update(job.0.as_bytes()).update(&frame.0.to_le_bytes());
        let mut id = [0; 16];
        hasher.finalize_xof().fill(&mut id);
        id[15] |= 1;
        Self(id)
    }

    /// Returns a new trace that has no frame.
    pub fn random() -> Self {
        Self(*uuid::Uuid::new_v4().as_bytes())
    }
}

impl SpanId {
    /// Returns the root of a frame's trace.
    pub fn of_frame(job: JobId, frame: FrameNumber) -> Self {
        Self::made(TraceId::of_frame(job, frame), "frame", &[])
    }

    /// Returns the span of an attempt.
    pub fn of_attempt(lease: Lease) -> Self {
        let mut bytes = lease.unit.unit.0.to_le_bytes().to_vec();
        bytes.extend(lease.epoch.0.to_le_bytes());
        Self::made(TraceId::of_frame(lease.unit.job, lease.unit.frame), "attempt", &bytes)
    }

    /// Returns a span that nobody else names.
    pub fn random() -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *uuid::Uuid::new_v4().as_bytes();
        // The version's bits make it other than 0.
        Self([a, b, c, d, e, f, g, h])
    }

    fn made(trace: TraceId, what: &str, of: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("tessera span 1");
        hasher.update(&trace.0).update(what.as_bytes()).update(of);
        let mut id = [0; 8];
        hasher.finalize_xof().fill(&mut id);
        id[7] |= 1;
        Self(id)
    }
}

/// Value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text of at most half a KiB.
    Text(String),
    /// A count.
    Count(i64),
    /// A measure.
    Measure(f64),
}

impl From<String> for Value {
    fn from(mut text: String) -> Self {
        text.truncate(text.floor_char_boundary(TEXT_MAX));
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text[..text.floor_char_boundary(TEXT_MAX)].to_owned())
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<f64> for Value {
    fn from(measure: f64) -> Self {
        Self::Measure(measure)
    }
}

/// Something that took time.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The trace.
    pub trace: TraceId,
    /// The span within it.
    pub id: SpanId,
    /// The span that it is a part of.
    pub parent: Option<SpanId>,
    /// What was done.
    pub name: Cow<'static, str>,
    /// Whether it is an answer to somebody outside.
    pub is_answer: bool,
    /// When it began.
    pub from: SystemTime,
    /// When it ended.
    pub to: SystemTime,
    /// What went wrong, if something did.
    pub problem: Option<String>,
    /// What else is known of it.
    pub attributes: Vec<(&'static str, Value)>,
}

impl Span {
    /// The root of a frame's trace.
    pub fn of_frame(job: JobId, frame: FrameNumber, time: (SystemTime, SystemTime)) -> Self {
        let (trace, id) = (TraceId::of_frame(job, frame), SpanId::of_frame(job, frame));
        Self::new("frame", (trace, id, None), time).about(job, frame)
    }

    /// Something that was done for a frame.
    pub fn in_frame(
        name: &'static str,
        (job, frame): (JobId, FrameNumber),
        time: (SystemTime, SystemTime),
    ) -> Self {
        let (trace, parent) = (TraceId::of_frame(job, frame), SpanId::of_frame(job, frame));
        Self::new(name, (trace, SpanId::random(), Some(parent)), time).about(job, frame)
    }

    /// An attempt of a unit.
    pub fn of_attempt(name: &'static str, lease: Lease, time: (SystemTime, SystemTime)) -> Self {
        let (job, frame) = (lease.unit.job, lease.unit.frame);
        let (trace, parent) = (TraceId::of_frame(job, frame), SpanId::of_frame(job, frame));
        let id = SpanId::of_attempt(lease);
        Self::new(name, (trace, id, Some(parent)), time).about(job, frame).about_unit(lease)
    }

    /// Something that was done in an attempt.
    pub fn in_attempt(name: &'static str, lease: Lease, time: (SystemTime, SystemTime)) -> Self {
        let (job, frame) = (lease.unit.job, lease.unit.frame);
        let parent = Some(SpanId::of_attempt(lease));
        Self::new(name, (TraceId::of_frame(job, frame), SpanId::random(), parent), time)
            .about(job, frame)
            .about_unit(lease)
    }

    /// An answer to somebody outside: a trace of its own.
    pub fn of_answer(name: impl Into<Cow<'static, str>>, time: (SystemTime, SystemTime)) -> Self {
        let span = Self::new(name, (TraceId::random(), SpanId::random(), None), time);
        Self { is_answer: true, ..span }
    }

    /// Adds an attribute.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    /// Says what went wrong, if something did.
    pub fn failed(mut self, problem: Option<&str>) -> Self {
        self.problem = problem.map(|text| text[..text.floor_char_boundary(TEXT_MAX)].to_owned());
        self
    }

    fn new(
        name: impl Into<Cow<'static, str>>,
        (trace, id, parent): (TraceId, SpanId, Option<SpanId>),
        (from, to): (SystemTime, SystemTime),
    ) -> Self {
        Self {
            trace,
            id,
            parent,
            name: name.into(),
            is_answer: false,
            from,
            // A clock that is set back makes no span of negative length.
            to: to.max(from),
            problem: None,
            attributes: Vec::new(),
        }
    }

    fn about(self, job: JobId, frame: FrameNumber) -> Self {
        self.with("tessera.job", job.to_string()).with("tessera.frame", frame.0)
    }

    fn about_unit(self, lease: Lease) -> Self {
        self.with("tessera.unit", lease.unit.unit.0).with("tessera.attempt", lease.epoch.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};
    use tessera_protocol::{Epoch, UnitIndex, UnitKey};

    fn lease(unit: u32, epoch: u64) -> Lease {
        let job = JobId(uuid::Uuid::from_u128(7));
        let unit = UnitKey { job, frame: FrameNumber(3), unit: UnitIndex(unit) };
        Lease { unit, epoch: Epoch(epoch) }
    }

    #[test]
    fn ids_are_the_same_on_every_machine_and_day() {
        let lease = lease(5, 9);
        let (trace, span) = (TraceId::of_frame(lease.unit.job, lease.unit.frame), lease);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        // Traces that a collector holds are continued after an update.
        assert_eq!(hex(&trace.0), "a9c70993e08ace5deb64041eb4b7908b");
        assert_eq!(hex(&SpanId::of_attempt(span).0), "cdbd9eddacd67495");
    }

    #[test]
    fn each_frame_and_attempt_has_ids_of_its_own() {
        let job = JobId(uuid::Uuid::from_u128(7));
        let traces = [
            TraceId::of_frame(job, FrameNumber(1)),
            TraceId::of_frame(job, FrameNumber(2)),
            TraceId::of_frame(JobId(uuid::Uuid::from_u128(8)), FrameNumber(1)),
            TraceId::random(),
        ];
        assert_eq!(std::collections::BTreeSet::from(traces).len(), 4);
        let spans = [
            SpanId::of_attempt(lease(1, 1)),
            SpanId::of_attempt(lease(1, 2)),
            SpanId::of_attempt(lease(2, 1)),
            SpanId::of_frame(job, FrameNumber(3)),
            SpanId::random(),
        ];
        assert_eq!(std::collections::BTreeSet::from(spans).len(), 5);
    }

    #[test]
    fn a_span_is_bounded_and_never_ends_before_it_begins() {
        let late = UNIX_EPOCH + Duration::from_secs(5);
        let long = "ä".repeat(1 << 20);
        let span = Span::of_attempt("unit", lease(1, 1), (late, UNIX_EPOCH))
            .with("tessera.reason", long.as_str())
            .failed(Some(&long));
        assert_eq!(span.to, late);
        assert_eq!(span.problem.map(|text| text.len()), Some(TEXT_MAX));
        let Some((_, Value::Text(text))) = span.attributes.last() else { panic!("no text") };
        assert_eq!(text.len(), TEXT_MAX);
    }
}
