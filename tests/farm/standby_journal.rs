//! How long a takeover takes with a large journal: by one that followed it, beside one that reads
//! it at its start.

use super::standby_client::ask;
use super::takeover::{Elsewhere, said_in};
use std::path::Path;
use tessera_coordinator::folder::DataFolder;
use tessera_coordinator::store::{Changes, Purpose, StorePlace};
use tessera_core::journal::Commit;
use tessera_core::{Moment, Record};
use tessera_protocol::job::{AssetFile, JobKind};
use tessera_protocol::status::{FrameFile, JobState};
use tessera_protocol::{
    BlobHash, Epoch, Fingerprint, FrameNumber, JobId, JobSpec, NodeId, RenderSpec, UnitIndex,
};
use tessera_store_postgres::{PostgresPlace, StoreAddress};
use tessera_support::farm::{Farm, takes_minutes};

/// Jobs of the journal, which have ended, and their records: some 250,000.
const JOBS: u128 = 50_000;
/// Records of one commit.
const GROUP: usize = 256;

/// The records of a job of four units that is done.
fn job(number: u128) -> [Record; 5] {
    let (job, frame) = (JobId(uuid::Uuid::from_u128(number)), FrameNumber(0));
    let hash = BlobHash::of(&number.to_le_bytes());
    let file = AssetFile { path: "scene.gltf".to_owned(), hash, length: 3 };
    let render = RenderSpec {
        width: 32,
        height: 32,
        tile: 16,
        spp: 1,
        unit_samples: 1,
        frames: "0".parse().expect("frames"),
        ..RenderSpec::new("scene.gltf", vec![file])
    };
    let spec = Box::new(JobSpec::new("old", JobKind::Render(render)));
    let commit = |unit: u32| Commit {
        unit: UnitIndex(unit),
        epoch: Epoch(number as u64 * 4 + u64::from(unit)),
        node: NodeId(uuid::Uuid::from_u128(9)),
        hash,
        check: false,
    };
    let made = FrameFile { format: "exr".to_owned(), hash, length: 9, pixels_sha256: [0; 32] };
    let (owner, owner_id, at) = ("admin".to_owned(), 1, Moment(1000));
    let (state, note) = (JobState::Done, String::new());
    [
        Record::JobAccepted { job, spec, owner, owner_id, at },
        Record::JobPinned { job, fingerprint: Fingerprint([1; 32]) },
        Record::UnitsCommitted { job, frame, commits: (0..4).map(commit).collect() },
        Record::FrameFinished { job, frame, files: vec![made] },
        Record::JobEnded { job, state, at, note },
    ]
}

/// Writes the jobs to a store, as the coordinator of a folder.
fn write(store: &str, data: &Path) {
    let address = StoreAddress::parse(store).expect("an address");
    let place = PostgresPlace::new(address, "the test".to_owned(), true);
    let folder = DataFolder::open(data).expect("a folder");
    let mut store = place.open(&folder, Purpose::Run).expect("the store");
    let newest = store.load().expect("its content").records.last().map_or(0, |record| record.0);
    let reserved = Record::EpochsReserved { up_to: Epoch(JOBS as u64 * 4 + 10) };
    let records = std::iter::once(reserved).chain((1..=JOBS).flat_map(job));
    let bytes = |(at, record): (u64, Record)| (at, record.to_bytes().expect("bytes"));
    let mut records = (newest + 1..).zip(records).map(bytes).peekable();
    while records.peek().is_some() {
        let records = records.by_ref().take(GROUP).collect();
        store.commit(&Changes { records, ..Changes::default() }).expect("a commit");
    }
    store.close().expect("the lead is given back");
}

/// The line of a log about the state, and how many records it names.
fn state_of(said: &str) -> (String, u64) {
    let line = said.lines().find(|line| line.contains("the state is there")).expect("the line");
    let number = |name: &str| {
        let found = line.split(' ').find_map(|part| part.strip_prefix(name));
        found.and_then(|digits| digits.parse().ok()).expect("a number")
    };
    (line.to_owned(), number("read="))
}

#[test]
fn a_takeover_of_a_large_journal_reads_its_end_alone() {
    let what = "a_takeover_of_a_large_journal_reads_its_end_alone";
    if !takes_minutes(what) {
        return;
    }
    let mut farm = Farm::prepare();
    let Some(elsewhere) = Elsewhere::start(what, &farm) else { return };
    let first = farm.data();
    farm.run_coordinator(elsewhere.coordinator(&farm, (&first, 0)));
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    write(&elsewhere.store(), &first);
    let mut leads = farm.spawn(elsewhere.coordinator(&farm, (&first, 0)), "cold");
    let listens =
        |log: &'static str| move |farm: &Farm| said_in(farm, log).contains("coordinator listens");
    farm.wait_for("it to lead", listens("cold"));
    let pages = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let pages = pages.expect("a free port").to_string();
    let mut command = elsewhere.coordinator(&farm, (&farm.folder().join("second"), 1));
    command.args(["--http", &pages]);
    let mut standby = farm.spawn(command, "warm");
    farm.wait_for("the pages", |farm| said_in(farm, "warm").contains("pages and"));
    assert_eq!(ask(&pages, ("GET", "/ready"), &[], "").status, 200);
    leads.kill();
    farm.wait_for("it to lead", listens("warm"));
    let (cold, read_cold) = state_of(&said_in(&farm, "cold"));
    let (warm, read_warm) = state_of(&said_in(&farm, "warm"));
    println!("{cold}\n{warm}");
    println!("{}", said_in(&farm, "warm"));
    assert!(read_cold > 5 * JOBS as u64 && read_warm < 100, "{cold}\n{warm}");
    assert!(warm.contains("is_warm=true"), "{warm}");
    assert!(standby.terminate(), "{}", said_in(&farm, "warm"));
}
