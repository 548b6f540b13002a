//! Decoders of what peers send and of what lies on disk: messages, specs, films, records. What is
//! read must survive being written.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::fmt::Debug;
use tessera_coordinator::spool::{EntryHeader, HEADER_BYTES};
use tessera_coordinator::store::snapshot as snapshots_on_disk;
use tessera_core::journal::Commit;
use tessera_core::{Record, SnapshotPart};
use tessera_protocol::client::{EnrolReply, EnrolRequest, Request, Response};
use tessera_protocol::compute::{ChunkValues, npy as arrays_on_disk};
use tessera_protocol::job::described::{decode_job, encode_job};
use tessera_protocol::live::{LIVE_BYTES_MAX, LiveTile};
use tessera_protocol::logs::{LINE_BYTES_MAX, LogLines};
use tessera_protocol::names::is_control;
use tessera_protocol::node::{CoordinatorToNode, Heartbeat, NodeToCoordinator, ResultHeaders};
use tessera_protocol::stream::{
    BlobOffer, BlobRange, BlobReceipt, BlobReply, BlobRequest, InputsReply, InputsRequest,
};
use tessera_protocol::{
    BlobHash, Epoch, Fingerprint, FrameNumber, Hello, JobId, NodeId, RawJobSpec, TileSums,
    UnitIndex, decode, encode,
};
use tessera_transport::Authority;
use tessera_transport::peer::PeerIdentity;

/// The pinned bytes of every message: `NAME HEX` a line.
const GOLDEN: &str = include_str!("../../protocol/tests/wire/golden.txt");

/// Returns what an error and its causes say.
pub(crate) fn told(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Pinned messages whose names begin so.
pub(crate) fn messages(begin: &str) -> Vec<Vec<u8>> {
    let lines = GOLDEN.lines().filter(|line| line.starts_with(begin));
    let found: Vec<Vec<u8>> =
        lines.filter_map(|line| line.split_once(' ')).map(|(_, hex)| from_hex(hex)).collect();
    assert!(!found.is_empty(), "no pinned message begins with {begin}");
    found
}

/// Reads a message; what is read is written and read again.
fn message<T: Serialize + DeserializeOwned + PartialEq + Debug>(
    bytes: &[u8],
) -> Result<(), String> {
    let value: T = decode(bytes).map_err(|error| told(&error))?;
    let written = encode(&value).expect("what was read can be written");
    let again: T = decode(&written).expect("what was written can be read");
    // Numbers that are none are not equal to themselves.
    assert!(again == value || format!("{value:?}").contains("NaN"), "{value:?} became {again:?}");
    Ok(())
}

pub(crate) fn hello(bytes: &[u8]) -> Result<(), String> {
    let hello = Hello::from_bytes(bytes).map_err(|error| told(&error))?;
    let again = Hello::from_bytes(&hello.to_bytes()).expect("what was written can be read");
    // The build's name is for people: what is no text in it is replaced, and takes more room then.
    let numbers = |hello: &Hello| (hello.oldest, hello.newest, hello.fingerprint);
    assert_eq!(numbers(&again), numbers(&hello));
    hello.agree().map(drop).map_err(|error| told(&error))
}

pub(crate) fn hellos() -> Vec<Vec<u8>> {
    vec![Hello::ours(Fingerprint([7; 32])).to_bytes()]
}

pub(crate) fn request(bytes: &[u8]) -> Result<(), String> {
    message::<Request>(bytes)
}

pub(crate) fn response(bytes: &[u8]) -> Result<(), String> {
    message::<Response>(bytes)
}

pub(crate) fn from_node(bytes: &[u8]) -> Result<(), String> {
    message::<NodeToCoordinator>(bytes).or_else(|_| message::<Heartbeat>(bytes))
}

pub(crate) fn to_node(bytes: &[u8]) -> Result<(), String> {
    message::<CoordinatorToNode>(bytes)
}

pub(crate) fn blobs(bytes: &[u8]) -> Result<(), String> {
    message::<BlobRequest>(bytes)
        .or_else(|_| message::<BlobOffer>(bytes))
        .or_else(|_| message::<BlobRange>(bytes))
        .or_else(|_| message::<InputsRequest>(bytes))
        .or_else(|_| message::<InputsReply>(bytes))
        .or_else(|_| message::<BlobReply>(bytes))
        .or_else(|_| message::<BlobReceipt>(bytes))
}

pub(crate) fn enrolment(bytes: &[u8]) -> Result<(), String> {
    message::<EnrolRequest>(bytes).or_else(|_| message::<EnrolReply>(bytes))
}

pub(crate) fn result_headers(bytes: &[u8]) -> Result<(), String> {
    message::<ResultHeaders>(bytes)?;
    let headers: ResultHeaders = decode(bytes).map_err(|error| error.to_string())?;
    headers.bytes().map(drop)
}

/// A live tile has as many values as its check allows, whatever it says.
pub(crate) fn live_tile(bytes: &[u8]) -> Result<(), String> {
    message::<LiveTile>(bytes)?;
    let tile: LiveTile = decode(bytes).map_err(|error| told(&error))?;
    assert!(tile.values.0.len() <= LIVE_BYTES_MAX);
    tile.check().map_err(|error| told(&error))
}

/// Lines of a log are safe for a terminal, whatever they said.
pub(crate) fn log_lines(bytes: &[u8]) -> Result<(), String> {
    message::<LogLines>(bytes)?;
    let lines: LogLines = decode(bytes).map_err(|error| told(&error))?;
    for line in &lines.0 {
        let text = line.text.as_str();
        assert!(text.len() <= LINE_BYTES_MAX && !text.chars().any(is_control));
    }
    lines.check().map_err(|count| format!("{count} lines"))
}

/// A spec that passes its check can be cut into units and asked for its sizes.
pub(crate) fn job_spec(bytes: &[u8]) -> Result<(), String> {
    let raw: RawJobSpec = decode(bytes).map_err(|error| told(&error))?;
    let spec = raw.check().map_err(|error| format!("{}: {}", error.field, error.problem))?;
    assert!(!spec.kind.frames().is_empty());
    std::hint::black_box((spec.kind.files(), spec.kind.extensions(), spec.kind.data_hash()));
    Ok(())
}

/// The self-describing form by itself: what is read is the same after it is written and read.
pub(crate) fn described_job(bytes: &[u8]) -> Result<(), String> {
    let spec = decode_job(bytes).map_err(|error| format!("{}: {}", error.field, error.problem))?;
    let written = encode_job(&spec);
    let again = decode_job(&written).expect("what was written can be read");
    assert_eq!(encode_job(&again), written);
    Ok(())
}

/// The self-describing forms of the jobs that are submitted.
pub(crate) fn described_jobs() -> Vec<Vec<u8>> {
    let raw = specs().into_iter().filter_map(|bytes| decode::<RawJobSpec>(&bytes).ok());
    let jobs = raw.filter_map(|raw| raw.check().ok());
    jobs.map(|spec| encode_job(&spec)).collect()
}

/// Submissions without what stands before the spec.
pub(crate) fn specs() -> Vec<Vec<u8>> {
    let requests =
        messages("request").into_iter().filter_map(|bytes| decode::<Request>(&bytes).ok());
    let specs = requests.filter_map(|request| match request {
        Request::Submit { spec, .. } => encode(&*spec).ok(),
        _ => None,
    });
    specs.collect()
}

pub(crate) fn film(bytes: &[u8]) -> Result<(), String> {
    let film = TileSums::from_bytes(bytes).map_err(|error| told(&error))?;
    assert_eq!(TileSums::from_bytes(&film.to_bytes()).ok(), Some(film));
    Ok(())
}

pub(crate) fn films() -> Vec<Vec<u8>> {
    [(1, 1, 3), (8, 4, 3), (16, 16, 13)]
        .map(|(width, height, channels)| TileSums::empty(width, height, channels).to_bytes())
        .into()
}

pub(crate) fn chunk(bytes: &[u8]) -> Result<(), String> {
    let values = ChunkValues::from_bytes(bytes).map_err(|error| told(&error))?;
    assert_eq!(ChunkValues::from_bytes(&values.to_bytes()).ok(), Some(values));
    Ok(())
}

pub(crate) fn chunks() -> Vec<Vec<u8>> {
    let chunk = |count: u32, width: u8| {
        let bytes = (0..count * u32::from(width)).map(|byte| byte as u8).collect();
        ChunkValues { count, width, bytes }.to_bytes()
    };
    vec![chunk(16, 4), chunk(3, 8), chunk(0, 1)]
}

pub(crate) fn record(bytes: &[u8]) -> Result<(), String> {
    let record = Record::from_bytes(bytes).map_err(|error| told(&error))?;
    let written = record.to_bytes().expect("what was read can be written");
    Record::from_bytes(&written).expect("what was written can be read");
    Ok(())
}

/// Variants of records and parts that there may be; those that there are not are refused.
const VARIANTS: u8 = 24;

/// A record that is whole, and of every kind what messages and specs carry.
pub(crate) fn records() -> Vec<Vec<u8>> {
    let whole = Record::EpochsReserved { up_to: Epoch(70_000) }.to_bytes().expect("a record");
    let version = whole[0];
    let bodies: Vec<Vec<u8>> =
        messages("request").into_iter().chain(messages("response")).chain(specs()).collect();
    let kinds = (0..VARIANTS).zip(bodies.iter().cycle());
    let kinds = kinds.map(|(kind, body)| [&[version, kind][..], body].concat());
    kinds.chain([whole.clone()]).chain(records_of_parts()).collect()
}

/// A part of a unit, and parts that are dropped.
fn records_of_parts() -> Vec<Vec<u8>> {
    let (job, frame, unit) = (JobId(uuid::Uuid::from_u128(1)), FrameNumber(3), UnitIndex(7));
    let (epoch, hash) = (Epoch(70_000), BlobHash([9; 32]));
    let commit = Commit { unit, epoch, node: NodeId(uuid::Uuid::from_u128(2)), hash, check: true };
    let part = Record::PartCommitted { job, frame, commit, first: 16, samples: 48 };
    let dropped = Record::PartsDropped { job, frame, units: vec![unit], below: epoch };
    [part, dropped].map(|record| record.to_bytes().expect("a record")).into()
}

/// A snapshot, or a part of one.
pub(crate) fn snapshot(bytes: &[u8]) -> Result<(), String> {
    let part = || SnapshotPart::from_bytes(bytes).map_err(|error| told(&error));
    let parts = match snapshots_on_disk::decode(bytes) {
        Ok(parts) => parts,
        Err(_) => vec![part()?],
    };
    let written = snapshots_on_disk::encode(&parts).expect("what was read can be written");
    assert_eq!(snapshots_on_disk::decode(&written).map(|again| again.len()), Ok(parts.len()));
    Ok(())
}

pub(crate) fn snapshots() -> Vec<Vec<u8>> {
    let parts = records();
    // A farm without anything in it: no epoch, nobody drained, nothing recent.
    let farm = [parts[0][0], 0, 0, 0, 0];
    let framed = [&(farm.len() as u32).to_le_bytes()[..], &farm].concat();
    parts.into_iter().chain([farm.to_vec(), framed.clone(), framed.repeat(3)]).collect()
}

pub(crate) fn spool_entry(bytes: &[u8]) -> Result<(), String> {
    let entry = EntryHeader::from_bytes(bytes).map_err(|error| error.to_string())?;
    assert!(bytes.len() >= HEADER_BYTES);
    assert_eq!(EntryHeader::from_bytes(&entry.to_bytes()), Ok(entry));
    Ok(())
}

pub(crate) fn spool_entries() -> Vec<Vec<u8>> {
    let hash = BlobHash([9; 32]);
    let header = EntryHeader {
        unit: UnitIndex(3),
        epoch: Epoch(70_000),
        first: 0,
        samples: 64,
        length: 1000,
        hash,
    };
    // A part of a unit, and one of another version.
    let part = EntryHeader { first: 16, ..header }.to_bytes();
    let mut other = header.to_bytes();
    other[3] = 2;
    [header.to_bytes(), part, other].map(Vec::from).into()
}

pub(crate) fn npy(bytes: &[u8]) -> Result<(), String> {
    let header =
        arrays_on_disk::Header::read(bytes, bytes.len() as u64).map_err(|error| told(&error))?;
    let values = header.values().expect("what was read can be counted");
    assert_eq!(
        header.data_offset as u64 + values * header.element.bytes() as u64,
        bytes.len() as u64
    );
    Ok(())
}

pub(crate) fn arrays() -> Vec<Vec<u8>> {
    let head = |shape: &[u64]| {
        arrays_on_disk::header_bytes(tessera_protocol::compute::Element::F32, shape)
    };
    vec![[head(&[3]), vec![0; 12]].concat(), [head(&[2, 2]), vec![0; 16]].concat(), head(&[0])]
}

pub(crate) fn certificate(bytes: &[u8]) -> Result<(), String> {
    PeerIdentity::of_certificate(&bytes.to_vec().into()).map(drop).map_err(|error| told(&error))
}

pub(crate) fn certificates() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let authority = Authority::open_or_create(folder.path()).expect("an authority");
    vec![authority.certificate().to_vec()]
}
