//! What a seed stands for: the settings, the faults, the nodes and the jobs of one run. Nothing
//! here happens yet.

use crate::faults::Fault;
use crate::leaders::LedPlan;
use crate::model::rounds::adapt;
use crate::world::random::{Random, mix};
use std::time::Duration;
use tessera_core::{PerUser, Secret, Settings, Weights};
use tessera_protocol::compute::{
    ComputeSpec, Domain, Element, InputArray, OutputArray, Program, Reduction,
};
use tessera_protocol::frames::FrameSet;
use tessera_protocol::ids::{BlobHash, Fingerprint, FrameNumber, JobId, NodeId};
use tessera_protocol::job::{
    AovSpec, AssetFile, FilterSpec, FormatSpec, JobKind, JobSpec, RawJobSpec, RenderSpec,
    RetryPolicy,
};
use uuid::Uuid;

/// Nodes of every run at least.
pub(crate) const NODES: usize = 200;
/// Number of the first node's id.
const FIRST_NODE: u128 = 1000;
/// Distance between the ids of a machine's installations: more than there are nodes.
const PER_INSTALLATION: u128 = 1 << 20;
/// Bytes.
const GIB: u64 = 1 << 30;
/// Memory of the largest devices.
pub(crate) const LARGEST: u64 = 24 * GIB;
/// The pool that some jobs are for.
pub(crate) const POOL: &str = "gpu";
/// Users who submit jobs.
pub(crate) const USERS: [&str; 3] = ["ada", "ben", "cleo"];

/// One run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    /// When the faults stop, milliseconds.
    pub(crate) heal_at: u64,
    /// Chance of each fault at each opportunity, of a thousand.
    rates: Vec<u32>,
    /// Two builds are about, and somebody keeps each.
    pub(crate) mixed: bool,
    pub(crate) nodes: Vec<NodePlan>,
    pub(crate) jobs: Vec<JobPlan>,
    /// Where the state is in a database.
    pub(crate) led: Option<LedPlan>,
    /// The results of frames in work are in a bucket.
    pub(crate) stored: bool,
}

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct NodePlan {
    pub(crate) id: NodeId,
    pub(crate) name: String,
    pub(crate) fingerprint: Fingerprint,
    /// It keeps its fingerprint whatever happens, so that every job can be finished.
    pub(crate) anchored: bool,
    pub(crate) capacity: u32,
    pub(crate) devices: u32,
    /// It has CUDA devices, and compiles kernels.
    pub(crate) compiles: bool,
    /// Memory of each device, bytes.
    pub(crate) memory: u64,
    pub(crate) pool: Option<&'static str>,
    /// Time for a unit, milliseconds: from half of this to twice.
    pub(crate) unit_millis: u64,
    /// Time of a message, milliseconds.
    pub(crate) latency: u64,
    /// Time between heartbeats by the node's own clock, milliseconds.
    pub(crate) beat: u64,
    pub(crate) liar: bool,
    pub(crate) bad: bool,
    /// It can prepare no scene.
    pub(crate) unpreparing: bool,
    /// Half of the jobs exceed a limit of it.
    pub(crate) small: bool,
    /// Some of its results are wrong.
    pub(crate) forger: bool,
    /// It finishes frames.
    pub(crate) finishes: bool,
    /// If it is a forger: of users' kernels it gives the same wrong results each time.
    pub(crate) steady: bool,
    pub(crate) starts_at: u64,
}

/// One job.
#[derive(Clone, Debug)]
pub(crate) struct JobPlan {
    pub(crate) id: JobId,
    pub(crate) spec: JobSpec,
    /// Bytes that its units really need on a device.
    pub(crate) needs: u64,
    /// Its kernel gives one of several results each time.
    pub(crate) unsteady: bool,
    pub(crate) owner: &'static str,
    pub(crate) submit_at: u64,
}

impl Plan {
    pub(crate) fn of(random: &mut Random) -> Self {
        let severity = Severity::of(random);
        let heal_at = severity.heal_at;
        let forged = random.permille(400);
        let settings = settings(random, forged);
        let herd = Herd {
            mixed: random.permille(300),
            liars: if random.permille(600) { 60 } else { 0 },
            bad: if random.permille(300) { 60 } else { 0 },
            unpreparing: if random.permille(300) { 30 } else { 0 },
            small: if random.permille(400) { 200 } else { 0 },
            beat: random.between(1_500, settings.lease.as_millis() as u64 / 4),
        };
        let count = NODES + if random.permille(100) { random.index(200) } else { 0 };
        let mut nodes: Vec<NodePlan> = (0..count).map(|index| node(random, index, &herd)).collect();
        // One at most: two could agree with nobody else, and be all that there is.
        if forged {
            let forger = random.index(count);
            nodes[forger].forger = true;
            nodes[forger].steady = random.permille(600);
            if !forger.is_multiple_of(3) {
                favour(&mut nodes[forger]);
            }
        }
        // Some farms have far more work than room.
        let large = random.permille(250);
        let jobs = (0..random.between(4, 14))
            .map(|number| job(random, number, severity.submit_until, large))
            .collect();
        let number = mix(heal_at ^ mix(count as u64));
        // Where one forges, few finish frames, so that it has its share of that.
        let share = if forged { 20 } else { [0, 20, 600, 600, 1000][number as usize % 5] };
        for (index, node) in nodes.iter_mut().enumerate() {
            let drawn = mix(number ^ index as u64) % 1000 < share;
            node.finishes = drawn || forged && (node.anchored || node.forger);
        }
        let led = LedPlan::of(Random::new(mix(number)), heal_at);
        let share = if led.is_some() { 700 } else { 250 };
        Self {
            settings,
            heal_at,
            rates: rates(random, &mut Random::new(number), severity.divisor),
            mixed: herd.mixed,
            nodes,
            jobs,
            led,
            stored: mix(number ^ 0x0b7e) % 1000 < share,
        }
    }

    pub(crate) fn rate(&self, fault: Fault) -> u32 {
        self.rates[fault as usize]
    }
}

/// The position of a node that a plan made, or that was installed anew.
pub(crate) fn index_of(id: NodeId) -> usize {
    ((id.0.as_u128() - FIRST_NODE) % PER_INSTALLATION) as usize
}

/// The id of a machine after its next installation.
pub(crate) fn reinstalled(id: NodeId) -> NodeId {
    NodeId(Uuid::from_u128(id.0.as_u128() + PER_INSTALLATION))
}

/// A build, by its number.
pub(crate) fn fingerprint(number: u8) -> Fingerprint {
    Fingerprint([number; 32])
}

/// How long faults last and how frequent they are. In a short run with many faults hardly a job
/// ends before the healing. In a long run with few faults most do, and faults meet what happens
/// late: resolves, ends, retries.
struct Severity {
    heal_at: u64,
    /// Jobs are submitted before, milliseconds.
    submit_until: u64,
    /// Faults are so many times rarer.
    divisor: u32,
}

impl Severity {
    fn of(random: &mut Random) -> Self {
        if random.permille(350) {
            let heal_at = random.between(80_000, 180_000);
            return Self { heal_at, submit_until: heal_at / 6, divisor: 4 };
        }
        let heal_at = random.between(12_000, 45_000);
        Self { heal_at, submit_until: heal_at * 3 / 4, divisor: 1 }
    }
}

/// Draws how often each fault occurs in a run: a third of them not at all, others more often than
/// in the mean.
/// Those of several coordinators have a chance of their own: where there is one, nothing changes.
fn rates(random: &mut Random, of_leaders: &mut Random, divisor: u32) -> Vec<u32> {
    let mut rate = |fault: &Fault| {
        let random = if *fault < Fault::LeaderKilled { &mut *random } else { &mut *of_leaders };
        let factor = [0, 0, 1, 1, 1, 3][random.index(6)];
        match fault {
            // There is one forger at most, and it has few results.
            Fault::WrongSums => fault.permille() * (factor + 1) / 2,
            _ => (fault.permille() * factor).div_ceil(divisor).min(900),
        }
    };
    Fault::ALL.iter().map(&mut rate).collect()
}

fn settings(random: &mut Random, forged: bool) -> Settings {
    let millis = Duration::from_millis;
    let lease = random.between(6_000, 25_000);
    Settings {
        lease: millis(lease),
        lease_longest: millis(lease * random.between(2, 5)),
        grace: millis(random.between(2_000, 15_000)),
        settle: millis(random.between(0, 2_000)),
        returning: millis(random.between(1_000, 30_000)),
        absent_nodes: [1000, 1000, 20][random.index(3)],
        attempts: random.between(2, 5) as u8,
        losses: random.between(4, 16) as u8,
        backoff: millis(random.between(100, 1_500)),
        backoff_longest: millis(random.between(2_000, 15_000)),
        patience: millis(random.between(0, 5_000)),
        stall: millis(random.between(lease / 2, lease)),
        shortage_longest: millis(random.between(500, 15_000)),
        give_up: millis(random.between(500, 15_000)),
        copy_after: millis(random.between(500, 20_000)),
        unfit: millis(random.between(2_000, 20_000)),
        storage_every: millis(1_000 + mix(lease) % 9_000),
        epoch_block: [1, 4, 32, 256][random.index(4)],
        check_share: if forged { 1024 } else { [0, 10, 100, 1024][random.index(4)] },
        check_first: [0, 5, 200][random.index(3)],
        check_wait: millis(random.between(1_000, 10_000)),
        secret: Secret([7; 32]),
        per_user: PerUser { jobs: [2, 2000, 2000][random.index(3)], ..PerUser::default() },
        weights: weights(random),
    }
}

/// In some farms, a user has another weight than the others.
fn weights(random: &mut Random) -> Weights {
    let mut weights = Weights::default();
    if random.permille(300) {
        let (user, weight) = (USERS[random.index(USERS.len())], [0.5, 2.0, 4.0][random.index(3)]);
        assert!(weights.set(user, weight));
    }
    weights
}

/// What the nodes of a run have in common.
struct Herd {
    mixed: bool,
    /// Chances of a liar and of a node that fails everything, of a thousand.
    liars: u32,
    bad: u32,
    /// Chances of a node that can prepare nothing, and of one with small limits.
    unpreparing: u32,
    small: u32,
    beat: u64,
}

fn node(random: &mut Random, index: usize, herd: &Herd) -> NodePlan {
    // The first four keep both fingerprints present: whatever a job is pinned to, somebody can
    // finish it.
    let anchored = index < 4;
    let foreign = herd.mixed && (index < 2 || random.permille(250));
    NodePlan {
        id: NodeId(Uuid::from_u128(FIRST_NODE + index as u128)),
        name: format!("n{index:03}"),
        fingerprint: fingerprint(if foreign { 2 } else { 1 }),
        anchored,
        capacity: random.between(1, 5) as u32,
        devices: random.between(1, 3) as u32,
        compiles: anchored || random.permille(500),
        // Those who are always there are of every pool that jobs ask for.
        pool: if anchored {
            Some(POOL)
        } else {
            [None, None, Some(POOL), Some("other")][random.index(4)]
        },
        memory: if anchored { LARGEST } else { [4, 8, 16, 24][random.index(4)] * GIB },
        unit_millis: random.between(500, 6_000),
        latency: [1, 5, 20, 150][random.index(4)],
        beat: herd.beat,
        liar: random.permille(herd.liars),
        bad: !anchored && random.permille(herd.bad),
        unpreparing: !anchored && random.permille(herd.unpreparing),
        small: !anchored && random.permille(herd.small),
        finishes: false,
        forger: false,
        steady: false,
        starts_at: random.between(0, 5_000),
    }
}

/// Lets a node get much work, whatever the jobs ask for.
fn favour(node: &mut NodePlan) {
    (node.memory, node.pool) = (LARGEST, Some(POOL));
    (node.unit_millis, node.latency, node.starts_at) = (500, 1, 0);
    (node.capacity, node.devices) = (5, 3);
    (node.bad, node.unpreparing, node.small) = (false, false, false);
}

fn job(random: &mut Random, number: u64, submit_until: u64, large: bool) -> JobPlan {
    let owner = USERS[random.index(USERS.len())];
    // The last is larger than any device.
    let sizes = [2, 2, 6, 12, 20, 40].map(|size| size * GIB);
    let device_bytes = if random.permille(500) { 0 } else { sizes[random.index(6)] };
    let priority = [0, 10, 50, 50, 50, 30][random.index(6)];
    let max_nodes = (number % 5 == 2).then_some(20 + number as u32);
    let kind = match random.permille(350) {
        true => JobKind::Compute(compute(random)),
        false => JobKind::Render(render(random, large)),
    };
    let pool = random.permille(250).then(|| POOL.to_owned());
    let new = JobSpec::new(format!("job {number}"), kind);
    let attempts = random.permille(200).then(|| random.between(1, 8) as u8);
    let give_up_secs = random.permille(300).then(|| random.between(0, 20) as u32);
    let retry = RetryPolicy { attempts, give_up_secs };
    let mut spec = JobSpec { priority, device_bytes, pool, retry, max_nodes, ..new };
    let needs = if device_bytes == 0 || random.permille(200) {
        sizes[random.index(6)]
    } else {
        device_bytes
    };
    let id = JobId(Uuid::from_u128(u128::from(random.next()) << 64 | u128::from(number)));
    adapt(&mut spec, id);
    let unsteady = unsteady(random, &mut spec.kind);
    JobPlan {
        needs,
        unsteady,
        id,
        spec: RawJobSpec::from(spec).check().expect("a plan makes sound specs"),
        owner,
        submit_at: random.between(0, submit_until),
    }
}

/// Makes some users' kernels give other results each time; of some, that is said.
fn unsteady(random: &mut Random, kind: &mut JobKind) -> bool {
    let JobKind::Compute(compute) = kind else { return false };
    let unsteady = compute.runs_users_kernel() && random.permille(300);
    compute.nondeterministic =
        compute.runs_users_kernel() && random.permille(if unsteady { 400 } else { 50 });
    unsteady
}

fn compute(random: &mut Random) -> ComputeSpec {
    let domain = Domain {
        width: random.between(1, 40) as u32,
        height: random.between(1, 4) as u32,
        depth: 1,
    };
    let first = random.between(0, 90) as u32;
    let frames = (0..random.between(1, 4) as u32).map(|number| FrameNumber(first + number * 2));
    let file = AssetFile {
        path: "kernel".to_owned(),
        hash: BlobHash([random.between(1, 3) as u8; 32]),
        length: 9,
    };
    let program = match random.index(3) {
        0 => Program::Builtin("merge".to_owned()),
        1 => Program::Ptx(file),
        _ => Program::Cuda(file),
    };
    let fed = random.permille(500);
    let input = InputArray {
        name: "state".to_owned(),
        hash: BlobHash([9; 32]),
        length: domain.len() * 4 + 128,
        element: Element::F32,
        shape: domain.shape(1),
        from: None,
    };
    let named = !matches!(program, Program::Builtin(_)) && domain.width.is_multiple_of(3);
    let mut spec = ComputeSpec {
        inputs: vec![input],
        reduction: (!fed && random.permille(500)).then_some(Reduction::Sum),
        chunk: random.between(0, 30) as u32,
        frames: FrameSet::from_frames(frames).expect("a few frames are a set"),
        feed: fed.then(|| "state".to_owned()),
        ..ComputeSpec::new(program, domain)
    };
    if named {
        name_outputs(&mut spec);
    }
    spec
}

/// Gives the kernel two named outputs: one that is kept, and one that is reduced.
fn name_outputs(spec: &mut ComputeSpec) {
    let output = |name: &str, channels, element, reduction| OutputArray {
        name: name.to_owned(),
        channels,
        element,
        reduction,
        keys: 0,
    };
    spec.outputs = vec![
        output("energy", 2, Element::F64, Some(Reduction::Sum)),
        output("next", 1, Element::F32, None),
    ];
    (spec.reduction, spec.feed_from) = (None, spec.feed.as_ref().map(|_| "next".to_owned()));
}

fn render(random: &mut Random, large: bool) -> RenderSpec {
    let scene = format!("scene{}.gltf", random.between(1, 3));
    let file = AssetFile {
        path: scene.clone(),
        hash: BlobHash([random.between(1, 3) as u8; 32]),
        length: 9,
    };
    let first = random.between(0, 90) as u32;
    let step = random.between(1, 4) as u32;
    let frames = (0..random.between(1, 6) as u32).map(|number| FrameNumber(first + number * step));
    let spp = random.between(1, 8) as u32;
    let unit_samples = random.between(0, 4).min(u64::from(spp)) as u32;
    // Where a unit has all samples, it may have many.
    let spp = if unit_samples == 0 { spp * 4 } else { spp };
    let formats =
        [vec![FormatSpec::Exr], vec![FormatSpec::Png], vec![FormatSpec::Exr, FormatSpec::Png16]];
    RenderSpec {
        scene,
        files: vec![file],
        width: random.between(8, if large { 200 } else { 64 }) as u32,
        height: random.between(8, if large { 100 } else { 48 }) as u32,
        frames: FrameSet::from_frames(frames).expect("a few frames are a set"),
        spp,
        filter: FilterSpec::Box,
        tile: random.between(12, 40) as u32,
        unit_samples,
        aovs: if random.permille(300) { vec![AovSpec::Albedo, AovSpec::Depth] } else { Vec::new() },
        formats: formats[random.index(3)].clone(),
        ..RenderSpec::default()
    }
}
