//! The space of finished frames, where it has a price.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Caller, Core, Input, Record, RequestId, Settings};
use tessera_protocol::client::Response;
use tessera_protocol::cost::{Amount, AtLimit, Budget, CostRules, Period, Stored, Whose};
use tessera_protocol::selection::JobChange;
use tessera_support::inputs;

/// Price at which a byte costs 1 for 30 days: the largest that there is.
const PRICE: Amount = Amount::MOST;
const HOUR: Duration = Duration::from_secs(3600);
const MONTH_HOURS: u32 = 720;

/// A farm whose only frame is one byte long.
fn farm() -> SmallFarm {
    let mut farm = SmallFarm::new(Settings::default().without_checks(), 1, 1);
    farm.work(1, 1);
    farm.finish();
    farm
}

fn set(farm: &mut SmallFarm, storage_gb_month: Amount, budgets: Vec<Budget>) {
    let rules = CostRules { storage_gb_month, budgets, ..CostRules::default() };
    let (rules, by) = (Box::new(rules), "root".to_owned());
    let answer = farm.ask(Input::SetCostRules { request: RequestId(9), rules, by });
    assert_eq!(answer, Response::Done);
}

/// Hours pass, with the looks that the core asks for.
fn pass(farm: &mut SmallFarm, hours: u32) {
    (0..hours).for_each(|_| farm.later(HOUR));
}

/// Byte-hours and cost of the only owner, over all months.
fn stored(farm: &SmallFarm) -> (u64, u64) {
    let months = (1..=12).map(|month| format!("1970-{month:02}"));
    let of = |month: String| {
        let report = farm.core.costs(Some(&month), farm.now).expect("a month");
        report.owners.first().map_or_else(Stored::default, |owner| owner.stored)
    };
    months.map(of).fold((0, 0), |(hours, cost), one| (hours + one.byte_hours, cost + one.cost.0))
}

fn counts(farm: &SmallFarm) -> usize {
    farm.records.iter().filter(|record| matches!(record, Record::StorageCounted { .. })).count()
}

#[test]
fn finished_frames_cost_for_as_long_as_they_are_kept() {
    let mut farm = farm();
    pass(&mut farm, 5);
    assert_eq!((stored(&farm), counts(&farm)), ((0, 0), 0), "without a price nothing is counted");
    set(&mut farm, PRICE, Vec::new());
    assert_eq!(farm.core.next_wakeup(), Some(farm.now.after(HOUR)));
    pass(&mut farm, MONTH_HOURS);
    assert_eq!((stored(&farm), counts(&farm)), ((720, 1_000_000), 720));
    let detail = farm.core.job(farm.job).expect("a job");
    assert_eq!(detail.stored, Stored { byte_hours: 720, cost: Amount(1_000_000) });
    assert_eq!((detail.summary.cost, detail.summary.device_millis), (Amount(1_000_000), 0));
    assert_eq!(farm.core.costs(None, farm.now).expect("this month").gb_month, PRICE);

    // Of a job that is forgotten the cost stays, and no more comes.
    let ada = Caller { name: "ada".into(), id: 294, admin: false };
    assert_eq!(farm.change(JobChange::Forget, farm.job, ada), Response::Done);
    pass(&mut farm, 10);
    assert_eq!(stored(&farm), (720, 1_000_000));
    for from_snapshot in [true, false] {
        farm.restart(from_snapshot);
        assert_eq!(stored(&farm), (720, 1_000_000));
    }
    assert_eq!(Core::audit([], farm.records.clone()).problems, Vec::<String>::new());
}

#[test]
fn a_new_price_is_for_what_comes_and_not_for_what_was() {
    let mut farm = farm();
    set(&mut farm, PRICE, Vec::new());
    farm.later(HOUR / 2);
    // Half an hour had the price of before.
    set(&mut farm, Amount(PRICE.0 / 10), Vec::new());
    pass(&mut farm, 1);
    let hour = 1_000_000 / u64::from(MONTH_HOURS);
    let (_, cost) = stored(&farm);
    assert!(cost.abs_diff(hour / 2 + hour / 10) <= 2, "{cost}");
    set(&mut farm, Amount(0), Vec::new());
    let (before, records) = (stored(&farm), counts(&farm));
    pass(&mut farm, 100);
    assert_eq!((stored(&farm), counts(&farm)), (before, records));
}

// promise: P1
#[test]
fn space_is_counted_over_restarts_and_while_nobody_leads() {
    for from_snapshot in [true, false] {
        let mut farm = farm();
        set(&mut farm, PRICE, Vec::new());
        pass(&mut farm, 3);
        farm.later(HOUR / 2);
        farm.restart(from_snapshot);
        assert_eq!(stored(&farm).0, 3);
        // A day passes until somebody starts it again.
        farm.later(24 * HOUR);
        assert_eq!(stored(&farm).0, 27);
        assert_eq!(farm.core.next_wakeup(), Some(farm.now.after(HOUR)));
    }
}

#[test]
fn space_is_spent_of_budgets() {
    let mut farm = farm();
    let budget = Budget {
        whose: Whose::Owner("ada".into()),
        amount: Amount(500_000),
        period: Period::Total,
        at_limit: AtLimit::Pause,
        warn_percent: 50,
    };
    set(&mut farm, PRICE, vec![budget]);
    pass(&mut farm, MONTH_HOURS / 3);
    let reached =
        |farm: &SmallFarm| farm.core.costs(None, farm.now).expect("this month").budgets[0].reached;
    assert_eq!(reached(&farm), None);
    pass(&mut farm, MONTH_HOURS / 3);
    assert_eq!(reached(&farm), Some(AtLimit::Pause));
    let spec = inputs::job(inputs::render());
    let refused = farm.ask(inputs::submit(tessera_protocol::ids::JobId::default(), spec));
    assert!(matches!(refused, Response::Error(_)), "{refused:?}");
}
