//! Tests of the results that are held back.

use super::super::flight::Purpose;
use super::*;
use crate::device::CancelToken;
use std::sync::mpsc::{Receiver, channel};
use tessera_protocol::TileSums;

type Ends = Receiver<Result<UnitOutput, DeviceError>>;

/// Returns a finished unit, and the receiver of its end.
fn done(number: u64) -> (Flight, UnitOutput, Ends) {
    let (sender, ends) = channel();
    let finish = Box::new(move |result| sender.send(result).unwrap());
    let purpose = Purpose::Work { cancel: CancelToken::default(), finish };
    let (frame, params) = (crate::test_scene::frame(), crate::test_scene::unit(0, 0, 1, 1, 0..1));
    let flight = Flight { number, frame, params, purpose, started: true, stopped: false };
    let sums = TileSums::empty(1, 1, 3);
    let (chunk, piece, device_time) = (None, None, Duration::ZERO);
    let output = UnitOutput { sums, chunk, piece, rays: 1, device_time, device_bytes: 0 };
    (flight, output, ends)
}

fn hold(held: &mut Held, number: u64, now: Instant) -> Ends {
    let (flight, output, ends) = done(number);
    held.add(flight, output, now);
    ends
}

#[test]
fn a_right_answer_releases_the_results_before_it() {
    let (mut held, now) = (Held::default(), Instant::now());
    let (first, second) = (hold(&mut held, 1, now), hold(&mut held, 3, now));
    assert!(first.try_recv().is_err(), "not before the test");
    assert_eq!(held.release(2, now), 1);
    assert!(first.recv().unwrap().is_ok());
    assert!(second.try_recv().is_err(), "the device may have gone wrong after the test");
    assert_eq!(held.release(4, now), 1);
    assert!(second.recv().unwrap().is_ok() && held.is_empty());
}

#[test]
fn a_wrong_answer_returns_all_held_units() {
    let (mut held, now) = (Held::default(), Instant::now());
    let ends = [hold(&mut held, 1, now), hold(&mut held, 2, now)];
    assert_eq!(held.give_up(), 2);
    assert!(
        ends.iter().all(|end| end.recv().unwrap() == Err(DeviceError::Cancelled))
            && held.is_empty()
    );
}

#[test]
fn a_self_test_is_due_by_count_time_or_idleness() {
    let (mut held, now) = (Held::default(), Instant::now());
    assert!(!held.is_due(1, true, now + HELD_MAX), "nothing waits for it");
    let _first = hold(&mut held, 1, now);
    assert!(
        !held.is_due(2, false, now)
            && held.is_due(2, true, now)
            && held.is_due(2, false, now + HELD_MAX)
    );
    let _second = hold(&mut held, 2, now);
    assert!(held.is_due(2, false, now));
    held.release(2, now + HELD_MAX);
    assert!(!held.is_due(2, false, now + HELD_MAX), "the rest waits from the test on");
}
