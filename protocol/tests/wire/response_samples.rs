//! A value of every answer to clients, for the tests of the encoding.

use crate::log_samples;
use crate::samples::*;
use crate::spec_samples::*;
use tessera_protocol::access::*;
use tessera_protocol::client::*;
use tessera_protocol::cost::*;
use tessera_protocol::explain::{Ahead, Explanation, Reason};
use tessera_protocol::job::Until;
use tessera_protocol::news::{JobsNews, NewsPart};
use tessera_protocol::selection::*;
use tessera_protocol::status::*;
use tessera_protocol::usage::{OwnerUsage, Swept as SweptReport};
use tessera_protocol::*;

fn job_detail() -> JobDetail {
    JobDetail {
        summary: summary(JobState::Failed),
        spec: job(render()),
        fingerprint: Some(Fingerprint([9; 32])),
        failures: vec![FailureNote {
            at: 5,
            unit: "u".into(),
            node: "n1".into(),
            reason: "r".into(),
        }],
        copies: CopyCount { running: 1, won: 2, lost: 3, wasted_millis: 4000 },
        devices_waited_millis: 12_000,
        after: vec![after_status(2, Until::Frames), after_status(3, Until::Success)],
        awaited_by: vec![AfterStatus { state: None, ..after_status(4, Until::End) }],
        awaited_count: 70,
        spent: vec![spent()],
        stored: stored(),
        left_millis: Some(90_000),
        currency: "EUR".into(),
    }
}

fn spent() -> Spent {
    Spent { device: "cpu".into(), millis: 4500, lost_millis: 500, cost: Amount(1_250_000) }
}

fn stored() -> Stored {
    Stored { byte_hours: 720_000_000_000, cost: Amount(20_000) }
}

fn cost_report() -> CostReport {
    let owner = OwnerCost {
        owner: "ada".into(),
        owner_id: 3,
        group: Some("light".into()),
        month: "2026-11".into(),
        spent: vec![spent()],
        stored: stored(),
    };
    let budget = BudgetStatus {
        whose: Whose::Farm,
        period: Period::Month,
        amount: Amount(2_000_000),
        spent: Amount(1_250_000),
        warns: true,
        reached: Some(AtLimit::Pause),
    };
    let (currency, gb_month) = ("EUR".to_owned(), Amount(23_000));
    CostReport { currency, owners: vec![owner], budgets: vec![budget], gb_month }
}

fn after_status(number: u8, until: Until) -> AfterStatus {
    AfterStatus {
        job: JobId(uuid(number)),
        name: "film".into(),
        state: Some(JobState::Running),
        until,
        frames: 40,
        frames_done: 12,
        over: until == Until::End,
    }
}

fn frames_in_every_state() -> Vec<FrameStatus> {
    let frame = |number, state| FrameStatus { frame: FrameNumber(number), state, samples: None };
    let file =
        FrameFile { format: "exr".into(), hash: hash(3), length: 12, pixels_sha256: [4; 32] };
    let round = RoundStatus { round: 2, rounds: 8, tiles_open: 7, tiles: 300, samples: 64 };
    vec![
        frame(1, FrameState::Open { committed: 1, units: 80, round: None }),
        frame(5, FrameState::Open { committed: 60, units: 80, round: Some(round) }),
        frame(2, FrameState::Resolving),
        frame(6, FrameState::Finishing { done: 2, pieces: 6 }),
        FrameStatus { samples: Some(2048), ..frame(3, FrameState::Done(vec![file])) },
        frame(4, FrameState::Failed("dead".into())),
    ]
}

fn nodes_in_every_state() -> Vec<NodeSummary> {
    let states = [
        NodeState::Ready,
        NodeState::Draining,
        NodeState::Away,
        NodeState::Lost,
        NodeState::Unfit,
        NodeState::Drained,
        NodeState::Left,
        NodeState::Removed,
    ];
    states.map(node_summary).to_vec()
}

fn audit_report() -> AuditReport {
    AuditReport {
        records: 1,
        jobs: 2,
        units_committed: 3,
        problems: vec!["p".into()],
        ..Default::default()
    }
}

fn token_summary() -> TokenSummary {
    TokenSummary {
        id: "0a1b2c3d4e5f".into(),
        role: Role::Node,
        pool: Some("gpu".into()),
        name: Some("rig".into()),
        expires_at: 99,
        uses: 4,
        uses_left: 3,
        made_by: "admin ada".into(),
        replace: true,
        kind: TokenKind::Api,
    }
}

fn denied_identity() -> DeniedIdentity {
    DeniedIdentity {
        identity: "user:ada".into(),
        number: 3,
        name: String::new(),
        by: "admin root".into(),
        at: 99,
        reason: "left".into(),
    }
}

fn member_summary() -> MemberSummary {
    MemberSummary {
        number: 3,
        name: "rig-7".into(),
        role: Role::Node,
        node: Some(NodeId(uuid(2))),
        enrolled_at: 99,
        expires_at: 100,
        issued: 5,
        used: 4,
        denied: true,
        note: "two copies".into(),
        provider: Some("https://id".into()),
    }
}

fn log_report() -> LogReport {
    let entry = LogEntry {
        n: 2,
        at: 99,
        who: "admin ada".into(),
        what: "denied".into(),
        about: "user:eve".into(),
        hash: "ab".into(),
    };
    LogReport {
        first: 1,
        entries: 2,
        head: "ab".into(),
        problems: vec!["p".into()],
        newest: vec![entry],
    }
}

pub(crate) fn responses() -> Vec<(String, Response)> {
    use Response::*;
    let all = vec![
        Blobs(vec![hash(1)]),
        Accepted(JobId(uuid(1))),
        Jobs(JobPage {
            jobs: [JobState::Queued, JobState::Running, JobState::Done].map(summary).to_vec(),
            next: Some(300),
        }),
        Job(Box::new(job_detail())),
        Frames(frames_in_every_state()),
        Progress(Box::new(client::Progress {
            summary: summary(JobState::Cancelled),
            finished: FrameSet::one(FrameNumber(3)),
        })),
        Nodes(nodes_in_every_state()),
        Done,
        Token("tsr1_x".into()),
        Audit(audit_report()),
        Error(RequestError::NotFound("a".into())),
        Error(RequestError::NotAllowed("b".into())),
        Error(RequestError::Invalid("c".into())),
        Error(RequestError::Unavailable("d".into())),
        Error(ambiguous()),
        Error(RequestError::SeveralNodes("e".into())),
        Changed(JobsChanged {
            jobs: vec![JobName::from(&summary(JobState::Failed))],
            unchanged: 1,
            refused: 2,
            refusals: vec![Refusal { what: "w".into(), why: RequestError::NotFound("a".into()) }],
            left: 300,
        }),
        Tokens(vec![token_summary()]),
        Denied(vec![denied_identity()]),
        Log(log_report()),
        Authority(AuthorityStatus { pin: "ab".into(), former_until: Some(99) }),
        Authority(AuthorityStatus { pin: "ab".into(), former_until: None }),
        Backup(vec![7, 8, 9]),
        KernelText("i 0\n".into()),
        Usage(vec![OwnerUsage {
            owner: "ada".into(),
            owner_id: 3,
            jobs: 2,
            ..OwnerUsage::default()
        }]),
        Swept(SweptReport { jobs_cancelled: 1, frames: 3, ..SweptReport::default() }),
        Members(vec![member_summary()]),
        WebLink("http://127.0.0.1:7421/sign-in#c".into()),
        Live(Box::new(live_tile())),
        Explained(Box::new(explanation())),
        Logs(Box::new(log_samples::page())),
        News(Box::new(jobs_news())),
        Jobs(JobPage { jobs: vec![summary(JobState::Paused)], next: None }),
        Costs(Box::new(cost_report())),
        CostRules(Box::new(cost_rules())),
        Presets(vec![preset::PresetSummary {
            name: "final".into(),
            bytes: 11,
            by: "ada".into(),
            at: 7,
        }]),
        Preset(Box::new(preset::Preset {
            name: "final".into(),
            text: "tessera = 1".into(),
            by: "ada".into(),
            at: 7,
        })),
    ];
    named(all, response_name)
}

fn response_name(response: &Response) -> &'static str {
    use Response::*;
    match response {
        Blobs(_) => "response.blobs",
        Accepted(_) => "response.accepted",
        Jobs(_) => "response.jobs",
        Job(_) => "response.job",
        Frames(_) => "response.frames",
        Progress(_) => "response.progress",
        Nodes(_) => "response.nodes",
        Done => "response.done",
        Token(_) => "response.token",
        Audit(_) => "response.audit",
        Error(_) => "response.error",
        Tokens(_) => "response.tokens",
        Denied(_) => "response.denied",
        Log(_) => "response.log",
        Authority(_) => "response.authority",
        Backup(_) => "response.backup",
        KernelText(_) => "response.kernel_text",
        Usage(_) => "response.usage",
        Swept(_) => "response.swept",
        Changed(_) => "response.changed",
        Members(_) => "response.members",
        WebLink(_) => "response.web_link",
        Live(_) => "response.live",
        Explained(_) => "response.explained",
        Logs(_) => "response.logs",
        Costs(_) => "response.costs",
        CostRules(_) => "response.cost_rules",
        Presets(_) => "response.presets",
        Preset(_) => "response.preset",
        News(_) => "response.news",
    }
}

fn jobs_news() -> JobsNews {
    let status = FrameStatus { frame: FrameNumber(7), state: FrameState::Resolving, samples: None };
    JobsNews {
        part: NewsPart::Changes,
        at: 99,
        jobs: vec![summary(JobState::Done)],
        gone: vec![JobId(uuid(2))],
        frames: vec![(JobId(uuid(1)), status)],
    }
}

fn explanation() -> Explanation {
    let reason = Reason {
        word: "turn".into(),
        why: "waits for its turn".into(),
        help: "more nodes".into(),
        ends_secs: Some(3),
    };
    Explanation {
        about: "job `shot`".into(),
        state: "queued".into(),
        reasons: vec![reason],
        ahead: vec![Ahead { owner: "`bob`".into(), units: 4, job: "film".into() }],
        begins_secs: Some(5),
        left_secs: Some(90),
    }
}
