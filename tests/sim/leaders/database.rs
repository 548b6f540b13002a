//! The database of farms with several coordinators: the leader's row, and statements that take
//! their time, get lost on their way or lose their answers. Nothing else of PostgreSQL.

use crate::checks::violation::{Checked, Violation, violated};
use crate::coordinator::Pending;
use crate::coordinator::bucket::Kept;
use crate::coordinator::places::Values;
use crate::faults::Fault;
use crate::faults::planted::Planted;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::Event;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use tessera_coordinator::spool::SpoolKey;
use tessera_coordinator::store::Witness;
use tessera_core::{Record, SnapshotPart};
use tessera_store_postgres::rules::{Answer, Place, Row, Sent, next_epoch};

/// Former rows are kept for so long, milliseconds.
const PAST: u64 = 10_000;
/// Commits that a standby may lack at most.
const APPLIED_MAX: usize = 400;

/// What is written of a step.
#[derive(Clone, Default)]
pub(crate) struct Written {
    pub(crate) records: Vec<Record>,
    /// The state after it, if that was taken.
    pub(crate) snapshot: Option<Vec<SnapshotPart>>,
    /// Results in the bucket, and what changes of where results lie.
    pub(crate) stored: Vec<Kept>,
    pub(crate) places: Values,
    pub(crate) finished: Vec<SpoolKey>,
}

/// A commit, of some steps.
#[derive(Clone, Default)]
pub(crate) struct Group {
    pub(crate) steps: Vec<Written>,
    pub(crate) head: i64,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps up to record {}", self.steps.len(), self.head)
    }
}

impl Sent for Group {
    fn head(&self) -> i64 {
        self.head
    }

    /// All are as large as each other: the plan bounds their number.
    fn bytes(&self) -> usize {
        1
    }
}

/// The leader's row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeaderRow {
    pub(crate) epoch: i64,
    pub(crate) place: Place,
    /// By the database's clock, milliseconds.
    pub(crate) expires_at: u64,
    owner: usize,
}

/// The database.
#[derive(Debug, Default)]
pub(crate) struct Database {
    pub(crate) row: LeaderRow,
    /// Nobody can reach it until then.
    pub(crate) away_until: u64,
    statements: u64,
    /// Leads: the number of each, of the one before it, and the commits when it began.
    leads: Vec<(i64, i64, i64)>,
    /// The newest lead that was ever taken, lost or not.
    pub(super) newest: i64,
    /// Rows of before, and when each was written.
    past: VecDeque<(u64, LeaderRow)>,
    /// The newest commits, and where it stood after each.
    applied: VecDeque<(Place, Arc<Group>)>,
    /// Commits that it has taken and lost, in order.
    pub(crate) lost: VecDeque<Arc<Group>>,
}

/// What a statement is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Take,
    Renew(i64),
    Look,
    Settle(i64),
    Commit(i64, Place, Arc<Group>),
}

/// A statement on its way.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    number: u64,
    from: (usize, u64),
    kind: Kind,
    /// Its answer takes so long, milliseconds; None if it gets lost, or was given up already.
    answer_after: Option<u64>,
    /// Its sender learns after so long that there is no answer.
    given_up_after: Option<u64>,
}

/// What a process hears of the database.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    Answer(Answer),
    /// It leads: the epoch of the lead before, and its own with the place where it begins.
    Took {
        before: i64,
        lead: (i64, Place),
    },
    /// Its term goes on, and there are so many commits.
    Renewed(i64),
    Unknown,
}

impl Database {
    fn note(&mut self, now: u64) {
        self.past.push_back((now, self.row));
        while self.past.front().is_some_and(|(at, _)| at + PAST < now) && self.past.len() > 1 {
            self.past.pop_front();
        }
    }

    /// Commits when the lead began that followed this one, or took its place.
    pub(super) fn began_after(&self, led: &Witness) -> Option<i64> {
        let after =
            self.leads.iter().filter(|(epoch, before, _)| led.is_followed_by((*epoch, *before)));
        after.map(|(.., commits)| *commits).min()
    }

    /// Whether a lead was taken, and is not lost.
    pub(super) fn knows(&self, lead: i64) -> bool {
        self.leads.iter().any(|(epoch, ..)| *epoch == lead)
    }

    fn row(&self, now: u64) -> Row {
        let LeaderRow { epoch, place, expires_at, owner } = self.row;
        Row { epoch, place, lasts: now < expires_at, owner: format!("coordinator {owner}") }
    }

    /// A standby takes over that lacks what is younger than so many milliseconds.
    pub(super) fn fail_over(&mut self, now: u64, lag: u64) -> usize {
        let known = self.past.iter().rev().find(|(at, _)| at + lag <= now);
        let Some((_, row)) = known.copied().filter(|_| self.lost.is_empty()) else { return 0 };
        while let Some((_, group)) = self.applied.pop_back_if(|(after, _)| after.1 > row.place.1) {
            self.lost.push_front(group);
        }
        self.past.retain(|(at, _)| at + lag <= now);
        self.row = row;
        self.leads.retain(|(epoch, ..)| *epoch <= row.epoch);
        self.lost.len()
    }
}

impl World {
    /// A process sends a statement; gives its number.
    pub(crate) fn send_statement(&mut self, machine: usize, kind: Kind) -> u64 {
        let slow = self.chance(Fault::StatementSlow);
        let delay = if slow { self.random.between(500, 6_000) } else { self.random.between(1, 20) };
        let later = self.random.between(10, 2_000);
        let (lost, unanswered, late) = (
            self.chance(Fault::StatementLost),
            self.chance(Fault::AnswerLost),
            self.chance(Fault::StatementLate),
        );
        let Some(leaders) = &mut self.leaders else { return 0 };
        leaders.database.statements += 1;
        let number = leaders.database.statements;
        let known = &leaders.machines[machine];
        let from = (machine, known.process);
        let reaches =
            known.no_database_until <= self.now && leaders.database.away_until <= self.now;
        let statement = |answer_after, given_up_after| {
            let kind = kind.clone();
            Event::Statement(Box::new(Statement {
                number,
                from,
                kind,
                answer_after,
                given_up_after,
            }))
        };
        let unknown = Event::Said(from, number, Box::new(Said::Unknown));
        if !reaches || lost {
            self.after(if reaches { later } else { 50 + later / 4 }, unknown);
        } else if late {
            self.after(delay, unknown);
            self.after(delay + 2 * later, statement(None, None));
        } else if unanswered {
            self.after(delay, statement(None, Some(later)));
        } else {
            self.after(delay, statement(Some(delay / 2), Some(later)));
        }
        number
    }

    /// A statement happens, if the database is there.
    pub(crate) fn on_statement(&mut self, statement: Statement) -> Checked {
        let Some(leaders) = &mut self.leaders else { return Ok(()) };
        let Statement { number, from, kind, answer_after, given_up_after } = statement;
        let unknown = Box::new(Said::Unknown);
        if self.now < leaders.database.away_until {
            if let Some(after) = given_up_after {
                self.after(after, Event::Said(from, number, unknown));
            }
            return Ok(());
        }
        let said = match kind {
            Kind::Commit(epoch, place, group) => self.execute_commit(epoch, place, group)?,
            kind => self.execute(from.0, kind),
        };
        let answered = answer_after.map(|after| (after, Box::new(said)));
        if let Some((after, said)) = answered.or(given_up_after.map(|after| (after, unknown))) {
            self.after(after, Event::Said(from, number, said));
        }
        Ok(())
    }

    fn execute(&mut self, machine: usize, kind: Kind) -> Said {
        let (now, drawn) = (self.now, u128::from(self.random.next()));
        let blind = self.planted.as_ref().is_some_and(Planted::forgets_term);
        let Some(leaders) = &mut self.leaders else { return Said::Unknown };
        let (term, database) = (leaders.plan.term, &mut leaders.database);
        let lasts = now < database.row.expires_at;
        let said = match kind {
            Kind::Take if !lasts => {
                let before = database.row.epoch;
                database.row.epoch = next_epoch(before, drawn);
                database.newest = database.row.epoch;
                database.leads.push((database.row.epoch, before, database.row.place.1));
                (database.row.expires_at, database.row.owner) = (now + term, machine);
                Said::Took { before, lead: (database.row.epoch, database.row.place) }
            }
            Kind::Renew(epoch) if epoch == database.row.epoch && lasts => {
                database.row.expires_at = now + term;
                Said::Renewed(database.row.place.1)
            }
            Kind::Renew(_) if blind => Said::Renewed(database.row.place.1),
            Kind::Settle(epoch) => Said::Answer(Answer::Settled(epoch == database.row.epoch)),
            _ => Said::Answer(Answer::Row(database.row(now))),
        };
        database.note(now);
        said
    }

    /// A commit's one statement: it compares epoch, place and term, moves the row, and writes the
    /// rest only if that held.
    fn execute_commit(
        &mut self,
        epoch: i64,
        place: Place,
        group: Arc<Group>,
    ) -> Result<Said, Violation> {
        let now = self.now;
        let (no_term, no_head) = self
            .planted
            .as_ref()
            .map_or((false, false), |planted| (planted.forgets_term(), planted.forgets_head()));
        let Some(leaders) = &mut self.leaders else { return Ok(Said::Unknown) };
        let database = &mut leaders.database;
        let leads = epoch == database.row.epoch;
        let in_term = leads && now < database.row.expires_at;
        let follows = place == database.row.place;
        if !(in_term || no_term) || !(follows || no_head) {
            sometimes!(self, CommitFenced, !leads);
            sometimes!(self, CommitTwice, leads && !follows);
            return Ok(Said::Answer(Answer::Refused));
        }
        if !in_term {
            let leader = database.row.epoch;
            return violated(format!(
                "a commit of lead {epoch} is taken without a term; lead {leader} is the newest"
            ));
        }
        let after = (group.head, database.row.place.1 + 1);
        if let Some(first) = database.lost.pop_front() {
            if !Arc::ptr_eq(&first, &group) {
                return violated("a commit follows an end that was lost, and nobody has said so");
            }
            sometimes!(self, LostEndRepaired, database.lost.is_empty());
            (database.row.place, _) = (after, database.applied.push_back((after, group)));
        } else {
            database.row.place = after;
            database.applied.push_back((after, group.clone()));
            if database.applied.len() > APPLIED_MAX {
                database.applied.pop_front();
            }
            self.write_group(&group)?;
        }
        if let Some(leaders) = &mut self.leaders {
            leaders.database.note(now);
        }
        Ok(Said::Answer(Answer::Taken))
    }

    fn write_group(&mut self, group: &Group) -> Checked {
        for step in &group.steps {
            let Written { records, snapshot, stored, places, finished } = step.clone();
            let pending = Pending { records, snapshot, places, finished, ..Pending::default() };
            self.write(&mut Pending { results: stored, ..pending })?;
        }
        Ok(())
    }
}
