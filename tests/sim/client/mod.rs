//! Users and the operator: they submit, repeat, pause, cancel, retry and drain, and check what they
//! are answered.

mod answers;
mod changes;
pub(crate) mod questions;
mod submits;

use crate::checks::violation::{Checked, violated};
use crate::client::changes::{Changed, RAISED};
use crate::faults::Fault;
use crate::faults::planted::Planted;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::Event;
use crate::world::plan::{JobPlan, LARGEST, Plan, USERS};
use crate::world::random::mix;
use tessera_core::{Caller, Core, Input, Selection};
use tessera_protocol::cost::{Amount, AtLimit, Budget, CostRules, Period, Price, Whose};
use tessera_protocol::ids::JobId;
use tessera_protocol::job::JobSpec;
use tessera_protocol::selection::{JobChange, JobSelection};
use tessera_support::inputs::cancel;

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

/// Price of a gigabyte for 30 days, at which a finished frame costs a thousandth in a second.
const STORAGE_PRICE: u64 = 720_000;

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
    // Sometimes space has a price too, and then it has none any more.
    let storage_gb_month = Amount(u64::from(thousandths % 2) * STORAGE_PRICE);
    CostRules { prices: vec![price], budgets, storage_gb_month, ..CostRules::default() }
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
        let number = mix(self.now ^ mix(index as u64));
        let may = self.planted.as_ref().is_none_or(Planted::is_of_waits);
        let change = match number % 4 {
            0 if may => Changed::NotBefore(self.clock().secs() + number / 4 % 60),
            _ => change,
        };
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
