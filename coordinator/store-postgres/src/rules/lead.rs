//! A leader's way through a commit: what it asks the database next, and what each answer means. It
//! learns from the leader's row what became of a commit without an answer, and sends a database
//! again what that has lost.

use super::recent::{Kept, Place, Recent, Sent};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// The leader's row, as far as the rules look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Number of the lead.
    pub epoch: i64,
    /// The newest record, and the number of commits.
    pub place: Place,
    /// The term lasts, by the database's clock.
    pub lasts: bool,
    /// Who leads, in words.
    pub owner: String,
}

impl Row {
    /// Says why one that led with another epoch, or whose term is over, leads no more.
    pub fn instead_of(&self, epoch: i64) -> Stop {
        match self.epoch == epoch {
            true => Stop::TermOver,
            false => Stop::OtherLeads { owner: self.owner.clone(), epoch: self.epoch },
        }
    }
}

/// What a leader asks the database.
#[derive(Debug)]
pub enum Ask<G> {
    /// To take a commit, where it stands at this place.
    Send(Place, Arc<G>),
    /// For the leader's row.
    Look,
    /// To answer once everything before is as durable as a commit is.
    Settle,
}

/// What the database said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The commit was taken.
    Taken,
    /// The commit's comparison failed: nothing was written.
    Refused,
    /// The leader's row.
    Row(Row),
    /// Everything before is durable; false if another one leads.
    Settled(bool),
    /// No answer. What was asked may have happened, or may still happen.
    Unknown,
}

/// Why a leader leads no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The term was not renewed.
    TermOver,
    /// Another one leads.
    OtherLeads {
        /// Who it is, in words.
        owner: String,
        /// Number of its lead.
        epoch: i64,
    },
    /// The database has lost commits that this leader does not have any more.
    LostEnd {
        /// Where the database is.
        found: Place,
        /// Where it was.
        had: Place,
    },
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TermOver => f.write_str("the database did not renew its term in time"),
            Self::OtherLeads { owner, epoch } => {
                write!(f, "{owner} leads now, with epoch {epoch}")
            }
            Self::LostEnd { found, had } => write!(
                f,
                "the database is at commit {}, record {}, and took commit {}, record {} before: \
                 it has lost its end, as after a takeover by an asynchronous standby",
                found.1, found.0, had.1, had.0
            ),
        }
    }
}

/// What is asked next.
#[derive(Debug)]
enum Step<G> {
    Send,
    Look,
    Settle,
    /// Commits that the database has lost, in order; at least one.
    Again(VecDeque<Kept<G>>),
}

/// One that leads.
#[derive(Debug)]
pub struct Lead<G> {
    epoch: i64,
    place: Place,
    /// What the database has taken last.
    recent: Recent<G>,
    /// The commit that is being made.
    present: Option<Arc<G>>,
    step: Option<Step<G>>,
}

impl<G: Sent> Lead<G> {
    /// Leads with an epoch from a place on.
    pub fn new(epoch: i64, place: Place) -> Self {
        Self::keeping(epoch, place, Recent::default())
    }

    /// The same, with a bound of its own for what is kept.
    pub fn keeping(epoch: i64, place: Place, recent: Recent<G>) -> Self {
        Self { epoch, place, recent, present: None, step: None }
    }

    /// Number of the lead.
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Where the database stood after the newest commit that it has taken.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The commit that is being made.
    pub fn present(&self) -> Option<&Arc<G>> {
        self.present.as_ref()
    }

    /// Begins a commit. There is none before it that is not done.
    pub fn begin(&mut self, group: G) {
        debug_assert!(self.present.is_none());
        (self.present, self.step) = (Some(Arc::new(group)), Some(Step::Send));
    }

    /// Begins to look whether the database has lost something.
    pub fn look(&mut self) {
        debug_assert!(self.step.is_none());
        self.step = Some(Step::Look);
    }

    /// Returns what is to be asked now; None if all is done.
    pub fn ask(&self) -> Option<Ask<G>> {
        match self.step.as_ref()? {
            Step::Send => {
                self.present.as_ref().map(|group| Ask::Send(self.place, Arc::clone(group)))
            }
            Step::Look => Some(Ask::Look),
            Step::Settle => Some(Ask::Settle),
            Step::Again(lost) => {
                lost.front().map(|(before, group)| Ask::Send(*before, Arc::clone(group)))
            }
        }
    }

    /// Whether what is asked now is for a database that has lost commits; how many are to be sent
    /// again.
    pub fn lost(&self) -> usize {
        match &self.step {
            Some(Step::Again(lost)) => lost.len(),
            _ => 0,
        }
    }

    /// Takes the answer to what was asked. Fails if this one leads no more.
    pub fn answer(&mut self, answer: Answer) -> Result<(), Stop> {
        self.step = match (self.step.take(), answer) {
            (None, _) => None,
            (Some(Step::Send), Answer::Taken) | (Some(Step::Settle), Answer::Settled(true)) => {
                self.done();
                None
            }
            (Some(Step::Look), Answer::Row(row)) => self.learn(&row)?,
            (Some(Step::Again(mut lost)), Answer::Taken) => {
                lost.pop_front();
                match lost.is_empty() {
                    true => self.go_on(),
                    false => Some(Step::Again(lost)),
                }
            }
            // What became of it is in the row.
            (Some(_), _) => Some(Step::Look),
        };
        Ok(())
    }

    /// The present commit is durable.
    fn done(&mut self) {
        if let Some(group) = self.present.take() {
            let before = self.place;
            self.place = (group.head(), before.1 + 1);
            self.recent.keep(before, group);
        }
    }

    fn go_on(&self) -> Option<Step<G>> {
        self.present.is_some().then_some(Step::Send)
    }

    /// What the leader's row says of the present commit, and of those before.
    fn learn(&self, row: &Row) -> Result<Option<Step<G>>, Stop> {
        if row.epoch != self.epoch {
            return Err(row.instead_of(self.epoch));
        }
        let after = self.present.as_ref().map(|group| (group.head(), self.place.1 + 1));
        if after == Some(row.place) {
            return Ok(Some(Step::Settle));
        }
        if row.place == self.place {
            return match row.lasts {
                true => Ok(self.go_on()),
                false => Err(Stop::TermOver),
            };
        }
        match self.recent.since(row.place) {
            Some(lost) => Ok(Some(Step::Again(lost))),
            None => Err(Stop::LostEnd { found: row.place, had: self.place }),
        }
    }
}

#[cfg(test)]
#[path = "lead_tests.rs"]
mod tests;
