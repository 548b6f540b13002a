//! Blobs in ranges over several streams, as over a line with a long round trip, and transfers that
//! stop half way.

use crate::blobs::{Bench, bytes_of, quiet};
use crate::farm::*;
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::BlobHash;
use tessera_protocol::stream::{
    BlobOffer, BlobRange, BlobRanges, BlobReceipt, BlobReply, BlobRequest, StreamKind,
};
use tessera_transport::blob::{Ahead, Target, get, get_cached, put};
use tessera_transport::frame::{accept_kind, open_both};
use tessera_transport::{BlobError, CloseCode, FrameError, FrameSender, Timing};
use tokio::task::JoinSet;

const RANGE: u64 = 8 << 20;
/// Three ranges and a part of one.
const LENGTH: usize = (27 << 20) + 5;

/// A line on which every blob takes as many streams as it may.
fn long_line() -> Timing {
    Timing { stream_round_trip: Duration::ZERO, ..Timing::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_survives_upload_and_download_in_ranges() {
    let bench = Bench::new();
    let client = bench.client().await;
    let connection = &client.link().connection;
    let (bytes, hash) = bytes_of(LENGTH);
    let (source, target) = (bench.path("source"), bench.path("target"));
    std::fs::write(&source, &bytes).unwrap();
    let mut seen = Vec::new();
    let mut progress = |held: u64, all: u64| seen.push((held, all));
    let blob = (hash, LENGTH as u64);
    let sent = put(connection, blob, &source, &long_line(), &mut progress).await.unwrap();
    assert_eq!(sent, LENGTH as u64);
    let into = Target::new(&target);
    get(connection, hash.into(), 1 << 30, into, &long_line(), &mut progress).await.unwrap();
    assert!(std::fs::read(&target).unwrap() == bytes, "other bytes came back");
    let ends = seen.iter().filter(|(held, _)| *held == LENGTH as u64).count();
    assert!(ends >= 2 && seen.iter().all(|(_, all)| *all == LENGTH as u64));
    assert_eq!(bench.ranges_seen(), (4, 3), "four ranges were asked for, and three sent alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_fetched_side_by_side_share_the_ranges_ahead() {
    let bench = Bench::new();
    let (bytes, _) = bytes_of(LENGTH);
    // Of each blob four ranges. A node has 28 streams.
    let blobs: Vec<BlobHash> = (0..10)
        .map(|at| {
            let hash = BlobHash::of(&bytes[at..]);
            bench.add(hash, &bytes[at..]);
            hash
        })
        .collect();
    let link = bench.link(&bench.farm.authority.issue(&node("n1")).unwrap()).await;
    let (ahead, bytes) = (Arc::new(Ahead::default()), Arc::new(bytes));
    let mut fetched = JoinSet::new();
    for (at, hash) in blobs.iter().copied().enumerate() {
        let (part, whole) = (bench.path(&format!("{at}.part")), bench.path(&at.to_string()));
        let (connection, ahead, bytes) = (link.connection.clone(), ahead.clone(), bytes.clone());
        fetched.spawn(async move {
            let (from, length) = ((&connection, &*ahead), (LENGTH - at) as u64);
            let (places, timing) = ((&*part, &*whole), long_line());
            get_cached(from, hash.into(), length, places, &timing).await.unwrap();
            assert!(std::fs::read(whole).unwrap() == bytes[at..], "other bytes came of blob {at}");
        });
    }
    fetched.join_all().await;
    let (asked, _) = bench.ranges_seen();
    assert_eq!(asked, 4 * blobs.len());
    let most = bench.asked_at_once();
    assert!(most <= blobs.len() + 3, "{most} ranges were asked for at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_get_that_is_cut_within_a_range_resumes_there() {
    let bench = Bench::new();
    let (bytes, hash) = bytes_of(LENGTH);
    bench.add(hash, &bytes);
    let target = bench.path("target");
    // The third range comes whole, and the second one only begins.
    let (served, dialled) = bench.farm.pair(&bench.farm.identity("ada")).await;
    let (length, answer) = (LENGTH as u64, served.timing.answer);
    let begun = RANGE + 1_000_000;
    let coordinator = async {
        let mut held = Vec::new();
        for number in 0..4 {
            let (sender, receiver) = served.connection.accept_bi().await.unwrap();
            let (_, mut receiver) = accept_kind(receiver, answer).await.unwrap();
            let request: BlobRequest = receiver.expect(answer).await.unwrap();
            assert_eq!(request.offset, number * RANGE);
            assert_eq!(request.end, Some((number + 1) * RANGE));
            let mut sender = FrameSender::new(sender);
            // The others are asked for after the first answer, and before its bytes.
            sender.send(&BlobReply::From { offset: request.offset, length }).await.unwrap();
            held.push((sender, receiver, request.offset));
        }
        for (sender, _, offset) in &mut held {
            let end = if *offset == RANGE { begun } else { (*offset + RANGE).min(length) };
            // Once the second one is cut, nobody reads the rest.
            let _ = sender.send_raw(&bytes[*offset as usize..end as usize]).await;
            sender.finish();
        }
        held
    };
    let (timing, mut progress) = (long_line(), quiet);
    let into = Target::new(&target);
    let fetched = get(&dialled.connection, hash.into(), 1 << 30, into, &timing, &mut progress);
    let (_held, result) = tokio::join!(coordinator, fetched);
    assert!(matches!(result, Err(BlobError::Frame(FrameError::Cut))), "{result:?}");
    let part = std::fs::read(bench.part(hash)).unwrap();
    assert!(part == bytes[..begun as usize], "{} bytes are no beginning", part.len());

    let (client, mut first) = (bench.client().await, None);
    let mut progress = |held: u64, _: u64| {
        first.get_or_insert(held);
    };
    let connection = &client.link().connection;
    get(connection, hash.into(), 1 << 30, into, &timing, &mut progress).await.unwrap();
    assert_eq!(first, Some(begun));
    assert!(std::fs::read(&target).unwrap() == bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_that_stops_within_a_range_resumes_there() {
    const RANGE: usize = 100_000;
    let bench = Bench::new();
    let (bytes, hash) = bytes_of(350_000);
    let source = bench.path("source");
    std::fs::write(&source, &bytes).unwrap();
    let client = bench.client().await;
    let (connection, answer) = (&client.link().connection, Timing::default().answer);
    let (mut sender, mut receiver) = open_both(connection, StreamKind::BlobPut).await.unwrap();
    let ranges = Some(BlobRanges { upload: 7, bytes: RANGE as u64 });
    sender.send(&BlobOffer { hash, length: 350_000, ranges }).await.unwrap();
    let _: BlobReply = receiver.expect(answer).await.unwrap();
    sender.send_raw(&bytes[..RANGE]).await.unwrap();
    sender.finish();
    let mut held = Vec::new();
    // The third stream is there before the second one, which is cut.
    for (offset, end) in [(2 * RANGE, 3 * RANGE), (RANGE, RANGE + 50_000)] {
        let (mut sender, receiver) = open_both(connection, StreamKind::BlobRange).await.unwrap();
        sender.send(&BlobRange { upload: 7, offset: offset as u64 }).await.unwrap();
        sender.send_raw(&bytes[offset..end]).await.unwrap();
        sender.finish();
        held.push((sender, receiver));
    }
    let receipt: BlobReceipt = receiver.expect(answer).await.unwrap();
    assert!(matches!(receipt, BlobReceipt::Refused(_)), "{receipt:?}");
    receiver.receive::<BlobReceipt>().await.unwrap();

    // The same connection goes on.
    let sent = put(connection, (hash, 350_000), &source, &long_line(), &mut quiet).await.unwrap();
    assert_eq!(sent, 200_000);
    assert!(bench.stored(hash) == bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_in_a_range_is_found_by_the_hash() {
    let bench = Bench::new();
    let client = bench.client().await;
    let connection = &client.link().connection;
    let (mut bytes, hash) = bytes_of(LENGTH);
    bytes[RANGE as usize + 17] ^= 1;
    bench.add(hash, &bytes);
    let target = bench.path("target");
    let into = Target::new(&target);
    let result = get(connection, hash.into(), 1 << 30, into, &long_line(), &mut quiet).await;
    assert!(matches!(result, Err(BlobError::Corrupt { .. })), "{result:?}");
    assert!(!target.exists() && !bench.part(hash).exists());
    let (_, other) = bytes_of(LENGTH + 1);
    let source = bench.path("source");
    std::fs::write(&source, &bytes).unwrap();
    let blob = (other, LENGTH as u64);
    let result = put(connection, blob, &source, &long_line(), &mut quiet).await;
    assert!(matches!(result, Err(BlobError::Refused { .. })), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_no_upload_are_stopped() {
    let bench = Bench::new();
    let client = bench.client().await;
    let connection = &client.link().connection;
    let (mut sender, _receiver) = open_both(connection, StreamKind::BlobRange).await.unwrap();
    sender.send(&BlobRange { upload: 9, offset: 0 }).await.unwrap();
    let stopped = async {
        loop {
            if let Err(error) = sender.send_raw(&[0; 1000]).await {
                return error;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(20), stopped).await.unwrap();
    assert!(matches!(error, FrameError::Reset(Some(CloseCode::Failed))), "{error:?}");
    // Two uploads of one number: the second one is refused.
    let (bytes, hash) = bytes_of(1000);
    let ranges = Some(BlobRanges { upload: 1, bytes: 10 });
    let offer = BlobOffer { hash, length: 1000, ranges };
    let (mut first, mut receiver) = open_both(connection, StreamKind::BlobPut).await.unwrap();
    first.send(&offer).await.unwrap();
    let reply: BlobReply = receiver.expect(Timing::default().answer).await.unwrap();
    assert_eq!(reply, BlobReply::From { offset: 0, length: 1000 });
    let (mut second, mut receiver) = open_both(connection, StreamKind::BlobPut).await.unwrap();
    second.send(&offer).await.unwrap();
    let reply: BlobReply = receiver.expect(Timing::default().answer).await.unwrap();
    assert!(matches!(reply, BlobReply::Refused(_)), "{reply:?}");
    drop(bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_that_falls_silent_loses_only_its_stream() {
    let bench = Bench::with(short());
    let client = bench.client().await;
    let connection = &client.link().connection;
    let (bytes, hash) = bytes_of(3_000_000);
    let answer = Timing::default().answer;
    let (mut sender, mut receiver) = open_both(connection, StreamKind::BlobPut).await.unwrap();
    sender.send(&BlobOffer { hash, length: 3_000_000, ranges: None }).await.unwrap();
    let _: BlobReply = receiver.expect(answer).await.unwrap();
    sender.send_raw(&bytes[..700_000]).await.unwrap();
    let ended = receiver.expect::<BlobReceipt>(answer).await.unwrap_err();
    assert!(matches!(ended, FrameError::Reset(Some(CloseCode::Silent))), "{ended:?}");

    let source = bench.path("source");
    std::fs::write(&source, &bytes).unwrap();
    let sent = client.put_blob((hash, 3_000_000), &source, &mut quiet).await.unwrap();
    assert_eq!(sent, 2_300_000, "what came before the silence was kept");
    assert_eq!(connection.close_reason(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_get_that_nobody_reads_loses_only_its_stream() {
    let bench = Bench::with(short());
    let client = bench.client().await;
    let connection = &client.link().connection;
    // More than every window, so that it can only go on if it is read.
    let (bytes, hash) = bytes_of(48 << 20);
    bench.add(hash, &bytes);
    let (mut sender, mut receiver) = open_both(connection, StreamKind::BlobGet).await.unwrap();
    sender
        .send(&BlobRequest { hash, offset: 0, of: None, end: None, direct: true, ahead: 0 })
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let ended = loop {
        match receiver.receive_raw(1 << 20).await {
            Ok(Some(_)) => {}
            ended => break ended,
        }
    };
    let reset = matches!(ended, Err(FrameError::Reset(Some(CloseCode::Silent))));
    assert!(reset, "{ended:?}");
    let target = bench.path("target");
    client.get_blob(hash, 1 << 30, Target::new(&target), &mut quiet).await.unwrap();
    assert!(std::fs::read(&target).unwrap() == bytes);
}
