//! Selections of jobs: what texts and conditions mean, pages of listings, and changes of many jobs
//! in one step.

use std::time::{Duration, Instant};
use tessera_core::{
    Action, Caller, Core, Input, JobsPage, Moment, PerUser, Record, RequestId, Selection, Settings,
};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::JobId;
use tessera_protocol::limits::{JOB_PAGE_MAX, JOBS_CHANGED_MAX, MEANINGS_NAMED_MAX};
use tessera_protocol::selection::{JobChange, JobOrder, JobSelection, JobsChanged};
use tessera_protocol::status::JobState;
use tessera_support::inputs;
use uuid::Uuid;

/// A farm without nodes.
struct Farm {
    core: Core,
    now: Moment,
    records: Vec<Record>,
    /// Number of steps that had records: each goes to the disk at once.
    steps: u64,
}

fn farm() -> Farm {
    let per_user = PerUser { jobs: 1 << 20, ..PerUser::default() };
    let settings = Settings { per_user, ..Settings::default() };
    let now = Moment(1_000_000);
    Farm { core: Core::new(settings, now), now, records: Vec::new(), steps: 0 }
}

impl Farm {
    /// Returns the answer to a request.
    fn ask(&mut self, input: Input) -> Response {
        self.core.handle(input, self.now);
        let step = self.core.take_step();
        self.steps += u64::from(!step.records.is_empty());
        self.records.extend(step.records);
        let reply = step.actions.into_iter().find_map(|action| match action {
            Action::Reply { response, .. } => Some(response),
            _ => None,
        });
        reply.expect("a request is answered")
    }

    /// Checks the books, and that the records make the same farm again.
    fn check(&self) {
        self.core.verify().expect("the core stands by its invariants");
        let replayed = Core::replay(Settings::default(), [], self.records.clone(), self.now);
        assert_eq!(self.core.durable_difference(&replayed.expect("records that fit")), None);
        assert_eq!(Core::audit([], self.records.clone()).problems, Vec::<String>::new());
    }
}

fn id_of(name: &str) -> u64 {
    name.bytes().map(u64::from).sum()
}

fn caller(name: &str) -> Caller {
    Caller { name: name.to_owned(), id: id_of(name), admin: name == "root" }
}

fn submit(farm: &mut Farm, number: u128, name: &str, owner: &str) -> JobId {
    submit_in(farm, (number, None), name, owner)
}

/// Submits a job, of a batch where one is named.
fn submit_in(
    farm: &mut Farm,
    (number, batch): (u128, Option<&str>),
    name: &str,
    owner: &str,
) -> JobId {
    let mut spec = Box::new(inputs::job(inputs::render()));
    spec.name = name.to_owned();
    spec.batch = batch.map(str::to_owned);
    let job = JobId(Uuid::from_u128(number));
    let submit = Input::Submit { request: RequestId(3), job, spec, caller: caller(owner) };
    assert_eq!(farm.ask(submit), Response::Accepted(job));
    job
}

fn texts(texts: &[&str]) -> Selection {
    let jobs = texts.iter().map(|text| (*text).to_owned()).collect();
    JobSelection { jobs, ..JobSelection::default() }.into()
}

fn of_owner(name: &str) -> Selection {
    let owner = Some(name.to_owned());
    Selection { jobs: JobSelection { owner, ..Default::default() }, owner: Some(id_of(name)) }
}

fn named(pattern: &str) -> Selection {
    JobSelection { name: Some(pattern.to_owned()), ..JobSelection::default() }.into()
}

fn of_batch(batch: &str) -> Selection {
    JobSelection { batch: Some(batch.to_owned()), ..JobSelection::default() }.into()
}

fn in_state(state: JobState) -> Selection {
    JobSelection { states: vec![state], ..JobSelection::default() }.into()
}

fn cancel() -> JobChange {
    JobChange::Cancel { reason: String::new() }
}

fn ask(farm: &mut Farm, change: JobChange, of: Selection, dry: bool, by: &str) -> Response {
    let (request, selection) = (RequestId(9), Box::new(of));
    farm.ask(Input::ChangeJobs { request, change, selection, dry_run: dry, caller: caller(by) })
}

fn change(farm: &mut Farm, change: JobChange, of: Selection, by: &str) -> JobsChanged {
    match ask(farm, change, of, false, by) {
        Response::Changed(changed) => changed,
        answer => panic!("{answer:?}"),
    }
}

fn jobs_of(changed: &JobsChanged) -> Vec<u128> {
    changed.jobs.iter().map(|name| name.job.0.as_u128()).collect()
}

/// All selected jobs, newest first, and the number of pages.
fn listed(farm: &Farm, selection: &Selection) -> (Vec<u128>, usize) {
    let (mut all, mut pages, mut before) = (Vec::new(), 0, None);
    loop {
        let page = farm.core.jobs(selection, before, farm.now).expect("a page");
        assert!(page.jobs.len() <= JOB_PAGE_MAX);
        all.extend(page.jobs.iter().map(|row| row.job.0.as_u128()));
        pages += 1;
        before = page.next;
        if before.is_none() {
            return (all, pages);
        }
    }
}

#[test]
fn a_text_means_an_id_its_beginning_or_a_name() {
    let mut farm = farm();
    let high = 0xabcd << 112;
    submit(&mut farm, high + 1, "beauty", "ada");
    submit(&mut farm, high + 2, "beauty", "ben");
    submit(&mut farm, (0xabce << 112) + 3, "abcd", "ada");
    let means = |text: &str| listed(&farm, &texts(&[text])).0;
    assert_eq!(means("abce"), [(0xabce << 112) + 3]);
    assert_eq!(means("ABCD0000-0000"), [high + 2, high + 1], "letters of both sizes");
    assert_eq!(means(&Uuid::from_u128(high + 1).to_string()), [high + 1]);
    assert_eq!(means("beauty"), [high + 2, high + 1]);
    assert_eq!(means("abcd"), [(0xabce << 112) + 3, high + 2, high + 1], "a name and two ids");
    for nothing in ["abc", "beaut", "----", "abcd-", "abcdabcdabcdabcdabcdabcdabcdabcdab", ""] {
        assert_eq!(means(nothing), [0; 0], "{nothing}");
    }
    let both = listed(&farm, &texts(&["beauty", "abcd"])).0;
    assert_eq!(both, [(0xabce << 112) + 3, high + 2, high + 1], "each once");
}

#[test]
fn an_ambiguous_text_names_what_it_could_mean() {
    let mut farm = farm();
    for number in 10..30 {
        submit(&mut farm, number, "beauty", "ben");
    }
    let alone = submit(&mut farm, 40, "alone", "ben");
    let records = farm.records.len();
    let changed = change(&mut farm, cancel(), texts(&["beauty", "none", "alone"]), "root");
    assert_eq!(jobs_of(&changed), [40], "what is clear is done");
    assert_eq!(changed.refused, 2);
    let [several, none] = changed.refusals.as_slice() else { panic!("{changed:?}") };
    let RequestError::Ambiguous { text, count, jobs } = &several.why else { panic!("{several:?}") };
    assert_eq!((text.as_str(), *count, jobs.len()), ("beauty", 20, MEANINGS_NAMED_MAX));
    assert_eq!(jobs[0].job, JobId(Uuid::from_u128(29)), "the newest first");
    assert!(matches!(none.why, RequestError::NotFound(_)), "{none:?}");
    assert_eq!(farm.records.len(), records + 1);
    // A condition makes it clear; a repeat is harmless.
    change(&mut farm, cancel(), texts(&[&JobId(Uuid::from_u128(12)).to_string()]), "ben");
    let mut done = texts(&["beauty"]);
    done.jobs.states = vec![JobState::Cancelled];
    assert_eq!(change(&mut farm, JobChange::Forget, done, "ben").jobs.len(), 1);
    let again = change(&mut farm, cancel(), texts(&[&alone.to_string()]), "ben");
    assert_eq!((again.jobs.len(), again.unchanged, again.refused), (0, 1, 0));
}

#[test]
fn a_name_means_the_callers_own_job_before_those_of_others() {
    let mut farm = farm();
    submit(&mut farm, 10, "test", "ada");
    submit(&mut farm, 11, "test", "ben");
    assert_eq!(jobs_of(&change(&mut farm, JobChange::Pause, texts(&["test"]), "ada")), [10]);
    let changed = change(&mut farm, JobChange::Pause, texts(&["test"]), "root");
    assert!(matches!(changed.refusals[0].why, RequestError::Ambiguous { count: 2, .. }));
    submit(&mut farm, 12, "hers", "ada");
    let changed = change(&mut farm, JobChange::Pause, texts(&["hers"]), "ben");
    assert!(matches!(changed.refusals[0].why, RequestError::NotAllowed(_)), "{changed:?}");
}

#[test]
fn conditions_select_what_the_change_applies_to() {
    let mut farm = farm();
    for number in 10..14 {
        submit(&mut farm, number, "shot_1", "ada");
        submit(&mut farm, number + 10, "shot_2", "ben");
    }
    farm.now = farm.now.after(Duration::from_secs(100));
    let root = "root";
    assert_eq!(jobs_of(&change(&mut farm, cancel(), named("shot_?"), "ada")), [10, 11, 12, 13]);
    assert_eq!(change(&mut farm, cancel(), named("shot_1"), root), JobsChanged::default());
    let changed = change(&mut farm, JobChange::Pause, of_owner("ben"), root);
    assert_eq!(jobs_of(&changed), [20, 21, 22, 23]);
    assert_eq!(changed.jobs[0].state, JobState::Queued, "as it was before");
    let mut newest = in_state(JobState::Paused);
    newest.jobs.limit = Some(3);
    assert_eq!(jobs_of(&change(&mut farm, JobChange::Resume, newest, root)), [21, 22, 23]);
    let answer = ask(&mut farm, cancel(), of_owner("ben"), false, "ada");
    assert!(matches!(answer, Response::Error(RequestError::NotAllowed(_))), "{answer:?}");
    // Ended jobs age from their end, open ones from their submission.
    let old = |secs| JobSelection { older_than_secs: Some(secs), ..JobSelection::default() }.into();
    assert_eq!(listed(&farm, &old(50)).0.len(), 4, "only the open ones");
    farm.now = farm.now.after(Duration::from_secs(60));
    assert_eq!(listed(&farm, &old(50)).0.len(), 8);
    assert_eq!(listed(&farm, &old(50_000)).0.len(), 0);
    let records = farm.records.len();
    let answer = ask(&mut farm, JobChange::Forget, named("*"), true, root);
    let Response::Changed(would) = answer else { panic!("{answer:?}") };
    assert_eq!((would.jobs.len(), farm.records.len()), (4, records), "a dry run changes nothing");
    assert_eq!(change(&mut farm, JobChange::Forget, named("*"), root), would);
    assert_eq!(listed(&farm, &Selection::default()).0.len(), 4);
    farm.check();
}

#[test]
fn the_jobs_of_a_batch_are_selected_together() {
    let mut farm = farm();
    for (number, batch) in [(10, Some("film-7")), (11, Some("film-7")), (12, Some("film-8"))] {
        submit_in(&mut farm, (number, batch), "shot", "ada");
    }
    submit_in(&mut farm, (13, Some("film-7")), "shot", "ben");
    submit(&mut farm, 14, "film-7", "ada");
    assert_eq!(listed(&farm, &of_batch("film-7")).0.len(), 3);
    assert_eq!(listed(&farm, &of_batch("film")).0.len(), 0, "whole names only");
    // Where no job is named, an artist's own are meant.
    assert_eq!(jobs_of(&change(&mut farm, JobChange::Pause, of_batch("film-7"), "ada")), [10, 11]);
    assert_eq!(jobs_of(&change(&mut farm, cancel(), of_batch("film-7"), "root")), [10, 11, 13]);
    farm.check();
}

#[test]
fn a_cancel_says_its_reason_in_the_note() {
    let mut farm = farm();
    submit(&mut farm, 10, "a", "ada");
    let reason = "the licence server moves".to_owned();
    change(&mut farm, JobChange::Cancel { reason }, texts(&["a"]), "root");
    let page = farm.core.jobs(&texts(&["a"]), None, farm.now).expect("a page");
    assert_eq!(page.jobs[0].note, "cancelled by `root`: the licence server moves");
}

#[test]
fn thousands_of_jobs_are_changed_in_one_step() {
    const JOBS: u128 = 5000;
    let mut farm = farm();
    for number in 0..JOBS {
        let owner = if number % 100 == 0 { "ada" } else { "ben" };
        submit(&mut farm, 100 + number, &format!("shot_{number}"), owner);
    }
    let started = Instant::now();
    let lap = |what: &str, farm: &Farm, records: usize, steps: u64| {
        let records = farm.records.len() - records;
        let millis = started.elapsed().as_millis();
        println!("{what}: {records} records in {steps} step, {millis} ms since the first");
        records
    };
    let (all, pages) = listed(&farm, &Selection::default());
    assert_eq!((all.len(), pages), (5000, 5));
    assert!(all.is_sorted_by(|one, next| one > next), "newest first");
    assert_eq!(
        listed(&farm, &of_owner("ada")),
        ((0..50).rev().map(|n| 100 + n * 100).collect(), 1)
    );
    lap("listed", &farm, farm.records.len(), 0);
    for (verb, selection) in [
        (JobChange::Pause, named("shot_*")),
        (JobChange::Resume, in_state(JobState::Paused)),
        (cancel(), of_owner("ben")),
        (JobChange::Retry, in_state(JobState::Cancelled)),
        (cancel(), named("shot_*")),
        (JobChange::Forget, in_state(JobState::Cancelled)),
    ] {
        let (records, steps) = (farm.records.len(), farm.steps);
        let changed = change(&mut farm, verb.clone(), selection, "root");
        assert!(changed.jobs.len() >= 4950 && changed.refused == 0, "{verb:?}: {changed:?}");
        assert_eq!(changed.left, 0);
        let new = lap(verb.done(), &farm, records, farm.steps - steps);
        assert_eq!(new, changed.jobs.len(), "one record a job: {verb:?}");
        assert_eq!(farm.steps - steps, 1, "all records go to the disk together");
    }
    assert_eq!(listed(&farm, &Selection::default()).0, [0; 0]);
    farm.check();
}

// promise: P8
#[test]
fn texts_that_mean_very_many_jobs_are_refused() {
    let mut farm = farm();
    for number in 0..2000 {
        submit(&mut farm, (0xabcd << 112) + number, "same", "eve");
    }
    for text in ["abcd", "same"] {
        let many = texts(&vec![text; 10_000]);
        let started = Instant::now();
        let listed = farm.core.jobs(&many, None, farm.now);
        assert!(matches!(&listed, Err(RequestError::Invalid(why)) if why.contains("name fewer")));
        let answer = ask(&mut farm, cancel(), many, false, "eve");
        assert!(matches!(&answer, Response::Error(RequestError::Invalid(_))), "{answer:?}");
        println!("10,000 times `{text}`: {} ms", started.elapsed().as_millis());
    }
    let few = texts(&["abcd"; 60]);
    assert_eq!(listed(&farm, &few).0.len(), 2000);
}

#[test]
fn a_change_has_a_bound_and_says_what_is_left() {
    let mut farm = farm();
    let most = JOBS_CHANGED_MAX as u128;
    // Open jobs have a bound too, so some are cancelled before the others come.
    for number in 0..most - 1 {
        submit(&mut farm, 100 + number, "a", "ada");
    }
    change(&mut farm, cancel(), named("a"), "ada");
    for number in 0..5 {
        submit(&mut farm, 100 + most + number, "b", "ada");
    }
    change(&mut farm, cancel(), named("b"), "ada");
    let changed = change(&mut farm, JobChange::Forget, in_state(JobState::Cancelled), "ada");
    assert_eq!((changed.jobs.len(), changed.left), (JOBS_CHANGED_MAX, 4));
    let forgotten = |record: &&Record| matches!(record, Record::JobForgotten { .. });
    assert_eq!(farm.records.iter().filter(forgotten).count(), JOBS_CHANGED_MAX);
    let changed = change(&mut farm, JobChange::Forget, in_state(JobState::Cancelled), "ada");
    assert_eq!((changed.jobs.len(), changed.left), (4, 0));
    farm.check();
}

#[test]
fn listings_are_sorted_and_come_in_pages_of_any_length() {
    let mut farm = farm();
    for (number, (name, owner)) in
        [("b", "ada"), ("a", "ben"), ("c", "ada"), ("a", "ada")].into_iter().enumerate()
    {
        submit(&mut farm, number as u128 + 1, name, owner);
    }
    let sorted = |order, rows| {
        let (mut all, mut before) = (Vec::new(), None);
        loop {
            let page = JobsPage { before, rows: Some(rows), order };
            let page = farm.core.jobs_page(&Selection::default(), page, farm.now).expect("a page");
            assert!(page.jobs.len() <= rows.max(1) as usize);
            all.extend(page.jobs.iter().map(|row| row.job.0.as_u128()));
            before = page.next;
            if before.is_none() {
                return all;
            }
        }
    };
    for rows in [0, 1, 3, 100] {
        assert_eq!(sorted(JobOrder::Newest, rows), [4, 3, 2, 1]);
        assert_eq!(sorted(JobOrder::Name, rows), [4, 2, 1, 3], "those alike newest first");
        assert_eq!(sorted(JobOrder::Owner, rows), [4, 3, 1, 2]);
        assert_eq!(sorted(JobOrder::Progress, rows), [4, 3, 2, 1]);
        assert_eq!(sorted(JobOrder::State, rows), [4, 3, 2, 1]);
        assert_eq!(sorted(JobOrder::Priority, rows), [4, 3, 2, 1]);
    }
}
