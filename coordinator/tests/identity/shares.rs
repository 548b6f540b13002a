//! What one artist may have of a farm: jobs, frames and files, and what others still get.

use crate::farm::{Farm, start_with};
use crate::peers::{FakeNode, frame_file, spec, submit};
use std::path::Path;
use std::time::Instant;
use tessera_coordinator::{Config, RunningCoordinator};
use tessera_protocol::client::{Request, Response, Role};
use tessera_protocol::job::{JobKind, JobSpec};
use tessera_protocol::selection::{JobChange, JobSelection, JobsChange};
use tessera_protocol::usage::{OwnerUsage, Swept};
use tessera_protocol::{BlobHash, JobId};
use tessera_transport::{BlobError, FarmClient, Identity};

/// MiB of memory of this process.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

fn long_film(scene: BlobHash, length: u64) -> JobSpec {
    let mut spec = spec(scene, length);
    if let JobKind::Render(render) = &mut spec.kind {
        render.frames = "1-262144".parse().unwrap();
    }
    spec
}

async fn client_of(farm: &Farm, identity: &Identity) -> FarmClient {
    FarmClient::new(farm.dial(identity).await.unwrap())
}

async fn put(client: &FarmClient, folder: &Path, bytes: &[u8]) -> Result<BlobHash, BlobError> {
    let (hash, file) = (BlobHash::of(bytes), folder.join("put"));
    std::fs::write(&file, bytes).unwrap();
    client.put_blob((hash, bytes.len() as u64), &file, &mut |_, _| {}).await.map(|_| hash)
}

async fn usage(client: &FarmClient) -> Vec<OwnerUsage> {
    match client.request(&Request::Usage).await.unwrap() {
        Response::Usage(rows) => rows,
        other => panic!("{other:?}"),
    }
}

async fn swept(client: &FarmClient, request: Request) -> Swept {
    match client.request(&request).await.unwrap() {
        Response::Swept(swept) => swept,
        other => panic!("{other:?}"),
    }
}

fn wide(config: &mut Config) {
    config.settings.per_user.frames = 1 << 40;
}

async fn restarted(farm: Farm, change: impl FnOnce(&mut Config)) -> Farm {
    let Farm { folder, coordinator } = farm;
    coordinator.shutdown().await.unwrap();
    let coordinator: RunningCoordinator = start_with(folder.path(), change).await;
    Farm { folder, coordinator }
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_long_films_takes_little_memory() {
    let farm = Farm::start_with(wide).await;
    let eve = farm.person(Role::Artist, "eve");
    let client = client_of(&farm, &eve).await;
    let hash = put(&client, farm.folder.path(), b"a scene").await.unwrap();
    let before = resident_mib();
    for _ in 0..400 {
        let (job, spec) = (JobId::new(), Box::new(long_film(hash, 7).into()));
        let answer = client.request(&Request::Submit { job, spec }).await.unwrap();
        assert_eq!(answer, Response::Accepted(job));
    }
    let after = resident_mib();
    // Other tests of this process take memory, too; the farm's tests look at a coordinator alone.
    assert!(after.saturating_sub(before) <= 256, "{before} MiB before, {after} MiB after");
    drop(client);
    let begun = Instant::now();
    let farm = restarted(farm, wide).await;
    let (restart, again) = (begun.elapsed(), resident_mib());
    eprintln!(
        "400 jobs of 262,144 frames: {before} MiB, {after} MiB with them, {again} MiB after \
        a stop and a start of {restart:?}"
    );
    let client = client_of(&farm, &eve).await;
    assert_eq!(usage(&client).await[0].frames, 400 * 262_144);
    farm.coordinator.shutdown().await.unwrap();
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_one_artist_close_the_farm_to_nobody() {
    let few = |config: &mut Config| config.settings.per_user.jobs = 3;
    let farm = Farm::start_with(few).await;
    let folder = farm.folder.path().to_path_buf();
    let (eve, ada) = (farm.person(Role::Artist, "eve"), farm.person(Role::Artist, "ada"));
    let olga = farm.person(Role::Operator, "olga");
    let client = client_of(&farm, &eve).await;
    for _ in 0..3 {
        submit(&client, &folder, b"the same").await;
    }
    let spec_of = || Box::new(spec(BlobHash::of(b"the same"), 8).into());
    let farm = restarted(farm, few).await;
    let client = client_of(&farm, &eve).await;
    for _ in 0..2 {
        let request = Request::Submit { job: JobId::new(), spec: spec_of() };
        let text = client.request(&request).await.unwrap_err().to_string();
        assert!(text.contains("`eve` has 3 open jobs"), "{text}");
        assert!(text.contains("--jobs-per-user"), "{text}");
    }
    submit(&client_of(&farm, &ada).await, &folder, b"another").await;
    let rows = usage(&client_of(&farm, &olga).await).await;
    let jobs: Vec<_> = rows.iter().map(|row| (row.owner.as_str(), row.jobs)).collect();
    assert_eq!(jobs, [("ada", 1), ("eve", 3), ("olga", 0)], "she asks, so she is listed");
    let own = usage(&client).await;
    assert_eq!(own.iter().map(|row| row.owner.as_str()).collect::<Vec<_>>(), ["eve"]);
    let selection = JobSelection { owner: Some("eve".into()), ..JobSelection::default() };
    let change = JobChange::Cancel { reason: String::new() };
    let cancel = JobsChange { change, selection, all: false, dry_run: false };
    let request = Request::ChangeJobs(Box::new(cancel));
    let answer = client_of(&farm, &olga).await.request(&request).await.unwrap();
    let Response::Changed(changed) = answer else { panic!("{answer:?}") };
    assert_eq!((changed.jobs.len(), changed.refused), (3, 0));
    submit(&client, &folder, b"the same").await;
    farm.coordinator.shutdown().await.unwrap();
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn uploads_of_one_artist_fill_no_disk() {
    let small = |config: &mut Config| config.limits.uploads_per_user = Some(64 << 10);
    let farm = Farm::start_with(small).await;
    let folder = farm.folder.path().to_path_buf();
    let eve = farm.person(Role::Artist, "eve");
    let client = client_of(&farm, &eve).await;
    let piece = |number: u8| vec![number; 24 << 10];
    for number in 1..=2 {
        put(&client, &folder, &piece(number)).await.unwrap();
    }
    let refused = put(&client, &folder, &piece(3)).await.unwrap_err().to_string();
    assert!(refused.contains("`eve` has 1 MiB of files here"), "{refused}");
    assert!(refused.contains("--uploads-per-user"), "{refused}");

    // The counts are the same after a restart, and others are not affected.
    drop(client);
    let farm = restarted(farm, small).await;
    let client = client_of(&farm, &eve).await;
    assert!(put(&client, &folder, &piece(4)).await.is_err());
    let ada = client_of(&farm, &farm.person(Role::Artist, "ada")).await;
    put(&ada, &folder, &piece(5)).await.unwrap();
    let row = |rows: Vec<OwnerUsage>| (rows[0].files, rows[0].named_bytes, rows[0].unnamed_bytes);
    assert_eq!(row(usage(&client).await), (2, 0, 48 << 10));

    // A job that names a file makes room for another.
    let job = JobId::new();
    let named = spec(BlobHash::of(&piece(1)), 24 << 10);
    let request = Request::Submit { job, spec: Box::new(named.into()) };
    assert_eq!(client.request(&request).await.unwrap(), Response::Accepted(job));
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    put(&client, &folder, &piece(6)).await.unwrap();
    assert_eq!(row(usage(&client).await), (3, 24 << 10, 48 << 10));
    farm.coordinator.shutdown().await.unwrap();
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn denying_an_artist_frees_uploads_and_a_sweep_the_rest() {
    let farm = Farm::start_with(|_| ()).await;
    let folder = farm.folder.path().to_path_buf();
    let root = client_of(&farm, &farm.person(Role::Admin, "root")).await;
    let client = client_of(&farm, &farm.person(Role::Artist, "eve")).await;
    let unnamed = put(&client, &folder, b"named by nobody").await.unwrap();
    let (job, scene) = submit(&client, &folder, b"a scene of eve").await;
    let mut node = FakeNode::join(&farm, &farm.node("n1"), Vec::new()).await;
    let unit = node.work().await;
    node.deliver(unit.lease()).await;
    let frame = frame_file(&client, job).await;
    let is_kept = |hash: BlobHash| {
        let name = hash.to_string();
        folder.join("data/blobs").join(&name[..2]).join(name).exists()
    };
    assert!(is_kept(unnamed) && is_kept(scene) && is_kept(frame));

    let deny = Request::Deny { identity: "user:eve".into(), reason: "she fills the disk".into() };
    root.request(&deny).await.unwrap();
    assert!(!is_kept(unnamed), "an upload of a denied artist is still there");
    assert!(is_kept(scene) && is_kept(frame), "a job's files are gone without a sweep");

    let sweep = |dry_run| Request::Sweep { owner: "eve".into(), dry_run };
    let told = swept(&root, sweep(true)).await;
    assert!(is_kept(frame));
    let done = swept(&root, sweep(false)).await;
    assert_eq!((done.jobs_forgotten, done.frames, done.files), (1, 1, 1));
    assert_eq!(told, done, "what would be deleted is what is deleted");
    assert!(!is_kept(scene) && !is_kept(frame));
    assert_eq!(usage(&root).await.iter().filter(|row| row.owner == "eve").count(), 0);
    farm.coordinator.shutdown().await.unwrap();
}
