//! Tests of the requests without a transport: roles, owners, and every kind of request.

use super::roles::{Reach, rule};
use super::*;
use crate::access::tokens::Ledger;
use crate::access::web::WebAccess;
use crate::access::{Access, Denied, Log, Members};
use crate::blobs::{DiskBlobs, GuardedBlobs};
use crate::changes::Publisher;
use crate::clock::Clock;
use crate::driver::{Driver, Event, Surroundings};
use crate::folder::DataFolder;
use crate::spool::{DiskSpools, Spools};
use crate::store::{Journal, StoreWriter, WriterLimits};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use tessera_core::{Core, Settings};
use tessera_protocol::access::{ApiTokenScope, Keep, TokenScope};
use tessera_protocol::client::{Request, RequestError, Response, Role};
use tessera_protocol::explain::Subject;
use tessera_protocol::job::{AssetFile, JobEdit, JobKind};
use tessera_protocol::live::Watched;
use tessera_protocol::logs::{LogQuery, LogTarget};
use tessera_protocol::selection::{JobChange, JobSelection, JobsChange, JobsChanged, Refusal};
use tessera_protocol::status::JobState;
use tessera_protocol::{BlobHash, FrameNumber, JobId, JobSpec, RenderSpec};
use tessera_transport::{Authority, Lifetimes, PeerIdentity};
use tokio::sync::mpsc;

const PEOPLE: [Role; 4] = [Role::Viewer, Role::Artist, Role::Operator, Role::Admin];

/// A coordinator without a transport.
struct Farm {
    _root: tempfile::TempDir,
    _folder: DataFolder,
    api: Api,
}

impl Farm {
    fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(root.path()).unwrap();
        let authority = Authority::open_or_create(&folder.authority()).unwrap();
        let denied = Denied::open(&folder.denied()).unwrap();
        let log = Log::open(&folder.audit_log(), None, false).unwrap();
        let doors = Box::new(|_: &Authority| Ok(()));
        let journal = Journal::open(&folder, false).unwrap();
        let (spools, _) = DiskSpools::open(&folder.spool(), BTreeMap::new(), false).unwrap();
        let (spool_reader, clock) = (spools.reader(), Clock::start());
        let limits = WriterLimits {
            root: root.path().to_path_buf(),
            reserve_bytes: 0,
            results_pause: std::time::Duration::ZERO,
        };
        let writer = Arc::new(StoreWriter::start(journal, spools, limits).unwrap());
        let members = Arc::new(Members::new(BTreeMap::new(), writer.queue(), Lifetimes::default()));
        let lists = (denied, members);
        let (keys, store) = ((authority, folder.authority()), (writer.queue(), None));
        let access = Arc::new(Access::new(keys, lists, log, doors, store));
        let core = Core::replay(Settings::default(), vec![], vec![], clock.now()).unwrap();
        let (events, receiver) = mpsc::channel(64);
        let (publisher, changes) = Publisher::new();
        let live = Arc::<crate::live::Board>::default();
        let meters = crate::meters::Meters::new(tessera_protocol::Fingerprint([0; 32]));
        let meters = Arc::new(meters);
        let logs =
            crate::logs::Logs::open(&folder.logs(), tessera_telemetry::Lines::default()).unwrap();
        let around = Surroundings {
            clock,
            writer: writer.clone(),
            resolver: mpsc::unbounded_channel().0,
            publisher,
            live: live.clone(),
            logs: logs.clone(),
            tracer: tessera_telemetry::Tracer::default(),
            meters: meters.clone(),
            snapshot_records: 1000,
            log: Arc::new(crate::farm_log::FarmLog::new()),
        };
        tokio::spawn(Driver::new(core, (0, 0), around).run(receiver));
        let context = Context {
            access,
            ledger: Ledger::new(BTreeMap::new(), writer.queue()),
            web: WebAccess::new(None, writer.queue()),
            blobs: GuardedBlobs::new(Arc::new(DiskBlobs::open(&folder, 0))),
            spools: spool_reader,
            clock,
            events,
            writer,
            changes,
            result_memory: crate::result_memory::ResultMemory::new(0),
            uploads: crate::uploads::Uploads::open(&folder.uploads()).unwrap(),
            upload_limit: crate::uploads::UploadLimit {
                bytes: Some(1 << 20),
                root: root.path().into(),
            },
            askers: Askers::new(Counts { watchers: 100, requests: 100 }),
            meters,
            live,
            logs,
            tracer: tessera_telemetry::Tracer::default(),
            submitting: tokio::sync::RwLock::new(()),
            standing: None,
            term_key: Vec::new(),
            targets: OnceLock::new(),
        };
        Self { _root: root, _folder: folder, api: Api::new(Arc::new(context)) }
    }

    /// Returns the first response to a request.
    async fn ask(&self, caller: &Caller, request: Request) -> Response {
        self.api.answer(caller, request).await.next().await.expect("a request has an answer")
    }

    /// Submits a job of one small picture whose scene has been uploaded.
    async fn job(&self, owner: &Caller) -> JobId {
        let (job, spec) = (JobId::new(), self.spec(owner));
        let answer = self.ask(owner, Request::Submit { job, spec: Box::new(spec.into()) }).await;
        assert_eq!(answer, Response::Accepted(job));
        job
    }

    fn spec(&self, owner: &Caller) -> JobSpec {
        let scene = b"{}";
        let hash = BlobHash::of(scene);
        match self.api.put_blob(owner, hash, scene.len() as u64).unwrap() {
            BlobPut::Held => {}
            BlobPut::From(mut upload) => {
                upload.write(scene).unwrap();
                upload.finish().unwrap();
            }
        }
        let file = AssetFile { path: "scene.gltf".into(), hash, length: scene.len() as u64 };
        let render = RenderSpec::new("scene.gltf", vec![file]);
        JobSpec::new("picture", JobKind::Render(render))
    }
}

fn caller(role: Role, name: &str) -> Caller {
    Caller::new(role, name, name.bytes().map(u64::from).sum()).unwrap()
}

fn scope(role: Role) -> TokenScope {
    TokenScope { role, pool: None, name: None, ttl_secs: 60, uses: 1, replace: false }
}

fn api_scope(role: Option<Role>, owner: Option<&str>) -> ApiTokenScope {
    ApiTokenScope { role, owner: owner.map(str::to_owned), ttl_secs: 60 }
}

fn change(change: JobChange, selection: JobSelection, dry_run: bool) -> Request {
    Request::ChangeJobs(Box::new(JobsChange { change, selection, all: false, dry_run }))
}

fn of_job(change: JobChange, job: JobId) -> Request {
    Request::ChangeJobs(Box::new(JobsChange::of_job(change, job)))
}

fn cancel() -> JobChange {
    JobChange::Cancel { reason: "moving".into() }
}

/// Returns how many jobs a request has changed, and how many it was refused for.
async fn changed(farm: &Farm, who: &Caller, request: Request) -> (usize, u64) {
    match farm.ask(who, request).await {
        Response::Changed(changed) => (changed.jobs.len(), changed.refused),
        answer => panic!("{answer:?}"),
    }
}

fn of_owner(owner: &str) -> JobSelection {
    JobSelection { owner: Some(owner.into()), ..JobSelection::default() }
}

/// Returns whether nothing was done because of the caller's rights.
fn is_not_allowed(answer: &Response) -> bool {
    match answer {
        Response::Error(RequestError::NotAllowed(_)) => true,
        Response::Changed(changed) => {
            let refused = |refusal: &Refusal| matches!(refusal.why, RequestError::NotAllowed(_));
            changed.jobs.is_empty() && changed.refusals.iter().any(refused)
        }
        _ => false,
    }
}

/// Returns one request of every kind, the lowest role that can make it, and whether it leaves an
/// entry in the audit log.
fn table(job: JobId) -> Vec<(Request, Role, bool)> {
    let text = String::new;
    let spec = JobSpec::new("none", JobKind::Render(RenderSpec::new("none.gltf", vec![])));
    vec![
        (Request::MissingBlobs(vec![BlobHash([1; 32])]), Role::Artist, false),
        (Request::Submit { job, spec: Box::new(spec.into()) }, Role::Artist, true),
        (Request::Jobs(Default::default()), Role::Viewer, false),
        (Request::Job(job), Role::Viewer, false),
        (Request::Frames { job, from: 0 }, Role::Viewer, false),
        (Request::Watch(job), Role::Viewer, false),
        (Request::Nodes, Role::Viewer, false),
        (Request::Explain(Subject::Job(job)), Role::Viewer, false),
        (drain("none"), Role::Operator, true),
        (Request::RemoveNode { node: "none".into() }, Role::Operator, true),
        (Request::CreateToken(scope(Role::Node)), Role::Operator, true),
        (Request::CreateToken(scope(Role::Viewer)), Role::Admin, true),
        (Request::Audit, Role::Admin, false),
        (Request::Tokens { from: 0 }, Role::Viewer, false),
        (Request::RevokeToken { id: text() }, Role::Viewer, true),
        (Request::CreateApiToken(api_scope(None, None)), Role::Viewer, true),
        (Request::WebLink, Role::Viewer, false),
        (Request::Live(Watched { job, frame: None }), Role::Viewer, false),
        (Request::Deny { identity: "node:none".into(), reason: text() }, Role::Admin, true),
        (Request::Allow { identity: "nobody".into() }, Role::Admin, true),
        (Request::Denied, Role::Admin, false),
        (Request::Log { last: 1 }, Role::Admin, false),
        (Request::Authority, Role::Admin, false),
        (Request::RotateAuthority { overlap_secs: Some(1 << 40) }, Role::Admin, true),
        (Request::Backup, Role::Admin, true),
        (Request::KernelText(job), Role::Viewer, false),
        (Request::Logs(lines_of(LogTarget::Job(job))), Role::Viewer, false),
        (Request::Logs(lines_of(LogTarget::Node("none".into()))), Role::Operator, false),
        (Request::FollowLogs(lines_of(LogTarget::Job(job))), Role::Viewer, false),
        (Request::WatchAll { since: Some(0) }, Role::Viewer, false),
        (Request::TestTarget { target: "studio".into() }, Role::Admin, true),
        (Request::FollowLogs(lines_of(LogTarget::Node("none".into()))), Role::Operator, false),
        (Request::Usage, Role::Viewer, false),
        (Request::Costs { month: None }, Role::Viewer, false),
        (Request::CostRules, Role::Operator, false),
        (Request::SetCostRules(Box::default()), Role::Admin, true),
        (Request::Presets, Role::Viewer, false),
        (Request::Preset { name: text() }, Role::Viewer, false),
        (Request::SetPreset { name: text(), text: Some(text()) }, Role::Admin, true),
        (of_job(JobChange::Pause, job), Role::Artist, true),
        (of_job(JobChange::Resume, job), Role::Artist, true),
        (of_job(JobChange::Retry, job), Role::Artist, true),
        (of_job(JobChange::Forget, job), Role::Artist, true),
        (of_job(cancel(), job), Role::Artist, true),
        (change(JobChange::Forget, JobSelection::of_job(job), true), Role::Artist, false),
        (Request::Sweep { owner: "nobody".into(), dry_run: false }, Role::Admin, true),
        (Request::Sweep { owner: "nobody".into(), dry_run: true }, Role::Admin, false),
        (Request::Members { from: 0 }, Role::Operator, false),
        (Request::KeepMember { member: text(), keep: Keep::Newer }, Role::Operator, true),
        (Request::RemoveMember { member: text() }, Role::Admin, true),
        (Request::EditJob { job, edit: Box::default() }, Role::Artist, true),
    ]
}

fn lines_of(target: LogTarget) -> Box<LogQuery> {
    Box::new(LogQuery::newest(target, 10))
}

fn drain(node: &str) -> Request {
    Request::Drain { node: node.to_owned(), drain: true, leave: false }
}

/// Number of kinds of requests. A new kind does not compile until it has a number. It then fails
/// the test until it has a line in the table.
const KINDS: usize = 42;

fn kind(request: &Request) -> usize {
    match request {
        Request::MissingBlobs(_) => 0,
        Request::Submit { .. } => 1,
        Request::Jobs(_) => 2,
        Request::Job(_) => 3,
        Request::Frames { .. } => 4,
        Request::Watch(_) => 5,
        Request::Nodes => 6,
        Request::Drain { .. } => 7,
        Request::CreateToken(_) => 8,
        Request::Audit => 9,
        Request::Tokens { .. } => 10,
        Request::RevokeToken { .. } => 11,
        Request::Deny { .. } => 12,
        Request::Allow { .. } => 13,
        Request::Denied => 14,
        Request::Log { .. } => 15,
        Request::Authority => 16,
        Request::RotateAuthority { .. } => 17,
        Request::Backup => 18,
        Request::KernelText(_) => 19,
        Request::Usage => 20,
        Request::ChangeJobs(_) => 21,
        Request::Sweep { .. } => 22,
        Request::Members { .. } => 23,
        Request::KeepMember { .. } => 24,
        Request::RemoveMember { .. } => 25,
        Request::RemoveNode { .. } => 26,
        Request::EditJob { .. } => 27,
        Request::CreateApiToken(_) => 28,
        Request::WebLink => 29,
        Request::Live(_) => 30,
        Request::Explain(_) => 31,
        Request::Logs(_) => 32,
        Request::FollowLogs(_) => 33,
        Request::WatchAll { .. } => 34,
        Request::TestTarget { .. } => 35,
        Request::Costs { .. } => 36,
        Request::CostRules => 37,
        Request::SetCostRules(_) => 38,
        Request::Presets => 39,
        Request::Preset { .. } => 40,
        Request::SetPreset { .. } => 41,
    }
}

#[test]
fn every_kind_of_request_is_in_the_table() {
    let kinds: BTreeSet<usize> =
        table(JobId::new()).iter().map(|(request, ..)| kind(request)).collect();
    assert_eq!(kinds, (0..KINDS).collect());
}

#[tokio::test]
async fn every_role_may_ask_what_the_table_says_and_no_more() {
    let farm = Farm::start();
    for role in PEOPLE {
        for (request, needed, _) in table(JobId::new()) {
            let answer = farm.ask(&caller(role, "ada"), request.clone()).await;
            let refused = matches!(&answer, Response::Error(RequestError::NotAllowed(_)));
            assert_eq!(refused, !role.covers(needed), "{role} {request:?}: {answer:?}");
            assert_eq!(rule(&request).0, needed, "{request:?}");
        }
    }
}

#[tokio::test]
async fn changes_are_in_the_audit_log_before_they_are_made() {
    let farm = Farm::start();
    let admin = caller(Role::Admin, "root");
    let entries = || farm.api.context.access.log.report(0).unwrap().entries;
    for (request, _, logged) in table(JobId::new()) {
        let before = entries();
        let answer = farm.ask(&admin, request.clone()).await;
        let failed = match &answer {
            Response::Changed(changed) => logged && changed.jobs.is_empty(),
            answer => matches!(answer, Response::Error(_)),
        };
        let expected = if logged { 1 + u64::from(failed) } else { 0 };
        assert_eq!(entries() - before, expected, "{request:?}: {answer:?}");
    }
}

#[tokio::test]
async fn only_owners_and_operators_may_change_a_job() {
    let farm = Farm::start();
    let (ada, bob) = (caller(Role::Artist, "ada"), caller(Role::Artist, "bob"));
    let operator = caller(Role::Operator, "olga");
    let job = farm.job(&ada).await;
    let spec = Box::new(farm.spec(&ada).into());
    let lower = JobEdit { priority: Some(10), ..JobEdit::default() };
    let changes = [
        Request::Submit { job, spec },
        of_job(JobChange::Pause, job),
        of_job(JobChange::Resume, job),
        of_job(JobChange::Retry, job),
        of_job(cancel(), job),
        of_job(JobChange::Forget, job),
        Request::KernelText(job),
        Request::Logs(lines_of(LogTarget::Job(job))),
        Request::FollowLogs(lines_of(LogTarget::Job(job))),
        Request::EditJob { job, edit: Box::new(lower) },
        change(JobChange::Pause, of_owner("#294"), false),
    ];
    for request in &changes {
        assert_eq!(rule(request).1, Reach::OwnJob, "{request:?}");
        let answer = farm.ask(&bob, request.clone()).await;
        let refused = match request {
            // The id is taken. The answer does not tell whose job it is.
            Request::Submit { .. } => matches!(&answer, Response::Error(RequestError::Invalid(_))),
            _ => is_not_allowed(&answer),
        };
        assert!(refused, "{request:?} by another artist: {answer:?}");
    }
    for who in [&operator, &ada] {
        for request in &changes[1..3] {
            assert_eq!(changed(&farm, who, request.clone()).await, (1, 0), "{who} {request:?}");
        }
    }
    for who in [&operator, &ada] {
        let answer = farm.ask(who, Request::KernelText(job)).await;
        assert_eq!(answer, Response::KernelText(String::new()), "{who}");
    }
    let kinds = |requests: &mut dyn Iterator<Item = Request>| -> BTreeSet<usize> {
        requests.filter(|request| rule(request).1 == Reach::OwnJob).map(|one| kind(&one)).collect()
    };
    let all = kinds(&mut table(job).into_iter().map(|(request, ..)| request));
    assert_eq!(kinds(&mut changes.into_iter()), all, "every request about a job is tried here");
}

#[tokio::test]
async fn many_jobs_are_changed_by_one_request_and_one_entry() {
    let farm = Farm::start();
    let (ada, bob) = (caller(Role::Artist, "ada"), caller(Role::Artist, "bob"));
    let olga = caller(Role::Operator, "olga");
    for _ in 0..30 {
        farm.job(&ada).await;
    }
    let others = farm.job(&bob).await;
    let entries = || farm.api.context.access.log.report(0).unwrap().entries;
    let changed = async |who: &Caller, request: Request| changed(&farm, who, request).await;
    let all = |change| {
        let selection = JobSelection::default();
        Request::ChangeJobs(Box::new(JobsChange { change, selection, all: true, dry_run: false }))
    };
    let ended = || JobSelection { states: vec![JobState::Cancelled], ..JobSelection::default() };
    let before = entries();
    assert_eq!(changed(&ada, all(cancel())).await, (30, 0), "an artist reaches only own jobs");
    assert_eq!(changed(&ada, change(JobChange::Retry, ended(), false)).await, (30, 0));
    assert_eq!(changed(&ada, all(cancel())).await, (30, 0));
    assert_eq!(changed(&olga, change(JobChange::Forget, ended(), true)).await, (30, 0));
    assert_eq!(entries() - before, 3, "an entry for each change, and none for a dry run");
    assert_eq!(changed(&olga, change(JobChange::Forget, ended(), false)).await, (30, 0));
    let answer = farm.ask(&ada, Request::Jobs(Default::default())).await;
    let Response::Jobs(page) = answer else { panic!("{answer:?}") };
    assert_eq!(page.jobs.iter().map(|row| row.job).collect::<Vec<_>>(), [others]);
    let text = farm.ask(&ada, change(JobChange::Pause, JobSelection::default(), false)).await;
    assert!(matches!(text, Response::Error(RequestError::Invalid(_))), "{text:?}");
}

#[tokio::test]
async fn a_watch_reports_the_job_its_changes_and_its_end() {
    let farm = Farm::start();
    let ada = caller(Role::Artist, "ada");
    let job = farm.job(&ada).await;
    let Answer::Watch(mut watch) = farm.api.answer(&ada, Request::Watch(job)).await else {
        panic!("a watch is answered by a stream")
    };
    assert_eq!(watch.next().await.unwrap().summary.job, job);
    assert_eq!(changed(&farm, &ada, of_job(cancel(), job)).await, (1, 0));
    let mut last = watch.next().await.unwrap();
    while let Some(next) = watch.next().await {
        last = next;
    }
    assert_eq!(last.summary.state, JobState::Cancelled);
    let missing = farm.ask(&ada, Request::Watch(JobId::new())).await;
    assert!(matches!(missing, Response::Error(RequestError::NotFound(_))), "{missing:?}");
}

#[tokio::test]
async fn a_second_subscriber_hears_of_changes() {
    let farm = Farm::start();
    let mut changes = farm.api.changes();
    changes.mark_seen();
    farm.job(&caller(Role::Artist, "ada")).await;
    assert!(changes.changed().await);
}

#[tokio::test]
async fn blobs_go_in_and_out_by_role() {
    let farm = Farm::start();
    let (viewer, artist) = (caller(Role::Viewer, "vera"), caller(Role::Artist, "ada"));
    let hash = BlobHash::of(b"bytes");
    assert!(matches!(
        farm.api.put_blob(&viewer, hash, 5),
        Err(BlobPutError::Request(RequestError::NotAllowed(_)))
    ));
    let operator = caller(Role::Operator, "olga");
    assert!(farm.api.get_blob(&operator, hash, None).await.unwrap().is_none());
    let BlobPut::From(mut upload) = farm.api.put_blob(&artist, hash, 5).unwrap() else {
        panic!("it is not here")
    };
    upload.write(b"bytes").unwrap();
    upload.finish().unwrap();
    assert!(matches!(farm.api.put_blob(&artist, hash, 5).unwrap(), BlobPut::Held));
    let mut blob = farm.api.get_blob(&operator, hash, None).await.unwrap().unwrap();
    let mut bytes = [0; 3];
    assert_eq!(blob.read_at(2, &mut bytes).unwrap(), 3);
    assert_eq!(&bytes, b"tes");
}

// promise: P8
#[tokio::test]
async fn who_knows_the_hash_of_anothers_scene_gets_nothing() {
    let farm = Farm::start();
    let ada = caller(Role::Artist, "ada");
    let job = farm.job(&ada).await;
    let scene = BlobHash::of(b"{}");
    let frame = Some((job, FrameNumber(0)));
    for (other, of) in [
        (caller(Role::Viewer, "vera"), None),
        (caller(Role::Viewer, "vera"), frame),
        (caller(Role::Viewer, "ada2"), None),
        (caller(Role::Artist, "eve"), None),
        (caller(Role::Artist, "eve"), frame),
    ] {
        for hash in [scene, BlobHash([1; 32])] {
            // The refusal does not tell whether it is there.
            let refused = farm.api.get_blob(&other, hash, of).await.err();
            let Some(RequestError::NotAllowed(text)) = refused else { panic!("{other}: {of:?}") };
            assert!(text.contains("owner of their job"), "{text}");
        }
    }
    for allowed in [ada, caller(Role::Operator, "olga"), caller(Role::Admin, "root")] {
        let blob = farm.api.get_blob(&allowed, scene, None).await.unwrap();
        assert!(blob.is_some(), "{allowed}");
    }
}

#[tokio::test]
async fn a_backup_comes_in_pieces() {
    let farm = Farm::start();
    farm.job(&caller(Role::Artist, "ada")).await;
    let mut answer = farm.api.answer(&caller(Role::Admin, "root"), Request::Backup).await;
    let mut bytes = 0;
    while let Some(piece) = answer.next().await {
        let Response::Backup(piece) = piece else { panic!("{piece:?}") };
        bytes += piece.len();
    }
    assert!(bytes > 0);
}

#[tokio::test]
async fn a_denied_caller_is_refused_everything() {
    let farm = Farm::start();
    let admin = caller(Role::Admin, "root");
    let access = &farm.api.context.access;
    let peer = PeerIdentity::new(Role::Artist, "ada", None).unwrap();
    let ada = access.members.issue(&access.authority(), peer, 100).unwrap();
    let ada = Caller::from(&ada.peer);
    let deny = Request::Deny { identity: "user:ada".into(), reason: "left".into() };
    assert!(matches!(farm.ask(&admin, deny).await, Response::Denied(_)));
    let answer = farm.ask(&ada, Request::Jobs(Default::default())).await;
    assert!(matches!(answer, Response::Error(RequestError::NotAllowed(_))), "{answer:?}");
    assert!(farm.api.get_blob(&ada, BlobHash([1; 32]), None).await.is_err());
    farm.ask(&admin, Request::Allow { identity: "user:ada".into() }).await;
    assert!(matches!(farm.ask(&ada, Request::Jobs(Default::default())).await, Response::Jobs(_)));
}

#[tokio::test]
async fn after_the_end_every_answer_is_an_error() {
    let farm = Farm::start();
    drop(farm.api.context.events.send(Event::Stop).await);
    let ada = caller(Role::Artist, "ada");
    while !matches!(farm.ask(&ada, Request::Jobs(Default::default())).await, Response::Error(_)) {}
    assert!(farm.api.census().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namesake_with_another_number_owns_nothing() {
    let farm = Farm::start();
    let [ada, namesake] = [7, 8].map(|number| Caller::new(Role::Artist, "ada", number).unwrap());
    let job = farm.job(&ada).await;
    let answer = farm.ask(&namesake, of_job(cancel(), job)).await;
    assert!(is_not_allowed(&answer), "{answer:?}");
    let Response::Changed(JobsChanged { refusals, .. }) = answer else { panic!("{answer:?}") };
    let text = refusals[0].why.to_string();
    assert!(text.contains("belongs to `ada` #7"), "{text}");
    assert_eq!(changed(&farm, &ada, of_job(cancel(), job)).await, (1, 0));
}
