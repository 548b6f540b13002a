//! Users and the operator: they submit, repeat, pause, cancel, retry and drain, and check what they
//! are answered.

mod changes;
pub(crate) mod questions;
mod submits;

use crate::checks::violation::{Checked, Violation, violated};
use crate::client::changes::{Changed, RAISED};
use crate::faults::Fault;
use crate::model::books::JobBook;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::Event;
use crate::world::plan::{JobPlan, LARGEST, Plan, USERS};
use tessera_core::journal::Gone;
use tessera_core::{Caller, Core, Input, Record, Selection};
use tessera_history::Seen;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::cost::{Amount, AtLimit, Budget, CostRules, Period, Price, Whose};
use tessera_protocol::ids::JobId;
use tessera_protocol::job::JobSpec;
use tessera_protocol::selection::{JobChange, JobSelection};
use tessera_protocol::status::JobState;
use tessera_support::inputs::{cancel, of_one_job};

/// What is asked for; jobs and nodes by their positions in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Submit(usize),
    /// The same id with another spec.
    Conflict(usize),
    /// The same id and spec by another user.
    Foreign(usize),
    Cancel(usize),
    CancelForeign(usize),
    CancelUnknown,
    /// All open jobs of a job's owner.
    CancelAll(usize),
    CancelAllForeign(usize),
    Pause(usize),
    /// Where nothing goes wrong any more, and the job goes on.
    CalmPause(usize),
    PauseForeign(usize),
    Resume(usize),
    Retry(usize),
    RetryForeign(usize),
    /// A node, and whether it is to leave as well.
    Drain(usize, bool),
    Undrain(usize),
    RemoveNode(usize),
    Change(usize, Changed),
    ChangeForeign(usize),
    /// Above the default, with an id of its own.
    SubmitRaised(usize),
    /// So many milliseconds of a device may be spent, by all or by one user; 0 takes budgets away.
    /// Most results take one.
    Budget(u16),
}

/// Rules by which a second of a device costs 1, and one user or all may spend so many thousandths.
fn budget_of(thousandths: u16) -> CostRules {
    let price = Price { per_hour: Amount(3_600_000_000), ..Price::default() };
    let whose = match usize::from(thousandths) % 4 {
        0 => Whose::Farm,
        user => Whose::Owner(USERS[user - 1].to_owned()),
    };
    let budget = Budget {
        whose,
        amount: Amount(u64::from(thousandths) * 1000),
        period: if thousandths.is_multiple_of(3) { Period::Month } else { Period::Total },
        at_limit: if thousandths.is_multiple_of(5) { AtLimit::Refuse } else { AtLimit::Pause },
        warn_percent: 80,
    };
    let budgets = if thousandths > 0 { vec![budget] } else { Vec::new() };
    CostRules { prices: vec![price], budgets, ..CostRules::default() }
}

/// A job as its owner sees it.
#[derive(Debug)]
pub(crate) struct ClientJob {
    pub(crate) plan: JobPlan,
    asked: bool,
    pub(crate) accepted: bool,
    /// It fits no device that was known.
    pub(crate) refused: bool,
    cancelled: bool,
    /// Its client is never heard of again.
    pub(crate) vanished: bool,
    /// Process of the coordinator that answered the first question about it.
    pub(crate) first_asked: Option<u64>,
}

/// All users.
#[derive(Debug)]
pub(crate) struct Clients {
    pub(crate) jobs: Vec<ClientJob>,
}

impl Clients {
    pub(crate) fn new(plan: &Plan) -> Self {
        let job = |plan: &JobPlan| ClientJob {
            plan: plan.clone(),
            asked: false,
            accepted: false,
            refused: false,
            cancelled: false,
            vanished: false,
            first_asked: None,
        };
        Self { jobs: plan.jobs.iter().map(job).collect() }
    }
}

impl World {
    pub(crate) fn plan_clients(&mut self) {
        for (index, job) in self.plan.jobs.iter().enumerate() {
            self.events.plan(job.submit_at, Event::Ask(Ask::Submit(index)));
        }
    }

    pub(crate) fn on_ask(&mut self, ask: Ask) -> Checked {
        if !self.is_wanted(ask) {
            return Ok(());
        }
        // Whoever gets no answer asks again.
        if matches!(ask, Ask::Submit(_) | Ask::Cancel(_)) {
            let patience = self.random.between(3_000, 9_000);
            self.after(patience, Event::Ask(ask));
        }
        let Some(place) = self.find_coordinator() else {
            return self.ask_standby(ask);
        };
        self.as_process(place, |world| {
            // Nobody answers after its term.
            world.check_own_term()?;
            if world.shell.process.is_some() { world.ask_now(ask) } else { Ok(()) }
        })
    }

    /// A client asks a coordinator that listens.
    fn ask_now(&mut self, ask: Ask) -> Checked {
        match ask {
            Ask::Submit(index) => {
                self.begin_submit(index);
                Ok(())
            }
            Ask::Conflict(index) => {
                let JobPlan { id, mut spec, owner, .. } = self.planned(index);
                spec.name.push_str(" again");
                self.ask_submit(ask, id, spec, user(owner))
            }
            Ask::Foreign(index) => {
                let JobPlan { id, spec, owner, .. } = self.planned(index);
                self.ask_submit(ask, id, spec, user(other_than(owner)))
            }
            Ask::Cancel(index) => {
                let JobPlan { id, owner, .. } = self.planned(index);
                let caller = self.owner_or_admin(owner);
                self.change_one(ask, cancel(), id, caller)
            }
            Ask::CancelForeign(index) => {
                let JobPlan { id, owner, .. } = self.planned(index);
                let caller = user(other_than(owner));
                self.change_one(ask, cancel(), id, caller)
            }
            Ask::CancelAll(index) | Ask::CancelAllForeign(index) => self.cancel_all(ask, index),
            Ask::Pause(index) | Ask::CalmPause(index) | Ask::Resume(index) => {
                let JobPlan { id, owner, .. } = self.planned(index);
                let caller = self.owner_or_admin(owner);
                let resumed = matches!(ask, Ask::Resume(_));
                let change = if resumed { JobChange::Resume } else { JobChange::Pause };
                self.change_one(ask, change, id, caller)
            }
            Ask::Retry(index) => self.ask_retry(index),
            Ask::RetryForeign(index) => {
                let JobPlan { id, owner, .. } = self.planned(index);
                let caller = user(other_than(owner));
                self.change_one(ask, JobChange::Retry, id, caller)
            }
            Ask::PauseForeign(index) => {
                let JobPlan { id, owner, .. } = self.planned(index);
                let caller = user(other_than(owner));
                self.change_one(ask, JobChange::Pause, id, caller)
            }
            Ask::Change(..) | Ask::ChangeForeign(_) | Ask::SubmitRaised(_) => self.change(ask),
            Ask::Budget(millis) => self.ask_core(ask, |request| {
                let (rules, by) = (Box::new(budget_of(millis)), "root".to_owned());
                Input::SetCostRules { request, rules, by }
            }),
            Ask::CancelUnknown => {
                let (job, caller) = (JobId(uuid::Uuid::from_u128(7)), user(USERS[0]));
                self.change_one(ask, cancel(), job, caller)
            }
            Ask::Drain(node, _) | Ask::Undrain(node) | Ask::RemoveNode(node) => {
                self.ask_about_node(ask, node)
            }
        }
    }

    /// The operator names a node by its name, or by its id.
    fn ask_about_node(&mut self, ask: Ask, node: usize) -> Checked {
        let plan = &self.nodes[node].plan;
        let absent =
            self.ledger.believed.is_gone(plan.id) && self.ledger.believed.is_drained(plan.id);
        let text = match ask {
            Ask::Drain(..) => plan.name.clone(),
            _ => plan.id.to_string(),
        };
        sometimes!(self, UndrainedAbsent, absent && matches!(ask, Ask::Undrain(_)));
        self.ask_core(ask, |request| {
            let (node, by) = (text, "root".to_owned());
            match ask {
                Ask::RemoveNode(_) => Input::RemoveNode { request, node, by },
                Ask::Drain(_, leave) => Input::Drain { request, node, drain: true, leave, by },
                _ => Input::Drain { request, node, drain: false, leave: false, by },
            }
        })
    }

    /// Asks for a change of a job, or for a job that nobody may submit.
    fn change(&mut self, ask: Ask) -> Checked {
        let (index, changed, foreign) = match ask {
            Ask::Change(index, changed) => (index, changed, false),
            Ask::ChangeForeign(index) => (index, Changed::Name(0), true),
            Ask::SubmitRaised(index) => return self.submit_raised(ask, index),
            _ => return Ok(()),
        };
        let JobPlan { id: job, owner, .. } = self.clients.jobs[index].plan.clone();
        let admin = changed == Changed::ByOperator;
        let name = match (admin, foreign) {
            (true, _) => "root",
            (false, true) => other_than(owner),
            (false, false) => owner,
        };
        let (caller, edit) = (Caller { admin, ..user(name) }, Box::new(changed.change()));
        self.ask_core(ask, |request| Input::EditJob { request, job, edit, caller })
    }

    fn submit_raised(&mut self, ask: Ask, index: usize) -> Checked {
        let JobPlan { mut spec, owner, .. } = self.clients.jobs[index].plan.clone();
        (spec.priority, spec.name) = (RAISED, "raised".to_owned());
        let (job, spec, caller) = (JobId(uuid::Uuid::from_u128(8)), Box::new(spec), user(owner));
        self.ask_core(ask, |request| Input::Submit { request, job, spec, caller })
    }

    fn cancel_all(&mut self, ask: Ask, index: usize) -> Checked {
        let owner = self.planned(index).owner;
        let caller = match ask {
            Ask::CancelAll(_) => self.owner_or_admin(owner),
            _ => user(other_than(owner)),
        };
        let jobs = JobSelection { owner: Some(owner.to_owned()), ..JobSelection::default() };
        self.change_jobs(ask, cancel(), Selection { jobs, owner: Some(user(owner).id) }, caller)
    }

    fn change_one(&mut self, ask: Ask, change: JobChange, job: JobId, caller: Caller) -> Checked {
        self.change_jobs(ask, change, JobSelection::of_job(job).into(), caller)
    }

    fn change_jobs(
        &mut self,
        ask: Ask,
        change: JobChange,
        selection: Selection,
        caller: Caller,
    ) -> Checked {
        let (selection, dry_run) = (Box::new(selection), false);
        self.ask_core(ask, |request| Input::ChangeJobs {
            request,
            change,
            selection,
            dry_run,
            caller,
        })
    }

    fn planned(&self, index: usize) -> JobPlan {
        self.clients.jobs[index].plan.clone()
    }

    fn owner_or_admin(&mut self, owner: &str) -> Caller {
        let admin = self.random.permille(300);
        Caller { admin, ..user(if admin { "root" } else { owner }) }
    }

    fn ask_submit(&mut self, ask: Ask, job: JobId, spec: JobSpec, caller: Caller) -> Checked {
        let spec = Box::new(spec);
        self.ask_core(ask, |request| Input::Submit { request, job, spec, caller })
    }

    fn is_wanted(&self, ask: Ask) -> bool {
        match ask {
            Ask::Submit(index) => {
                let job = &self.clients.jobs[index];
                !job.accepted && !job.refused && !job.vanished
            }
            Ask::Cancel(index) => !self.clients.jobs[index].cancelled,
            // Nobody would end one that fits no device.
            Ask::Retry(index) => self.clients.jobs[index].plan.spec.device_bytes <= LARGEST,
            Ask::CalmPause(index) => {
                let book = self.ledger.durable.jobs.get(&self.clients.jobs[index].plan.id);
                book.is_some_and(|book| book.ended.is_none())
            }
            _ => true,
        }
    }

    /// The coordinator answers; what it says must be durable by now.
    pub(crate) fn answer(&mut self, ask: Ask, response: Response) -> Checked {
        let response = match ask {
            Ask::CancelAll(_) | Ask::CancelAllForeign(_) => response,
            _ => of_one_job(response),
        };
        let holds = match (ask, &response) {
            (Ask::Cancel(index), Response::Done) => {
                let id = self.clients.jobs[index].plan.id;
                self.is_recorded(|record| {
                    matches!(record, Record::JobEnded { job, state,
                        .. } if *job == id && *state == JobState::Cancelled)
                })
            }
            (Ask::Retry(index), Response::Done) => {
                let id = self.clients.jobs[index].plan.id;
                self.is_recorded(
                    |record| matches!(record, Record::JobRetried { job, .. } if *job == id),
                )
            }
            (Ask::Pause(index) | Ask::CalmPause(index), Response::Done) => {
                let id = self.clients.jobs[index].plan.id;
                self.is_recorded(
                    |record| matches!(record, Record::JobPaused { job, .. } if *job == id),
                )
            }
            (Ask::Budget(1..), Response::Done) => {
                self.is_recorded(|record| matches!(record, Record::CostRulesSet { .. }))
            }
            // It may have got this with its place.
            (Ask::Drain(..), Response::Nodes(rows)) => self.is_recorded(|record| match record {
                Record::NodeDrained { node, drained: true, .. }
                | Record::NodeReplaced { new: node, .. } => {
                    rows.iter().any(|row| row.node == *node)
                }
                _ => false,
            }),
            (Ask::RemoveNode(_), Response::Nodes(rows)) => self.is_recorded(|record| {
                matches!(record, Record::NodeGone { node, how: Gone::Removed, .. }
                    if rows.iter().any(|row| row.node == *node))
            }),
            // It says so already, or a record says that it is different now.
            (Ask::Change(index, changed), Response::Done) => {
                let (plan, wanted) = (&self.clients.jobs[index].plan, changed.change());
                let id = plan.id;
                wanted.clone().apply(&mut plan.spec.clone()).is_empty()
                    || self.is_recorded(|record| {
                        matches!(record, Record::JobChanged { job, change, .. }
                            if *job == id && *change == wanted)
                    })
            }
            _ => true,
        };
        if !holds {
            return violated(format!("{ask:?} is answered {response:?}, which is not durable"));
        }
        if let (Ask::Pause(index) | Ask::CalmPause(index) | Ask::Cancel(index), Response::Done) =
            (ask, &response)
        {
            self.expect_halt(self.clients.jobs[index].plan.id);
        }
        if !self.chance(Fault::ReplyLost) {
            let delay = self.random.between(1, 100);
            self.after(delay, Event::Answer(ask, response));
        }
        Ok(())
    }

    pub(crate) fn on_answer(&mut self, ask: Ask, response: &Response) -> Checked {
        let right = match (ask, response) {
            (Ask::Submit(index), Response::Accepted(job)) => self.on_accepted(index, *job)?,
            (
                Ask::Submit(index),
                Response::Error(RequestError::Invalid(text) | RequestError::NotFound(text)),
            ) => self.on_refused(index, text),
            (Ask::Conflict(_) | Ask::Foreign(_), Response::Error(RequestError::Invalid(_))) => true,
            (Ask::Submit(_) | Ask::Retry(_), Response::Error(RequestError::Unavailable(why))) => {
                self.is_right_of_room(why)
            }
            (Ask::CancelAll(index), Response::Changed(changed)) if changed.refused == 0 => {
                self.on_all_cancelled(index, changed.jobs.len())?
            }
            (Ask::CancelAllForeign(_), Response::Error(RequestError::NotAllowed(_))) => true,
            (Ask::Cancel(index), Response::Done) => {
                self.on_cancelled(index)?;
                true
            }
            // It has ended otherwise.
            (Ask::Cancel(index), Response::Error(RequestError::Invalid(_))) => {
                self.clients.jobs[index].cancelled = true;
                sometimes!(self, CancelTooLate);
                true
            }
            (Ask::Pause(_), Response::Done) => {
                if self.chance(Fault::PauseRepeated) {
                    self.after(10, Event::Ask(ask));
                }
                true
            }
            (
                Ask::Retry(_) | Ask::CalmPause(_) | Ask::Resume(_) | Ask::Budget(_),
                Response::Done,
            ) => true,
            (Ask::Retry(_), Response::Error(RequestError::Invalid(text))) => {
                self.is_right_of_retry(text)
            }
            (
                Ask::Pause(index) | Ask::CalmPause(index) | Ask::Resume(index),
                Response::Error(RequestError::Invalid(_)),
            ) => self.has_ended(index),
            (
                Ask::PauseForeign(_) | Ask::CancelForeign(_) | Ask::RetryForeign(_),
                Response::Error(RequestError::NotAllowed(_)),
            ) => true,
            (Ask::CancelUnknown, Response::Error(RequestError::NotFound(_))) => true,
            // A node may never have joined, or be forgotten.
            (
                Ask::Drain(..) | Ask::Undrain(_) | Ask::RemoveNode(_),
                Response::Nodes(_) | Response::Error(RequestError::NotFound(_)),
            ) => true,
            // Its older self has not been seen gone yet.
            (Ask::Drain(..), Response::Error(RequestError::SeveralNodes(_))) => {
                sometimes!(self, SeveralOfAName);
                true
            }
            // It is connected, or was a moment ago.
            (Ask::RemoveNode(_), Response::Error(RequestError::Invalid(_))) => true,
            _ => self.is_right_of_change(ask, response),
        };
        if right { Ok(()) } else { violated(format!("{ask:?} is answered {response:?}")) }
    }

    /// All jobs of a job's owner are cancelled, or were before.
    fn on_all_cancelled(&mut self, index: usize, count: usize) -> Result<bool, Violation> {
        sometimes!(self, AllCancelled, count > 1);
        let (asked, id) = (self.history.ask(), self.clients.jobs[index].plan.id);
        // The job may have ended before, or be submitted later.
        let book = self.ledger.durable.jobs.get(&id);
        let was = |book: &JobBook| book.ended == Some(JobState::Cancelled) && book.retried == 0;
        if book.is_some_and(was) {
            self.saw(asked, &Seen::Cancelled(id))?;
        }
        Ok(true)
    }

    /// A job is refused where its owner has too many, or has spent a budget.
    fn is_right_of_room(&mut self, text: &str) -> bool {
        let share = text.contains("open jobs, and this job adds 1; one user may have");
        let budget = text.contains("is used up");
        sometimes!(self, ShareReached, share);
        sometimes!(self, BudgetRefuses, budget);
        share || budget
    }

    /// A retry is refused where nothing has failed, where no device is large enough, and where the
    /// job would wait in vain.
    fn is_right_of_retry(&mut self, text: &str) -> bool {
        let (nothing, vain) = (text.contains("nothing to retry"), text.contains(" waits for job "));
        sometimes!(self, RetryNothing, nothing);
        sometimes!(self, AfterRetriedInVain, vain);
        nothing || vain || text.contains("largest device known has")
    }

    fn is_right_of_change(&self, ask: Ask, response: &Response) -> bool {
        match (ask, response) {
            (
                Ask::ChangeForeign(_) | Ask::SubmitRaised(_) | Ask::Change(_, Changed::Raised),
                Response::Error(RequestError::NotAllowed(_)),
            ) => true,
            (Ask::Change(_, changed), Response::Done) => changed != Changed::Raised,
            (Ask::Change(index, _), Response::Error(RequestError::Invalid(_))) => {
                self.has_ended(index)
            }
            _ => false,
        }
    }

    /// The answer is right: it names the job that was submitted.
    fn on_accepted(&mut self, index: usize, job: JobId) -> Result<bool, Violation> {
        let first = !std::mem::replace(&mut self.clients.jobs[index].accepted, true);
        if first && !self.clients.jobs[index].vanished {
            self.go_on_with(index);
            self.give_up_later(index);
        }
        if first {
            self.follow_job(index);
            let asked = self.history.ask();
            self.saw(asked, &Seen::Accepted(job))?;
        }
        Ok(self.clients.jobs[index].plan.id == job)
    }

    /// The answer is right: it says that no device is large enough, or for what it cannot wait.
    fn on_refused(&mut self, index: usize, text: &str) -> bool {
        if text.starts_with("after: ") {
            return self.on_refused_wait(index, text);
        }
        let job = &mut self.clients.jobs[index];
        job.refused = true;
        let too_large = job.plan.spec.device_bytes > LARGEST;
        let both = text.contains("40.0 GiB");
        // Where nothing larger was known at that moment, a smaller one is refused as well.
        let known = text.contains("largest device known has");
        self.tally.count(Fault::JobRefused);
        known && (both || !too_large)
    }

    fn on_cancelled(&mut self, index: usize) -> Checked {
        self.clients.jobs[index].cancelled = !self.chance(Fault::CancelRepeated);
        let (asked, id) = (self.history.ask(), self.clients.jobs[index].plan.id);
        // The answer may have been overtaken by a retry.
        if self.ledger.durable.jobs.get(&id).is_some_and(|book| book.retried == 0) {
            self.saw(asked, &Seen::Cancelled(id))?;
        }
        if self.chance(Fault::RetryOwn) {
            let delay = self.random.between(1, 15_000);
            self.after(delay, Event::Ask(Ask::Retry(index)));
        }
        Ok(())
    }

    /// A job that was accepted while no node was known, and that no device can hold, waits until
    /// its owner ends it.
    fn give_up_later(&mut self, index: usize) {
        let plan = &self.clients.jobs[index].plan;
        if plan.spec.device_bytes > LARGEST {
            let patience = self.random.between(20_000, 60_000);
            self.after(patience, Event::Ask(Ask::Cancel(index)));
        }
    }

    /// Whoever submitted a job sees that a frame of it has failed, and may not wait for the others.
    pub(crate) fn retry_soon(&mut self, job: JobId) {
        let index = self.clients.jobs.iter().position(|known| known.plan.id == job);
        if let Some(index) = index
            && self.chance(Fault::RetryOwn)
        {
            let delay = self.random.between(1, 5_000);
            self.after(delay, Event::Ask(Ask::Retry(index)));
        }
    }

    /// Whoever sees that a job has ended with others lets those run again, and then the job.
    pub(crate) fn retry_with(&mut self, job: JobId, others: &[JobId]) {
        if !self.chance(Fault::RetryOwn) {
            return;
        }
        let mut delay = self.random.between(1, 3_000);
        for id in others.iter().chain([&job]) {
            let index = self.clients.jobs.iter().position(|known| known.plan.id == *id);
            if let Some(index) = index {
                self.after(delay, Event::Ask(Ask::Retry(index)));
            }
            delay += self.random.between(1_000, 6_000);
        }
    }

    fn is_recorded(&self, is_it: impl Fn(&Record) -> bool) -> bool {
        self.disk.history.iter().any(is_it)
    }

    fn has_ended(&self, index: usize) -> bool {
        let book = self.ledger.durable.jobs.get(&self.clients.jobs[index].plan.id);
        book.is_some_and(|book| book.ends > 0)
    }

    /// What else may be asked about a job that was accepted.
    fn go_on_with(&mut self, index: usize) {
        let asks = [
            (Fault::CancelOwn, Ask::Cancel(index)),
            (Fault::CancelForeign, Ask::CancelForeign(index)),
            (Fault::CancelUnknown, Ask::CancelUnknown),
            (Fault::CancelAll, Ask::CancelAll(index)),
            (Fault::CancelAllForeign, Ask::CancelAllForeign(index)),
            (Fault::SubmitConflict, Ask::Conflict(index)),
            (Fault::SubmitForeign, Ask::Foreign(index)),
            (Fault::PauseForeign, Ask::PauseForeign(index)),
            (Fault::RetryForeign, Ask::RetryForeign(index)),
            (Fault::RetryOwn, Ask::Retry(index)),
        ];
        if self.chance(Fault::PauseOwn) {
            let (pause, resume) =
                (self.random.between(1, 25_000), self.random.between(500, 20_000));
            self.after(pause, Event::Ask(Ask::Pause(index)));
            self.after(pause + resume, Event::Ask(Ask::Resume(index)));
        }
        let changes = [
            Changed::Name(self.random.between(1, 9)),
            Changed::Priority([0, 20, 50][self.random.index(3)]),
            Changed::MaxNodes([None, Some(20), Some(60)][self.random.index(3)]),
        ];
        let change = changes[self.random.index(changes.len())];
        let asks = asks.into_iter().chain([
            (Fault::ChangeOwn, Ask::Change(index, change)),
            (Fault::ChangeRaised, Ask::Change(index, Changed::Raised)),
            (Fault::OperatorRaises, Ask::Change(index, Changed::ByOperator)),
            (Fault::ChangeForeign, Ask::ChangeForeign(index)),
            (Fault::SubmitRaised, Ask::SubmitRaised(index)),
        ]);
        for (fault, ask) in asks {
            if self.chance(fault) {
                let delay = self.random.between(1, 40_000);
                self.after(delay, Event::Ask(ask));
            }
        }
    }

    /// An operator has the store checked.
    pub(crate) fn audit(&mut self) -> Checked {
        let (parts, records) = self.disk.load()?;
        let report = Core::audit(parts, records);
        if let Some(problem) = report.problems.first() {
            return violated(format!("the audit finds: {problem}"));
        }
        let frames = self.ledger.durable.jobs.values().flat_map(|job| job.frames.values());
        let committed: usize = frames.map(|frame| frame.sampled()).sum();
        match report.units_committed == committed as u64 {
            true => Ok(()),
            false => violated(format!(
                "the audit counts {} units, {committed} are",
                report.units_committed
            )),
        }
    }
}

fn user(name: &str) -> Caller {
    Caller { name: name.to_owned(), id: name.bytes().map(u64::from).sum(), admin: false }
}

fn other_than(owner: &str) -> &'static str {
    if owner == USERS[0] { USERS[1] } else { USERS[0] }
}
