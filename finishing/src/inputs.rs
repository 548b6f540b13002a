//! What a finishing unit reads, as it arrives: parts in a file, with their places. Owns the form of
//! a part: its place (a tile, or a band) and its length, u32 each, little endian, and its bytes.

use crate::{ChunkResults, Films, FinishError};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use tessera_protocol::TileSums;
use tessera_protocol::film::FilmError;
use tessera_protocol::limits::RESULT_BYTES_MAX;

/// Length of what stands before a part's bytes.
const HEAD_BYTES: u64 = 8;

/// Why inputs cannot be used.
#[derive(Debug, thiserror::Error)]
enum InputsError {
    #[error("the inputs' file cannot be read")]
    Read(#[source] io::Error),
    #[error("the inputs are damaged: {0}")]
    Form(String),
    #[error("the inputs have no part for place {0}")]
    Missing(u32),
    #[error("the inputs' part for place {place} is no film")]
    Film {
        place: u32,
        #[source]
        source: FilmError,
    },
}

impl From<InputsError> for FinishError {
    fn from(error: InputsError) -> Self {
        Self::Results(Box::new(error))
    }
}

fn damaged(problem: impl Into<String>) -> FinishError {
    InputsError::Form(problem.into()).into()
}

/// The inputs of a finishing unit.
#[derive(Debug)]
pub struct Inputs {
    file: File,
    /// By place, and for one place in the order of the file.
    parts: Vec<InputPart>,
}

/// The bytes of one part in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputPart {
    /// A tile, or a band.
    pub(crate) place: u32,
    /// Number of bytes.
    pub(crate) length: u32,
    start: u64,
}

/// Returns what stands before a part's bytes.
pub fn write_part_head(place: u32, length: u32) -> [u8; 8] {
    let mut head = [0; 8];
    head[..4].copy_from_slice(&place.to_le_bytes());
    head[4..].copy_from_slice(&length.to_le_bytes());
    head
}

impl Inputs {
    /// Looks at the parts of a file. There must be `parts` of them in `bytes` bytes, the length of
    /// the file; each is at most as long as a result. Needs 16 bytes of memory for a part, which
    /// has 9 bytes at least in the file.
    pub fn open(file: File, parts: u32, bytes: u64) -> Result<Self, FinishError> {
        let length = file.metadata().map_err(InputsError::Read)?.len();
        if length != bytes {
            return Err(damaged(format!("{length} bytes where {bytes} were announced")));
        }
        let mut inputs = Self { file, parts: Vec::new() };
        let mut offset = 0;
        while offset < bytes {
            if inputs.parts.len() >= parts as usize {
                return Err(damaged(format!("more than the {parts} parts that were announced")));
            }
            let part = inputs.head(offset, bytes)?;
            offset = part.start + u64::from(part.length);
            inputs.parts.push(part);
        }
        if inputs.parts.len() != parts as usize {
            let found = inputs.parts.len();
            return Err(damaged(format!("{found} parts where {parts} were announced")));
        }
        inputs.parts.sort_by_key(|part| (part.place, part.start));
        Ok(inputs)
    }

    /// Reads the head of the part at `offset`, which must end within `bytes`.
    fn head(&self, offset: u64, bytes: u64) -> Result<InputPart, FinishError> {
        if bytes - offset < HEAD_BYTES {
            return Err(damaged(format!("they end within the head of a part at byte {offset}")));
        }
        let mut head = [0; 8];
        self.file.read_exact_at(&mut head, offset).map_err(InputsError::Read)?;
        let [a, b, c, d, rest @ ..] = head;
        let (place, length) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(rest));
        let start = offset + HEAD_BYTES;
        if length == 0 || length as usize > RESULT_BYTES_MAX || u64::from(length) > bytes - start {
            return Err(damaged(format!("a part at byte {offset} of {length} bytes")));
        }
        Ok(InputPart { place, length, start })
    }

    /// Returns all parts, by place.
    pub(crate) fn parts(&self) -> &[InputPart] {
        &self.parts
    }

    /// Returns the bytes of all parts, by place, each read when it is asked for.
    pub fn in_order(&self) -> impl Iterator<Item = Result<Vec<u8>, FinishError>> {
        self.parts.iter().map(|part| self.whole(part))
    }

    fn whole(&self, part: &InputPart) -> Result<Vec<u8>, FinishError> {
        let mut bytes = vec![0; part.length as usize];
        self.read(part, 0, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads some bytes of a part into `bytes`, from `offset` on.
    pub(crate) fn read(
        &self,
        part: &InputPart,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), FinishError> {
        if offset + bytes.len() as u64 > u64::from(part.length) {
            return Err(damaged(format!("the part for place {} is too short", part.place)));
        }
        let read = self.file.read_exact_at(bytes, part.start + offset);
        Ok(read.map_err(InputsError::Read)?)
    }
}

impl ChunkResults for Inputs {
    fn bytes(&self, unit: u32) -> Result<Vec<u8>, FinishError> {
        let place = self.parts.partition_point(|part| part.place < unit);
        let part = self.parts.get(place).filter(|part| part.place == unit);
        self.whole(part.ok_or(InputsError::Missing(unit))?)
    }
}

impl Films for Inputs {
    fn sums(&self, tile: u32) -> Result<TileSums, FinishError> {
        let start = self.parts.partition_point(|part| part.place < tile);
        let end = self.parts.partition_point(|part| part.place <= tile);
        let failed = |source| InputsError::Film { place: tile, source };
        let mut whole: Option<TileSums> = None;
        for part in &self.parts[start..end] {
            let bytes = self.whole(part)?;
            let film = TileSums::from_bytes(&bytes).map_err(failed)?;
            match &mut whole {
                None => whole = Some(film),
                Some(whole) => whole.add(&film).map_err(failed)?,
            }
        }
        Ok(whole.ok_or(InputsError::Missing(tile))?)
    }
}

#[cfg(test)]
#[path = "tests/inputs.rs"]
mod tests;
