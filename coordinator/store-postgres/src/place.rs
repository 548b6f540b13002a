//! The store as a place that a coordinator opens: makes its tables, takes the lead, and sees that
//! the data folder belongs to it.

use crate::address::StoreAddress;
use crate::clock::uptime;
use crate::connection::Link;
use crate::follower::PostgresFollower;
use crate::leader::{Leader, Name};
use crate::link_error::LinkError;
use crate::setup::{self, Setup};
use crate::store::PostgresStore;
use crate::{reader, schema};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tessera_coordinator::folder::DataFolder;
use tessera_coordinator::store::{
    Acknowledged, Follow, Purpose, Store, StoreError, StoreMark, StorePlace, Survey, Witness,
    last_lead, note_lead,
};
use tokio::runtime::Runtime;

/// Pause between two looks at the leader while one waits.
const LOOK_PAUSE: Duration = Duration::from_millis(500);
/// How often it is told who leads.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// A store on PostgreSQL.
#[derive(Debug)]
pub struct PostgresPlace {
    address: Arc<StoreAddress>,
    name: Arc<Name>,
    stand_by: bool,
    ended: AtomicBool,
    /// Secret of the newest term that was taken.
    key: Mutex<Vec<u8>>,
}

impl PostgresPlace {
    /// A store at this address, which has its password. `owner` says to people who leads. With
    /// `stand_by`, an open waits while another one leads.
    pub fn new(address: StoreAddress, owner: String, stand_by: bool) -> Self {
        let (address, name) = (Arc::new(address), Name::new(owner));
        let (ended, key) = (AtomicBool::new(false), Mutex::default());
        Self { address, name, stand_by, ended, key }
    }

    /// Ends the wait of an open.
    pub fn stop_waiting(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    fn store(&self) -> String {
        self.address.to_string()
    }

    fn failed(&self, problem: &str, error: LinkError) -> StoreError {
        let (problem, hint) = (problem.to_owned(), error.hint());
        StoreError::Service { store: self.store(), problem, hint, source: Some(Box::new(error)) }
    }

    fn runtime(&self) -> Result<Runtime, StoreError> {
        let built = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tessera-postgres")
            .enable_all()
            .build();
        built.map_err(|error| self.failed("no thread", LinkError::Setup(error.to_string())))
    }

    fn other_farm(&self, folder: &DataFolder, why: &'static str) -> StoreError {
        let path = folder.root().to_path_buf();
        StoreError::OtherFarm { path, store: self.store(), why }
    }

    /// Fails unless the folder is of this store, or both are new, or the folder is and the store
    /// has what it lacks.
    async fn check_folder(
        &self,
        folder: &DataFolder,
        (link, leader): (&Link, &Leader),
        purpose: Purpose,
    ) -> Result<(), StoreError> {
        let has_files = setup::has_files(link).await;
        let has_files = has_files.map_err(|error| self.failed("it cannot be read", error))?;
        let mark = StoreMark::read(folder)?;
        let led_last = last_lead(folder)?.is_none_or(|epoch| epoch == leader.epoch);
        let why = match mark {
            Some(mark) if mark.id == leader.farm && purpose == Purpose::CopyFrom && !led_last => {
                "another coordinator led it last, and has results of frames in work in its own \
                 folder: give that, or start a coordinator on this one, and stop it"
            }
            Some(mark) if mark.id == leader.farm => return Ok(()),
            Some(_) => "the folder is of another store; give that one",
            None if purpose == Purpose::CopyTo => return Ok(()),
            None if folder.sled().join("db").exists() => {
                "the folder has a journal of its own; `tessera store migrate` copies it to a store"
            }
            None if folder.authority().exists() && leader.commits > 0 => {
                "the folder is of another farm, and has its authority; give an empty one"
            }
            None if has_files => return Ok(()),
            None if leader.commits > 0 || purpose == Purpose::CopyFrom => {
                "the store has the state of a farm with another folder, which alone has the farm's \
                 authority; give that folder, or start its coordinator once with --farm-key"
            }
            None => return Ok(()),
        };
        Err(self.other_farm(folder, why))
    }

    /// Connects, makes the tables, and checks that the folder is of the store.
    async fn connect(
        &self,
        folder: &DataFolder,
        purpose: Purpose,
    ) -> Result<(Link, Leader), StoreError> {
        let unusable = |error| self.failed("it cannot be opened", error);
        let link = Link::open(&self.address).await.map_err(unusable)?;
        self.check_promises(&link).await?;
        schema::prepare(&link).await.map_err(unusable)?;
        Leader::begin(&link).await.map_err(unusable)?;
        let leader = Leader::look(&link).await.map_err(unusable)?;
        self.check_folder(folder, (&link, &leader), purpose).await?;
        Ok((link, leader))
    }

    /// Connects, and takes the lead. With `waits`, it is waited for.
    async fn take(
        &self,
        folder: &DataFolder,
        (purpose, waits): (Purpose, bool),
    ) -> Result<(Link, (i64, Leader), Duration), StoreError> {
        let unusable = |error| self.failed("it cannot be opened", error);
        let (link, mut leader) = self.connect(folder, purpose).await?;
        let mut told: Option<Instant> = None;
        loop {
            let asked = uptime();
            let before = leader.epoch;
            let taken = Leader::take(&link, &self.name, self.address.term, before).await;
            if let Some(leader) = taken.map_err(unusable)? {
                let (store, epoch) = (self.store(), leader.epoch);
                tracing::info!(store, epoch, head = leader.head, "this coordinator leads");
                return Ok((link, (before, leader), asked));
            }
            leader = Leader::look(&link).await.map_err(unusable)?;
            if !waits {
                let (leader, secs) = (leader.owner, leader.left.max(0.0));
                return Err(StoreError::Led { store: self.store(), leader, secs });
            }
            if told.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
                tracing::info!(leader = &leader.owner, "stands by: another coordinator leads");
                told = Some(Instant::now());
            }
            if self.ended.load(Ordering::Relaxed) {
                return Err(StoreError::Waited { store: self.store() });
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    /// Says that the database has lost commits that this folder's coordinator had answers for, if
    /// it has: a standby took over that lacked them, and no leader was there to send them again.
    async fn name_lost_end(&self, link: &Link, led: Witness) -> Result<(), StoreError> {
        let began = Leader::began_after(link, led).await;
        let began = began.map_err(|error| self.failed("it cannot be read", error))?;
        if led.has_lost(began) {
            tracing::error!(
                acknowledged = led.commits,
                kept = began,
                "the database has lost its end: it had said of more commits than it has now that \
                 they are durable, as before a takeover by an asynchronous standby. What these \
                 commits said is gone: jobs that were accepted, results and changes of the last \
                 moments before; set `synchronous_standby_names`"
            );
        }
        Ok(())
    }

    fn open_as(
        &self,
        folder: &DataFolder,
        (purpose, waits): (Purpose, bool),
    ) -> Result<Box<dyn Store>, StoreError> {
        let runtime = self.runtime()?;
        let taken = runtime.block_on(self.take(folder, (purpose, waits)));
        let (link, (before, leader), asked) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                runtime.shutdown_background();
                return Err(error);
            }
        };
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&leader.key);
        let mark = StoreMark { id: leader.farm, address: self.store() };
        let former = StoreMark::read(folder)?;
        if let Some(led) = Acknowledged::read(folder, leader.farm) {
            runtime.block_on(self.name_lost_end(&link, led))?;
        }
        let continues = note_lead(folder, (leader.epoch, before, former.is_some()), purpose)?;
        let led = Witness { epoch: leader.epoch, before, commits: leader.commits };
        let acknowledged = Acknowledged::begin(folder, leader.farm, led)?;
        let lead = ((before, leader), asked, continues, acknowledged);
        let name = self.name.clone();
        let store = PostgresStore::lead((self.address.clone(), name), runtime, link, lead);
        if purpose == Purpose::Run && former != Some(mark.clone()) {
            mark.write(folder)?;
        }
        Ok(Box::new(store))
    }

    /// Fails where answers are lost at a power cut, and says what else cannot be promised.
    async fn check_promises(&self, link: &Link) -> Result<(), StoreError> {
        let setup = Setup::of_database(link).await;
        let setup = setup.map_err(|error| self.failed("it cannot be opened", error))?;
        if let Some(name) = setup.off.first() {
            let text = format!("`{name}` is off, so a power cut would lose what it has taken");
            return Err(self.failed("it cannot keep promises", LinkError::Setup(text)));
        }
        if setup.copies.are_asynchronous() {
            tracing::warn!(
                standbys = setup.copies.standbys.len(),
                "the database's standbys are asynchronous: one that takes over may lack the \
                 newest commits, and only a coordinator that goes on can send them again; set \
                 `synchronous_standby_names` (`tessera doctor --store` says more)"
            );
        }
        Ok(())
    }

    /// Looks at the database and at the farm in it, and changes nothing. Blocks.
    pub fn setup(&self) -> Result<Setup, StoreError> {
        let runtime = self.runtime()?;
        let found = runtime.block_on(async {
            let link = Link::open(&self.address).await?;
            Setup::of(&link).await
        });
        runtime.shutdown_background();
        found.map_err(|error| self.failed("it cannot be opened", error))
    }

    async fn look(&self, folder: &DataFolder) -> Result<Survey, StoreError> {
        let unreadable = |error| self.failed("it cannot be read", error);
        let link = Link::open(&self.address).await.map_err(unreadable)?;
        schema::expect(&link).await.map_err(unreadable)?;
        let before = Leader::look(&link).await.map_err(unreadable)?;
        self.check_folder(folder, (&link, &before), Purpose::CopyFrom).await?;
        let led = |leader: Leader| StoreError::Led {
            store: self.store(),
            secs: leader.left.max(0.0),
            leader: leader.owner,
        };
        if before.left > 0.0 {
            return Err(led(before));
        }
        let (_, mut survey) = reader::survey(&link).await.map_err(unreadable)?;
        reader::survey_audit(&link, &mut survey).await.map_err(unreadable)?;
        let after = Leader::look(&link).await.map_err(unreadable)?;
        match after.epoch == before.epoch {
            true => Ok(survey),
            false => Err(led(after)),
        }
    }
}

impl StorePlace for PostgresPlace {
    fn describe(&self, _: &DataFolder) -> String {
        self.store()
    }

    fn open(&self, folder: &DataFolder, purpose: Purpose) -> Result<Box<dyn Store>, StoreError> {
        self.open_as(folder, (purpose, self.stand_by))
    }

    fn lead(&self, folder: &DataFolder) -> Result<Box<dyn Store>, StoreError> {
        self.open_as(folder, (Purpose::Run, false))
    }

    fn follow(&self, folder: &DataFolder) -> Result<Option<Box<dyn Follow>>, StoreError> {
        if !self.stand_by {
            return Ok(None);
        }
        let runtime = self.runtime()?;
        match runtime.block_on(self.connect(folder, Purpose::Run)) {
            Ok((link, _)) => {
                let address = self.address.clone();
                Ok(Some(Box::new(PostgresFollower::new(address, runtime, link))))
            }
            Err(error) => {
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    fn serves_http_at(&self, url: &str) {
        self.name.serves_http_at(url);
    }

    fn term_key(&self) -> Vec<u8> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn survey(&self, folder: &DataFolder) -> Result<Survey, StoreError> {
        let runtime = self.runtime()?;
        let survey = runtime.block_on(self.look(folder));
        runtime.shutdown_background();
        survey
    }

    fn adopt(&self, folder: &DataFolder) -> Result<(), StoreError> {
        let runtime = self.runtime()?;
        let farm = runtime.block_on(async {
            let link = Link::open(&self.address).await?;
            Leader::look(&link).await
        });
        runtime.shutdown_background();
        let farm = farm.map_err(|error| self.failed("it cannot be read", error))?.farm;
        StoreMark { id: farm, address: self.store() }.write(folder)
    }

    fn leave(&self, _: &DataFolder) -> Result<(), StoreError> {
        Ok(())
    }
}
