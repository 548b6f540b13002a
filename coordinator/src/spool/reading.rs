//! Reading of a farm's spools: the file on the disk first, then the objects elsewhere, one after
//! the other, as if they were one file.

use super::entry::EntryHeader;
use super::extent::SpoolExtent;
use super::key::SpoolKey;
use super::store::{SpoolError, SpoolRead, SpoolReader};
use super::stored::{ResultStore, StoredResults};
use bytes::Bytes;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Reads spools on the disk and elsewhere.
#[derive(Clone)]
pub(super) struct FarmReader {
    disk: Arc<dyn SpoolReader>,
    elsewhere: Arc<dyn ResultStore>,
}

impl FarmReader {
    pub(super) fn new(disk: Arc<dyn SpoolReader>, elsewhere: Arc<dyn ResultStore>) -> Self {
        Self { disk, elsewhere }
    }
}

impl SpoolReader for FarmReader {
    fn open(&self, key: SpoolKey, extent: &SpoolExtent) -> Result<Box<dyn SpoolRead>, SpoolError> {
        if extent.stored.is_empty() {
            return self.disk.open(key, extent);
        }
        let file = match extent.length {
            0 => None,
            _ => Some(self.disk.open(key, extent)?),
        };
        let (length, elsewhere) = (extent.length, self.elsewhere.clone());
        Ok(Box::new(Both { key, file, length, objects: extent.stored.clone(), elsewhere }))
    }

    fn list(&self) -> Result<Vec<(String, Option<SpoolKey>)>, SpoolError> {
        let mut listed = self.disk.list()?;
        let objects = self
            .elsewhere
            .objects()
            .map_err(|source| SpoolError::Io { path: "results".into(), source })?;
        let named = objects.into_iter().map(|(key, object)| (object.to_string(), Some(key)));
        listed.extend(named);
        Ok(listed)
    }

    fn elsewhere(&self) -> Option<Arc<dyn ResultStore>> {
        Some(self.elsewhere.clone()).filter(|elsewhere| elsewhere.takes_new())
    }
}

/// A spool that has objects.
struct Both {
    key: SpoolKey,
    file: Option<Box<dyn SpoolRead>>,
    length: u64,
    objects: Vec<Arc<StoredResults>>,
    elsewhere: Arc<dyn ResultStore>,
}

impl SpoolRead for Both {
    fn place(&self) -> PathBuf {
        format!("results/{}", self.key).into()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if let Some(file) = self.file.as_ref().filter(|_| offset < self.length) {
            return file.read_exact_at(offset, buffer);
        }
        let mut start = self.length;
        for stored in &self.objects {
            let end = start + u64::from(stored.object.length);
            if offset < end {
                let at = (offset - start, buffer);
                return self.elsewhere.read_exact_at(self.key, stored.object, at);
            }
            start = end;
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    fn recent(&self, header: &EntryHeader) -> Option<Bytes> {
        self.file.as_ref()?.recent(header)
    }
}
