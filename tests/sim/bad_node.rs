//! One bad node among nine: how much longer the jobs of others take than without it, in virtual
//! time, and that operators see which node it is.

use crate::mixed_speeds::farm::{Farm, Machine, Run, Trouble};
use crate::mixed_speeds::render;

/// What a bad node may cost: the makespan with it over that without it.
const RATIO_MAX: f64 = 1.2;
/// Camera samples per second of a node.
const SPEED: f64 = 1.5e6;
/// Good nodes.
const GOOD: usize = 9;

/// Jobs on good nodes, and on the same with a bad one besides.
fn compare(trouble: Trouble, jobs: u64, spp: u32) -> (Run, Run) {
    let good = vec![Machine::of(SPEED); GOOD];
    let mut all = good.clone();
    all.push(Machine { trouble, ..Machine::of(SPEED) });
    let scene = render(1280, 720, spp, 2);
    (Farm::run_jobs(&good, (&scene, jobs), 1), Farm::run_jobs(&all, (&scene, jobs), 1))
}

fn costs_little(trouble: Trouble, named: &str) {
    // Twenty short jobs, and three long ones.
    for (jobs, spp) in [(20, 8), (3, 512)] {
        let (without, with) = compare(trouble, jobs, spp);
        let ratio = with.makespan / without.makespan;
        eprintln!(
            "{trouble:?}: {jobs} jobs of {spp} spp: {:.1} s without it, {:.1} s with it, ratio \
                {ratio:.3}; {}",
            without.makespan, with.makespan, with.note
        );
        assert!(without.ended_well && with.ended_well, "{trouble:?}: not all was committed");
        assert!(ratio <= RATIO_MAX, "{trouble:?}: {ratio:.3}");
        assert_eq!(with.by_node[GOOD], 0, "it did nothing");
        // Short jobs may be over before a node counts as idle, and before three of its words have
        // been refuted: until then it has a pause.
        let told = match (trouble, with.makespan > 90.0) {
            (Trouble::Idle, false) => "",
            (Trouble::CannotPrepare, false) => "failed here in a row",
            _ => named,
        };
        assert!(with.note.contains(told), "{trouble:?}: {}", with.note);
    }
}

// promise: P4, P8
#[test]
fn a_node_that_cannot_prepare_costs_others_little() {
    costs_little(Trouble::CannotPrepare, "tessera undrain n9");
}

// promise: P4, P8
#[test]
fn a_node_with_small_limits_costs_others_little() {
    costs_little(Trouble::Small, "start it with a greater --scene-memory");
}

// promise: P4
#[test]
fn a_node_that_fails_all_costs_others_little() {
    costs_little(Trouble::FailsAll, "it gets work again in");
}

// promise: P4
#[test]
fn a_node_that_begins_nothing_costs_others_little() {
    costs_little(Trouble::Idle, "began none of");
}
