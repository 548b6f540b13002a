//! Objects of results in a folder: those of a farm whose files came back from a store elsewhere.
//! They are read until their frames are finished; new results go to the spools.

use super::key::SpoolKey;
use super::stored::{AddressFor, ResultObject, ResultStore};
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tessera_protocol::FrameNumber;
use tessera_transport::files::{self, Access};

/// Objects in a folder, which is made with the first of them.
#[derive(Clone, Debug)]
pub struct FolderResults(PathBuf);

impl FolderResults {
    /// The objects in a folder.
    pub fn new(root: PathBuf) -> Self {
        Self(root)
    }

    /// Moves the folder beside another one, whose name its name begins with.
    pub(crate) fn put_aside(&self, beside: &Path) -> io::Result<()> {
        match std::fs::rename(&self.0, beside.with_extension("results")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn of_frame(&self, frame: SpoolKey) -> PathBuf {
        self.0.join(frame.job.to_string()).join(frame.frame.0.to_string())
    }

    fn path(&self, frame: SpoolKey, object: ResultObject) -> PathBuf {
        self.of_frame(frame).join(object.to_string())
    }

    fn write(&self, path: &Path, bytes: &[Bytes]) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let parts: Vec<&[u8]> = bytes.iter().map(Bytes::as_ref).collect();
        files::write_whole(path, &parts, Access::Secret)
    }

    fn visit(&self, found: &mut Vec<(SpoolKey, ResultObject)>) -> io::Result<()> {
        for job in entries(&self.0)? {
            for frame in entries(&job)? {
                let key = (|| {
                    let frame = FrameNumber(name(&frame)?.parse().ok()?);
                    Some(SpoolKey { job: name(&job)?.parse().ok()?, frame })
                })();
                for object in entries(&frame)? {
                    let length = object.metadata()?.len();
                    let parsed = name(&object).and_then(|name| ResultObject::parse(name, length));
                    found.extend(key.zip(parsed));
                }
            }
        }
        Ok(())
    }
}

fn name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

impl ResultStore for FolderResults {
    fn takes_new(&self) -> bool {
        false
    }

    fn put(&self, frame: SpoolKey, object: ResultObject, bytes: Vec<Bytes>) -> io::Result<()> {
        self.write(&self.path(frame, object), &bytes)
    }

    fn read_exact_at(
        &self,
        frame: SpoolKey,
        object: ResultObject,
        (at, buffer): (u64, &mut [u8]),
    ) -> io::Result<()> {
        File::open(self.path(frame, object))?.read_exact_at(buffer, at)
    }

    fn address(&self, _: SpoolKey, _: ResultObject, _: (AddressFor, bool)) -> Option<String> {
        None
    }

    fn copy(&self, _: SpoolKey, _: ResultObject, _: ResultObject) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn forget(&self, objects: &[(SpoolKey, ResultObject)]) {
        for (frame, object) in objects {
            let path = self.path(*frame, *object);
            if let Err(error) = std::fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(path = %path.display(), %error, "results cannot be deleted");
            }
            // These fail while there are other objects, or none was there.
            drop(std::fs::remove_dir(self.of_frame(*frame)));
            drop(std::fs::remove_dir(self.0.join(frame.job.to_string())));
        }
    }

    fn objects(&self) -> io::Result<Vec<(SpoolKey, ResultObject)>> {
        let mut found = Vec::new();
        self.visit(&mut found)?;
        Ok(found)
    }
}
