//! Device time, what it costs, and what may be spent.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Arrived, Caller, Core, Input, RequestId, SessionId, Settings};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::cost::{
    Amount, AtLimit, Budget, CostReport, CostRules, Period, Price, Spent, Whose,
};
use tessera_protocol::node::{Failure, Progress};
use tessera_protocol::selection::JobChange;
use tessera_protocol::status::Waits;
use tessera_support::inputs;
use uuid::Uuid;

/// Price at which a millisecond costs a thousandth.
const PRICE: Amount = Amount(3_600_000_000);

fn price(per_hour: Amount) -> Price {
    Price { device: Some("pl*n".to_owned()), per_hour, ..Price::default() }
}

fn budget(amount: u64, at_limit: AtLimit, period: Period) -> Budget {
    let (whose, amount) = (Whose::Owner("ada".to_owned()), Amount(amount));
    Budget { whose, amount, period, at_limit, warn_percent: 50 }
}

fn rules(budgets: Vec<Budget>) -> CostRules {
    CostRules {
        currency: "EUR".into(),
        prices: vec![price(PRICE)],
        budgets,
        ..CostRules::default()
    }
}

fn set(farm: &mut SmallFarm, rules: CostRules) -> Response {
    let (rules, by) = (Box::new(rules), "root".to_owned());
    farm.ask(Input::SetCostRules { request: RequestId(9), rules, by })
}

fn farm(units: u32, nodes: u64) -> SmallFarm {
    SmallFarm::new(Settings::default().without_checks(), units, nodes)
}

/// A node ends what it holds after this much time, all of which its device has worked by its word.
fn work(farm: &mut SmallFarm, node: u64, millis: u64) {
    farm.later(Duration::from_millis(millis));
    let lease = farm.lease(node).expect("it holds a unit");
    let result = Arrived { device_micros: millis * 1000, ..inputs::result(lease, 1) };
    farm.step(Input::ResultArrived { session: SessionId(node), result });
}

/// A node reports progress of what it holds.
fn progress(farm: &mut SmallFarm, node: u64) {
    let lease = farm.lease(node).expect("it holds a unit");
    let told = Progress { lease, device: 0, done: 1 };
    let heartbeat = inputs::beat(vec![told]);
    farm.step(Input::Heartbeat { session: SessionId(node), heartbeat });
}

fn report(farm: &SmallFarm) -> CostReport {
    farm.core.costs(None, farm.now).expect("this month")
}

/// What the only owner has spent this month.
fn spent(farm: &SmallFarm) -> Vec<Spent> {
    let report = report(farm);
    report.owners.first().map(|owner| owner.spent.clone()).unwrap_or_default()
}

fn plain(millis: u64, lost_millis: u64, cost: u64) -> Vec<Spent> {
    vec![Spent { device: "plain".into(), millis, lost_millis, cost: Amount(cost) }]
}

fn audited(farm: &SmallFarm) -> u64 {
    let report = Core::audit([], farm.records.clone());
    assert_eq!(report.problems, Vec::<String>::new());
    report.device_millis
}

#[test]
fn results_and_failures_spend_what_their_device_worked() {
    let mut farm = farm(3, 1);
    assert_eq!(set(&mut farm, rules(Vec::new())), Response::Done);
    work(&mut farm, 1, 250);
    assert_eq!(spent(&farm), plain(250, 0, 250_000));
    // A node that says more than it can have worked is not believed.
    farm.later(Duration::from_millis(100));
    let lease = farm.lease(1).expect("a lease");
    let result = Arrived { device_micros: 1 << 40, ..inputs::result(lease, 1) };
    farm.step(Input::ResultArrived { session: SessionId(1), result });
    assert_eq!(spent(&farm), plain(351, 0, 351_000));
    // Of what fails before a device has begun nothing is counted, and all of what fails later.
    farm.fail(1, Failure::Scene("no such file".into()));
    farm.later(Duration::from_secs(5));
    progress(&mut farm, 1);
    farm.later(Duration::from_millis(99));
    farm.fail(1, Failure::Device("lost".into()));
    let [line] = spent(&farm).try_into().expect("one device");
    assert!(line.lost_millis >= 99 && line.millis == 351 + line.lost_millis, "{line:?}");
    assert_eq!(audited(&farm), line.millis);
    let summary = farm.core.job_summary(farm.job).expect("a job");
    assert_eq!((summary.device_millis, summary.cost), (line.millis, line.cost));
}

// promise: P6
#[test]
fn what_was_spent_survives_restarts_and_its_job() {
    let mut farm = farm(2, 1);
    work(&mut farm, 1, 20);
    // A new price is for what is spent from now on.
    set(&mut farm, rules(Vec::new()));
    assert_eq!(spent(&farm), plain(20, 0, 0));
    work(&mut farm, 1, 30);
    farm.finish();
    assert_eq!(spent(&farm), plain(50, 0, 30_000));
    let (job, ada) = (farm.job, Caller { name: "ada".into(), id: 294, admin: false });
    for from_snapshot in [true, false] {
        farm.restart(from_snapshot);
        assert_eq!(spent(&farm), plain(50, 0, 30_000));
        assert_eq!(farm.core.job(job).expect("a job").spent, plain(50, 0, 30_000));
    }
    assert_eq!(farm.change(JobChange::Forget, job, ada), Response::Done);
    for from_snapshot in [true, false] {
        farm.restart(from_snapshot);
        assert_eq!(spent(&farm), plain(50, 0, 30_000));
        assert_eq!(audited(&farm), 50);
    }
    let parts = farm.core.snapshot();
    assert_eq!(Core::audit(parts, []).device_millis, 50);
    // It is of this month, and of no other.
    let other = farm.core.costs(Some("1999-12"), farm.now).expect("a month");
    assert_eq!(other.owners, Vec::new());
    assert!(farm.core.costs(Some("soon"), farm.now).is_err());
}

#[test]
fn a_copy_that_comes_second_is_lost_time() {
    let settings =
        Settings { copy_after: Duration::from_secs(1), ..Settings::default().without_checks() };
    let mut farm = SmallFarm::new(settings, 4, 2);
    set(&mut farm, rules(Vec::new()));
    for _ in 0..2 {
        work(&mut farm, 1, 100);
    }
    // The other node is long about its unit; the first has nothing else to do.
    progress(&mut farm, 2);
    for _ in 0..60 {
        farm.later(Duration::from_secs(1));
        progress(&mut farm, 2);
        if farm.core.leases().count() < 2 {
            work(&mut farm, 1, 1);
        }
    }
    let summary = farm.core.job(farm.job).expect("a job");
    let lost: u64 = summary.spent.iter().map(|line| line.lost_millis).sum();
    if summary.copies.won + summary.copies.lost > 0 {
        assert!(lost > 0, "{summary:?}");
    }
    let millis: u64 = summary.spent.iter().map(|line| line.millis).sum();
    assert_eq!(audited(&farm), millis);
}

#[test]
fn at_the_limit_what_runs_ends_and_nothing_begins() {
    let mut farm = farm(6, 2);
    let month = budget(1_000_000, AtLimit::Pause, Period::Month);
    assert_eq!(set(&mut farm, rules(vec![month.clone()])), Response::Done);
    work(&mut farm, 1, 600);
    let status = |farm: &SmallFarm| {
        let [budget] = report(farm).budgets.try_into().expect("one budget");
        (budget.spent.0, budget.warns, budget.reached)
    };
    assert_eq!(status(&farm), (600_000, true, None));
    work(&mut farm, 1, 500);
    assert_eq!(status(&farm), (1_100_000, true, Some(AtLimit::Pause)));
    // The other node has its unit still, and nobody gets another.
    assert!(farm.lease(1).is_none() && farm.lease(2).is_some());
    work(&mut farm, 2, 10);
    assert_eq!(farm.core.leases().count(), 0);
    farm.later(Duration::from_secs(1000));
    let summary = farm.core.job_summary(farm.job).expect("a job");
    assert_eq!(summary.waits, Some(Waits::Budget));
    assert!(summary.note.contains("is used up: 1.00 EUR for this month"), "{}", summary.note);
    // Its owner gets no other job in; another one does.
    let job = |number| tessera_protocol::ids::JobId(Uuid::from_u128(number));
    let refused = farm.ask(inputs::submit(job(7), inputs::job(inputs::render())));
    assert!(matches!(refused, Response::Error(RequestError::Unavailable(_))), "{refused:?}");
    let caller = Caller { name: "bob".into(), id: 7, admin: false };
    let spec = Box::new(inputs::job(inputs::render()));
    farm.ask(Input::Submit { request: RequestId(1), job: job(8), spec, caller });
    assert_eq!(farm.lease(1).map(|lease| lease.unit.job), Some(job(8)));
    farm.work(1, 1);
    assert_eq!(farm.core.leases().count(), 0);

    // A larger budget lets it go on, at once; and so does a restart keep it back.
    let larger = Budget { amount: Amount(1_500_000), ..month.clone() };
    set(&mut farm, rules(vec![larger]));
    assert!(farm.core.leases().count() > 0);
    set(&mut farm, rules(vec![month.clone()]));
    (1..=2).for_each(|number| farm.work(number, 1));
    farm.restart(true);
    (1..=2).for_each(|number| farm.step(inputs::joined(number, inputs::join(number, 1))));
    farm.later(Duration::from_secs(100));
    assert_eq!(farm.core.leases().count(), 0);
    // The next month begins anew, by itself.
    let wakes = farm.core.next_wakeup().expect("the end of the month");
    assert!(wakes.secs() <= 31 * 86_400, "{wakes:?}");
    farm.later(Duration::from_secs(31 * 86_400));
    assert!(farm.core.leases().count() > 0);
}

#[test]
fn a_budget_refuses_or_only_warns_as_its_rule_says() {
    let mut farm = farm(3, 1);
    set(&mut farm, rules(vec![budget(1000, AtLimit::Refuse, Period::Total)]));
    work(&mut farm, 1, 5);
    assert!(farm.lease(1).is_some());
    let other = tessera_protocol::ids::JobId(Uuid::from_u128(2));
    let submit = || inputs::submit(other, inputs::job(inputs::render()));
    let refused = farm.ask(submit());
    let Response::Error(RequestError::Unavailable(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains("0.001000 EUR in all"), "{text}");
    // The same submit again is accepted again, whatever was spent since.
    let again =
        inputs::job(tessera_protocol::RenderSpec { width: 3 * inputs::TILE, ..inputs::render() });
    assert_eq!(farm.ask(inputs::submit(farm.job, again)), Response::Accepted(farm.job));
    set(&mut farm, rules(vec![budget(1000, AtLimit::Warn, Period::Total)]));
    assert_eq!(farm.ask(submit()), Response::Accepted(other));
    let wrong = rules(vec![budget(1, AtLimit::Warn, Period::Total); 2]);
    let refused = set(&mut farm, wrong);
    assert!(matches!(refused, Response::Error(RequestError::Invalid(_))), "{refused:?}");
}

#[test]
fn no_more_is_leased_than_a_budget_should_pay_for() {
    let mut farm = SmallFarm::new(Settings::default().without_checks(), 40, 0);
    set(&mut farm, rules(vec![budget(10_000_000, AtLimit::Pause, Period::Total)]));
    // Of a job of which nothing is known, a unit counts as a second: ten of them are all of it.
    farm.step(inputs::joined(1, inputs::join(1, 30)));
    assert_eq!(farm.core.leases().count(), 10);
    let spent = |farm: &SmallFarm| report(farm).budgets[0].spent.0;
    // They take half of that, and as many more are leased as the rest should pay for.
    let mut ended = 0;
    while farm.core.leases().count() > 0 {
        work(&mut farm, 1, 500);
        ended += 1;
        let held = farm.core.leases().count() as u64;
        // Before the last of them was leased, there was something left.
        let before = spent(&farm) + held.saturating_sub(1) * 500_000;
        assert!(held == 0 || before < 10_000_000, "{held} after {ended}");
    }
    assert_eq!((ended, spent(&farm)), (20, 10_000_000));
    assert_eq!(report(&farm).budgets[0].reached, Some(AtLimit::Pause));
}

#[test]
fn a_job_submitted_while_a_budget_is_held_goes_on_with_it() {
    let mut farm = farm(1, 0);
    // The only unit is expected to take all of it.
    set(&mut farm, rules(vec![budget(1000, AtLimit::Pause, Period::Total)]));
    let first = farm.job;
    let ada = Caller { name: "ada".into(), id: 294, admin: false };
    (1..=2).for_each(|number| farm.step(inputs::joined(number, inputs::join(number, 1))));
    farm.submit(2);
    farm.submit(3);
    assert_eq!((farm.lease(2).map(|lease| lease.unit.job), farm.core.leases().count()), (None, 1));
    // It is cancelled before it has cost anything, and the others are worked on.
    farm.cancel(first, ada);
    assert_eq!(farm.core.leases().count(), 1);
}
