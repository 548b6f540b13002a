//! Spans of what a node does for a frame or an attempt: prepare, render, store, send. Their ids are
//! those that the coordinator gives the same things, so that both are one trace.

use super::event::Prepared;
use crate::agent::FrameKey;
use crate::device::{DeviceError, UnitOutput};
use crate::frame_memory::NotPrepared;
use std::time::{Duration, SystemTime};
use tessera_protocol::Lease;
use tessera_telemetry::{Span, Tracer};

/// Makes the spans of one node.
#[derive(Clone, Debug)]
pub(super) struct Spans {
    tracer: Tracer,
    /// The node's name.
    node: String,
}

impl Spans {
    pub(super) fn new(tracer: Tracer, node: String) -> Self {
        Self { tracer, node }
    }

    /// A preparation has ended.
    pub(super) fn prepared(
        &self,
        frame: FrameKey,
        result: &Result<Prepared, NotPrepared>,
        took: Duration,
    ) {
        let (job, number) = (frame.job(), frame.frame());
        if !self.tracer.wants(job, number) {
            return;
        }
        let now = SystemTime::now();
        let time = (now.checked_sub(took).unwrap_or(now), now);
        let span = match frame {
            FrameKey::Piece(lease) => Span::in_attempt("prepare", lease, time),
            FrameKey::Frame(..) => Span::in_frame("prepare", (job, number), time),
        };
        let problem = match result {
            Ok(_) => None,
            Err(NotPrepared::Failed(failure)) => Some(failure.reason().to_owned()),
            Err(NotPrepared::Postponed(shortage)) => Some(shortage.to_string()),
        };
        self.offer(span.failed(problem.as_deref()));
    }

    /// A device has ended a unit that it was given at a time.
    pub(super) fn rendered(
        &self,
        (lease, slot): (Lease, &str),
        given: SystemTime,
        result: &Result<UnitOutput, DeviceError>,
    ) {
        if !self.wants(lease) {
            return;
        }
        let span = Span::in_attempt("render", lease, (given, SystemTime::now()));
        let span = span.with("tessera.device", slot);
        self.offer(match result {
            Ok(output) => span
                .with("tessera.device_seconds", output.device_time.as_secs_f64())
                .with("tessera.rays", output.rays),
            Err(error) => span.failed(Some(&error.to_string())),
        });
    }

    /// Something was done with a result since a time; the problem says why it was not.
    pub(super) fn of_result(
        &self,
        (name, lease): (&'static str, Lease),
        since: SystemTime,
        (bytes, problem): (u64, Option<&str>),
    ) {
        if self.wants(lease) {
            let span = Span::in_attempt(name, lease, (since, SystemTime::now()));
            self.offer(span.with("tessera.result_bytes", bytes).failed(problem));
        }
    }

    fn wants(&self, lease: Lease) -> bool {
        self.tracer.wants(lease.unit.job, lease.unit.frame)
    }

    fn offer(&self, span: Span) {
        // What is left out, the sink counts.
        let _ = self.tracer.offer(span.with("tessera.node", self.node.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tessera_protocol::node::Failure;
    use tessera_protocol::{Epoch, FrameNumber, JobId, UnitIndex, UnitKey};
    use tessera_telemetry::{Share, Sink, SpanId, TraceId};

    #[derive(Default)]
    struct Taken(Mutex<Vec<Span>>);

    impl Sink<Span> for Taken {
        fn offer(&self, span: Span) -> bool {
            self.0.lock().unwrap().push(span);
            true
        }
    }

    #[test]
    fn what_a_node_does_is_a_part_of_the_attempt() {
        let taken = Arc::new(Taken::default());
        let spans = Spans::new(Tracer::into_sink(Share::ALL, taken.clone()), "rig-1".to_owned());
        let (job, frame) = (JobId::new(), FrameNumber(4));
        let unit = UnitKey { job, frame, unit: UnitIndex(2) };
        let lease = Lease { unit, epoch: Epoch(9) };
        let failed = || Err(NotPrepared::Failed(Failure::Scene("it is broken".to_owned())));
        let took = Duration::from_secs(3);
        spans.prepared(FrameKey::Frame(job, frame), &failed(), took);
        spans.prepared(FrameKey::Piece(lease), &failed(), took);
        spans.rendered((lease, "cpu"), SystemTime::now(), &Err(DeviceError::Cancelled));
        spans.of_result(("send", lease), SystemTime::now(), (7, None));
        let taken = taken.0.lock().unwrap();
        let (root, attempt) = (SpanId::of_frame(job, frame), SpanId::of_attempt(lease));
        let shown: Vec<_> = taken.iter().map(|span| (&*span.name, span.parent)).collect();
        assert_eq!(
            shown,
            [
                ("prepare", Some(root)),
                ("prepare", Some(attempt)),
                ("render", Some(attempt)),
                ("send", Some(attempt)),
            ]
        );
        assert!(taken.iter().all(|span| span.trace == TraceId::of_frame(job, frame)));
        assert_eq!(taken[0].to.duration_since(taken[0].from).unwrap(), took);
        assert_eq!(taken[0].problem.as_deref(), Some("it is broken"));
        assert!(taken[2].problem.is_some() && taken[3].problem.is_none());
        let name = ("tessera.node", tessera_telemetry::Value::from("rig-1"));
        assert!(taken.iter().all(|span| span.attributes.contains(&name)));
    }
}
