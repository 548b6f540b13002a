//! Tests of fair shares: who gets how much, without nodes and units.

use super::*;

/// A second of device time.
const SECOND: u64 = 1_000_000;

fn party(owner: u64, order: u64, priority: u8) -> Party {
    let job = JobId(uuid::Uuid::from_u128(order.into()));
    Party { owner, weight: 100, job, order, priority }
}

/// Wants that every node meets.
fn anything() -> Wants {
    Wants::default()
}

/// Wants of a device with so many bytes.
fn large(bytes: u64) -> Wants {
    let mut wants = Wants::default();
    wants.bytes = bytes;
    wants
}

/// Gives a unit to whoever is next, so many times; returns the seconds of each of these jobs.
fn served(shares: &mut Shares, parties: &[Party], turns: u32) -> Vec<u32> {
    let mut times = vec![0; parties.len()];
    for _ in 0..turns {
        let next = shares.next(None, None).expect("somebody asks");
        let at = parties.iter().position(|party| party.job == next.job).expect("one of these");
        shares.charge(&parties[at], SECOND);
        shares.settle(&parties[at], SECOND, Some(SECOND));
        times[at] += 1;
    }
    times
}

fn all_ask(parties: &[Party]) -> Shares {
    let mut shares = Shares::default();
    parties.iter().for_each(|party| shares.insert(*party, anything()));
    shares
}

#[test]
fn owners_share_equally_however_many_jobs_they_have() {
    let mut parties = vec![party(1, 0, 50), party(2, 1, 50)];
    parties.extend((2..12).map(|order| party(3, order, 50)));
    let times = served(&mut all_ask(&parties), &parties, 3000);
    assert_eq!((times[0], times[1]), (1000, 1000), "{times:?}");
    assert!(times[2..].iter().all(|time| *time == 100), "{times:?}");
}

#[test]
fn owners_share_by_their_weights() {
    let weigh = |owner, order, weight| Party { weight, ..party(owner, order, 50) };
    let parties = [weigh(1, 0, 100), weigh(2, 1, 200), weigh(3, 2, 400), weigh(4, 3, 50)];
    let times = served(&mut all_ask(&parties), &parties, 7500);
    assert_eq!(times, [1000, 2000, 4000, 500]);
}

#[test]
fn priorities_are_shares_and_zero_gets_a_little() {
    // Of several owners, and of one.
    for owners in [[1, 2, 3], [1, 1, 1]] {
        let parties = [100, 50, 0].into_iter().zip(owners).zip(0..);
        let parties: Vec<Party> =
            parties.map(|((priority, owner), order)| party(owner, order, priority)).collect();
        let times = served(&mut all_ask(&parties), &parties, 6010);
        assert!((3990..=4010).contains(&times[0]), "{times:?}");
        assert!((1995..=2005).contains(&times[1]), "{times:?}");
        assert!((8..=13).contains(&times[2]), "{times:?}");
    }
}

#[test]
fn jobs_of_other_priorities_give_an_owner_no_more() {
    let mut parties = vec![party(1, 0, 50)];
    parties.extend((1..=20).map(|order| party(2, order, 30 + order as u8)));
    let times = served(&mut all_ask(&parties), &parties, 4000);
    assert!(times[0].abs_diff(2000) <= 2, "{times:?}");
    assert!(times[20] > times[1], "{times:?}");
}

#[test]
fn what_a_unit_took_counts_and_not_what_was_expected() {
    let parties = [party(1, 0, 50), party(2, 1, 50)];
    let mut shares = all_ask(&parties);
    let mut times = [0, 0];
    for _ in 0..4000 {
        let next = shares.next(None, None).expect("somebody asks");
        let at = usize::from(next.job == parties[1].job);
        let took = [SECOND / 2, 3 * SECOND][at];
        shares.charge(&parties[at], SECOND);
        shares.settle(&parties[at], SECOND, Some(took));
        times[at] += took;
    }
    let ratio = times[0] as f64 / times[1] as f64;
    assert!((0.99..1.01).contains(&ratio), "{times:?}");
}

#[test]
fn a_lease_that_took_nothing_costs_nothing() {
    let parties = [party(1, 0, 50), party(2, 1, 50)];
    let mut shares = all_ask(&parties);
    for _ in 0..10 {
        assert_eq!(shares.next(None, None).map(|turn| turn.job), Some(parties[0].job));
        shares.charge(&parties[0], SECOND);
        shares.settle(&parties[0], SECOND, None);
    }
    assert_eq!(shares.at_work().count(), 0);
}

#[test]
fn no_unit_is_for_nothing_whatever_a_node_says() {
    let parties = [party(1, 0, 50), party(2, 1, 50)];
    let mut shares = all_ask(&parties);
    for _ in 0..100 {
        let next = shares.next(None, None).expect("somebody asks");
        let at = usize::from(next.job == parties[1].job);
        shares.charge(&parties[at], 0);
        shares.settle(&parties[at], 0, Some(0));
    }
    let passes = [1, 2].map(|owner| shares.owners.pass(owner));
    assert_eq!(passes[0], passes[1]);
}

#[test]
fn the_order_goes_through_owners_and_their_jobs() {
    let parties = [party(1, 0, 50), party(1, 1, 50), party(2, 2, 50)];
    let mut shares = all_ask(&parties);
    shares.charge(&parties[0], SECOND);
    let mut order = Vec::new();
    let mut after: Option<Turn> = None;
    while let Some(turn) = shares.next(after.as_ref(), None) {
        order.push(turn.job);
        after = Some(turn);
    }
    assert_eq!(order, [2, 1, 0].map(|at| parties[at].job));
    assert!(shares.is_behind(&parties[1], &parties[0]));
    assert!(shares.is_behind(&parties[2], &parties[1]));
    assert!(!shares.is_behind(&parties[0], &parties[2]));
}

#[test]
fn a_scene_at_hand_counts_while_nobody_falls_far_behind() {
    let parties = [party(1, 0, 50), party(2, 1, 50)];
    let mut shares = all_ask(&parties);
    let turns = |shares: &Shares| {
        let first = shares.next(None, None).expect("one asks");
        (first, shares.next(Some(&first), None).expect("another asks"))
    };
    shares.charge(&parties[1], 4 * SECOND);
    let (first, second) = turns(&shares);
    assert!(second.is_near(&first, Duration::from_secs(5)));
    shares.charge(&parties[1], 2 * SECOND);
    let (first, second) = turns(&shares);
    assert!(!second.is_near(&first, Duration::from_secs(5)));
}

#[test]
fn an_owner_without_jobs_and_debts_is_forgotten() {
    let parties = [party(1, 0, 50), party(2, 1, 50), party(3, 2, 50)];
    let mut shares = all_ask(&parties[..2]);
    served(&mut shares, &parties[..2], 1);
    shares.forget(parties[0]);
    served(&mut shares, &parties[1..2], 5);
    shares.insert(parties[2], anything());
    assert_eq!(shares.of.keys().copied().collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn a_node_sees_only_jobs_whose_wants_it_meets() {
    let parties = [party(1, 0, 50), party(1, 1, 50), party(2, 2, 50), party(2, 3, 50)];
    let mut shares = Shares::default();
    for (party, bytes) in parties.iter().zip([8, 1, 8, 8]) {
        shares.insert(*party, large(bytes));
    }
    let all = |shares: &Shares, only: &[Wants]| {
        let next = |turn: &Option<Turn>| shares.next(turn.as_ref(), Some(only));
        let turns = std::iter::successors(Some(next(&None)), |turn| turn.map(|_| next(turn)));
        Vec::from_iter(turns.flatten().map(|turn| turn.job.0.as_u128()))
    };
    assert_eq!(all(&shares, &[large(1)]), [1]);
    assert_eq!(all(&shares, &[large(8)]), [0, 2, 3]);
    assert_eq!(all(&shares, &[large(1), large(8)]), [0, 1, 2, 3]);
    assert_eq!(all(&shares, &[]), [0; 0]);
    // What a job wants may change, and costs nobody the turn.
    shares.charge(&parties[2], SECOND);
    shares.insert(parties[2], large(1));
    shares.insert(parties[1], large(2));
    assert_eq!(all(&shares, &[large(1)]), [2]);
    assert_eq!(all(&shares, &[large(1), large(2), large(8)]), [0, 1, 3, 2]);
    parties.iter().for_each(|party| shares.remove(*party));
    assert_eq!((shares.is_empty(), shares.wanted().count()), (true, 0));
}

#[test]
fn a_job_that_wants_something_else_keeps_its_place() {
    let parties = [party(1, 0, 50), party(2, 1, 50)];
    let mut shares = all_ask(&parties);
    for _ in 0..10 {
        shares.charge(&parties[1], SECOND);
    }
    let before = shares.owners.pass(1);
    shares.insert(parties[0], large(8));
    assert_eq!(shares.owners.pass(1), before, "no credit is lost");
    assert_eq!(shares.next(None, None).map(|turn| turn.job), Some(parties[0].job));
}
