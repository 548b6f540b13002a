//! The data folder of a killed coordinator, for tests: one finished job, one cancelled job, and one
//! job with 7 of the 16 units of its first frame committed.

use crate::folder::DataFolder;
use crate::spool::{DiskSpools, EntryHeader, SpoolEntry, SpoolKey, Spools};
use crate::store::{Changes, Journal, Store};
use std::collections::BTreeMap;
use std::path::Path;
use tessera_core::journal::Commit;
use tessera_core::{Moment, Record};
use tessera_protocol::client::Role;
use tessera_protocol::job::{AssetFile, JobKind};
use tessera_protocol::status::{FrameFile, JobState};
use tessera_protocol::{
    BlobHash, Epoch, Fingerprint, FrameNumber, JobId, JobSpec, NodeId, RenderSpec, TileSums,
    UnitIndex,
};
use tessera_transport::member::MemberRecord;
use tessera_transport::{PeerIdentity, TokenRecord, TokenUse};

/// Edge of a tile in pixels.
const TILE: u32 = 16;

/// Returns the open job. Its first frame has a spool.
pub(crate) fn open_job() -> JobId {
    id(3)
}

/// First frame of the open job.
pub(crate) const OPEN_FRAME: FrameNumber = FrameNumber(1);

fn id(number: u128) -> JobId {
    JobId(uuid::Uuid::from_u128(number))
}

/// Makes the folder at `root`. Its journal has one commit.
pub(crate) fn make(root: &Path) {
    let folder = DataFolder::open(root).unwrap();
    let scene = write_blob(&folder, "scene.gltf", &[b'{'; 2000]);
    let buffer = write_blob(&folder, "scene.bin", &[7; 3000]);
    let files = vec![scene, buffer];
    let picture: Vec<u8> =
        (0..12_000u32).flat_map(|word| word.wrapping_mul(97).to_le_bytes()).collect();
    let picture = write_blob(&folder, "frame.exr", &picture);

    let mut records = vec![Record::EpochsReserved { up_to: Epoch(1000) }];
    records.extend(accepted(id(1), 2, "0", &files));
    records.push(committed(id(1), FrameNumber(0), (0..4).map(|unit| film(100, unit).1)));
    records.push(Record::FrameFinished {
        job: id(1),
        frame: FrameNumber(0),
        files: vec![finished(&picture)],
    });
    records.push(ended(id(1), JobState::Done));
    records.extend(accepted(id(2), 2, "0", &files));
    records.push(ended(id(2), JobState::Cancelled));
    records.extend(accepted(open_job(), 4, "1-2", &files));
    records.push(committed(open_job(), OPEN_FRAME, (0..7).map(|unit| film(200, unit).1)));

    let mut changes = Changes::default();
    for (sequence, record) in (1..).zip(&records) {
        changes.records.push((sequence, record.to_bytes().unwrap()));
    }
    let key = SpoolKey { job: open_job(), frame: OPEN_FRAME };
    let entries: Vec<SpoolEntry> = (0..7).map(|unit| entry(key, unit)).collect();
    let (mut spools, _) = DiskSpools::open(&folder.spool(), BTreeMap::new(), true).unwrap();
    changes.spools = spools
        .append(&entries)
        .unwrap()
        .into_iter()
        .map(|(key, length)| (key, Some(length)))
        .collect();
    changes.members = [3, 4].map(|number| (number, Some(member(number)))).into();
    changes.tokens = [1, 2].map(|number| ([number; 32], Some(token(number)))).into();
    Journal::open(&folder, true).unwrap().commit(&changes).unwrap();
}

fn write_blob(folder: &DataFolder, path: &str, bytes: &[u8]) -> AssetFile {
    let hash = BlobHash::of(bytes);
    let name = hash.to_string();
    let parent = folder.blobs().join(&name[..2]);
    std::fs::create_dir_all(&parent).unwrap();
    std::fs::write(parent.join(&name), bytes).unwrap();
    AssetFile { path: path.to_owned(), hash, length: bytes.len() as u64 }
}

/// Returns the records of a job that is accepted, and pinned by its first result. Its frames are
/// squares of `edge` by `edge` tiles.
fn accepted(job: JobId, edge: u32, frames: &str, files: &[AssetFile]) -> [Record; 2] {
    let render = RenderSpec {
        width: edge * TILE,
        height: edge * TILE,
        tile: TILE,
        spp: 1,
        unit_samples: 1,
        frames: frames.parse().unwrap(),
        ..RenderSpec::new("scene.gltf", files.to_vec())
    };
    let spec = Box::new(JobSpec::new("stopped", JobKind::Render(render)));
    let (owner, owner_id) = ("ada".to_owned(), 3);
    let accepted = Record::JobAccepted { job, spec, owner, owner_id, at: Moment(1000) };
    [accepted, Record::JobPinned { job, fingerprint: Fingerprint([1; 32]) }]
}

fn finished(picture: &AssetFile) -> FrameFile {
    let AssetFile { hash, length, .. } = *picture;
    FrameFile { format: "exr".to_owned(), hash, length, pixels_sha256: [0; 32] }
}

fn ended(job: JobId, state: JobState) -> Record {
    Record::JobEnded { job, state, at: Moment(2000), note: String::new() }
}

/// Returns the bytes of a unit's film, and its commit for the journal. No two units have the same
/// epoch.
fn film(first_epoch: u64, unit: u32) -> (bytes::Bytes, Commit) {
    let mut film = TileSums::empty(TILE as u16, TILE as u16, 3);
    film.samples = 1;
    film.values.iter_mut().zip(1..).for_each(|(sum, value)| *sum = value * i64::from(unit + 1));
    let bytes = bytes::Bytes::from(film.to_bytes());
    let commit = Commit {
        unit: UnitIndex(unit),
        epoch: Epoch(first_epoch + u64::from(unit)),
        node: NodeId(uuid::Uuid::from_u128(9)),
        hash: BlobHash::of(&bytes),
        check: false,
    };
    (bytes, commit)
}

fn committed(job: JobId, frame: FrameNumber, commits: impl Iterator<Item = Commit>) -> Record {
    Record::UnitsCommitted { job, frame, commits: commits.collect() }
}

fn entry(key: SpoolKey, unit: u32) -> SpoolEntry {
    let (bytes, Commit { unit, epoch, hash, .. }) = film(200, unit);
    let length = bytes.len() as u32;
    let header = EntryHeader { unit, epoch, first: 0, samples: 1, length, hash };
    SpoolEntry { key, header, body: bytes.into() }
}

/// Returns the member of this number; no two hold the same name.
pub(crate) fn member(number: u64) -> MemberRecord {
    let peer = PeerIdentity::new(Role::Artist, &format!("user-{number}"), None).unwrap();
    MemberRecord::new(number, &peer, 1000)
}

fn token(number: u8) -> TokenRecord {
    TokenRecord {
        hash: [number; 32],
        role: Role::Node,
        expires_at: u64::MAX,
        uses_left: 1,
        pool: None,
        uses: 1,
        made_by: "ada".to_owned(),
        name: None,
        replace: false,
        purpose: TokenUse::Join,
    }
}
