//! A coordinator that stands by warm: it follows the journal that another one writes, answers what
//! is asked for from it, and goes on from there when it leads. Writes nothing to the store.

mod following;
mod no_store;
mod rooms;

use crate::api::{Api, Standing};
use crate::changes::Publisher;
use crate::clock::Clock;
use crate::config::Config;
use crate::coordinator::{Coordinator, Probe, RunningCoordinator};
use crate::coordinator_error::CoordinatorError;
use crate::driver::{Event, ReplicaDesk};
use crate::folder::DataFolder;
use crate::opened::Begin;
use crate::store::{Leading, StoreError, StoreMark, note_no_lead};
use following::{Follower, Following};
use rooms::Rooms;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Most events that wait for an answer.
const EVENTS_WAITING_MAX: usize = 1024;
/// Pause before a store is tried again that has nothing to follow yet, and how often: a leader that
/// begins has the farm's files there within a second.
const PAUSE: Duration = Duration::from_millis(500);
const TRIES: usize = 10;

/// How a start has begun.
#[derive(Debug)]
pub enum Begun {
    /// It leads.
    Leads(Box<RunningCoordinator>),
    /// Another one does.
    StandsBy(Box<Standby>),
}

/// A coordinator that stands by.
pub struct Standby {
    config: Config,
    rooms: Arc<Rooms>,
    task: JoinHandle<Result<Begin, CoordinatorError>>,
}

impl std::fmt::Debug for Standby {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Standby")
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the first look has found.
enum First {
    Leads(Box<Begin>),
    Follows(Box<(DataFolder, Follower, following::Start)>),
    /// Neither yet.
    Later(DataFolder),
}

impl Standby {
    /// Leads where nobody does, and follows the leader of a shared store otherwise. Without a key
    /// of the farm's files it cannot know who may see anything: then it waits for the lead.
    pub async fn begin(config: Config) -> Result<Begun, CoordinatorError> {
        let mut folder = None;
        let mut tries = 0..TRIES;
        loop {
            let (opened, shared) = (folder.take(), config.clone());
            let is_warm = config.farm_key.is_some() && tries.next().is_some();
            let first = blocking(move || first(&shared, opened, is_warm)).await?;
            match first {
                First::Leads(begin) => {
                    let leads = Coordinator::start_with(config, Some(*begin)).await?;
                    return Ok(Begun::Leads(Box::new(leads)));
                }
                First::Follows(found) => {
                    return Ok(Begun::StandsBy(Box::new(Self::follow(config, *found)?)));
                }
                First::Later(opened) => folder = Some(opened),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn follow(
        config: Config,
        (folder, follower, start): (DataFolder, Follower, following::Start),
    ) -> Result<Self, CoordinatorError> {
        let (clock, (state, loaded)) = (Clock::start(), start);
        let (events, receiver) = mpsc::channel::<Event>(EVENTS_WAITING_MAX);
        let (publisher, changes) = Publisher::new();
        let (leader, seen) = (Leading::default(), Instant::now());
        let (standing, _) = watch::channel(Standing { leader, seen, reads_files: false });
        let asked = (events, changes, clock);
        let rooms = Arc::new(Rooms::open((&config, &folder), &loaded, asked, &standing)?);
        let following = Following {
            config: config.clone(),
            folder: Arc::new(folder),
            desk: ReplicaDesk::new(state, publisher, clock),
            rooms: rooms.clone(),
            standing,
            warned: None,
        };
        let task = tokio::spawn(following.run(follower, receiver));
        Ok(Self { config, rooms, task })
    }

    /// Returns the requests that it answers.
    pub fn api(&self) -> Api {
        Api::new(self.rooms.context.clone())
    }

    /// Returns a view for a supervisor.
    pub fn probe(&self) -> Probe {
        Probe::of(self.rooms.context.events.clone())
    }

    /// Waits until it leads, and goes on as the one that does.
    pub async fn lead(mut self) -> Result<RunningCoordinator, CoordinatorError> {
        let begin = (&mut self.task).await;
        let begin = begin.map_err(|error| CoordinatorError::Task(error.to_string()))??;
        Coordinator::start_with(self.config.clone(), Some(begin)).await
    }
}

/// Tries to lead, and loads the state of whoever does otherwise. Blocks.
fn first(
    config: &Config,
    folder: Option<DataFolder>,
    is_warm: bool,
) -> Result<First, CoordinatorError> {
    let folder = match folder {
        Some(folder) => folder,
        None => DataFolder::open(&config.data)?,
    };
    let follower = if is_warm { config.store.follow(&folder)? } else { None };
    let Some(mut follower) = follower else {
        let journal = config.store.open(&folder, crate::store::Purpose::Run)?;
        return Ok(First::Leads(Box::new(Begin { folder, journal, followed: None })));
    };
    match config.store.lead(&folder) {
        Ok(journal) => {
            return Ok(First::Leads(Box::new(Begin { folder, journal, followed: None })));
        }
        Err(StoreError::Led { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let start = following::load(&mut *follower, (config, &folder))?;
    if start.1.files.is_empty() {
        // The first leader is only beginning.
        return Ok(First::Later(folder));
    }
    if StoreMark::read(&folder)?.is_none() {
        // It gets copies of the farm's files, and must still be known as a folder of this store.
        note_no_lead(&folder)?;
        config.store.adopt(&folder)?;
    }
    Ok(First::Follows(Box::new((folder, follower, start))))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CoordinatorError> + Send + 'static,
) -> Result<T, CoordinatorError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| CoordinatorError::Task(error.to_string()))?
}
