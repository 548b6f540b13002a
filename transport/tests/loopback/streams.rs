//! Framed messages, and what peers may do to them.

use crate::farm::*;
use quinn::{RecvStream, SendStream};
use tessera_protocol::limits::MESSAGE_BYTES_MAX;
use tessera_protocol::node::Heartbeat;
use tessera_protocol::stream::StreamKind;
use tessera_transport::error::Ended;
use tessera_transport::frame::{FrameReceiver, accept_kind, open_both};
use tessera_transport::{CloseCode, FrameError, Link, Timing};

fn heartbeat(sequence: u64) -> Heartbeat {
    Heartbeat {
        sequence,
        leases: Vec::new(),
        outbox: 3,
        working: 1,
        busy: Some(0.5),
        devices: Vec::new(),
        progress: Vec::new(),
    }
}

async fn connected(name: &str) -> (Farm, Link, Link) {
    let farm = Farm::start(Timing::default());
    let (served, dialled) = farm.pair(&farm.identity(name)).await;
    (farm, served, dialled)
}

/// A raw stream that begins with these bytes, and its other end.
async fn raw(served: &Link, dialled: &Link, bytes: &[u8]) -> (SendStream, RecvStream) {
    let (mut sender, _) = dialled.connection.open_bi().await.unwrap();
    sender.write_all(bytes).await.unwrap();
    let (_, receiver) = served.connection.accept_bi().await.unwrap();
    (sender, receiver)
}

#[tokio::test]
async fn messages_arrive_in_order_and_the_end_is_clean() {
    let (_farm, served, dialled) = connected("ada").await;
    let (mut sender, mut answers) =
        open_both(&dialled.connection, StreamKind::Telemetry).await.unwrap();
    for sequence in 0..3 {
        sender.send(&heartbeat(sequence)).await.unwrap();
    }
    sender.finish();
    let (_quiet, receiver) = served.connection.accept_bi().await.unwrap();
    let (kind, mut receiver) = accept_kind(receiver, Timing::default().answer).await.unwrap();
    assert_eq!(kind, StreamKind::Telemetry);
    for sequence in 0..3 {
        assert_eq!(receiver.receive::<Heartbeat>().await.unwrap(), Some(heartbeat(sequence)));
    }
    assert_eq!(receiver.receive::<Heartbeat>().await.unwrap(), None);
    // No answer comes: that is silence, not an end.
    let error = answers.expect::<Heartbeat>(short().answer).await.unwrap_err();
    assert!(matches!(error, FrameError::Silent(_)), "{error:?}");
}

#[tokio::test]
async fn a_dropped_receive_loses_no_byte_of_a_message() {
    let (_farm, served, dialled) = connected("ada").await;
    let body = tessera_protocol::encode(&heartbeat(7)).unwrap();
    let bytes = [&(body.len() as u32).to_le_bytes()[..], &body].concat();
    let (mut sender, receiver) = raw(&served, &dialled, &bytes[..1]).await;
    let mut receiver = FrameReceiver::new(receiver);
    for byte in &bytes[1..] {
        let early = tokio::time::timeout(
            std::time::Duration::from_millis(2),
            receiver.receive::<Heartbeat>(),
        );
        assert!(early.await.is_err());
        sender.write_all(&[*byte]).await.unwrap();
    }
    assert_eq!(receiver.receive::<Heartbeat>().await.unwrap(), Some(heartbeat(7)));
}

#[tokio::test]
async fn an_oversized_length_is_refused_before_its_bytes_arrive() {
    let (_farm, served, dialled) = connected("ada").await;
    for length in [u32::MAX, MESSAGE_BYTES_MAX as u32 + 1] {
        let (_sender, receiver) = raw(&served, &dialled, &length.to_le_bytes()).await;
        let error = FrameReceiver::new(receiver).receive::<Heartbeat>().await.unwrap_err();
        assert!(
            matches!(error, FrameError::TooLong { length: told, .. } if told == length),
            "{error:?}"
        );
        assert!(error.is_peers_fault());
    }
}

#[tokio::test]
async fn a_cut_message_and_garbage_are_told_apart() {
    let (_farm, served, dialled) = connected("ada").await;
    let (mut sender, receiver) = raw(&served, &dialled, &[9, 0, 0, 0, 1, 2]).await;
    sender.finish().unwrap();
    let error = FrameReceiver::new(receiver).receive::<Heartbeat>().await.unwrap_err();
    assert!(matches!(error, FrameError::Cut), "{error:?}");

    let (_sender, receiver) = raw(&served, &dialled, &[5, 0, 0, 0, 255, 255, 255, 255, 255]).await;
    let error = FrameReceiver::new(receiver).receive::<Heartbeat>().await.unwrap_err();
    assert!(matches!(error, FrameError::Codec(_)), "{error:?}");

    let (mut sender, receiver) = raw(&served, &dialled, &[9, 0, 0, 0, 1]).await;
    sender.reset(CloseCode::Failed.into()).unwrap();
    let error = FrameReceiver::new(receiver).receive::<Heartbeat>().await.unwrap_err();
    assert!(matches!(error, FrameError::Reset(Some(CloseCode::Failed))), "{error:?}");

    let (_sender, receiver) = raw(&served, &dialled, &[9, 0, 0, 0, 1]).await;
    dialled.close(CloseCode::Done, "gone").await;
    let error = FrameReceiver::new(receiver).receive::<Heartbeat>().await.unwrap_err();
    assert!(
        matches!(error, FrameError::Ended(Ended::Closed { code: Some(CloseCode::Done), .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_unknown_kind_is_named_and_a_stream_must_begin() {
    let (_farm, served, dialled) = connected("ada").await;
    let (_sender, receiver) = raw(&served, &dialled, &[77]).await;
    let error = accept_kind(receiver, Timing::default().answer).await.unwrap_err();
    assert!(matches!(error, FrameError::Kind(77)), "{error:?}");

    let (mut sender, _) = dialled.connection.open_bi().await.unwrap();
    sender.finish().unwrap();
    let (_, receiver) = served.connection.accept_bi().await.unwrap();
    let error = accept_kind(receiver, Timing::default().answer).await.unwrap_err();
    assert!(matches!(error, FrameError::Missing), "{error:?}");

    // A stream without a first byte does not exist for its other end, so the silence is after the
    // kind.
    let (_sender, receiver) = raw(&served, &dialled, &[StreamKind::Request as u8]).await;
    let (_, mut receiver) = accept_kind(receiver, short().answer).await.unwrap();
    let error = receiver.expect::<Heartbeat>(short().answer).await.unwrap_err();
    assert!(matches!(error, FrameError::Silent(_)), "{error:?}");
}
