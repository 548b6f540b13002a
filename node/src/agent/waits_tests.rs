//! Tests of how long devices wait for frames. The time is made up.

use super::ahead_tests::{actions, agent, frame, started, unit, work};
use super::*;

/// An agent and its clock.
struct Timed {
    agent: Agent<u32>,
    start: Instant,
}

impl Timed {
    fn new(devices: usize) -> Self {
        Self { agent: agent(devices), start: Instant::now() }
    }

    /// The next event is so many seconds after the start.
    fn at(&mut self, secs: u64) -> &mut Agent<u32> {
        self.agent.pass_time(self.start + Duration::from_secs(secs));
        &mut self.agent
    }

    /// A unit ends at that time, after so many milliseconds on its device. Returns for how many
    /// milliseconds a device waited for it, as its result says.
    fn ends(&mut self, secs: u64, (device, unit): (usize, Assignment), millis: u64) -> u128 {
        let done = Rendered::Done(Duration::from_millis(millis));
        assert!(self.at(secs).on_rendered(device, unit.lease(), done));
        let waited = self.agent.waited(unit.lease()).as_millis();
        self.agent.on_stored(unit.lease());
        waited
    }
}

#[test]
fn the_first_result_tells_how_long_its_device_waited() {
    let mut timed = Timed::new(1);
    work(timed.at(10), &[unit(1, 1, 0), unit(1, 1, 1)]);
    // Other events do not end the wait, and do not count it twice.
    work(timed.at(11), &[unit(1, 1, 2)]);
    timed.at(13).on_frame(frame(1, 1), Ok(1));
    assert_eq!(started(&actions(&mut timed.agent)), [(1, 0), (1, 1)]);
    let waited = [0, 1, 2].map(|index| timed.ends(20, (0, unit(1, 1, index)), 900));
    assert_eq!(waited, [3000, 0, 0]);
}

#[test]
fn all_devices_that_wait_count_each_from_its_lease() {
    let mut timed = Timed::new(3);
    work(timed.at(0), &[unit(1, 1, 0)]);
    // Only now is there work for a second device. The third has none.
    work(timed.at(1), &[unit(1, 1, 1)]);
    timed.at(3).on_frame(frame(1, 1), Ok(1));
    let waited = [0, 1].map(|index| timed.ends(9, (index, unit(1, 1, index as u32)), 900));
    assert_eq!(waited, [3000, 2000]);
}

#[test]
fn nothing_waits_while_another_frame_renders() {
    let mut timed = Timed::new(1);
    work(timed.at(0), &[unit(1, 1, 0)]);
    timed.at(0).on_frame(frame(1, 1), Ok(1));
    work(timed.at(0), &[unit(1, 2, 0), unit(1, 3, 0)]);
    timed.at(5).on_frame(frame(1, 2), Ok(2));
    assert_eq!(timed.ends(6, (0, unit(1, 1, 0)), 6000), 0);
    // The third frame is not ready when the device is free.
    assert_eq!(timed.ends(8, (0, unit(1, 2, 0)), 2000), 0);
    timed.at(9).on_frame(frame(1, 3), Ok(3));
    assert_eq!(timed.ends(12, (0, unit(1, 3, 0)), 3000), 1000);
}

#[test]
fn a_wait_that_another_frame_ends_is_told_by_its_own() {
    let mut timed = Timed::new(1);
    work(timed.at(0), &[unit(1, 1, 0), unit(1, 2, 0)]);
    timed.at(4).on_frame(frame(1, 2), Ok(2));
    timed.at(7).on_frame(frame(1, 1), Ok(1));
    assert_eq!(timed.ends(8, (0, unit(1, 2, 0)), 4000), 0);
    assert_eq!(timed.ends(9, (0, unit(1, 1, 0)), 1000), 4000);
}

#[test]
fn a_device_that_would_have_no_unit_does_not_wait() {
    // The second device is so slow that the first does both units before it.
    let mut timed = Timed::new(2);
    work(timed.at(0), &[unit(1, 1, 0), unit(1, 1, 1)]);
    timed.at(0).on_frame(frame(1, 1), Ok(1));
    timed.ends(1, (0, unit(1, 1, 0)), 10);
    timed.ends(1, (1, unit(1, 1, 1)), 9000);
    work(timed.at(1), &[unit(1, 2, 0), unit(1, 2, 1)]);
    timed.at(4).on_frame(frame(1, 2), Ok(2));
    let waited = [0, 1].map(|index| timed.ends(5, (0, unit(1, 2, index)), 10));
    assert_eq!(waited, [3000, 0]);
    // A device that does not work has nothing to wait for.
    timed.at(5).set_usable(1, false);
    work(timed.at(5), &[unit(1, 3, 0), unit(1, 3, 1)]);
    timed.at(6).on_frame(frame(1, 3), Ok(3));
    let waited = [0, 1].map(|index| timed.ends(7, (0, unit(1, 3, index)), 10));
    assert_eq!(waited, [1000, 0]);
}
