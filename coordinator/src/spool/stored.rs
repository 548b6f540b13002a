//! Results in a store elsewhere, as objects of several results each: which object has them, where
//! in it, and the contract of such a store.

use super::entry::{EntryHeader, HEADER_BYTES};
use super::key::SpoolKey;
use bytes::Bytes;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use tessera_protocol::limits::{RESULT_BYTES_MAX, RESULTS_MAX};
use tessera_protocol::{BlobHash, NodeId, UnitIndex};
use uuid::Uuid;

/// Bytes of an object's node, name and length.
const HEAD_BYTES: usize = 16 + 32 + 4;
/// Bytes of an entry: its header, and the position of its bytes in the object.
const ENTRY_BYTES: usize = HEADER_BYTES + 4;

/// An object with results of one frame. Each node has objects of its own, so that none can put
/// anything into another one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultObject {
    /// Node that made the results.
    pub node: NodeId,
    /// Name of the object ([`tessera_protocol::stored::name_of`]).
    pub name: BlobHash,
    /// Length of the object in bytes.
    pub length: u32,
}

impl ResultObject {
    /// Reads the name of an object of this length. None if it is not one.
    pub fn parse(name: &str, length: u64) -> Option<Self> {
        let (node, name) = name.rsplit_once('-')?;
        let length = u32::try_from(length).ok()?;
        Some(Self { node: NodeId(Uuid::parse_str(node).ok()?), name: name.parse().ok()?, length })
    }
}

impl std::fmt::Display for ResultObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.node, self.name)
    }
}

/// The results of an object that were accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResults {
    /// Number among those of its frame, which grows.
    pub number: u32,
    /// Where the results are.
    pub object: ResultObject,
    /// Headers of the results, and the position of each one's bytes in the object.
    pub entries: Vec<(EntryHeader, u32)>,
}

impl StoredResults {
    /// Encodes everything but the number, for the journal.
    pub fn to_bytes(&self) -> Vec<u8> {
        let ResultObject { node, name, length } = self.object;
        let mut bytes = [node.0.as_bytes(), &name.0[..], &length.to_le_bytes()].concat();
        for (header, offset) in &self.entries {
            bytes.extend_from_slice(&header.to_bytes());
            bytes.extend_from_slice(&offset.to_le_bytes());
        }
        bytes
    }

    /// Decodes [`Self::to_bytes`].
    pub fn from_bytes(number: u32, bytes: &[u8]) -> Result<Self, String> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or("an object is cut")?;
        let (entries, more) = rest.as_chunks::<ENTRY_BYTES>();
        if !more.is_empty() || entries.is_empty() || entries.len() > RESULTS_MAX {
            return Err("an object's results are cut, or too many".into());
        }
        let (mut node, mut name, mut length) = ([0; 16], [0; 32], [0; 4]);
        node.copy_from_slice(&head[..16]);
        name.copy_from_slice(&head[16..48]);
        length.copy_from_slice(&head[48..]);
        let node = NodeId(Uuid::from_bytes(node));
        let length = u32::from_le_bytes(length);
        let object = ResultObject { node, name: BlobHash(name), length };
        let read = |entry: &[u8; ENTRY_BYTES]| {
            let header = EntryHeader::from_bytes(entry).map_err(|error| error.to_string())?;
            let mut offset = [0; 4];
            offset.copy_from_slice(&entry[HEADER_BYTES..]);
            let offset = u32::from_le_bytes(offset);
            match offset.checked_add(header.length).is_some_and(|end| end <= length) {
                true => Ok((header, offset)),
                false => Err("a result ends after its object".to_owned()),
            }
        };
        let entries: Result<Vec<_>, String> = entries.iter().map(read).collect();
        match length as usize <= RESULT_BYTES_MAX {
            true => Ok(Self { number, object, entries: entries? }),
            false => Err("an object is longer than any".into()),
        }
    }
}

/// Returns the node that has put the newest result of a unit into a store elsewhere.
pub fn maker_of(stored: &[Arc<StoredResults>], unit: UnitIndex) -> Option<NodeId> {
    let has =
        |stored: &&Arc<StoredResults>| stored.entries.iter().any(|(header, _)| header.unit == unit);
    stored.iter().rev().find(has).map(|stored| stored.object.node)
}

/// What an address of an object is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFor {
    /// To get its bytes.
    Reading,
    /// To put it.
    Writing,
}

/// A store of results elsewhere. All methods may block.
pub trait ResultStore: Debug + Send + Sync {
    /// Whether new results go there.
    fn takes_new(&self) -> bool {
        true
    }

    /// Puts an object, if none is there. One that is there counts.
    fn put(&self, frame: SpoolKey, object: ResultObject, bytes: Vec<Bytes>) -> io::Result<()>;

    /// Reads bytes of an object until the buffer is full.
    fn read_exact_at(
        &self,
        frame: SpoolKey,
        object: ResultObject,
        at: (u64, &mut [u8]),
    ) -> io::Result<()>;

    /// Returns an address by which a peer can reach an object for a few minutes, by HTTP. None if
    /// it cannot. `here`: the peer is on this machine.
    fn address(
        &self,
        frame: SpoolKey,
        object: ResultObject,
        purpose: (AddressFor, bool),
    ) -> Option<String>;

    /// Makes an object like another one of the frame, without its bytes passing here.
    fn copy(&self, frame: SpoolKey, from: ResultObject, to: ResultObject) -> io::Result<()>;

    /// Deletes objects, without waiting for it. By their names: others of the same frame may have
    /// been put since.
    fn forget(&self, objects: &[(SpoolKey, ResultObject)]);

    /// Returns all objects, and the frames that they are of.
    fn objects(&self) -> io::Result<Vec<(SpoolKey, ResultObject)>>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::Epoch;

    #[test]
    fn stored_results_survive_their_bytes() {
        let header = EntryHeader {
            unit: UnitIndex(7),
            epoch: Epoch(8),
            first: 0,
            samples: 4,
            length: 30,
            hash: BlobHash::of(b"x"),
        };
        let node = NodeId(Uuid::from_u128(3));
        let object = ResultObject { node, name: BlobHash::of(b"y"), length: 60 };
        let stored = StoredResults { number: 9, object, entries: vec![(header, 0), (header, 30)] };
        let bytes = stored.to_bytes();
        assert_eq!(StoredResults::from_bytes(9, &bytes), Ok(stored.clone()));
        for length in 0..bytes.len() {
            let is_whole = length == bytes.len() - ENTRY_BYTES;
            assert_eq!(StoredResults::from_bytes(9, &bytes[..length]).is_ok(), is_whole);
        }
        let name = object.to_string();
        assert_eq!(ResultObject::parse(&name, 60), Some(object));
        assert_eq!(ResultObject::parse(&name[1..], 60), None);
        let beyond = StoredResults { entries: vec![(header, 31)], ..stored };
        assert!(StoredResults::from_bytes(9, &beyond.to_bytes()).is_err());
    }
}
