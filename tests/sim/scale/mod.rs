//! What a decision of the core costs as the farm grows: nodes that take a unit a second each, one
//! job, no faults. Times are printed and never judged; what is judged is that every unit is
//! committed once.
//!
//! ```text
//! # Up to 10,000 nodes and 10 million units:
//! TESSERA_SIM_SCALE=1 cargo test --release -p tessera-sim scale -- --nocapture
//! ```

pub(crate) mod farm;

use crate::scale::farm::{Cost, Farm};

fn print(name: &str, nodes: usize, units: u64, cost: &Cost) {
    eprintln!(
        "{name:<8} {nodes:>6} nodes {units:>9} units: {:>7} ns a decision ({} of them)",
        cost.decision_nanos(),
        cost.decisions
    );
}

/// The first units of a job that is far from its end.
fn steady(nodes: usize, units: u64, decisions: u64) {
    let mut farm = Farm::new(nodes, units);
    let cost = farm.run(decisions);
    print("steady", nodes, units, &cost);
    assert_eq!(cost.decisions, decisions, "{nodes} nodes commit {decisions} units");
}

/// A job to its end: at last there are fewer units than nodes.
fn whole(nodes: usize, units: u64) {
    let mut farm = Farm::new(nodes, units);
    let cost = farm.run(u64::MAX);
    print("whole", nodes, units, &cost);
    assert!(cost.decisions >= farm.units(), "{nodes} nodes commit every unit");
    assert!(farm.has_ended(), "the job ends");
}

#[test]
fn the_cost_of_a_decision_at_scale() {
    steady(100, 10_000, 2_000);
    steady(1_000, 100_000, 4_000);
    whole(200, 4_000);
    if std::env::var_os("TESSERA_SIM_SCALE").is_none() {
        eprintln!("NOT RUN: up to 10,000 nodes and 10 million units; set TESSERA_SIM_SCALE=1");
        return;
    }
    for units in [10_000, 100_000, 1_000_000, 10_000_000] {
        steady(1_000, units, units.min(200_000) / 2);
    }
    for nodes in [100, 1_000, 10_000] {
        steady(nodes, 10_000_000, 200_000);
    }
    for nodes in [100, 1_000, 10_000] {
        whole(nodes, nodes as u64 * 20);
    }
}
