//! What happens to leaders: they are killed, stopped and continued, cut off, and all of that inside
//! a commit.

use super::gate::Point;
use super::stand::{Leader, Stand, TERM_SECS};
use super::times::{Ended, Times};
use crate::farm::kills::Chance;
use std::time::Duration;

/// Records between a fault and what follows, so that work was done.
const SOME: i64 = 4;

/// What a leader is cut off from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Database,
    Nodes,
    Both,
}

impl From {
    pub(crate) const ALL: [Self; 3] = [Self::Database, Self::Nodes, Self::Both];
}

/// Waits for some work, and a little longer; then whoever leads.
fn victim(stand: &mut Stand, chance: &mut Chance) -> Leader {
    stand.wait_for_records(SOME);
    std::thread::sleep(Duration::from_millis(chance.below(700)));
    stand.wait_for_leader(0)
}

/// Waits for the next leader, notes its time, and waits until it works.
fn next(stand: &mut Stand, former: &Leader, times: &mut Times) -> Leader {
    let ended = Ended::of(stand, former);
    let next = stand.wait_for_leader(former.epoch);
    times.measure(stand, &ended, &next);
    stand.wait_for_records(SOME);
    next
}

fn signal(stand: &Stand, leader: &Leader, name: &str) {
    stand.places[leader.place].process.as_ref().expect("a process").signal(name);
}

/// SIGKILL to the leader.
pub(crate) fn kill(stand: &mut Stand, chance: &mut Chance, times: &mut Times) {
    let leader = victim(stand, chance);
    stand.places[leader.place].process = None;
    next(stand, &leader, times);
}

/// SIGSTOP to the leader, and SIGCONT once another one leads.
pub(crate) fn stop(stand: &mut Stand, chance: &mut Chance, times: &mut Times) {
    let leader = victim(stand, chance);
    signal(stand, &leader, "STOP");
    next(stand, &leader, times);
    signal(stand, &leader, "CONT");
    has_ended(stand, &leader);
}

/// Waits until a former leader has ended by itself, with an error.
fn has_ended(stand: &mut Stand, leader: &Leader) {
    let process = stand.places[leader.place].process.as_mut().expect("a process");
    let status = process.wait();
    assert!(status.is_some_and(|status| status != 0), "{status:?}\n{}", stand.logs());
    assert!(stand.said(leader.place).contains("does not lead"), "{}", stand.logs());
    stand.revive(leader.place);
}

/// Cuts the leader off for a while.
pub(crate) fn cut(stand: &mut Stand, from: From, chance: &mut Chance, times: &mut Times) {
    let leader = victim(stand, chance);
    let part = |stand: &mut Stand, parted: bool| {
        let place = &mut stand.places[leader.place];
        if from != From::Database {
            place.front.part(parted);
        }
        if from != From::Nodes {
            place.gate.part(parted);
            // It could not start.
            place.rests = parted;
        }
    };
    part(stand, true);
    match from {
        From::Nodes => {
            std::thread::sleep(Duration::from_secs(TERM_SECS + 1));
            let still = stand.leader().is_some_and(|now| now.epoch == leader.epoch);
            println!("  it {} the leader", if still { "is still" } else { "is no more" });
            part(stand, false);
            stand.wait_for_records(SOME);
        }
        From::Database | From::Both => {
            next(stand, &leader, times);
            part(stand, false);
            has_ended(stand, &leader);
        }
    }
}

/// Kills the leader at a point inside a commit, or stops it there and lets it go on later.
pub(crate) fn at_point(stand: &mut Stand, (point, stops): (Point, bool), times: &mut Times) {
    stand.wait_for_records(SOME);
    let leader = caught(stand, point);
    let commits = commits(stand, leader.epoch);
    // What the coordinator had sent reaches the database after another one has taken over.
    let is_late = stops || point == Point::BeforeHead;
    match stops {
        true => signal(stand, &leader, "STOP"),
        false => stand.places[leader.place].process = None,
    }
    if !is_late {
        stand.places[leader.place].gate.release(false);
    }
    let now = self::commits(stand, leader.epoch);
    if point == Point::BeforeHead && now.is_some() {
        assert_eq!(now, commits, "the database does not have it");
    }
    next(stand, &leader, times);
    if is_late {
        let before = records_of(stand, leader.epoch);
        stand.places[leader.place].gate.release(true);
        std::thread::sleep(Duration::from_millis(300));
        let after = records_of(stand, leader.epoch);
        // A snapshot may have removed some.
        assert!(after <= before, "epoch {} has written after its end", leader.epoch);
    }
    if stops {
        signal(stand, &leader, "CONT");
        has_ended(stand, &leader);
    }
}

/// Waits until a leader's commit is caught at a point.
fn caught(stand: &mut Stand, point: Point) -> Leader {
    for _ in 0..24 {
        let leader = stand.wait_for_leader(0);
        let gate = &stand.places[leader.place].gate;
        gate.arm(point);
        if gate.has_caught(Duration::from_secs(10)) {
            return leader;
        }
        // Another one may lead meanwhile.
        if !gate.disarm() {
            gate.release(true);
        }
    }
    panic!("no commit came to {point:?}\n{}", stand.logs());
}

/// Commits of the store, as long as this is the newest epoch.
fn commits(stand: &Stand, epoch: i64) -> Option<i64> {
    let sql = format!("SELECT commits FROM tessera.leader WHERE epoch = {epoch}");
    stand.postgres.sql(&sql).parse().ok()
}

/// Groups of records that a leader has written and that are still in the journal.
fn records_of(stand: &Stand, epoch: i64) -> i64 {
    let sql = format!("SELECT count(*) FROM tessera.journal WHERE epoch = {epoch}");
    stand.postgres.sql(&sql).parse().expect("a number")
}
