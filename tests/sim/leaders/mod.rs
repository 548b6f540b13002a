//! Farms whose state is in a database: two or three coordinators, of which one leads for a term by
//! the database's clock and the others stand by. What a leader asks, and what the answers mean, is
//! decided by the rules that the store has as well (`tessera_store_postgres::rules`).

pub(crate) mod database;
mod faults;
pub(crate) mod leading;
mod places;

use crate::checks::violation::{Checked, violated};
use crate::coordinator::Shell;
use crate::coordinator::disk::Spools;
use crate::faults::Fault;
use crate::leaders::database::{Database, Kind, Said};
use crate::leaders::leading::Leading;
use crate::model::books::Books;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::Event;
use crate::world::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tessera_coordinator::spool::SpoolKey;
use tessera_coordinator::store::{Witness, leads_on};
use tessera_core::{Action, Core};
use tessera_protocol::ids::{Epoch, UnitIndex};
use tessera_protocol::node::CoordinatorToNode;
use tessera_store_postgres::rules::Standing;

/// Pause between two attempts of one that stands by, milliseconds.
const STAND_BY_PAUSE: u64 = 500;
/// What a folder notes whose coordinator has never led.
const NEVER_LED: i64 = -1;
/// A machine's monotonic clock when a run begins.
const UPTIME: u64 = 1_000_000;

/// What a seed says of the coordinators of a farm whose state is in a database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LedPlan {
    pub(crate) machines: usize,
    /// Milliseconds.
    pub(crate) term: u64,
    /// Standbys of the database have a commit before its answer.
    pub(crate) synchronous: bool,
    /// Commits that a leader keeps to send them again.
    pub(crate) kept: usize,
}

impl LedPlan {
    /// Draws a plan; of some seeds there is none, and the coordinator has a journal of its own.
    pub(crate) fn of(mut random: Random, heal_at: u64) -> Option<Self> {
        random.permille(400).then(|| Self {
            machines: random.between(2, 3) as usize,
            term: if heal_at > 60_000 { 15_000 } else { random.between(3_000, 8_000) },
            synchronous: random.permille(400),
            kept: [1, 4, 64, 64][random.index(4)],
        })
    }
}

/// All coordinators, and the database.
#[derive(Debug)]
pub(crate) struct Leaders {
    pub(crate) plan: LedPlan,
    pub(crate) database: Database,
    pub(crate) machines: Vec<Machine>,
    /// Results that a start found lost with a disk, and dropped from the journal, by their frames.
    /// The record of it is the first commit of a lead, and may never come.
    pub(crate) dropped: BTreeMap<SpoolKey, BTreeSet<(UnitIndex, Epoch)>>,
    /// Processes that led before the present one and have not noticed their end.
    parked: BTreeMap<u64, Parked>,
}

/// A coordinator's machine.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Its data folder, while another machine's is the one that is looked at.
    spools: Spools,
    /// The note in it of its last lead.
    pub(crate) led: Option<Witness>,
    /// Its wall clock, milliseconds beside the true time.
    clock_offset: i64,
    /// Its monotonic clock is so much too fast, of a hundred thousand.
    drift: i64,
    /// Its monotonic clock stood still for so long, milliseconds.
    pub(crate) paused: u64,
    /// Counts the processes.
    pub(crate) process: u64,
    pub(crate) doing: Doing,
    /// The process stands still until then.
    pub(crate) stopped_until: u64,
    /// The process stood still, or its clock did.
    pub(crate) was_stopped: bool,
    deferred: Vec<Event>,
    /// It cannot reach the database until then, nor nodes and clients it.
    pub(crate) no_database_until: u64,
    pub(crate) no_nodes_until: u64,
}

/// What a machine's process does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Doing {
    /// There is none.
    Nothing,
    /// It waits to lead; since when, by its own clock, it has asked for the lead last.
    StandingBy { statement: u64, asked: Duration },
    /// It leads, or did and has not noticed its end, as this process of all coordinators.
    Leading(u64),
}

/// A process that led, and what it believes.
#[derive(Debug, Default)]
struct Parked {
    shell: Shell,
    believed: Books,
}

impl Leaders {
    pub(crate) fn new(plan: LedPlan, random: &mut Random) -> Self {
        let machine = |random: &mut Random| Machine {
            spools: Spools::default(),
            led: None,
            clock_offset: random.between(0, 4_000) as i64 - 2_000,
            drift: [0, 0, 30, -30, -2_000][random.index(5)],
            paused: 0,
            process: 0,
            doing: Doing::Nothing,
            stopped_until: 0,
            was_stopped: false,
            deferred: Vec::new(),
            no_database_until: 0,
            no_nodes_until: 0,
        };
        Self {
            plan,
            database: Database::default(),
            machines: (0..plan.machines).map(|_| machine(random)).collect(),
            dropped: BTreeMap::new(),
            parked: BTreeMap::new(),
        }
    }

    /// The time by a machine's monotonic clock.
    pub(crate) fn local(&self, machine: usize, now: u64) -> Duration {
        let Machine { drift, paused, .. } = self.machines[machine];
        let beside = (now as i64 * drift / 100_000) - paused as i64;
        Duration::from_millis((UPTIME + now).saturating_add_signed(beside))
    }
}

impl World {
    pub(crate) fn start_machines(&mut self) {
        let count = self.leaders.as_ref().map_or(0, |leaders| leaders.machines.len());
        for machine in 0..count {
            let at = self.random.between(0, 3_000);
            self.after(at, Event::MachineStarts(machine));
        }
    }

    /// A coordinator's process begins, and stands by.
    pub(crate) fn start_machine(&mut self, machine: usize) {
        let Some(leaders) = &mut self.leaders else { return };
        if leaders.machines[machine].doing == Doing::Nothing {
            leaders.machines[machine].process += 1;
            self.ask_for_lead(machine);
        }
    }

    /// One that stands by asks for the lead.
    pub(crate) fn stand_by(&mut self, machine: usize, process: u64) {
        let Some(leaders) = &self.leaders else { return };
        let known = &leaders.machines[machine];
        if known.process == process && matches!(known.doing, Doing::StandingBy { .. }) {
            self.ask_for_lead(machine);
        }
    }

    fn ask_for_lead(&mut self, machine: usize) {
        let statement = self.send_statement(machine, Kind::Take);
        let Some(leaders) = &mut self.leaders else { return };
        let asked = leaders.local(machine, self.now);
        leaders.machines[machine].doing = Doing::StandingBy { statement, asked };
    }

    /// A machine's process ends; another one begins after a while.
    pub(crate) fn end_machine(&mut self, machine: usize, away: u64) {
        let Some(leaders) = &mut self.leaders else { return };
        let ended = &mut leaders.machines[machine];
        (ended.doing, ended.stopped_until, ended.was_stopped) = (Doing::Nothing, 0, false);
        ended.process += 1;
        ended.deferred.clear();
        self.note(|| format!("coordinator {machine} ends, for {away} ms"));
        self.after(away, Event::MachineStarts(machine));
    }

    /// The database has said something to a process.
    pub(crate) fn on_said(
        &mut self,
        (machine, process): (usize, u64),
        number: u64,
        said: Said,
    ) -> Checked {
        let Some(leaders) = &self.leaders else { return Ok(()) };
        let known = &leaders.machines[machine];
        if known.process != process {
            return Ok(());
        }
        match known.doing {
            Doing::Nothing => Ok(()),
            Doing::Leading(incarnation) => {
                self.as_process(incarnation, |world| world.on_leader_told(number, said))
            }
            Doing::StandingBy { statement, asked } if statement == number => match said {
                Said::Took { before, lead } => self.take_over(machine, before, (lead, asked)),
                Said::Unknown => {
                    // It may lead, and does not know.
                    let away = self.random.between(100, 3_000);
                    self.end_machine(machine, away);
                    Ok(())
                }
                _ => {
                    self.after(STAND_BY_PAUSE, Event::StandBy(machine, process));
                    Ok(())
                }
            },
            Doing::StandingBy { .. } => Ok(()),
        }
    }

    /// A machine leads from now on: its process reads what the database has.
    fn take_over(
        &mut self,
        machine: usize,
        before: i64,
        ((epoch, place), asked): ((i64, (i64, i64)), Duration),
    ) -> Checked {
        if self.leaders.as_ref().is_some_and(|all| all.database.row.epoch != epoch) {
            self.lead_in_vain(machine, Witness { epoch, before, commits: place.1 });
            return Ok(());
        }
        if self.lost_end_is_over()? {
            return Ok(());
        }
        self.park();
        let former = self.disk.spool_keys().into_keys().collect();
        let Some(leaders) = &mut self.leaders else { return Ok(()) };
        let from = self.shell.machine;
        if from != machine {
            leaders.machines[from].spools = self.disk.change_spools(Spools::default());
            let own = std::mem::take(&mut leaders.machines[machine].spools);
            self.disk.change_spools(own);
        }
        let taken = &mut leaders.machines[machine];
        let last = taken.led.map_or(NEVER_LED, |led| led.epoch);
        let continues = leads_on(Some(last), before, true);
        self.shell = Shell { machine, clock_offset: taken.clock_offset, ..Shell::default() };
        taken.led = Some(Witness { epoch, before, commits: place.1 });
        taken.doing = Doing::Leading(self.incarnations + 1);
        let term = Duration::from_millis(leaders.plan.term);
        let (counted, kept) = (Standing::counted(asked, term), leaders.plan.kept);
        let leading = Leading::new((epoch, place), counted, kept, (continues, former));
        if !continues {
            self.disk.change_spools(Spools::default());
        }
        self.tally.count(Fault::Takeover);
        sometimes!(self, LedAgain, last == before);
        self.ledger.believed = self.ledger.durable.clone();
        self.restart_as(Some(leading))
    }

    /// A takeover was lost with the database's end, or its answer came after another one's: the
    /// folder is that of a new lead, whose first commit is refused.
    fn lead_in_vain(&mut self, machine: usize, led: Witness) {
        let Some(leaders) = &mut self.leaders else { return };
        let known = &mut leaders.machines[machine];
        if !leads_on(Some(known.led.map_or(NEVER_LED, |led| led.epoch)), led.before, true) {
            known.spools = Spools::default();
        }
        known.led = Some(led);
        let away = self.random.between(100, 3_000);
        self.end_machine(machine, away);
    }

    /// A process that has not noticed its end is put aside.
    fn park(&mut self) {
        if self.shell.process.is_none() {
            return;
        }
        sometimes!(self, TwoBelieve);
        let shell = std::mem::take(&mut self.shell);
        let believed = std::mem::take(&mut self.ledger.believed);
        // Its machine's spools stay where they are looked at until another one's are.
        self.shell.machine = shell.machine;
        if let Some(leaders) = &mut self.leaders {
            leaders.parked.insert(shell.incarnation, Parked { shell, believed });
        }
    }

    /// Does something as a process of a coordinator, if it is there.
    pub(crate) fn as_process(
        &mut self,
        incarnation: u64,
        act: impl FnOnce(&mut Self) -> Checked,
    ) -> Checked {
        if self.shell.process.is_some() && self.shell.incarnation == incarnation {
            return act(self);
        }
        let parked = self.leaders.as_mut().and_then(|all| all.parked.remove(&incarnation));
        let Some(parked) = parked else { return Ok(()) };
        let front = self.change_process(parked);
        let acted = act(self);
        let back = self.change_process(front);
        if let Some(leaders) = &mut self.leaders
            && back.shell.process.is_some()
        {
            leaders.parked.insert(incarnation, back);
        }
        acted
    }

    fn change_process(&mut self, other: Parked) -> Parked {
        let (from, to) = (self.shell.machine, other.shell.machine);
        let shell = std::mem::replace(&mut self.shell, other.shell);
        let believed = std::mem::replace(&mut self.ledger.believed, other.believed);
        if let Some(leaders) = self.leaders.as_mut().filter(|_| from != to) {
            let spools = std::mem::take(&mut leaders.machines[to].spools);
            leaders.machines[from].spools = self.disk.change_spools(spools);
        }
        Parked { shell, believed }
    }

    /// The core of a process of a coordinator, if it is there.
    pub(crate) fn core_of(&self, incarnation: u64) -> Option<&Core> {
        let shell = match self.shell.incarnation == incarnation {
            true => Some(&self.shell),
            false => self.leaders.as_ref()?.parked.get(&incarnation).map(|parked| &parked.shell),
        };
        Some(&shell?.process.as_ref()?.core)
    }

    /// Another one has taken the lead from the process that is looked at, even if the database has
    /// lost that again.
    pub(crate) fn is_stale(&self) -> bool {
        let lead = self.shell.process.as_ref().and_then(|process| process.leading.as_ref());
        match (&self.leaders, lead) {
            (Some(leaders), Some(leading)) => leaders.database.newest != leading.lead.epoch(),
            _ => false,
        }
    }

    /// What a leader tells of its commits is told in its term. One that stood still, or whose clock
    /// did, may tell late what it knew.
    pub(crate) fn check_lead(&mut self, action: &Action) -> Checked {
        self.ledger.stale = self.is_stale();
        let tells = match action {
            Action::Send { message, .. } => {
                use CoordinatorToNode::{Committed, Forget};
                matches!(message, Committed { .. } | Forget { .. })
            }
            action => matches!(action, Action::Reply { .. }),
        };
        let told_late = tells && self.ledger.stale;
        let Some(leaders) = self.leaders.as_ref().filter(|_| told_late) else {
            return Ok(());
        };
        let known = &leaders.machines[self.shell.machine];
        // Where the database has lost its takeover, its term binds nobody.
        if known.led.is_some_and(|led| !leaders.database.knows(led.epoch)) {
            return Ok(());
        }
        if !known.was_stopped && known.drift >= 0 {
            let machine = self.shell.machine;
            return violated(format!("coordinator {machine} acknowledges, and another one leads"));
        }
        sometimes!(self, ToldLate);
        Ok(())
    }
}
