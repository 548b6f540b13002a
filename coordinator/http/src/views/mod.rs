//! What the API says: the forms in JSON of what the coordinator answers. Field by field the same as
//! the command line's `--json`, which tests compare.

mod costs;
mod events;
mod explain;
mod farm;
mod jobs;
mod logs;
mod members;
mod nodes;

pub(crate) use costs::CostReport;
pub(crate) use events::ServerSent;
pub(crate) use explain::Explanation;
pub(crate) use farm::{AuditReport, Authority, OwnerUsage, Swept};
pub(crate) use jobs::{Changed, Frame, Job, JobDetail, JobName, JobPage};
pub(crate) use logs::LogPage;
pub(crate) use members::{Denied, LogReport, Me, Member, Token};
pub(crate) use nodes::{Node, NodeLine};

/// Writes bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;
    use tessera_protocol::cost::{Amount, Spent, Stored};
    use tessera_protocol::job::{AssetFile, JobKind, Until};
    use tessera_protocol::status::{
        CopyCount, FailureNote, FrameState, FrameStatus, JobDetail as Detail, JobState, JobSummary,
        NodeState, NodeSummary, Waits,
    };
    use tessera_protocol::usage::{OwnerUsage as Usage, Swept as Report};
    use tessera_protocol::{
        BlobHash, Fingerprint, FrameNumber, JobId, JobSpec, NodeId, RenderSpec, status,
    };

    /// The same fields with the same values, hashes aside, which the protocol has as bytes.
    fn same(ours: impl serde::Serialize, protocol: impl serde::Serialize) {
        let (ours, protocol) = (json!(ours), json!(protocol));
        let names = |value: &Value| -> BTreeSet<String> {
            value.as_object().expect("an object").keys().cloned().collect()
        };
        assert_eq!(names(&ours), names(&protocol));
        for (name, value) in protocol.as_object().expect("an object") {
            if !value.is_array() && !value.is_object() {
                assert_eq!(ours[name], *value, "{name}");
            }
        }
    }

    fn summary() -> JobSummary {
        JobSummary {
            job: JobId::new(),
            name: "shot".into(),
            owner: "ada".into(),
            owner_id: 3,
            state: JobState::Running,
            priority: 50,
            submitted_at: 1,
            ended_at: Some(2),
            frames: 3,
            frames_done: 1,
            frames_failed: 1,
            units: 9,
            units_committed: 4,
            units_leased: 2,
            samples_committed: 100,
            samples_kept: 10,
            note: "waits".into(),
            waits: Some(Waits::OutOfWork),
            pool: Some("gpu".into()),
            left_secs: Some(90),
            device_millis: 4500,
            cost: Amount(1_250_000),
        }
    }

    fn wait() -> status::AfterStatus {
        status::AfterStatus {
            job: JobId("01a21dce-1497-75cf-9611-93b840893c85".parse().expect("a UUID")),
            name: "film".into(),
            state: Some(JobState::Done),
            until: Until::Frames,
            frames: 40,
            frames_done: 12,
            over: false,
        }
    }

    #[test]
    fn jobs_have_the_fields_of_the_command_line() {
        let file = AssetFile { path: "a.gltf".into(), hash: BlobHash([0xab; 32]), length: 3 };
        let spec = JobSpec::new("shot", JobKind::Render(RenderSpec::new("a.gltf", vec![file])));
        let detail = Detail {
            summary: summary(),
            spec,
            fingerprint: Some(Fingerprint([9; 32])),
            failures: vec![FailureNote {
                at: 1,
                unit: "u".into(),
                node: "n".into(),
                reason: "r".into(),
            }],
            copies: CopyCount::default(),
            devices_waited_millis: 1500,
            after: vec![wait()],
            awaited_by: vec![status::AfterStatus { state: None, ..wait() }],
            awaited_count: 1,
            spent: vec![Spent {
                device: "cpu".into(),
                millis: 4500,
                lost_millis: 500,
                cost: Amount(1_250_000),
            }],
            stored: Stored { byte_hours: 7, cost: Amount(20_000) },
            left_millis: Some(9000),
            currency: "EUR".into(),
        };
        same(Job::from(&detail.summary), &detail.summary);
        let shown = json!(JobDetail::from(&detail));
        assert_eq!(shown["devices_waited_s"], 1.5);
        assert_eq!(shown["fingerprint"], "09".repeat(32));
        assert_eq!(shown["spec"]["kind"]["Render"]["files"][0]["hash"], "ab".repeat(32));
        assert_eq!(shown["after"], json!(detail.after));
        assert_eq!(shown["spent"], json!(detail.spent));
        assert_eq!(shown["stored"], json!(detail.stored));
        assert_eq!(shown["awaited_by"], json!(detail.awaited_by));
        let name = status::JobName::from(&detail.summary);
        same(JobName::from(&name), &name);
    }

    #[test]
    fn frames_have_the_fields_of_the_command_line() {
        let frame = |state| FrameStatus { frame: FrameNumber(7), state, samples: Some(3) };
        let open = frame(FrameState::Open { committed: 1, units: 2, round: None });
        assert_eq!(json!(Frame::from(&open)), json!(open));
        let file = status::FrameFile {
            format: "exr".into(),
            hash: BlobHash([1; 32]),
            length: 5,
            pixels_sha256: [2; 32],
        };
        let shown = json!(Frame::from(&frame(FrameState::Done(vec![file.clone()]))));
        assert_eq!(shown["state"]["done"][0]["hash"], "01".repeat(32));
    }

    #[test]
    fn nodes_and_shares_have_the_fields_of_the_command_line() {
        let node = NodeSummary {
            node: NodeId("01a21dce-1497-75cf-9611-93b840893c85".parse().expect("a UUID")),
            name: "rig".into(),
            identity: 2,
            state: NodeState::Unfit,
            devices: Vec::new(),
            telemetry: Vec::new(),
            units_leased: 1,
            units_committed: 2,
            samples_per_second: 3.5,
            silent_secs: 4,
            build: "tessera".into(),
            note: "n".into(),
            pool: None,
            since: 5,
            drained: true,
            busy: Some(0.5),
        };
        same(Node::from(&node), &node);
        let usage = Usage { owner: "ada".into(), jobs: 2, ..Usage::default() };
        same(OwnerUsage::from(&usage), &usage);
        same(
            Swept::from(Report { frames: 3, ..Report::default() }),
            Report { frames: 3, ..Report::default() },
        );
    }
}
