//! One of each message about logs.

use crate::samples::lease;
use tessera_protocol::client::Request;
use tessera_protocol::logs::{
    KeptLine, LogAbout, LogLine, LogLines, LogPage, LogQuery, LogSource, LogTarget, LogText,
    Severity,
};
use tessera_protocol::{Epoch, FrameNumber, JobId, UnitIndex};

fn job() -> JobId {
    lease().unit.job
}

pub(crate) fn lines() -> LogLines {
    let line = |about, source, severity, text: &str| LogLine {
        at_millis: 0x0102_0304,
        source,
        severity,
        about,
        text: LogText::new(text),
    };
    let frame = LogAbout::Frame { job: job(), frame: FrameNumber(7) };
    LogLines(vec![
        line(LogAbout::Node, LogSource::Node, Severity::Info, "a"),
        line(LogAbout::Job(job()), LogSource::Importer, Severity::Warning, "b"),
        line(frame, LogSource::Compiler, Severity::Error, "c"),
        line(LogAbout::Unit(lease()), LogSource::Device, Severity::Info, "d"),
        line(LogAbout::Unit(lease()), LogSource::Finishing, Severity::Info, "e"),
    ])
}

/// A question about a job, and one that follows a node.
pub(crate) fn requests() -> [Request; 2] {
    let asked = LogQuery {
        target: LogTarget::Job(job()),
        frame: Some(FrameNumber(7)),
        unit: Some(UnitIndex(3)),
        source: Some(LogSource::Compiler),
        severity: Severity::Warning,
        since_millis: 9,
        after: Some(4),
        rows: 200,
    };
    let followed = LogQuery::newest(LogTarget::Node("rack-1".into()), 100);
    [Request::Logs(Box::new(asked)), Request::FollowLogs(Box::new(followed))]
}

pub(crate) fn page() -> LogPage {
    let line = KeptLine {
        number: 5,
        at_millis: 9,
        node: "rack-1".into(),
        source: LogSource::Device,
        severity: Severity::Error,
        job: Some(job()),
        frame: Some(FrameNumber(7)),
        unit: Some(UnitIndex(3)),
        epoch: Some(Epoch(2)),
        text: LogText::new("said"),
    };
    LogPage { lines: vec![line], next: 5, more: true }
}
