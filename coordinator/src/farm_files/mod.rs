//! The farm's small files that every coordinator of it needs: its authority, its secret, its
//! deny-list, its generation, and the name of the store of its blobs. They are in the data folder.
//! Where the state is in a store elsewhere, that has them too, sealed, so that a coordinator with
//! an empty folder can lead. Then the store's are the right ones: a start copies them here, and a
//! change is made when the store has it.

mod seal;

pub use seal::{FarmKey, FarmKeyError};

use crate::folder::DataFolder;
use crate::secret;
use crate::store::{Changes, Commit, Loaded, Store, StoreError, StoreQueue};
use crate::sync::lock;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tessera_transport::Authority;
use tessera_transport::files::{self, Access};

/// Largest file in bytes. A deny-list can have so many.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A file, or the few of one folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FarmFile {
    Authority,
    Secret,
    DenyList,
    Generation,
    BlobsMark,
}

impl FarmFile {
    pub(crate) const ALL: [Self; 5] =
        [Self::Authority, Self::Secret, Self::DenyList, Self::Generation, Self::BlobsMark];

    /// Its name in a store.
    fn name(self) -> &'static str {
        match self {
            Self::Authority => "authority",
            Self::Secret => "secret",
            Self::DenyList => "deny-list",
            Self::Generation => "generation",
            Self::BlobsMark => "blobs-mark",
        }
    }
}

/// Why the farm's files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FarmFilesError {
    /// The store has them, and there is no key.
    #[error(
        "the store has the farm's authority, sealed by a key: give that by --farm-key FILE or in \
         TESSERA_FARM_KEY"
    )]
    NoKey,
    /// There is a key, and the store is in the data folder.
    #[error(
        "--farm-key seals the farm's files in a store elsewhere, and the state is in the data \
         folder: leave it out, or give the store by --store"
    )]
    NotElsewhere,
    /// What the store has cannot be opened.
    #[error(
        "the farm's file `{name}` in the store cannot be opened: {problem}; give the key that the \
         farm's other coordinators have"
    )]
    Sealed {
        /// Name of the file.
        name: String,
        /// Why.
        problem: &'static str,
    },
    /// What was sealed is not what this build writes.
    #[error("the farm's file `{name}` in the store is not one: {problem}")]
    Content {
        /// Name of the file.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The file system returned an error.
    #[error("`{}` cannot be used", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The files of a data folder, and the key under which the store has them.
#[derive(Debug)]
pub(crate) struct FarmFiles {
    key: FarmKey,
    places: Places,
    /// What the store has of each, sealed by the first key.
    kept: Mutex<BTreeMap<FarmFile, Vec<u8>>>,
}

/// Where the files are.
#[derive(Debug)]
struct Places {
    authority: PathBuf,
    secret: PathBuf,
    denied: PathBuf,
    generation: PathBuf,
    blobs_mark: PathBuf,
}

impl FarmFiles {
    /// Copies the files that a store has into the folder. None without a key, where the store has
    /// none. Nothing in the folder may be open.
    pub(crate) fn bring(
        key: Option<FarmKey>,
        folder: &DataFolder,
        (loaded, elsewhere): (&Loaded, bool),
    ) -> Result<Option<Self>, FarmFilesError> {
        let key = match key {
            None if loaded.files.is_empty() => return Ok(None),
            None => return Err(FarmFilesError::NoKey),
            Some(_) if !elsewhere => return Err(FarmFilesError::NotElsewhere),
            Some(key) => key,
        };
        let places = Places {
            authority: folder.authority(),
            secret: secret::path(folder),
            denied: folder.denied(),
            generation: folder.generation(),
            blobs_mark: folder.blobs_mark(),
        };
        let mut kept = BTreeMap::new();
        for file in FarmFile::ALL {
            let name = file.name();
            let Some(sealed) = loaded.files.get(name) else { continue };
            let sealed_by = |problem| FarmFilesError::Sealed { name: name.into(), problem };
            let (plain, is_first) = key.open(name, sealed).map_err(sealed_by)?;
            places.write(file, &plain)?;
            if is_first {
                kept.insert(file, plain);
            }
        }
        Ok(Some(Self { key, places, kept: Mutex::new(kept) }))
    }

    /// Brings all files into the store that are others there, before the coordinator serves
    /// anybody.
    pub(crate) fn keep_all(&self, store: &mut dyn Store) -> Result<(), FarmFilesError> {
        let changed: Vec<_> =
            FarmFile::ALL.into_iter().map(|file| self.changed(file)).collect::<Result<_, _>>()?;
        let changed: Vec<_> = changed.into_iter().flatten().collect();
        if changed.is_empty() {
            return Ok(());
        }
        let files = changed.iter().map(|change| (change.name.to_owned(), change.sealed.clone()));
        store.commit(&Changes { files: files.collect(), ..Changes::default() })?;
        lock(&self.kept).extend(changed.into_iter().map(|change| (change.file, change.plain)));
        Ok(())
    }

    /// Brings a file into the store, and waits until it is durable there. Blocks.
    pub(crate) fn keep(&self, file: FarmFile, queue: &StoreQueue) -> Result<(), FarmFilesError> {
        let Some(change) = self.changed(file)? else { return Ok(()) };
        let (mut commit, done) = Commit::new();
        commit.files.push((change.name.to_owned(), change.sealed));
        queue.send(commit)?;
        done.blocking_recv().map_err(|_| StoreError::Stopped)?;
        lock(&self.kept).insert(file, change.plain);
        Ok(())
    }

    /// Returns a file, if the store has it otherwise.
    fn changed(&self, file: FarmFile) -> Result<Option<Change>, FarmFilesError> {
        let Some(plain) = self.places.read(file)? else { return Ok(None) };
        if lock(&self.kept).get(&file) == Some(&plain) {
            return Ok(None);
        }
        let name = file.name();
        let failed = |problem| FarmFilesError::Sealed { name: name.into(), problem };
        let sealed = self.key.seal(name, &plain).map_err(failed)?;
        Ok(Some(Change { file, name, plain, sealed }))
    }
}

/// A file for the store.
struct Change {
    file: FarmFile,
    name: &'static str,
    plain: Vec<u8>,
    sealed: Vec<u8>,
}

impl Places {
    fn path(&self, file: FarmFile) -> &Path {
        match file {
            FarmFile::Authority => &self.authority,
            FarmFile::Secret => &self.secret,
            FarmFile::DenyList => &self.denied,
            FarmFile::Generation => &self.generation,
            FarmFile::BlobsMark => &self.blobs_mark,
        }
    }

    /// Returns the content of a file; None if there is none.
    fn read(&self, file: FarmFile) -> Result<Option<Vec<u8>>, FarmFilesError> {
        let path = self.path(file);
        if file != FarmFile::Authority {
            return read(path);
        }
        let mut found: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for name in Authority::FILES {
            if let Some(bytes) = read(&path.join(name))? {
                found.insert(name.to_owned(), bytes);
            }
        }
        let failed = |error: tessera_protocol::CodecError| FarmFilesError::Content {
            name: file.name().into(),
            problem: error.to_string(),
        };
        match found.is_empty() {
            true => Ok(None),
            false => tessera_protocol::encode(&found).map(Some).map_err(failed),
        }
    }

    /// Makes a file what it is in the store.
    fn write(&self, file: FarmFile, plain: &[u8]) -> Result<(), FarmFilesError> {
        if self.read(file)?.as_deref() == Some(plain) {
            return Ok(());
        }
        let path = self.path(file);
        let folder = if file == FarmFile::Authority { path } else { files::folder_of(path) };
        files::create_private_folder(folder).map_err(of(folder))?;
        if file != FarmFile::Authority {
            return files::write_atomically(path, plain, Access::Secret).map_err(of(path));
        }
        let broken =
            |problem: String| FarmFilesError::Content { name: file.name().into(), problem };
        let found: BTreeMap<String, Vec<u8>> =
            tessera_protocol::decode(plain).map_err(|error| broken(error.to_string()))?;
        if let Some(name) = found.keys().find(|name| !Authority::FILES.contains(&name.as_str())) {
            return Err(broken(format!("it has a file `{name}`")));
        }
        for name in Authority::FILES {
            let path = path.join(name);
            match found.get(name) {
                Some(bytes) => files::write_atomically(&path, bytes, Access::Secret),
                None => removed(&path),
            }
            .map_err(of(&path))?;
        }
        Ok(())
    }
}

fn removed(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, FarmFilesError> {
    match files::read_bounded(path, FILE_BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(of(path)(error)),
    }
}

fn of(path: &Path) -> impl FnOnce(io::Error) -> FarmFilesError {
    let path = path.to_path_buf();
    move |source| FarmFilesError::Io { path, source }
}
