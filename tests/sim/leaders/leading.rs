//! What a process does that leads: it commits, renews its term, and stops where that is over.

use crate::checks::violation::{Checked, Violation, violated};
use crate::coordinator::Process;
use crate::coordinator::bucket::Kept;
use crate::coordinator::places::place;
use crate::faults::Fault;
use crate::faults::planted::Planted;
use crate::leaders::database::{Group, Kind, Said, Written};
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::Event;
use std::collections::BTreeSet;
use std::time::Duration;
use tessera_coordinator::spool::SpoolKey;
use tessera_coordinator::store::Witness;
use tessera_store_postgres::rules::{
    Answer, Ask, Lead, Place, Recent, Standing, Stop, is_behind, renew_every,
};

/// Pause before the database is asked again, milliseconds.
const PAUSE: u64 = 100;
/// Pause before a term is renewed again, milliseconds.
const RENEW_PAUSE: u64 = 200;
/// How often a term is looked at while there is nothing to commit, milliseconds.
const CHECK_EVERY: u64 = 1_000;

/// A lead.
#[derive(Debug)]
pub(crate) struct Leading {
    pub(crate) lead: Lead<Group>,
    standing: Standing,
    /// The newest results went to its own disk.
    pub(crate) continues: bool,
    /// Frames with results on the disk of the coordinator that led before.
    pub(crate) former: BTreeSet<SpoolKey>,
    is_behind: bool,
    /// The statement that it waits for.
    asked: Option<u64>,
    /// The one that renews its term: when that was asked by its own clock, and the commits before.
    renewing: Option<(u64, Duration, i64)>,
}

impl Leading {
    pub(crate) fn new(
        (epoch, place): (i64, Place),
        standing: Standing,
        kept: usize,
        (continues, former): (bool, BTreeSet<SpoolKey>),
    ) -> Self {
        let lead = Lead::keeping(epoch, place, Recent::with_most(kept));
        Self { lead, standing, continues, former, is_behind: false, asked: None, renewing: None }
    }

    /// What is being committed has results that were put.
    pub(crate) fn has_put(&self) -> bool {
        let group = self.lead.present();
        group.is_some_and(|group| group.steps.iter().any(|of| !of.stored.is_empty()))
    }
}

impl World {
    fn leading(&mut self) -> Option<&mut Leading> {
        self.shell.process.as_mut()?.leading.as_mut()
    }

    fn renew_after(&self) -> u64 {
        let term = self.leaders.as_ref().map_or(1, |leaders| leaders.plan.term);
        renew_every(Duration::from_millis(term)).as_millis() as u64
    }

    /// A process begins to lead.
    pub(crate) fn begin_lead(&mut self) {
        let incarnation = self.shell.incarnation;
        let every = self.renew_after();
        self.after(every, Event::Renew(incarnation));
        self.after(CHECK_EVERY, Event::CheckTerm(incarnation));
    }

    /// Commits all that is pending, unless something is being committed.
    pub(crate) fn begin_commit(&mut self) -> Checked {
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let Process { leading: Some(leading), pending, syncing, known, .. } = process else {
            return violated("a process writes, and does not lead");
        };
        if *syncing > 0 || pending.is_empty() || leading.lead.ask().is_some() {
            return Ok(());
        }
        *syncing = pending.len();
        if self.bucket.is_some() {
            pending.iter_mut().for_each(|of| place(known, of));
        }
        let mut group = Group { head: leading.lead.place().0, ..Group::default() };
        for pending in pending.iter_mut() {
            let results = std::mem::take(&mut pending.results);
            let (stored, here): (Vec<Kept>, Vec<Kept>) =
                results.into_iter().partition(|kept| kept.sent.stored.is_some());
            here.iter().for_each(|kept| self.disk.keep(kept));
            let records = std::mem::take(&mut pending.records);
            group.head += records.len() as i64;
            let (snapshot, places) = (pending.snapshot.take(), std::mem::take(&mut pending.places));
            let finished = pending.finished.clone();
            group.steps.push(Written { records, snapshot, stored, places, finished });
        }
        leading.lead.begin(group);
        if self.chance(Fault::CrashInSync) {
            let end = self.random.between(0, 30);
            self.after(end, Event::Crash(self.shell.incarnation));
        }
        self.ask_database()
    }

    /// Asks the database what the rules want to know.
    pub(crate) fn ask_database(&mut self) -> Checked {
        self.check_own_term()?;
        let Some(leading) = self.leading().filter(|leading| leading.asked.is_none()) else {
            return Ok(());
        };
        let epoch = leading.lead.epoch();
        let kind = match leading.lead.ask() {
            None => return Ok(()),
            Some(Ask::Send(place, group)) => Kind::Commit(epoch, place, group),
            Some(Ask::Look) => Kind::Look,
            Some(Ask::Settle) => Kind::Settle(epoch),
        };
        let number = self.send_statement(self.shell.machine, kind);
        if let Some(leading) = self.leading() {
            leading.asked = Some(number);
        }
        // There are hundreds of opportunities in a run.
        if self.random.permille(200) && self.chance(Fault::StopsInCommit) {
            self.stop_past_term(self.shell.machine);
        }
        Ok(())
    }

    /// The process ends where its term is over by its own clock.
    pub(crate) fn check_own_term(&mut self) -> Checked {
        let blind = self.planted.as_ref().is_some_and(Planted::forgets_term);
        let (machine, now) = (self.shell.machine, self.now);
        let Some(now) = self.leaders.as_ref().map(|leaders| leaders.local(machine, now)) else {
            return Ok(());
        };
        match self.leading().map(|leading| leading.standing.check(now)) {
            Some(Err(stop)) if !blind => self.stop_leading(&stop),
            _ => Ok(()),
        }
    }

    /// The process leads no more, and ends.
    fn stop_leading(&mut self, stop: &Stop) -> Checked {
        self.note(|| format!("it leads no more: {stop}"));
        match stop {
            Stop::TermOver => sometimes!(self, TermOver),
            Stop::OtherLeads { .. } => sometimes!(self, LeadTaken),
            Stop::LostEnd { .. } => return self.name_lost_end(),
        }
        self.end_process()
    }

    /// A database has lost more than can be sent again, and its leader says so: whoever runs the
    /// farm has to know, and the run is over.
    fn name_lost_end(&mut self) -> Checked {
        if self.leaders.as_ref().is_none_or(|leaders| leaders.database.lost.is_empty()) {
            return violated("the database is said to have lost its end, and has not");
        }
        sometimes!(self, LostEndNamed);
        self.over = true;
        Ok(())
    }

    /// One takes the lead of a database that has lost its end: gives whether the run is over. The
    /// folder whose coordinator had answers for more says so when it is there again.
    pub(crate) fn lost_end_is_over(&mut self) -> Result<bool, Violation> {
        let silent = self.planted.as_ref().is_some_and(Planted::hides_lost_end);
        let Some(leaders) = &self.leaders else { return Ok(false) };
        let (database, led) = (&leaders.database, leaders.machines.iter());
        let led: Vec<Witness> = led.filter_map(|machine| machine.led).collect();
        let has_lost = |led: &&Witness| led.has_lost(database.began_after(led));
        let named = !silent && led.iter().any(|led| has_lost(&led));
        if database.lost.is_empty() {
            return match named {
                true => violated("a folder says that commits were lost, and none was"),
                false => Ok(false),
            };
        }
        let promised = led.iter().any(|led| led.commits > database.row.place.1);
        if promised && !named {
            return violated("the database has lost commits that were acknowledged, in silence");
        }
        sometimes!(self, LostEndNamed, named);
        self.over = true;
        Ok(true)
    }

    /// The database has answered the process that is looked at.
    pub(crate) fn on_leader_told(&mut self, number: u64, said: Said) -> Checked {
        let renewal = |leading: &mut Leading| {
            leading.renewing.take_if(|(statement, ..)| *statement == number)
        };
        if let Some((_, asked, taken)) = self.leading().and_then(renewal) {
            return self.on_renewed((asked, taken), said);
        }
        let waited = |leading: &mut Leading| leading.asked.take_if(|asked| *asked == number);
        if self.leading().and_then(waited).is_none() {
            return Ok(());
        }
        // Both the answer and the end of the term are there for one that stood still.
        if self.random.permille(500) {
            self.check_own_term()?;
        }
        let unknown = matches!(said, Said::Unknown);
        let answer = match said {
            Said::Answer(answer) => answer,
            _ => Answer::Unknown,
        };
        let looks = matches!(answer, Answer::Row(_));
        let Some(leading) = self.leading() else { return Ok(()) };
        let stop = leading.lead.answer(answer);
        let (lost, settles) =
            (leading.lead.lost(), matches!(leading.lead.ask(), Some(Ask::Settle)));
        sometimes!(self, HappenedUnanswered, looks && settles);
        sometimes!(self, LostEndFound, lost > 0);
        if let Err(stop) = stop
            && !self.hide(&stop)
        {
            return self.stop_leading(&stop);
        }
        if lost > 0 && self.planted.as_ref().is_some_and(Planted::hides_lost_end) {
            self.hide_lost_end();
        }
        if unknown {
            self.after(PAUSE, Event::AskAgain(self.shell.incarnation));
            return Ok(());
        }
        self.go_on_committing()
    }

    /// Everything is asked, and what was committed is told; or the next thing is asked.
    fn go_on_committing(&mut self) -> Checked {
        let done = self.leading().is_some_and(|leading| leading.lead.ask().is_none());
        if !done {
            return self.ask_database();
        }
        let machine = self.shell.machine;
        let commits = self.leading().map(|leading| leading.lead.place().1);
        let led = self.leaders.as_mut().and_then(|all| all.machines[machine].led.as_mut());
        if let (Some(led), Some(commits)) = (led, commits) {
            led.commits = commits;
        }
        match self.shell.process.as_ref().is_some_and(|process| process.syncing > 0) {
            true => self.on_synced(),
            false => self.begin_commit(),
        }
    }

    /// It is time to renew the term.
    pub(crate) fn renew(&mut self) -> Checked {
        let (machine, now) = (self.shell.machine, self.now);
        let Some(asked) = self.leaders.as_ref().map(|leaders| leaders.local(machine, now)) else {
            return Ok(());
        };
        let Some(leading) = self.leading() else { return Ok(()) };
        let (epoch, taken) = (leading.lead.epoch(), leading.lead.place().1);
        let number = self.send_statement(machine, Kind::Renew(epoch));
        if let Some(leading) = self.leading() {
            leading.renewing = Some((number, asked, taken));
        }
        Ok(())
    }

    fn on_renewed(&mut self, (asked, taken): (Duration, i64), said: Said) -> Checked {
        let (incarnation, every) = (self.shell.incarnation, self.renew_after());
        let term = self.leaders.as_ref().map_or(1, |leaders| leaders.plan.term);
        let Some(leading) = self.leading() else { return Ok(()) };
        match said {
            Said::Renewed(found) => {
                leading.is_behind = is_behind(found, taken);
                leading.standing = Standing::counted(asked, Duration::from_millis(term));
                self.after(every, Event::Renew(incarnation));
            }
            Said::Answer(Answer::Row(row)) => {
                leading.standing = Standing::Lost(row.instead_of(leading.lead.epoch()));
            }
            _ => self.after(RENEW_PAUSE, Event::Renew(incarnation)),
        }
        Ok(())
    }

    /// A process looks at its term, and whether its database has lost something.
    pub(crate) fn check_term(&mut self) -> Checked {
        self.check_own_term()?;
        let incarnation = self.shell.incarnation;
        let Some(process) = &mut self.shell.process else { return Ok(()) };
        let syncing = process.syncing > 0;
        let Some(leading) = &mut process.leading else { return Ok(()) };
        if leading.is_behind && !syncing && leading.lead.ask().is_none() {
            leading.is_behind = false;
            leading.lead.look();
        }
        self.after(CHECK_EVERY, Event::CheckTerm(incarnation));
        self.ask_database()
    }

    /// A bug goes on where the database has lost its end.
    fn hide(&mut self, stop: &Stop) -> bool {
        let hides = self.planted.as_ref().is_some_and(Planted::hides_lost_end)
            && matches!(stop, Stop::LostEnd { .. });
        if hides {
            self.hide_lost_end();
        }
        hides
    }

    fn hide_lost_end(&mut self) {
        let Some(place) = self.leaders.as_ref().map(|leaders| leaders.database.row.place) else {
            return;
        };
        let Some(leading) = self.leading() else { return };
        // As if this were where it had been.
        let mut lead = Lead::new(leading.lead.epoch(), place);
        if let Some(group) = leading.lead.present() {
            let head = place.0 + group.steps.iter().map(|of| of.records.len() as i64).sum::<i64>();
            lead.begin(Group { head, ..Group::clone(group) });
        }
        leading.lead = lead;
    }
}
