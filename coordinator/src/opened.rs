//! Opens a data folder and what it has, before anything runs: the store, the state from its
//! records, the farm's keys, and the results that are not joined yet.

use crate::access::{LevelError, level};
use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::config::Config;
use crate::coordinator_error::CoordinatorError;
use crate::farm_files::FarmFiles;
use crate::folder::{DataFolder, FolderError};
use crate::fsck;
use crate::lost_spools;
use crate::openings::upload_reserve;
use crate::secret;
use crate::shelf::FileShelf;
use crate::spool::{FarmSpools, Spools};
use crate::store::{Followed, Loaded, Purpose, Sequence, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tessera_core::{Core, Replica, Settings};
use tessera_transport::member::MemberRecord;
use tessera_transport::{Authority, Identity, TokenRecord, generation};

/// Tokens by their hashes.
pub(crate) type Tokens = BTreeMap<[u8; 32], TokenRecord>;

/// Content of a data folder, before anything runs.
pub(crate) struct Opened {
    pub(crate) folder: DataFolder,
    pub(crate) keys: Keys,
    pub(crate) journal: Box<dyn Store>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) spools: FarmSpools,
    pub(crate) tokens: Tokens,
    pub(crate) members: BTreeMap<u64, MemberRecord>,
    pub(crate) core: Core,
    /// Sequences of the newest record and of the newest snapshot.
    pub(crate) sequences: (Sequence, Sequence),
}

/// What decides who is let in, and the account of it.
pub(crate) struct Keys {
    pub(crate) authority: Authority,
    /// Head of the audit log that the journal has, and whether it keeps entries as well.
    pub(crate) audit: (Option<Vec<u8>>, bool),
    /// The farm's files in a store elsewhere.
    pub(crate) files: Option<FarmFiles>,
}

/// What a start begins with.
pub(crate) struct Begin {
    pub(crate) folder: DataFolder,
    /// The store that it leads.
    pub(crate) journal: Box<dyn Store>,
    /// The state as it was followed before, and how far.
    pub(crate) followed: Option<FollowedState>,
}

/// A state that was followed.
pub(crate) struct FollowedState {
    pub(crate) replica: Replica,
    pub(crate) at: Followed,
    /// Sequence of a snapshot that the store has, the newest one or one before it.
    pub(crate) snapshot_at: Sequence,
}

impl Begin {
    /// Opens the folder and its store, and waits for the lead of one that is shared.
    pub(crate) fn open(config: &Config) -> Result<Self, CoordinatorError> {
        let folder = DataFolder::open(&config.data)?;
        let journal = config.store.open(&folder, Purpose::Run)?;
        Ok(Self { folder, journal, followed: None })
    }
}

fn open(config: &Config, clock: Clock, begin: Begin) -> Result<Opened, CoordinatorError> {
    let Begin { folder, mut journal, followed } = begin;
    let began = Instant::now();
    let (mut loaded, followed) = load(&*journal, followed)?;
    let keeps_audit = keeps_audit(&folder, &mut *journal, &mut loaded)?;
    let files = FarmFiles::bring(config.farm_key.clone(), &folder, (&loaded, keeps_audit))?;
    let blobs = config.blobs.open(&folder, Purpose::Run, upload_reserve(config)?)?;
    if !config.new_authority
        && !Authority::is_at(&folder.authority())
        && let Some(members) = members(&folder, &loaded)
    {
        return Err(CoordinatorError::NoAuthority { path: folder.authority(), members });
    }
    let generation = generation::raise(&folder.generation(), config.take_over)
        .map_err(|source| FolderError::Io { path: folder.generation(), source })?;
    let authority = Authority::open_or_create(&folder.authority())?
        .with_lifetimes(config.lifetimes)
        .with_generation(generation);
    let settings = Settings { secret: secret::open_or_create(&folder)?, ..config.settings.clone() };
    if let Some(files) = &files {
        files.keep_all(&mut *journal)?;
    }
    let is_warm = followed.is_some();
    let (mut core, sequences) = match followed {
        Some(FollowedState { replica, at, snapshot_at }) => {
            (replica.lead(settings, clock.now()), (at.head, snapshot_at))
        }
        None => replay(config, (settings, new_shelf(&folder)?), &loaded, clock)?,
    };
    let (millis, read) = (began.elapsed().as_millis() as u64, loaded.records.len());
    tracing::info!(millis, read, is_warm, "the state is there");
    journal.tidy()?;
    let mut extents = loaded.spools;
    let before = lost_spools::places_of(&extents);
    lost_spools::keep(&mut extents, journal.continues());
    let in_work = |key| !lost_spools::is_over(&core, key);
    let (place, recent) = (folder.spool(), config.recent_results_bytes);
    let (spools, problems) = FarmSpools::open((&place, recent), extents, blobs.results(), in_work)?;
    if let Some(changes) = lost_spools::dropped(&before, spools.extents()) {
        journal.commit(&changes)?;
    }
    for problem in problems {
        let error = &problem as &dyn std::error::Error;
        tracing::error!(error, "results that were kept are gone");
    }
    let gone = lost_spools::reopen(&mut core, spools.extents(), clock.now());
    if gone > 0 {
        tracing::warn!(
            results = gone,
            "results of frames in work are not in this data folder: \
            they are rendered again"
        );
    }
    let (tokens, members) = (loaded.tokens, loaded.members);
    let audit = (loaded.audit_head, keeps_audit);
    Ok(Opened {
        folder,
        keys: Keys { authority, audit, files },
        journal,
        blobs,
        spools,
        tokens,
        members,
        core,
        sequences,
    })
}

/// Describes the members that a data folder has on record; None if it has none.
fn members(folder: &DataFolder, loaded: &Loaded) -> Option<String> {
    let admin = Identity::is_at(&folder.admin());
    let (members, tokens) = (loaded.members.len(), loaded.tokens.len());
    let records = loaded.records.len();
    match (admin, members, tokens, records) {
        (true, ..) => Some(format!("the admin identity in `{}`", folder.admin().display())),
        (false, 1.., ..) => Some(format!("{members} holders of names")),
        (false, 0, 1.., _) => Some(format!("{tokens} join tokens")),
        (false, 0, 0, 1..) => Some(format!("{records} records of the journal")),
        (false, 0, 0, 0) => loaded.snapshot.as_ref().map(|_| "the journal's snapshot".to_owned()),
    }
}

impl FollowedState {
    /// Applies the records of a tail. None if they do not go on from the state: it is dropped.
    fn with(mut self, tail: &Loaded) -> Option<Self> {
        let doubted = |problem: String| {
            tracing::warn!(problem, "what was followed is in doubt, and is read again");
        };
        let (_, records) = fsck::decode(tail).map_err(doubted).ok()?;
        for record in &records {
            self.replica.apply(record).map_err(doubted).ok()?;
        }
        self.at.head = tail.records.last().map_or(self.at.head, |(sequence, _)| *sequence);
        Some(self)
    }
}

/// Reads what a store has: what is after the state that was followed, or everything where there is
/// none or it cannot be shown to be right.
fn load(
    journal: &dyn Store,
    followed: Option<FollowedState>,
) -> Result<(Loaded, Option<FollowedState>), CoordinatorError> {
    if let Some(followed) = followed
        && let Some(tail) = journal.load_after(&followed.at)?
        && let Some(followed) = followed.with(&tail)
    {
        return Ok((tail, Some(followed)));
    }
    Ok((journal.load()?, None))
}

/// Makes an empty shelf in a folder.
pub(crate) fn new_shelf(folder: &DataFolder) -> Result<Arc<FileShelf>, FolderError> {
    let path = folder.temporary();
    let shelf = FileShelf::create(&path).map_err(|source| FolderError::Io { path, source })?;
    Ok(Arc::new(shelf))
}

fn replay(
    config: &Config,
    (settings, shelf): (Settings, Arc<FileShelf>),
    loaded: &Loaded,
    clock: Clock,
) -> Result<(Core, (Sequence, Sequence)), CoordinatorError> {
    let path = || config.data.clone();
    let (parts, records) = fsck::decode(loaded)
        .map_err(|problem| CoordinatorError::Journal { path: path(), problem })?;
    let core = Core::replay_onto(shelf, settings, parts, records, clock.now())
        .map_err(|source| CoordinatorError::Replay { path: path(), source })?;
    let snapshot_at = loaded.snapshot.as_ref().map_or(0, |(sequence, _)| *sequence);
    let newest = loaded.records.last().map_or(snapshot_at, |(sequence, _)| *sequence);
    Ok((core, (newest, snapshot_at)))
}

/// Brings the audit logs of the folder and of a store elsewhere together. Returns whether the store
/// keeps one.
fn keeps_audit(
    folder: &DataFolder,
    store: &mut dyn Store,
    loaded: &mut Loaded,
) -> Result<bool, CoordinatorError> {
    let levelled = level(folder, store, loaded.audit_head.as_deref());
    let (keeps, head) = levelled.map_err(|error| match error {
        LevelError::Store(error) => error.into(),
        LevelError::Io(source) => CoordinatorError::AuditLog { path: folder.audit_log(), source },
    })?;
    loaded.audit_head = head;
    Ok(keeps)
}

/// Opens the folder on a thread for blocking work, because a large journal takes seconds.
pub(crate) async fn open_aside(
    config: Config,
    clock: Clock,
    begin: Option<Begin>,
) -> Result<Opened, CoordinatorError> {
    let opened = tokio::task::spawn_blocking(move || {
        let begin = begin.map_or_else(|| Begin::open(&config), Ok)?;
        open(&config, clock, begin)
    });
    let opened = opened.await;
    opened.map_err(|error| CoordinatorError::Task(error.to_string()))?
}
