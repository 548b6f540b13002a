//! Shares: what the jobs of one owner may have together, and sweeps of all of them.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{
    Caller, Core, Input, JobUsage, Owner, PerUser, Record, RequestId, Selection, Settings, Sweep,
};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::JobId;
use tessera_protocol::job::RenderSpec;
use tessera_protocol::selection::{JobChange, JobSelection};
use tessera_protocol::usage::Swept;
use tessera_support::inputs;
use uuid::Uuid;

fn settings(per_user: PerUser) -> Settings {
    Settings { per_user, settle: Duration::ZERO, ..Settings::default().without_checks() }
}

fn job(number: u128) -> JobId {
    JobId(Uuid::from_u128(number))
}

fn id_of(name: &str) -> u64 {
    name.bytes().map(u64::from).sum()
}

/// Submits a job of so many frames; the answer.
fn submit(farm: &mut SmallFarm, number: u128, owner: &str, frames: u32) -> Response {
    submit_as(farm, number, (owner, id_of(owner)), frames)
}

/// Submits a job as the identity of this name and number.
fn submit_as(farm: &mut SmallFarm, number: u128, (name, id): (&str, u64), frames: u32) -> Response {
    let frames = format!("1-{frames}").parse().expect("frames");
    let spec = Box::new(inputs::job(RenderSpec { frames, ..inputs::render() }));
    let caller = Caller { name: name.to_owned(), id, admin: false };
    farm.ask(Input::Submit { request: RequestId(3), job: job(number), spec, caller })
}

fn refused(answer: &Response, what: &str, option: &str) -> bool {
    matches!(answer, Response::Error(RequestError::Unavailable(text))
        if text.contains(what) && text.contains(option))
}

fn sweep(farm: &mut SmallFarm, owner: &str, sweep: Sweep, by: &str) -> Response {
    let caller = Caller { name: by.to_owned(), id: id_of(by), admin: by == "root" };
    farm.ask(Input::Sweep {
        request: RequestId(4),
        owner: Owner::new(id_of(owner), owner),
        sweep,
        caller,
    })
}

fn cancel_all(farm: &mut SmallFarm, owner: &str) {
    let selection = JobSelection { owner: Some(owner.to_owned()), ..JobSelection::default() };
    let selection = Box::new(Selection { jobs: selection, owner: Some(id_of(owner)) });
    let caller = Caller { name: owner.to_owned(), id: id_of(owner), admin: false };
    let (request, change) = (RequestId(4), JobChange::Cancel { reason: String::new() });
    farm.ask(Input::ChangeJobs { request, change, selection, dry_run: false, caller });
}

fn usage(core: &Core, owner: &str) -> JobUsage {
    core.usage().get(&Owner::new(id_of(owner), owner)).copied().unwrap_or_default()
}

// promise: P8
#[test]
fn each_share_of_jobs_is_refused_beyond_its_limit() {
    let per_user = PerUser { jobs: 3, frames: 20, units: 30, spec_bytes: 1 << 20 };
    let mut farm = SmallFarm::new(settings(per_user), 1, 0);
    assert_eq!(submit(&mut farm, 10, "eve", 15), Response::Accepted(job(10)));
    let answer = submit(&mut farm, 11, "eve", 6);
    assert!(refused(&answer, "`eve` has 15 frames, and this job adds 6", "--frames-per-user"));
    assert_eq!(submit(&mut farm, 12, "eve", 2), Response::Accepted(job(12)));
    assert_eq!(submit(&mut farm, 13, "eve", 1), Response::Accepted(job(13)));
    let answer = submit(&mut farm, 14, "eve", 1);
    assert!(refused(&answer, "3 open jobs", "--jobs-per-user"), "{answer:?}");
    assert_eq!(submit(&mut farm, 12, "eve", 2), Response::Accepted(job(12)), "a repeat is no job");
    assert_eq!(submit(&mut farm, 15, "ada", 15), Response::Accepted(job(15)), "others go on");

    let few = PerUser { units: 3, ..PerUser::default() };
    let mut farm = SmallFarm::new(settings(few), 1, 0);
    let answer = submit(&mut farm, 10, "eve", 4);
    assert!(refused(&answer, "0 open units, and this job adds 4", "--units-per-user"));
    let small = PerUser { spec_bytes: 5000, ..PerUser::default() };
    let mut farm = SmallFarm::new(settings(small), 1, 0);
    assert_eq!(submit(&mut farm, 10, "eve", 1), Response::Accepted(job(10)));
    // An ended job is kept, and so is its description.
    cancel_all(&mut farm, "eve");
    assert_eq!(submit(&mut farm, 11, "eve", 1), Response::Accepted(job(11)));
    let answer = submit(&mut farm, 12, "eve", 1);
    assert!(refused(&answer, "bytes of jobs", "--job-mib-per-user"), "{answer:?}");
}

#[test]
fn shares_are_the_same_after_a_restart() {
    let mut farm = SmallFarm::new(settings(PerUser::default()), 1, 1);
    submit(&mut farm, 10, "eve", 100);
    submit(&mut farm, 11, "eve", 7);
    sweep(&mut farm, "eve", Sweep::Count, "root");
    let before = usage(&farm.core, "eve");
    assert_eq!((before.jobs, before.frames, before.units), (2, 107, 107));
    for from_snapshot in [true, false] {
        farm.restart(from_snapshot);
        assert_eq!(usage(&farm.core, "eve"), before);
    }
}

// promise: P8
#[test]
fn a_share_belongs_to_an_identity_and_not_to_a_name() {
    let per_user = PerUser { jobs: 1, ..PerUser::default() };
    let mut farm = SmallFarm::new(settings(per_user), 1, 0);
    assert_eq!(submit_as(&mut farm, 10, ("eve", 7), 2), Response::Accepted(job(10)));
    // The name was taken away, and went to somebody else.
    assert_eq!(submit_as(&mut farm, 11, ("eve", 8), 2), Response::Accepted(job(11)));
    let answer = submit_as(&mut farm, 12, ("Eve", 7), 2);
    assert!(refused(&answer, "1 open jobs", "--jobs-per-user"), "{answer:?}");
    let caller = Caller { name: "eve".to_owned(), id: 8, admin: false };
    let ask = |id| {
        let (owner, caller) = (Owner::new(id, "eve"), caller.clone());
        Input::Sweep { request: RequestId(4), owner, sweep: Sweep::Forget, caller }
    };
    let answer = farm.ask(ask(7));
    assert!(matches!(answer, Response::Error(RequestError::NotAllowed(_))), "{answer:?}");
    let swept = Swept { jobs_cancelled: 1, jobs_forgotten: 1, ..Swept::default() };
    assert_eq!(farm.ask(ask(8)), Response::Swept(swept));
    let of = |id| farm.core.usage().get(&Owner::new(id, "eve")).copied().unwrap_or_default().jobs;
    assert_eq!([of(7), of(8)], [1, 0]);
}

#[test]
fn a_sweep_ends_or_deletes_all_jobs_of_an_owner() {
    let mut farm = SmallFarm::new(settings(PerUser::default()), 1, 0);
    for number in 10..13 {
        submit(&mut farm, number, "eve", 2);
    }
    submit(&mut farm, 20, "ada", 2);
    let answer = sweep(&mut farm, "eve", Sweep::Forget, "ada");
    assert!(matches!(answer, Response::Error(RequestError::NotAllowed(_))), "{answer:?}");
    cancel_all(&mut farm, "eve");
    let deleted = Swept { jobs_forgotten: 3, ..Swept::default() };
    let records = farm.records.len();
    assert_eq!(sweep(&mut farm, "eve", Sweep::Count, "root"), Response::Swept(deleted));
    assert_eq!(farm.records.len(), records, "counting changes nothing");
    assert_eq!(sweep(&mut farm, "eve", Sweep::Forget, "root"), Response::Swept(deleted));
    let forgotten = |record: &&Record| matches!(record, Record::JobForgotten { .. });
    assert_eq!(farm.records.iter().filter(forgotten).count(), 3);
    assert_eq!(usage(&farm.core, "eve"), JobUsage::default());
    assert_eq!(usage(&farm.core, "ada").jobs, 2, "hers and that of the small farm");
    farm.restart(true);
}
