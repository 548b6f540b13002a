//! Which units a step says have moved from one state to another.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Caller, Input, SessionId, Settings, UnitState};
use tessera_protocol::node::Failure;
use tessera_support::inputs::node;

fn settings() -> Settings {
    Settings { settle: Duration::ZERO, ..Settings::default().without_checks() }
}

/// The moves of the last step, by the index of the unit.
fn moves(farm: &SmallFarm) -> Vec<(u32, UnitState, UnitState)> {
    farm.moves.iter().map(|moved| (moved.unit.unit.0, moved.from, moved.to)).collect()
}

#[test]
fn a_step_names_each_unit_that_moved_and_its_states() {
    use UnitState::{Committed, Dead, Leased, Open, Waiting};
    let mut farm = SmallFarm::new(settings(), 2, 1);
    let leased = Leased { node: node(1), copy: None };
    assert_eq!(moves(&farm), [(0, Open, leased)]);
    farm.work(1, 7);
    assert_eq!(moves(&farm), [(0, leased, Committed), (1, Open, leased)]);
    let lease = farm.lease(1).expect("the second unit");
    let failure = Failure::Device("it is hot".to_owned());
    farm.step(Input::UnitFailed { session: SessionId(1), lease, failure });
    let until = farm.now.after(settings().backoff);
    assert_eq!(moves(&farm), [(1, leased, Waiting { until })]);
    farm.later(settings().backoff);
    assert_eq!(moves(&farm), [(1, Waiting { until }, leased)]);
    let (job, caller) = (farm.job, Caller { name: "root".to_owned(), id: 1, admin: true });
    farm.cancel(job, caller);
    assert_eq!(moves(&farm), [(0, Committed, Dead), (1, leased, Dead)]);
}

#[test]
fn an_unwatched_core_reports_no_moves() {
    let mut farm = SmallFarm::new(settings(), 1, 1);
    farm.core.watch_units(false);
    let lease = farm.lease(1).expect("the unit");
    let result = tessera_support::inputs::result(lease, 7);
    farm.core.handle(Input::ResultArrived { session: SessionId(1), result }, farm.now);
    assert_eq!(farm.core.take_step().moves, []);
    assert_eq!(farm.core.state_of(lease.unit), Ok(UnitState::Committed));
}
