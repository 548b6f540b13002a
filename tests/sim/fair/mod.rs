//! What owners get of a farm, in virtual time: equal parts, or parts by their weights, whatever
//! jobs they have and however long their units are; and how soon a short job begins.

pub(crate) mod farm;

use crate::fair::farm::{Bug, Farm, Plan};

/// Most by which the part of an owner may differ from what its weight says.
const AWAY_MAX: f64 = 0.05;
/// Mean device time of the units of three owners, microseconds.
const UNITS: [u64; 3] = [300_000, 1_000_000, 2_500_000];

fn plan(nodes: usize, weights: [f64; 3]) -> Plan {
    Plan { nodes, capacity: 2, weights: (1..).zip(weights).collect(), bug: None }
}

/// Lets three owners share a farm for so many seconds. The first has one long job, the second has
/// three, and the third has ten. Returns how far the worst is from the part that is its own.
fn shared(plan: &Plan, weights: [f64; 3], secs: f64) -> f64 {
    let mut farm = Farm::new(plan);
    for (owner, jobs) in (1..).zip([1, 3, 10]) {
        for _ in 0..jobs {
            farm.submit(owner, 200_000, UNITS[owner as usize - 1]);
        }
    }
    farm.run_until(secs);
    let spent = [1, 2, 3].map(|owner| farm.spent(owner));
    let (all, of_all) = (spent.iter().sum::<f64>(), weights.iter().sum::<f64>());
    let away = spent.iter().zip(weights).map(|(spent, weight)| spent / all * of_all / weight - 1.0);
    let away = away.fold(0.0, |worst: f64, away| worst.max(away.abs()));
    let nodes = plan.nodes;
    eprintln!("{nodes:>5} nodes, weights {weights:?}: {spent:.0?} s, at most {away:.4} away");
    assert_eq!(farm.revoked, 0, "nothing that has begun is stopped");
    away
}

fn assert_shared(nodes: usize, weights: [f64; 3], secs: f64) {
    let away = shared(&plan(nodes, weights), weights, secs);
    assert!(away <= AWAY_MAX, "{nodes} nodes: an owner is {away} away from its part");
}

#[test]
fn owners_with_equal_weights_get_equal_device_time() {
    assert_shared(1, [1.0; 3], 2_000.0);
    assert_shared(20, [1.0; 3], 1_000.0);
}

#[test]
fn owners_get_device_time_by_their_weights() {
    assert_shared(1, [1.0, 2.0, 4.0], 2_000.0);
    assert_shared(20, [1.0, 2.0, 4.0], 1_000.0);
}

#[test]
fn a_thousand_nodes_are_shared_as_well() {
    assert_shared(1_000, [1.0; 3], 100.0);
    // What nodes hold at the end, some 1.4 s of each, counts for less the longer the run is.
    assert_shared(1_000, [1.0, 2.0, 4.0], 300.0);
}

/// The judge above is worth something: an owner that hardly gets anything is found.
#[test]
fn a_starved_owner_is_caught() {
    let starved = Plan { bug: Some(Bug::OwnerStarved(2)), ..plan(20, [1.0; 3]) };
    let away = shared(&starved, [1.0; 3], 1_000.0);
    assert!(away > 0.9, "{away}");
}

/// Without a job an owner uses nothing, and has no credit when it comes back.
#[test]
fn an_owner_that_comes_later_gets_its_part_and_no_more() {
    let mut farm = Farm::new(&plan(20, [1.0; 3]));
    farm.submit(1, 200_000, 1_000_000);
    farm.run_until(500.0);
    farm.submit(2, 200_000, 1_000_000);
    let before = farm.spent(1);
    farm.run_until(1_000.0);
    let (one, other) = (farm.spent(1) - before, farm.spent(2));
    assert!((one / other - 1.0).abs() <= AWAY_MAX, "{one} and {other}");
}

// promise: P4
#[test]
fn a_preview_begins_within_two_units() {
    let unit = 2_000_000;
    // The longest unit takes half as much again as the mean.
    let longest = unit as f64 * 1.5e-6;
    for (nodes, capacity) in [(1, 2), (1, 8), (10, 2), (10, 8), (1_000, 2)] {
        let mut farm = Farm::new(&Plan { capacity, ..plan(nodes, [1.0; 3]) });
        farm.submit(1, 100_000, unit);
        farm.run_until(31.3);
        let (revoked, preview) = (farm.revoked, farm.submit(2, 1, unit));
        farm.run_until(60.0);
        let begun = farm.begun(preview).expect("the preview begins") - 31.3;
        eprintln!("{nodes:>5} nodes that hold {capacity}: begun after {begun:.2} s");
        assert!(begun <= 2.0 * longest, "{nodes} nodes that hold {capacity}: {begun} s");
        assert_eq!(farm.revoked, revoked, "nothing that has begun is stopped");
        assert!(farm.returned > 0, "room was made for it");
    }
}

// promise: P4
#[test]
fn a_preview_of_ones_own_begins_within_two_units() {
    let mut farm = Farm::new(&Plan { capacity: 8, ..plan(4, [1.0; 3]) });
    farm.submit(1, 100_000, 2_000_000);
    farm.run_until(31.3);
    let preview = farm.submit(1, 1, 2_000_000);
    farm.run_until(60.0);
    let begun = farm.begun(preview).expect("the preview begins") - 31.3;
    assert!(begun <= 6.0, "{begun} s");
}
