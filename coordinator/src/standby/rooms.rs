//! What requests use of a coordinator that stands by: tables that are taken over from the store,
//! and for the rest empty ones in a folder that the next start removes.

use crate::access::tokens::Ledger;
use crate::access::web::WebAccess;
use crate::access::{Access, Denied, Log, Members};
use crate::api::{Askers, Context, Standing};
use crate::blobs::{Blobs, DiskPlace, GuardedBlobs};
use crate::changes::Changes;
use crate::clock::Clock;
use crate::config::Config;
use crate::coordinator::by_use;
use crate::coordinator_error::CoordinatorError;
use crate::driver::Event;
use crate::farm_files::FarmFiles;
use crate::folder::{DataFolder, FolderError};
use crate::logs::Logs;
use crate::meters::Meters;
use crate::openings::{asking_limits, upload_limit, writer_limits};
use crate::result_memory::ResultMemory;
use crate::spool::DiskSpools;
use crate::standby::no_store::NoStore;
use crate::store::{Loaded, StoreWriter};
use crate::uploads::Uploads;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tessera_transport::{Authority, files, generation};
use tokio::sync::{RwLock, mpsc, watch};

/// Takes over the small files and the tables of a store, for as long as another one leads it.
pub(super) struct Rooms {
    pub(super) context: Arc<Context>,
    access: Arc<Access>,
    /// Removed at the end, and at the next start.
    place: PathBuf,
}

impl Drop for Rooms {
    fn drop(&mut self) {
        self.context.logs.stop();
        self.context.writer.stop();
        // What stays is removed by the next start.
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

/// The place for what a coordinator that stands by must have, and that nobody keeps.
fn fresh_place(folder: &DataFolder) -> io::Result<PathBuf> {
    let place = folder.temporary().join("standby");
    match std::fs::remove_dir_all(&place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    files::create_private_folder(&place)?;
    Ok(place)
}

/// Opens the blobs that this machine can read, and says whether these are the farm's.
fn blobs_of(config: &Config, folder: &DataFolder) -> (Arc<dyn Blobs>, bool) {
    use crate::blobs::BlobPlace;
    if config.blobs.is_elsewhere() {
        match config.blobs.inspect(folder) {
            Ok(blobs) => return (blobs, true),
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "files of frames are fetched from the coordinator that leads"
            ),
        }
    }
    let none = DiskPlace.open(folder, crate::store::Purpose::CopyTo, 0);
    (none.unwrap_or_else(|_| unreachable!("a copy takes any folder")), false)
}

/// Reads the authority that the folder has a copy of.
fn authority(config: &Config, folder: &DataFolder) -> Result<Authority, CoordinatorError> {
    let generation = generation::raise(&folder.generation(), false)
        .map_err(|source| FolderError::Io { path: folder.generation(), source })?;
    if !Authority::is_at(&folder.authority()) {
        let members = "the store's".to_owned();
        return Err(CoordinatorError::NoAuthority { path: folder.authority(), members });
    }
    let authority = Authority::open_or_create(&folder.authority())?;
    Ok(authority.with_lifetimes(config.lifetimes).with_generation(generation))
}

impl Rooms {
    /// Makes them of what a store has, whose farm's files are copied to the folder. `standing`
    /// gets to know whether files of frames are read here.
    pub(super) fn open(
        (config, folder): (&Config, &DataFolder),
        loaded: &Loaded,
        (events, changes, clock): (mpsc::Sender<Event>, Changes, Clock),
        standing: &watch::Sender<Standing>,
    ) -> Result<Self, CoordinatorError> {
        FarmFiles::bring(config.farm_key.clone(), folder, (loaded, true))?;
        let failed = |path: PathBuf| move |source| FolderError::Io { path, source };
        let place = fresh_place(folder).map_err(failed(folder.temporary()))?;
        let spool = place.join("spool");
        files::create_private_folder(&spool).map_err(failed(spool.clone()))?;
        let (spools, _) = DiskSpools::open(&spool, BTreeMap::new(), false)?;
        let store = NoStore { store: config.store.describe(folder) };
        let writer = Arc::new(StoreWriter::start(store, spools, writer_limits(config))?);
        let queue = writer.queue();
        let members = Arc::new(Members::new(BTreeMap::new(), queue.clone(), config.lifetimes));
        let log = Log::open(&place.join("audit"), None, false)
            .map_err(|source| CoordinatorError::AuditLog { path: place.join("audit"), source })?;
        let denied = Denied::open(&folder.denied())?;
        let access = Arc::new(Access::new(
            (authority(config, folder)?, folder.authority()),
            (denied, members),
            log,
            Box::new(|_| Ok(())),
            (queue.clone(), None),
        ));
        let (blobs, reads_files) = blobs_of(config, folder);
        standing.send_modify(|standing| standing.reads_files = reads_files);
        let uploads = place.join("uploads");
        let logs = place.join("logs");
        let context = Context {
            access: access.clone(),
            ledger: Ledger::new(BTreeMap::new(), queue.clone()),
            web: WebAccess::new(BTreeMap::new(), queue),
            blobs: GuardedBlobs::new(blobs),
            spools: DiskSpools::reader_of(&spool),
            clock,
            events,
            writer,
            changes,
            result_memory: ResultMemory::new(config.result_memory_bytes),
            uploads: Uploads::open(&uploads).map_err(failed(uploads))?,
            upload_limit: upload_limit(config),
            askers: Askers::new(asking_limits(config)),
            submitting: RwLock::new(()),
            meters: Arc::new(Meters::new(config.fingerprint)),
            live: Arc::default(),
            logs: Logs::open(&logs, config.lines.clone()).map_err(failed(logs))?,
            tracer: config.tracer.clone(),
            standing: Some(standing.subscribe()),
            term_key: Vec::new(),
            targets: OnceLock::new(),
        };
        let rooms = Self { context: Arc::new(context), access, place };
        rooms.take_tables(loaded);
        Ok(rooms)
    }

    /// Takes over what a store has, after it has changed.
    pub(super) fn follow(
        &self,
        (config, folder): (&Config, &DataFolder),
        loaded: &Loaded,
    ) -> Result<(), CoordinatorError> {
        FarmFiles::bring(config.farm_key.clone(), folder, (loaded, true))?;
        self.access.follow(authority(config, folder)?, &Denied::open(&folder.denied())?);
        self.take_tables(loaded);
        Ok(())
    }

    fn take_tables(&self, loaded: &Loaded) {
        let (_, bearing) = by_use(loaded.tokens.clone());
        self.access.members.follow(loaded.members.clone());
        self.context.web.bearers.follow(bearing);
    }
}
