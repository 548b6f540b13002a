//! Results that a node puts into the farm's store itself, as one object for several results of a
//! frame, so that their bytes do not pass the coordinator.

use crate::compute::ChunkShape;
use crate::ids::{BlobHash, Lease};
use crate::limits::{RESULT_BYTES_MAX, RESULTS_MAX};
use crate::node::{Piece, ResultHeader};
use serde::{Deserialize, Serialize};

/// Offers results of one frame that the node can store. Their bytes, one after the other, are the
/// object. What is said of them is checked by whoever reads them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreOffer {
    /// The results, in the order of their bytes: at least one, at most [`RESULTS_MAX`], of together
    /// at most [`RESULT_BYTES_MAX`] bytes.
    pub results: Vec<StoredResult>,
}

/// A result in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResult {
    /// Header of the result.
    pub header: ResultHeader,
    /// What its bytes are.
    pub shape: StoredShape,
}

/// What the bytes of a result are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredShape {
    /// A film of a tile.
    Film {
        /// Width in pixels.
        width: u16,
        /// Height in pixels.
        height: u16,
        /// Number of channels of all layers together.
        channels: u8,
        /// Number of samples per pixel.
        samples: u32,
    },
    /// Values or partial results of a compute job.
    Chunk(ChunkShape),
    /// A piece of a finished frame.
    Finished(Piece),
}

/// Answers a [`StoreOffer`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoreReply {
    /// The object is to be put at this address, if none is there. One that is there counts.
    Put {
        /// Address for HTTP, which is secret and holds for a few minutes: at most
        /// [`crate::limits::ADDRESS_MAX`] bytes.
        url: String,
    },
    /// The node cannot reach the store: the bytes are to be sent
    /// ([`crate::stream::StreamKind::Result`]).
    SendThem,
    /// None of the results is wanted; the control stream says so of each.
    NotWanted,
}

/// Says that the object of a [`StoreOffer`] is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreReceipt {
    /// Number of bytes of the object.
    pub bytes: u64,
}

impl StoreOffer {
    /// Returns the number of bytes of the object. An error says what is wrong with the offer.
    pub fn bytes(&self) -> Result<u64, String> {
        let count = self.results.len();
        if count == 0 || count > RESULTS_MAX {
            return Err(format!("an offer has {count} results, not 1 to {RESULTS_MAX}"));
        }
        let unit = |result: &StoredResult| result.header.lease.unit;
        let first = self.results.first().map(unit);
        let of_frame = |result: &StoredResult| {
            first.is_some_and(|first| {
                (unit(result).job, unit(result).frame) == (first.job, first.frame)
            })
        };
        if !self.results.iter().all(of_frame) {
            return Err("an offer has results of several frames".into());
        }
        // Far below 2^64: each length is below 2^32.
        let bytes = self.results.iter().map(|result| u64::from(result.header.length)).sum();
        match bytes <= RESULT_BYTES_MAX as u64 {
            true => Ok(bytes),
            false => {
                Err(format!("an object of {bytes} bytes is longer than {RESULT_BYTES_MAX} bytes"))
            }
        }
    }

    /// Returns the name of the object ([`name_of`]).
    pub fn name(&self) -> BlobHash {
        let headers = self.results.iter().map(|result| &result.header);
        name_of(headers.map(|header| (header.lease, header.hash, header.length)))
    }
}

/// Returns the name of an object with the results of these leases, hashes and lengths: their
/// BLAKE3. So the name stands for every byte, and is known without them. The same bytes of another
/// lease have another name: what was stored before may have been lost or changed.
pub fn name_of(results: impl IntoIterator<Item = (Lease, BlobHash, u32)>) -> BlobHash {
    let mut hasher = blake3::Hasher::new();
    for (lease, hash, length) in results {
        hasher.update(&lease.unit.unit.0.to_le_bytes());
        hasher.update(&lease.epoch.0.to_le_bytes());
        hasher.update(&hash.0);
        hasher.update(&length.to_le_bytes());
    }
    BlobHash(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Epoch, FrameNumber, JobId, UnitIndex, UnitKey};
    use uuid::Uuid;

    fn result(frame: u32, length: u32) -> StoredResult {
        let job = JobId(Uuid::from_u128(5));
        let unit = UnitKey { job, frame: FrameNumber(frame), unit: UnitIndex(1) };
        let header = ResultHeader {
            lease: Lease { unit, epoch: Epoch(9) },
            hash: BlobHash([length as u8; 32]),
            length,
            device: 0,
            device_micros: 12,
            waited_micros: 0,
            device_bytes: 0,
            rays: 34,
            first_sample: 0,
        };
        StoredResult { header, shape: StoredShape::Finished(Piece::Assembly) }
    }

    #[test]
    fn an_offer_is_of_one_frame_and_of_bounded_size() {
        let offer = |results| StoreOffer { results };
        let two = offer(vec![result(1, 5), result(1, 6)]);
        assert_eq!(two.bytes(), Ok(11));
        assert_ne!(two.name(), offer(vec![result(1, 6), result(1, 5)]).name());
        let mut again = two.clone();
        again.results[0].header.lease.epoch = Epoch(10);
        assert_ne!(two.name(), again.name(), "another lease");
        for wrong in [
            offer(vec![]),
            offer(vec![result(1, 5); RESULTS_MAX + 1]),
            offer(vec![result(1, 5), result(2, 5)]),
            offer(vec![result(1, RESULT_BYTES_MAX as u32), result(1, 1)]),
        ] {
            assert!(wrong.bytes().is_err());
        }
        let longest = offer(vec![result(u32::MAX, u32::MAX); RESULTS_MAX]);
        assert!(crate::encode(&longest).unwrap().len() <= crate::limits::STORE_OFFER_MAX);
    }
}
