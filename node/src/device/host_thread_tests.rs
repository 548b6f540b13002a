//! Tests of the host's thread with made-up finishers.

use super::*;
use crate::device::{CancelToken, Finish as Ended};
use std::sync::mpsc;
use tessera_finishing::Inputs;
use tessera_kernels::host::best_isa;
use tessera_protocol::JobKind;
use tessera_protocol::node::{Finish, Piece};

const PATIENCE: Duration = Duration::from_secs(20);

fn lane(
    finisher: impl Fn(&PreparedPiece, &Running<'_>) -> Result<Vec<u8>, FinishError>
    + Send
    + Sync
    + 'static,
) -> HostLane {
    let thread = HostThread::start_with(2, best_isa(), Box::new(finisher)).unwrap();
    HostLane::new(Arc::new(thread))
}

fn piece(rows: u32) -> Arc<PreparedPiece> {
    let inputs = Inputs::open(tempfile::tempfile().unwrap(), 0, 0).unwrap();
    let finish = Finish { piece: Piece::Frame { rows }, exposure_bits: 0 };
    let job = Arc::new(JobKind::Render(crate::job::tests::spec(b"")));
    Arc::new(PreparedPiece { job, finish, inputs })
}

struct Pending {
    cancel: CancelToken,
    result: mpsc::Receiver<Result<UnitOutput, DeviceError>>,
}

impl Pending {
    fn wait(self) -> Result<UnitOutput, DeviceError> {
        self.result.recv_timeout(PATIENCE).expect("every unit ends")
    }
}

fn submit(lane: &HostLane, rows: u32) -> Pending {
    let (sender, result) = mpsc::channel();
    let cancel = CancelToken::default();
    let finish: Ended = Box::new(move |result| drop(sender.send(result)));
    lane.submit(DeviceUnit { work: Work::Finish(piece(rows)), cancel: cancel.clone(), finish });
    Pending { cancel, result }
}

fn rows_of(piece: &PreparedPiece) -> u32 {
    match piece.finish.piece {
        Piece::Frame { rows } => rows,
        Piece::Band { .. } | Piece::Assembly => 0,
    }
}

/// Waits until a unit is stopped.
fn until_stopped(running: &Running<'_>) -> Result<Vec<u8>, FinishError> {
    let stop = running.stop.expect("units can be stopped");
    let start = Instant::now();
    while !stop.load(Ordering::Acquire) {
        assert!(start.elapsed() < PATIENCE, "nobody stops it");
        std::thread::yield_now();
    }
    Err(FinishError::Stopped)
}

#[test]
fn pieces_are_made_one_after_another() {
    let lane = lane(|piece, _| Ok(vec![rows_of(piece) as u8; 3]));
    let pending = [1, 2, 3].map(|rows| submit(&lane, rows));
    for (pending, rows) in pending.into_iter().zip(1..) {
        let output = pending.wait().unwrap();
        assert_eq!(output.piece, Some(vec![rows; 3]));
        assert_eq!((output.chunk, output.rays, output.sums.values.len()), (None, 0, 0));
    }
}

#[test]
fn a_cancelled_piece_stops_and_the_next_is_made() {
    let lane = lane(|piece, running| match rows_of(piece) {
        1 => until_stopped(running),
        _ => Ok(vec![7]),
    });
    let [first, withdrawn, last] = [1, 2, 3].map(|rows| submit(&lane, rows));
    while !first.cancel.has_begun() {
        std::thread::yield_now();
    }
    assert!(withdrawn.cancel.withdraw());
    // A node that leaves finishes what it has begun.
    first.cancel.cut();
    std::thread::sleep(Duration::from_millis(20));
    let early = first.result.try_recv();
    assert!(early.is_err(), "{early:?}");
    first.cancel.cancel();
    assert_eq!(first.wait(), Err(DeviceError::Cancelled));
    assert_eq!(withdrawn.wait(), Err(DeviceError::Cancelled));
    assert_eq!(last.wait().unwrap().piece, Some(vec![7]));
}

#[test]
fn a_panic_fails_its_unit_alone() {
    let lane = lane(|piece, _| match rows_of(piece) {
        1 => panic!("a bug"),
        _ => Ok(vec![7]),
    });
    let [first, last] = [1, 2].map(|rows| submit(&lane, rows));
    let error = first.wait().unwrap_err();
    assert_eq!(error, DeviceError::Failed("a thread panicked: a bug".into()));
    assert_eq!(last.wait().unwrap().piece, Some(vec![7]));
}

#[test]
fn a_piece_that_cannot_be_made_is_no_fault_of_the_device() {
    let lane = lane(|piece, _| match rows_of(piece) {
        1 => Err(FinishError::Shape { tile: 5 }),
        2 => Err(FinishError::Encode("no".into())),
        3 => Err(FinishError::TooLarge),
        4 => Ok(vec![0; RESULT_BYTES_MAX + 1]),
        _ => Err(FinishError::Write(std::io::Error::other("its disk"))),
    });
    let mut ends = [1, 2, 3, 4, 5].map(|rows| submit(&lane, rows).wait().unwrap_err()).into_iter();
    for part in ["tile 5", "no", "too long for a result", "too long for a result"] {
        let end = ends.next();
        assert!(
            matches!(&end, Some(DeviceError::Piece(reason)) if reason.contains(part)),
            "{end:?}"
        );
    }
    assert!(matches!(ends.next(), Some(DeviceError::Failed(_))));
}

#[test]
fn time_counts_for_the_device_that_asked() {
    let first = lane(|_, _| {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(30) {
            std::hint::black_box(start);
        }
        Ok(vec![1])
    });
    let second = HostLane::new(first.thread.clone());
    let output = submit(&first, 1).wait().unwrap();
    assert!(first.busy() >= Duration::from_millis(30), "{:?}", first.busy());
    assert_eq!(second.busy(), Duration::ZERO);
    // One of two threads worked, and may have waited for a processor.
    assert!(output.device_time > Duration::ZERO && output.device_time <= first.busy());
}

#[test]
fn the_time_of_a_unit_grows_while_it_runs() {
    let lane = lane(|_, running| until_stopped(running));
    let pending = submit(&lane, 1);
    while lane.busy() < Duration::from_millis(5) {
        std::thread::yield_now();
    }
    pending.cancel.cancel();
    assert_eq!(pending.wait(), Err(DeviceError::Cancelled));
}

#[test]
fn units_that_wait_end_with_their_device() {
    let lane = lane(|_, running| until_stopped(running));
    let [first, second] = [1, 2].map(|rows| submit(&lane, rows));
    while !first.cancel.has_begun() {
        std::thread::yield_now();
    }
    let cancel = first.cancel.clone();
    let dropping = std::thread::spawn(move || drop(lane));
    std::thread::sleep(Duration::from_millis(20));
    cancel.cancel();
    dropping.join().unwrap();
    for pending in [first, second] {
        assert_eq!(pending.wait(), Err(DeviceError::Cancelled));
    }
}
