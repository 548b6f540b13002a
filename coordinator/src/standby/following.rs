//! The task of a coordinator that stands by: it looks what is new about twice a second, answers
//! what it is asked meanwhile, and ends when it leads.

use super::rooms::Rooms;
use crate::api::Standing;
use crate::config::Config;
use crate::coordinator_error::CoordinatorError;
use crate::driver::{Event, ReplicaDesk};
use crate::folder::DataFolder;
use crate::fsck;
use crate::opened::{Begin, FollowedState, new_shelf};
use crate::store::{Follow, Followable, Followed, Leading, Loaded, Look, Store, StoreError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_core::{Moment, Record, Replica};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Pause between two looks. A look is a question for one row while nothing is new.
const LOOK_PAUSE: Duration = Duration::from_millis(500);
/// How long before the end of a term it is looked again, so that the lead is taken at once.
const SOON: Duration = Duration::from_millis(10);
/// How often it is told that the store cannot be read.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// A follower on its way to another thread and back.
pub(super) type Follower = Box<dyn Follow>;

/// A state and what it was made of.
pub(super) type Start = (FollowedState, Loaded);

/// Reads the whole state. Blocks.
pub(super) fn load(
    follower: &mut dyn Follow,
    (config, folder): (&Config, &DataFolder),
) -> Result<Start, CoordinatorError> {
    let path = || config.data.clone();
    let (loaded, at) = follower.load()?;
    let (parts, records) = fsck::decode(&loaded)
        .map_err(|problem| CoordinatorError::Journal { path: path(), problem })?;
    let (shelf, settings) = (new_shelf(folder)?, config.settings.clone());
    let replica = Replica::replay_onto(shelf, settings, parts, records, Moment(0))
        .map_err(|source| CoordinatorError::Replay { path: path(), source })?;
    let snapshot_at = loaded.snapshot.as_ref().map_or(0, |(sequence, _)| *sequence);
    Ok((FollowedState { replica, at, snapshot_at }, loaded))
}

/// What a thread for blocking work has done.
enum Done {
    Looked(Box<Result<Look, StoreError>>),
    Loaded(Box<Result<Start, CoordinatorError>>),
    Asked(Result<Box<dyn Store>, StoreError>),
}

/// What is done next.
enum Next {
    Look(Followed),
    Load,
    Lead,
}

/// The task's state.
pub(super) struct Following {
    pub(super) config: Config,
    pub(super) folder: Arc<DataFolder>,
    pub(super) desk: ReplicaDesk,
    pub(super) rooms: Arc<Rooms>,
    pub(super) standing: watch::Sender<Standing>,
    pub(super) warned: Option<Instant>,
}

impl Following {
    /// Runs until this coordinator leads, or cannot any more.
    pub(super) async fn run(
        mut self,
        follower: Follower,
        mut events: mpsc::Receiver<Event>,
    ) -> Result<Begin, CoordinatorError> {
        let mut next = Next::Look(self.desk.at().clone());
        let mut follower = Some(follower);
        let mut pause = Duration::ZERO;
        loop {
            let Some(taken) = follower.take() else { return Err(stopped()) };
            let mut working = self.begin(taken, next, pause);
            let (back, done) = loop {
                tokio::select! {
                    done = &mut working => {
                        break done.map_err(|error| CoordinatorError::Task(error.to_string()))?;
                    }
                    Some(event) = events.recv() => self.desk.on_event(event),
                }
            };
            follower = Some(back);
            (next, pause) = match done {
                Done::Looked(looked) => self.on_look(*looked),
                Done::Loaded(loaded) => self.on_load(*loaded),
                Done::Asked(Ok(journal)) => return self.lead(journal),
                Done::Asked(Err(error)) => self.on_no_lead(error)?,
            };
        }
    }

    /// Begins with what is next, on a thread for blocking work.
    fn begin(
        &self,
        mut follower: Follower,
        next: Next,
        pause: Duration,
    ) -> JoinHandle<(Follower, Done)> {
        let (config, folder) = (self.config.clone(), self.folder.clone());
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let work = move || {
                let done = match next {
                    Next::Look(at) => Done::Looked(Box::new(follower.look(&at))),
                    Next::Load => Done::Loaded(Box::new(load(&mut *follower, (&config, &folder)))),
                    Next::Lead => Done::Asked(config.store.lead(&folder)),
                };
                (follower, done)
            };
            match tokio::task::spawn_blocking(work).await {
                Ok(done) => done,
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        })
    }

    /// Takes over what a look has found.
    fn on_look(&mut self, looked: Result<Look, StoreError>) -> (Next, Duration) {
        let Look { leader, journal, values } = match looked {
            Ok(look) => look,
            Err(error) => {
                self.warn(&error.into());
                return (Next::Look(self.desk.at().clone()), LOOK_PAUSE);
            }
        };
        self.warned = None;
        if let Some(loaded) = values {
            self.take_values(&loaded);
        }
        let applied = match journal {
            Followable::After(records, at) => {
                decoded(&records).and_then(|records| self.desk.apply(&records, at))
            }
            Followable::Elsewhere => Err("the journal does not go on from there".to_owned()),
        };
        if let Err(problem) = applied {
            tracing::info!(problem, "the whole state is read again");
            return (Next::Load, Duration::ZERO);
        }
        let left = leader.left;
        self.note_leader(leader);
        match left <= 0.0 {
            true => (Next::Lead, Duration::ZERO),
            false => {
                let end = Duration::from_secs_f64(left) + SOON;
                (Next::Look(self.desk.at().clone()), LOOK_PAUSE.min(end))
            }
        }
    }

    /// Goes on with a state that was loaded.
    fn on_load(&mut self, loaded: Result<Start, CoordinatorError>) -> (Next, Duration) {
        match loaded {
            Ok((state, loaded)) => {
                self.desk.replace(state);
                self.take_values(&loaded);
                (Next::Look(self.desk.at().clone()), LOOK_PAUSE)
            }
            Err(error) => {
                self.warn(&error);
                (Next::Load, LOOK_PAUSE)
            }
        }
    }

    fn note_leader(&self, leader: Leading) {
        let is_other = self.standing.borrow().leader.owner != leader.owner;
        if is_other {
            tracing::info!(leader = leader.owner, "stands by: another coordinator leads");
        }
        self.standing.send_modify(|standing| {
            (standing.leader, standing.seen) = (leader, Instant::now());
        });
    }

    /// Goes on where another one leads all the same, or it cannot be seen who does.
    fn on_no_lead(&mut self, error: StoreError) -> Result<(Next, Duration), CoordinatorError> {
        match error {
            StoreError::Led { .. } => {}
            error @ StoreError::Service { .. } => self.warn(&error.into()),
            error => return Err(error.into()),
        }
        Ok((Next::Look(self.desk.at().clone()), LOOK_PAUSE))
    }

    fn take_values(&mut self, loaded: &Loaded) {
        if let Err(error) = self.rooms.follow((&self.config, &self.folder), loaded) {
            self.warn(&error);
        }
    }

    fn warn(&mut self, error: &CoordinatorError) {
        if self.warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            self.warned = Some(Instant::now());
            let error = error as &dyn std::error::Error;
            tracing::warn!(error, "the store cannot be followed now; what is shown gets older");
        }
    }

    /// Ends as the one that leads.
    fn lead(self, journal: Box<dyn Store>) -> Result<Begin, CoordinatorError> {
        let Self { folder, desk, rooms, .. } = self;
        drop(rooms);
        let folder = Arc::into_inner(folder).ok_or_else(stopped)?;
        Ok(Begin { folder, journal, followed: Some(desk.into_state()) })
    }
}

fn decoded(records: &[(u64, Vec<u8>)]) -> Result<Vec<Record>, String> {
    let decode = |(sequence, bytes): &(u64, Vec<u8>)| {
        Record::from_bytes(bytes).map_err(|error| format!("record {sequence}: {error}"))
    };
    records.iter().map(decode).collect()
}

fn stopped() -> CoordinatorError {
    CoordinatorError::Task("a part of it is still in use".to_owned())
}
