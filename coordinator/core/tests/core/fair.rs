//! Fair shares: owners and their jobs, room for short jobs, the nodes of a job, changes of jobs.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Caller, Core, Input, Record, RequestId, SessionId, Settings, Weights};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::frames::FrameSet;
use tessera_protocol::ids::{FrameNumber, JobId, Lease};
use tessera_protocol::job::{JobEdit, JobSpec, RenderSpec};
use tessera_protocol::node::{CoordinatorToNode, Join};
use tessera_protocol::status::Waits;
use tessera_support::inputs::{self, TILE};
use uuid::Uuid;

fn quick() -> Settings {
    Settings { settle: Duration::ZERO, ..Settings::default().without_checks() }
}

fn job(number: u128) -> JobId {
    JobId(Uuid::from_u128(number))
}

fn person(name: &str) -> Caller {
    Caller { name: name.to_owned(), id: name.bytes().map(u64::from).sum(), admin: false }
}

fn operator() -> Caller {
    Caller { admin: true, ..person("op") }
}

/// A farm without jobs: nodes that each have one device, and room for so many units.
fn farm(settings: Settings, nodes: u64, room: u32) -> SmallFarm {
    let mut farm = SmallFarm::new(settings, 1, 0);
    let (job, caller) = (farm.job, operator());
    farm.cancel(job, caller);
    (1..=nodes).for_each(|number| farm.step(inputs::joined(number, inputs::join(number, room))));
    farm
}

fn film(frames: u32) -> JobSpec {
    let frames = FrameSet::from_frames((1..=frames).map(FrameNumber)).expect("few frames");
    inputs::job(RenderSpec { frames, ..inputs::render() })
}

fn submit_as(farm: &mut SmallFarm, caller: Caller, number: u128, spec: JobSpec) -> Response {
    let (request, job) = (RequestId(1), job(number));
    farm.ask(Input::Submit { request, job, spec: Box::new(spec), caller })
}

fn submit(farm: &mut SmallFarm, owner: &str, number: u128, spec: JobSpec) {
    let answer = submit_as(farm, person(owner), number, spec);
    assert_eq!(answer, Response::Accepted(job(number)));
}

fn edit(farm: &mut SmallFarm, caller: Caller, number: u128, edit: JobEdit) -> Response {
    let (request, job) = (RequestId(1), job(number));
    farm.ask(Input::EditJob { request, job, edit: Box::new(edit), caller })
}

/// A node ends its oldest unit after a second of device time. Returns the unit's job.
fn work(farm: &mut SmallFarm, number: u64) -> u128 {
    farm.later(Duration::from_secs(1));
    let lease = farm.lease(number).expect("the node has a unit");
    let result = tessera_core::Arrived { device_micros: 1_000_000, ..inputs::result(lease, 1) };
    farm.step(Input::ResultArrived { session: SessionId(number), result });
    lease.unit.job.0.as_u128()
}

/// How often a node worked on each of these jobs.
fn counts(farm: &mut SmallFarm, times: usize, jobs: &[u128]) -> Vec<usize> {
    let worked: Vec<u128> = (0..times).map(|_| work(farm, 1)).collect();
    jobs.iter().map(|job| worked.iter().filter(|other| *other == job).count()).collect()
}

fn leases_of(farm: &SmallFarm, number: u128) -> Vec<Lease> {
    farm.core
        .leases()
        .map(|(lease, _)| lease)
        .filter(|lease| lease.unit.job == job(number))
        .collect()
}

fn wanted_back(farm: &SmallFarm) -> Vec<Lease> {
    let told = farm.told.iter().flat_map(|message| match message {
        CoordinatorToNode::GiveBack { leases } => leases.clone(),
        _ => Vec::new(),
    });
    told.collect()
}

#[test]
fn owners_share_a_node_and_so_do_their_jobs() {
    let mut farm = farm(quick(), 1, 1);
    submit(&mut farm, "ada", 11, film(150));
    submit(&mut farm, "ada", 12, film(150));
    submit(&mut farm, "bob", 13, film(150));
    let shares = counts(&mut farm, 80, &[11, 12, 13]);
    assert!(shares[0].abs_diff(20) <= 1 && shares[1].abs_diff(20) <= 1, "{shares:?}");
    assert!(shares[2].abs_diff(40) <= 1, "{shares:?}");
}

#[test]
fn owners_share_a_node_by_their_weights() {
    let mut weights = Weights::default();
    assert!(weights.set("bob", 3.0));
    let mut farm = farm(Settings { weights, ..quick() }, 1, 1);
    submit(&mut farm, "ada", 11, film(150));
    submit(&mut farm, "bob", 12, film(150));
    let shares = counts(&mut farm, 80, &[11, 12]);
    assert!(shares[0].abs_diff(20) <= 1 && shares[1].abs_diff(60) <= 1, "{shares:?}");
}

#[test]
fn an_owner_that_comes_later_gets_no_credit() {
    let mut farm = farm(quick(), 1, 1);
    submit(&mut farm, "ada", 11, film(150));
    counts(&mut farm, 100, &[11]);
    submit(&mut farm, "bob", 12, film(150));
    let shares = counts(&mut farm, 40, &[11, 12]);
    assert!(shares[0].abs_diff(20) <= 1, "{shares:?}");
}

// promise: P4
#[test]
fn a_preview_beside_a_long_job_is_the_nodes_next_unit() {
    for owner in ["bob", "ada"] {
        let mut farm = farm(quick(), 1, 2);
        submit(&mut farm, "ada", 11, film(100_000));
        let held = leases_of(&farm, 11);
        assert_eq!(held.len(), 2);
        submit(&mut farm, owner, 12, film(1));
        // The node works on one unit, and is asked for the other.
        assert_eq!(wanted_back(&farm), held[1..]);
        assert_eq!(leases_of(&farm, 11), held, "until the node returns it, it is the node's");
        farm.step(Input::Returned { session: SessionId(1), leases: held[1..].to_vec() });
        assert_eq!((leases_of(&farm, 11), leases_of(&farm, 12).len()), (held[..1].to_vec(), 1));
        assert_eq!(work(&mut farm, 1), 11);
        assert_eq!(work(&mut farm, 1), 12);
        // What was given back is not lost, and no attempt was counted.
        let next = leases_of(&farm, 11);
        assert!(next.iter().any(|lease| lease.unit == held[1].unit), "{next:?}");
        assert!(!farm.records.iter().any(|record| matches!(record, Record::AttemptsEnded { .. })));
    }
}

#[test]
fn jobs_that_no_node_can_have_take_no_room_from_a_preview() {
    let mut farm = farm(quick(), 1, 2);
    submit(&mut farm, "ada", 11, film(100));
    let nowhere = || JobSpec { pool: Some("nowhere".into()), ..film(1) };
    (20..40).for_each(|number| submit(&mut farm, "bob", number, nowhere()));
    assert_eq!(wanted_back(&farm), []);
    submit(&mut farm, "cat", 12, film(1));
    assert_eq!(wanted_back(&farm).len(), 1, "although bob's jobs are before it in turn");
    // As soon as a node can have them, they are served.
    farm.step(inputs::joined(2, Join { pool: Some("nowhere".into()), ..inputs::join(2, 1) }));
    assert_eq!(leases_of(&farm, 20).len(), 1);
}

#[test]
fn a_unit_that_has_begun_is_not_taken_back() {
    let mut farm = farm(quick(), 2, 1);
    submit(&mut farm, "ada", 11, film(100));
    submit(&mut farm, "bob", 12, film(1));
    assert_eq!(wanted_back(&farm), []);
    // A node says no word about a unit that it had begun: the preview goes to the first that ends.
    work(&mut farm, 2);
    assert_eq!(leases_of(&farm, 12).len(), 1);
}

#[test]
fn room_is_made_for_one_job_of_an_owner_at_a_time() {
    let mut farm = farm(quick(), 8, 2);
    submit(&mut farm, "ada", 11, film(150));
    (20..30).for_each(|number| submit(&mut farm, "bob", number, film(1)));
    assert_eq!(wanted_back(&farm).len(), 1);
    farm.later(Duration::from_secs(1));
    farm.step(inputs::joined(9, inputs::join(9, 0)));
    let told = wanted_back(&farm);
    assert!(told.len() <= 2, "{told:?}");
}

#[test]
fn a_job_is_worked_on_by_at_most_its_nodes() {
    let mut farm = farm(quick(), 4, 2);
    submit(&mut farm, "ada", 11, JobSpec { max_nodes: Some(2), ..film(100) });
    let nodes = |farm: &SmallFarm| {
        let mut nodes: Vec<_> = farm.core.leases().map(|(_, node)| node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    };
    assert_eq!((nodes(&farm), leases_of(&farm, 11).len()), (2, 4));
    // Another may take the place of one that leaves.
    let holder = (1..=4).find(|number| farm.lease(*number).is_some()).unwrap();
    farm.step(Input::NodeDraining { session: SessionId(holder) });
    for lease in
        farm.core.leases().filter(|(_, node)| *node == inputs::node(holder)).collect::<Vec<_>>()
    {
        farm.step(Input::Returned { session: SessionId(holder), leases: vec![lease.0] });
    }
    assert_eq!(nodes(&farm), 2);
    // A lower bound holds as soon as units have ended; none is stopped.
    let fewer = JobEdit { max_nodes: Some(Some(1)), ..JobEdit::default() };
    assert_eq!(edit(&mut farm, person("ada"), 11, fewer), Response::Done);
    for _ in 0..6 {
        let at_work: Vec<u64> = (1..=4).filter(|number| farm.lease(*number).is_some()).collect();
        at_work.into_iter().for_each(|number| {
            work(&mut farm, number);
        });
    }
    assert_eq!(nodes(&farm), 1);
    let all = JobEdit { max_nodes: Some(None), ..JobEdit::default() };
    assert_eq!(edit(&mut farm, person("ada"), 11, all), Response::Done);
    assert_eq!(nodes(&farm), 3);
}

#[test]
fn artists_lower_priorities_and_operators_raise_them() {
    let mut farm = farm(quick(), 1, 1);
    let of = |priority| JobSpec { priority, ..film(1) };
    let refused = submit_as(&mut farm, person("ada"), 11, of(51));
    let Response::Error(RequestError::NotAllowed(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains("only operators and admins") && text.contains("at most 50"), "{text}");
    submit(&mut farm, "ada", 11, of(50));
    let to = |priority| JobEdit { priority: Some(priority), ..JobEdit::default() };
    let refused = edit(&mut farm, person("ada"), 11, to(60));
    let Response::Error(RequestError::NotAllowed(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains(&format!("`tessera job set {} --priority 60`", job(11))), "{text}");
    let is = |farm: &SmallFarm| farm.core.job_summary(job(11)).unwrap().priority;
    for (caller, priority) in
        [(person("ada"), 10), (person("ada"), 50), (operator(), 90), (person("ada"), 70)]
    {
        assert_eq!(edit(&mut farm, caller, 11, to(priority)), Response::Done);
        assert_eq!(is(&farm), priority);
    }
    let refused = edit(&mut farm, person("ada"), 11, to(71));
    assert!(matches!(refused, Response::Error(RequestError::NotAllowed(_))), "{refused:?}");
    let foreign = edit(&mut farm, person("bob"), 11, to(10));
    assert!(matches!(foreign, Response::Error(RequestError::NotAllowed(_))), "{foreign:?}");
}

#[test]
fn a_raised_job_gets_its_owner_more_of_the_farm() {
    let mut farm = farm(quick(), 1, 1);
    submit(&mut farm, "ada", 11, film(150));
    submit(&mut farm, "bob", 12, film(150));
    let raise = JobEdit { priority: Some(100), ..JobEdit::default() };
    assert_eq!(edit(&mut farm, operator(), 12, raise), Response::Done);
    let shares = counts(&mut farm, 90, &[11, 12]);
    assert!(shares[0].abs_diff(30) <= 1, "{shares:?}");
}

// promise: P1
#[test]
fn a_change_of_a_job_survives_a_restart() {
    for from_snapshot in [false, true] {
        let mut farm = farm(quick(), 1, 1);
        let spec = film(3);
        submit(&mut farm, "ada", 11, spec.clone());
        let first = JobEdit {
            name: Some("take 2".to_owned()),
            priority: Some(20),
            pool: Some(Some("gpu".to_owned())),
            max_nodes: Some(Some(4)),
            not_before: Some(Some(60)),
        };
        assert_eq!(edit(&mut farm, person("ada"), 11, first.clone()), Response::Done);
        let recorded = farm.records.len();
        assert_eq!(edit(&mut farm, person("ada"), 11, first), Response::Done);
        assert_eq!(farm.records.len(), recorded, "nothing is different");
        let again = JobEdit { name: Some("take 3".to_owned()), ..JobEdit::default() };
        assert_eq!(edit(&mut farm, person("ada"), 11, again), Response::Done);
        farm.restart(from_snapshot);
        let detail = farm.core.job(job(11)).unwrap();
        assert_eq!((detail.spec.name.as_str(), detail.spec.max_nodes), ("take 3", Some(4)));
        assert_eq!(detail.spec.not_before, Some(60));
        assert_eq!((detail.summary.priority, detail.spec.pool.as_deref()), (20, Some("gpu")));
        // The client that submitted it may repeat that.
        submit(&mut farm, "ada", 11, spec.clone());
        let other = JobSpec { name: "take 3".to_owned(), ..spec };
        let answer = submit_as(&mut farm, person("ada"), 11, other);
        assert!(matches!(answer, Response::Error(RequestError::Invalid(_))), "{answer:?}");
        farm.audit();
    }
}

#[test]
fn a_job_moves_to_another_pool() {
    let mut farm = farm(quick(), 1, 1);
    submit(&mut farm, "ada", 11, JobSpec { pool: Some("gpu".to_owned()), ..film(1) });
    assert_eq!(farm.core.job_summary(job(11)).unwrap().waits, Some(Waits::Pool));
    let any = JobEdit { pool: Some(None), ..JobEdit::default() };
    assert_eq!(edit(&mut farm, person("ada"), 11, any), Response::Done);
    assert_eq!(leases_of(&farm, 11).len(), 1);
}

#[test]
fn a_job_that_has_ended_is_not_changed() {
    let mut farm = farm(quick(), 1, 1);
    submit(&mut farm, "ada", 11, film(1));
    farm.cancel(job(11), person("ada"));
    let name = JobEdit { name: Some("b".to_owned()), ..JobEdit::default() };
    let answer = edit(&mut farm, person("ada"), 11, name);
    assert!(matches!(answer, Response::Error(RequestError::Invalid(_))), "{answer:?}");
    let unknown = edit(&mut farm, person("ada"), 99, JobEdit::default());
    assert!(matches!(unknown, Response::Error(RequestError::NotFound(_))), "{unknown:?}");
}

// promise: P4
#[test]
fn a_job_that_waits_says_behind_whom() {
    let mut farm = farm(quick(), 2, 1);
    submit(&mut farm, "ada", 11, JobSpec { name: "long".to_owned(), ..film(100) });
    submit(&mut farm, "bob", 12, film(1));
    submit(&mut farm, "ada", 13, film(1));
    let note = |farm: &SmallFarm, number| {
        let summary = farm.core.job_summary(job(number)).unwrap();
        assert_eq!(summary.waits, Some(Waits::Turn));
        summary.note
    };
    let expected = "waits for its turn behind `ada` (2 units in work, such as of `long`)";
    assert_eq!(note(&farm, 12), expected);
    let expected =
        "waits for its turn behind its owner's own jobs (2 units in work, such as of `long`)";
    assert_eq!(note(&farm, 13), expected);
}

/// What units take is known from their results: an owner of short units has more of them.
#[test]
fn owners_share_device_time_and_not_units() {
    let mut farm = farm(quick(), 1, 1);
    submit(&mut farm, "ada", 11, film(150));
    submit(&mut farm, "bob", 12, film(150));
    let mut spent = [0, 0];
    while spent[0] + spent[1] < 200 {
        let lease = farm.lease(1).expect("the node has a unit");
        let at = usize::from(lease.unit.job == job(12));
        let secs = [1, 5][at];
        farm.later(Duration::from_secs(secs));
        let micros = secs * 1_000_000;
        let result = tessera_core::Arrived { device_micros: micros, ..inputs::result(lease, 1) };
        farm.step(Input::ResultArrived { session: SessionId(1), result });
        spent[at] += secs;
    }
    assert!(spent[0].abs_diff(spent[1]) <= 10, "{spent:?}");
}

/// A node cannot make an owner's work look dearer than it was.
#[test]
fn no_unit_takes_longer_than_its_lease() {
    let mut farm = farm(quick(), 1, 1);
    submit(&mut farm, "ada", 11, film(150));
    submit(&mut farm, "bob", 12, film(150));
    let mut units = [0u32; 2];
    for _ in 0..60 {
        farm.later(Duration::from_secs(1));
        let lease = farm.lease(1).expect("the node has a unit");
        let at = usize::from(lease.unit.job == job(12));
        let micros = [1_000_000, u64::MAX][at];
        let result = tessera_core::Arrived { device_micros: micros, ..inputs::result(lease, 1) };
        farm.step(Input::ResultArrived { session: SessionId(1), result });
        units[at] += 1;
    }
    assert!(units[0].abs_diff(units[1]) <= 2, "{units:?}");
}

#[test]
fn a_wide_frame_is_no_way_around() {
    let mut farm = farm(quick(), 1, 1);
    let wide = RenderSpec { width: 64 * TILE, ..inputs::render() };
    submit(&mut farm, "ada", 11, inputs::job(wide));
    submit(&mut farm, "bob", 12, film(100));
    let shares = counts(&mut farm, 60, &[11, 12]);
    assert!(shares[0].abs_diff(30) <= 1, "{shares:?}");
    assert!(Core::audit([], farm.records.clone()).problems.is_empty());
}
