//! One named value for every variant of every type that crosses the wire. The names come from
//! matches without a catch-all, so a new variant does not compile until it has a value here.

use crate::spec_samples::*;
use tessera_protocol::access::*;
use tessera_protocol::client::*;
use tessera_protocol::cost::{Amount, AtLimit, Budget, Hours, Period, Price, Whose};
use tessera_protocol::device::*;
use tessera_protocol::explain::Subject;
use tessera_protocol::job::*;
use tessera_protocol::live::*;
use tessera_protocol::node::*;
use tessera_protocol::renewal::*;
use tessera_protocol::selection::*;
use tessera_protocol::status::*;
use tessera_protocol::stream::{
    BlobOffer, BlobRange, BlobRanges, BlobReceipt, BlobReply, BlobRequest,
};
use tessera_protocol::*;

pub(crate) fn uuid(byte: u8) -> uuid::Uuid {
    uuid::Uuid::from_bytes([byte; 16])
}

pub(crate) fn hash(byte: u8) -> BlobHash {
    BlobHash([byte; 32])
}

pub(crate) fn lease() -> Lease {
    let unit = UnitKey { job: JobId(uuid(1)), frame: FrameNumber(2), unit: UnitIndex(300) };
    Lease { unit, epoch: Epoch(70_000) }
}

pub(crate) fn summary(state: JobState) -> JobSummary {
    JobSummary {
        job: JobId(uuid(1)),
        name: "cornell".into(),
        owner: "ada".into(),
        owner_id: 3,
        state,
        priority: 50,
        submitted_at: 1_700_000_000,
        ended_at: Some(1_700_000_100),
        frames: 4,
        frames_done: 3,
        frames_failed: 1,
        units: 400,
        units_committed: 300,
        units_leased: 2,
        samples_committed: 1 << 40,
        samples_kept: 1 << 20,
        note: "n".into(),
        waits: (state == JobState::Paused).then_some(Waits::Turn),
        pool: Some("gpu".into()),
        left_secs: Some(90),
        device_millis: 4500,
        cost: Amount(1_250_000),
    }
}

pub(crate) fn node_summary(state: NodeState) -> NodeSummary {
    NodeSummary {
        node: NodeId(uuid(2)),
        name: "n1".into(),
        identity: 4,
        state,
        devices: vec![device(DeviceKind::Cuda)],
        telemetry: vec![telemetry()],
        units_leased: 2,
        units_committed: 3,
        samples_per_second: 1.5,
        silent_secs: 4,
        build: "tessera".into(),
        note: String::new(),
        pool: Some("gpu".into()),
        since: 1_700_000_000,
        drained: true,
        busy: Some(0.75),
    }
}

pub(crate) fn device(kind: DeviceKind) -> DeviceInfo {
    let cuda = CudaInfo {
        uuid: "GPU-1".into(),
        compute_capability: (9, 0),
        driver: "580.95.05".into(),
        pcie: "0000:41:00.0".into(),
        mig: Some("1g.18gb".into()),
        start_millis: 1500,
        ptx_version: (8, 7),
        cubin: Some((9, 0)),
    };
    DeviceInfo {
        slot: "s".into(),
        kind,
        name: "d".into(),
        parallelism: 16,
        memory_bytes: 1 << 33,
        cuda: (kind == DeviceKind::Cuda).then_some(cuda),
        state: DeviceState::Ready,
    }
}

pub(crate) fn telemetry() -> DeviceTelemetry {
    DeviceTelemetry {
        device: 1,
        busy: 0.5,
        samples_per_second: 1.5,
        memory_free: Some(1 << 32),
        memory_held: Some(2),
        temperature: Some(60),
        power_milliwatts: Some(450_000),
        clock_mhz: Some(1980),
        memory_clock_mhz: Some(3201),
        throttles: vec!["sw_thermal".into()],
        ecc_corrected: Some(3),
        ecc_uncorrected: Some(0),
        xid: Some(XidEvent { code: 13, secs_ago: 4 }),
    }
}

pub(crate) fn devices_in_every_state() -> Vec<DeviceInfo> {
    let away = DeviceState::Quarantined { reason: "r".into(), remedy: "m".into() };
    let states = [DeviceState::Ready, DeviceState::Testing, away];
    states.map(|state| DeviceInfo { state, ..device(DeviceKind::Cuda) }).to_vec()
}

fn token_scope(role: Role, pool: Option<&str>) -> Request {
    Request::CreateToken(TokenScope {
        role,
        pool: pool.map(str::to_owned),
        name: pool.map(|_| "rig".to_owned()),
        ttl_secs: 86_400,
        uses: 2,
        replace: pool.is_some(),
    })
}

pub(crate) fn renew_request() -> RenewRequest {
    RenewRequest { certificate_request: vec![1, 2, 3] }
}

pub(crate) fn renew_replies() -> Vec<(String, RenewReply)> {
    use RenewReply::*;
    let all = vec![
        Certificate(vec![vec![1], vec![2, 3]]),
        NotYet { ask_again_secs: 43_200 },
        Refused("no".into()),
    ];
    named(all, |reply| match reply {
        Certificate(_) => "renew_reply.certificate",
        NotYet { .. } => "renew_reply.not_yet",
        Refused(_) => "renew_reply.refused",
    })
}

fn submitted(spec: JobSpec) -> Request {
    Request::Submit { job: JobId(uuid(1)), spec: Box::new(spec.into()) }
}

pub(crate) fn requests() -> Vec<(String, Request)> {
    use Request::*;
    let mut all = vec![
        MissingBlobs(vec![hash(1), hash(2)]),
        submitted(job(render())),
        submitted(job(render_otherwise())),
        submitted(job(render_thirdly())),
        submitted(job(RenderSpec { camera: CameraSpec::Index(300), ..render() })),
        submitted(compute_job(compute())),
        Jobs(JobQuery::default()),
        Jobs(JobQuery {
            selection: selection(),
            before: Some(300),
            rows: Some(100),
            order: JobOrder::Progress,
        }),
        Job(JobId(uuid(1))),
        Frames { job: JobId(uuid(1)), from: 16_384 },
        Watch(JobId(uuid(1))),
        Nodes,
        Drain { node: "n1".into(), drain: true, leave: true },
        token_scope(Role::Node, Some("gpu")),
        token_scope(Role::Viewer, None),
        token_scope(Role::Artist, None),
        token_scope(Role::Operator, None),
        token_scope(Role::Admin, None),
        Audit,
        Tokens { from: 1000 },
        RevokeToken { id: "0a1b".into() },
        Deny { identity: "node:n1".into(), reason: "lies".into() },
        Allow { identity: "user:ada".into() },
        Denied,
        Log { last: 100 },
        Authority,
        RotateAuthority { overlap_secs: Some(86_400) },
        RotateAuthority { overlap_secs: None },
        Backup,
        KernelText(JobId(uuid(1))),
        Usage,
        change(JobChange::Cancel { reason: "n".into() }),
        change(JobChange::Pause),
        change(JobChange::Resume),
        change(JobChange::Retry),
        change(JobChange::Forget),
        Sweep { owner: "ada".into(), dry_run: true },
        Members { from: 1000 },
        KeepMember { member: "ada".into(), keep: Keep::Newer },
        KeepMember { member: "#3".into(), keep: Keep::Older },
        RemoveMember { member: "rig-7".into() },
        RemoveNode { node: "n1".into() },
        EditJob {
            job: JobId(uuid(1)),
            edit: Box::new(JobEdit {
                name: Some("take 2".into()),
                priority: Some(80),
                pool: Some(Some("gpu".into())),
                max_nodes: Some(None),
                not_before: Some(Some(1_795_289_405)),
            }),
        },
    ];
    all.extend(cost_requests());
    all.extend(preset_requests());
    all.extend(web_requests().into_iter().chain(crate::log_samples::requests()));
    all.extend(compute_others().into_iter().map(compute_job).map(submitted));
    named(all, request_name)
}

fn cost_requests() -> [Request; 3] {
    let set = Request::SetCostRules(Box::new(cost_rules()));
    [Request::Costs { month: Some("2026-11".into()) }, Request::CostRules, set]
}

fn preset_requests() -> [Request; 3] {
    let name = || "final".to_owned();
    let text = Some("tessera = 1".to_owned());
    [Request::Presets, Request::Preset { name: name() }, Request::SetPreset { name: name(), text }]
}

/// Rules with every kind of budget.
pub(crate) fn cost_rules() -> cost::CostRules {
    let budget = |whose| Budget {
        whose,
        amount: Amount(100_000_000),
        period: Period::Total,
        at_limit: AtLimit::Refuse,
        warn_percent: 80,
    };
    let price = Price {
        device: Some("NVIDIA *".into()),
        pool: Some("gpu".into()),
        node: Some("rack-*".into()),
        hours: Some(Hours { from_minute: 1320, to_minute: 360 }),
        per_hour: Amount(1_250_000),
    };
    cost::CostRules {
        currency: "EUR".into(),
        factor: Some(1.15),
        utc_offset_minutes: -60,
        storage_gb_month: Amount(20_000),
        prices: vec![price],
        groups: [("light".to_owned(), vec!["ada".to_owned()])].into(),
        budgets: vec![
            budget(Whose::Farm),
            budget(Whose::Group("light".into())),
            budget(Whose::Owner("ada".into())),
        ],
    }
}

pub(crate) fn watched() -> [Watched; 2] {
    [Some(FrameNumber(2)), None].map(|frame| Watched { job: JobId(uuid(1)), frame })
}

pub(crate) fn live_tile() -> LiveTile {
    LiveTile {
        lease: lease(),
        tile: TileRect { x: 64, y: 128, width: 2, height: 1 },
        samples: SampleRange { first: 16, count: 300 },
        values: LiveValues((1..=12).collect()),
    }
}

/// Requests about signing in over HTTP, for live tiles, for explanations and about events.
fn web_requests() -> [Request; 9] {
    let scope =
        ApiTokenScope { role: Some(Role::Viewer), owner: Some("ada".into()), ttl_secs: 86_400 };
    let [frame, all] = watched().map(Request::Live);
    let job = JobId(uuid(1));
    let [one, other, third] = [
        Subject::Job(job),
        Subject::Frame { job, frame: FrameNumber(7) },
        Subject::Node("rack-1".into()),
    ]
    .map(Request::Explain);
    let news = Request::WatchAll { since: Some(7) };
    let test = Request::TestTarget { target: "studio".into() };
    [Request::CreateApiToken(scope), Request::WebLink, frame, all, one, other, third, news, test]
}

/// A selection with every condition.
fn selection() -> JobSelection {
    JobSelection {
        jobs: vec!["0a1b".into(), "cornell".into()],
        owner: Some("ada".into()),
        states: JobState::ALL.to_vec(),
        older_than_secs: Some(604_800),
        name: Some("shot_*".into()),
        batch: Some("film-7c01".into()),
        limit: Some(20),
    }
}

fn change(change: JobChange) -> Request {
    let dry_run = change == JobChange::Forget;
    let change = JobsChange { change, selection: selection(), all: !dry_run, dry_run };
    Request::ChangeJobs(Box::new(change))
}

pub(crate) fn ambiguous() -> RequestError {
    let jobs = vec![JobName::from(&summary(JobState::Queued))];
    RequestError::Ambiguous { text: "cornell".into(), count: 300, jobs }
}

fn request_name(request: &Request) -> &'static str {
    use Request::*;
    match request {
        MissingBlobs(_) => "request.missing_blobs",
        Submit { .. } => "request.submit",
        Jobs(_) => "request.jobs",
        Job(_) => "request.job",
        Frames { .. } => "request.frames",
        Watch(_) => "request.watch",
        KernelText(_) => "request.kernel_text",
        EditJob { .. } => "request.edit_job",
        Usage => "request.usage",
        Costs { .. } => "request.costs",
        CostRules => "request.cost_rules",
        SetCostRules(_) => "request.set_cost_rules",
        Presets => "request.presets",
        Preset { .. } => "request.preset",
        SetPreset { .. } => "request.set_preset",
        ChangeJobs(_) => "request.change_jobs",
        Sweep { .. } => "request.sweep",
        Nodes => "request.nodes",
        Drain { .. } => "request.drain",
        CreateToken { .. } => "request.create_token",
        Audit => "request.audit",
        Tokens { .. } => "request.tokens",
        RevokeToken { .. } => "request.revoke_token",
        Deny { .. } => "request.deny",
        Allow { .. } => "request.allow",
        Denied => "request.denied",
        Log { .. } => "request.log",
        Authority => "request.authority",
        RotateAuthority { .. } => "request.rotate_authority",
        Backup => "request.backup",
        Members { .. } => "request.members",
        KeepMember { .. } => "request.keep_member",
        RemoveMember { .. } => "request.remove_member",
        RemoveNode { .. } => "request.remove_node",
        CreateApiToken { .. } => "request.create_api_token",
        WebLink => "request.web_link",
        Live(_) => "request.live",
        Explain(_) => "request.explain",
        Logs(_) => "request.logs",
        FollowLogs(_) => "request.follow_logs",
        WatchAll { .. } => "request.watch_all",
        TestTarget { .. } => "request.test_target",
    }
}

pub(crate) fn from_nodes() -> Vec<(String, NodeToCoordinator)> {
    use NodeToCoordinator::*;
    let join = node::Join {
        node: NodeId(uuid(2)),
        name: "n1".into(),
        pool: Some("gpu".into()),
        process: ProcessEpoch(9),
        devices: vec![device(DeviceKind::Cpu), device(DeviceKind::Cuda)],
        capacity: 4,
        running: vec![lease()],
        finished: vec![lease()],
        scenes: vec![hash(1)],
        nvrtc: Some((13, 5)),
        unconfined: Some("u".into()),
        finishing: Some(Fingerprint([9; 32])),
    };
    let failed = |failure| Failed { lease: lease(), failure };
    let all = vec![
        Join(join),
        Capacity { units: 3 },
        Scene { scene: hash(1), held: true },
        failed(Failure::Scene("a".into())),
        failed(Failure::Asset("b".into())),
        failed(Failure::Device("c".into())),
        failed(Failure::OutOfMemory(MemoryShortage {
            device: 1,
            needed: 1 << 34,
            available: 1 << 33,
            reason: "d".into(),
        })),
        failed(Failure::Worker("e".into())),
        failed(Failure::TimedOut("f".into())),
        failed(Failure::Program("g".into())),
        failed(Failure::Kernel("h".into())),
        failed(Failure::Unable("i".into())),
        failed(Failure::Limit(LimitReached { limit: NodeLimit::SceneMemory, reason: "j".into() })),
        Returned { leases: vec![lease()] },
        Draining,
        Devices(devices_in_every_state()),
        KernelText { lease: lease(), text: "i 0\n".into() },
    ];
    named(all, |message| match message {
        Join(_) => "node.join",
        Capacity { .. } => "node.capacity",
        Scene { .. } => "node.scene",
        Failed { .. } => "node.failed",
        Returned { .. } => "node.returned",
        Draining => "node.draining",
        Devices(_) => "node.devices",
        KernelText { .. } => "node.kernel_text",
    })
}

pub(crate) fn to_nodes() -> Vec<(String, CoordinatorToNode)> {
    use CoordinatorToNode::*;
    let work = |task| Assignment {
        job: JobId(uuid(1)),
        frame: FrameNumber(2),
        unit: UnitIndex(3),
        epoch: Epoch(4),
        task,
    };
    let tile = TileRect { x: 64, y: 128, width: 64, height: 32 };
    let tile = Task::Tile { tile, samples: SampleRange { first: 0, count: 16 } };
    let chunk = |feed| Task::Chunk { first: 1 << 33, count: 4096, feed };
    let finish = |piece| Task::Finish(Finish { piece, exposure_bits: 1.5f32.to_bits() });
    let all = vec![
        Job { job: JobId(uuid(1)), spec: Box::new((&JobKind::Render(render())).into()) },
        Job { job: JobId(uuid(1)), spec: Box::new((&JobKind::Compute(compute())).into()) },
        Work(vec![work(tile)]),
        Work(vec![work(chunk(None)), work(chunk(Some(hash(6))))]),
        Work(vec![
            work(finish(Piece::Band { first: 256, rows: 128 })),
            work(finish(Piece::Frame { rows: 48 })),
            work(finish(Piece::Assembly)),
        ]),
        Committed { lease: lease() },
        Unwanted { lease: lease() },
        Revoke { leases: vec![lease()] },
        Forget { job: JobId(uuid(1)) },
        Leave,
        Refused { reason: "r".into() },
        Notice { text: "t".into() },
        Owner { job: JobId(uuid(1)), owner: 7 },
        Drained { drained: true },
        GiveBack { leases: vec![lease()] },
        Watched { watched: vec![] },
        Watched { watched: watched().to_vec() },
        StoreResults,
        MakeFiles { order: 3 },
    ];
    named(all, |message| match message {
        Job { .. } => "coordinator.job",
        Work(_) => "coordinator.work",
        Committed { .. } => "coordinator.committed",
        Unwanted { .. } => "coordinator.unwanted",
        Revoke { .. } => "coordinator.revoke",
        Forget { .. } => "coordinator.forget",
        Leave => "coordinator.leave",
        Refused { .. } => "coordinator.refused",
        Notice { .. } => "coordinator.notice",
        Owner { .. } => "coordinator.owner",
        Drained { .. } => "coordinator.drained",
        GiveBack { .. } => "coordinator.give_back",
        Watched { .. } => "coordinator.watched",
        StoreResults => "coordinator.store_results",
        MakeFiles { .. } => "coordinator.make_files",
    })
}

pub(crate) fn blob_replies() -> Vec<(String, BlobReply)> {
    use BlobReply::*;
    let elsewhere = Elsewhere { url: "https://s3.example/x?sign".into(), length: 1 << 33 };
    let from = From { offset: 1, length: 1 << 33 };
    named(vec![from, Absent, Held, Refused("r".into()), elsewhere], |reply| match reply {
        From { .. } => "blob_reply.from",
        Absent => "blob_reply.absent",
        Held => "blob_reply.held",
        Refused(_) => "blob_reply.refused",
        Elsewhere { .. } => "blob_reply.elsewhere",
    })
}

pub(crate) fn blob_receipts() -> Vec<(String, BlobReceipt)> {
    use BlobReceipt::*;
    named(vec![Stored, Refused("r".into())], |receipt| match receipt {
        Stored => "blob_receipt.stored",
        Refused(_) => "blob_receipt.refused",
    })
}

pub(crate) fn enrol_replies() -> Vec<(String, EnrolReply)> {
    use EnrolReply::*;
    named(vec![Certificate(vec![vec![1, 2], vec![3]]), Refused("r".into())], |reply| match reply {
        Certificate(_) => "enrol_reply.certificate",
        Refused(_) => "enrol_reply.refused",
    })
}

pub(crate) fn enrol_request() -> EnrolRequest {
    let node = Some(NodeId(uuid(2)));
    EnrolRequest { secret: vec![1, 2, 3], certificate_request: vec![4], node, name: "n1".into() }
}

pub(crate) fn result_headers() -> ResultHeaders {
    let first = ResultHeader {
        lease: lease(),
        hash: hash(1),
        length: 70_000,
        device: 1,
        device_micros: 1_500_000,
        waited_micros: 3_000_000,
        device_bytes: 1 << 32,
        rays: 1 << 40,
        first_sample: 300,
    };
    let second = ResultHeader { hash: hash(2), length: 300, ..first };
    ResultHeaders { headers: vec![first, second] }
}

pub(crate) fn heartbeat() -> Heartbeat {
    Heartbeat {
        sequence: 5,
        leases: vec![lease()],
        outbox: 1,
        working: 2,
        busy: Some(0.75),
        devices: vec![telemetry()],
        progress: vec![tessera_protocol::node::Progress { lease: lease(), device: 1, done: 300 }],
    }
}

pub(crate) fn blob_request() -> BlobRequest {
    BlobRequest {
        hash: hash(1),
        offset: 1 << 20,
        of: Some((JobId(uuid(1)), FrameNumber(2))),
        end: Some(2 << 20),
        direct: true,
        ahead: 3,
    }
}

pub(crate) fn blob_range() -> BlobRange {
    BlobRange { upload: 3, offset: 1 << 20 }
}

pub(crate) fn blob_offer() -> BlobOffer {
    let ranges = Some(BlobRanges { upload: 3, bytes: 1 << 16 });
    BlobOffer { hash: hash(1), length: 1 << 20, ranges }
}

/// Pairs values with the names of their variants, numbered if a variant has several values.
pub(crate) fn named<T>(all: Vec<T>, name: impl Fn(&T) -> &'static str) -> Vec<(String, T)> {
    let mut seen = std::collections::BTreeMap::new();
    all.into_iter()
        .map(|value| {
            let count = seen.entry(name(&value)).or_insert(0);
            *count += 1;
            let text = if *count == 1 {
                name(&value).to_owned()
            } else {
                format!("{}.{count}", name(&value))
            };
            (text, value)
        })
        .collect()
}
