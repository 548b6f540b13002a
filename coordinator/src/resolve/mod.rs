//! Resolving: makes a frame's files from its spool, in this process. `tessera_finishing` owns the
//! arithmetic and the form of the files; this module owns where films come from and where files go.
//! Only one frame is resolved at a time.

mod by_nodes;
pub(crate) mod desk;
pub(crate) mod error;
mod films;
mod frame;
pub(crate) mod order;
pub(crate) mod orders;
mod values;

use crate::blobs::Blobs;
pub use error::ResolveError;
use films::{BlobOutputs, SpoolFilms};
pub use frame::Frame;
use tessera_core::{Grid, Split};
use tessera_finishing::FinishError;
use tessera_protocol::UnitIndex;
use tessera_protocol::status::FrameFile;
pub use values::{Values, assemble};

/// Makes the files of a frame as blobs, one for each format of the spec and in its order. After an
/// error no part of them is left.
pub fn resolve(frame: &Frame<'_>, blobs: &dyn Blobs) -> Result<Vec<FrameFile>, ResolveError> {
    match frame.rounds {
        Some(rounds) => frame.spool.check_rounds(rounds)?,
        None => {
            let split = Split::Tiles(Grid::of(frame.spec));
            frame.spool.check_complete(split.units(), split.all_units())?;
        }
    }
    let films = SpoolFilms::new(frame);
    Ok(tessera_finishing::finish(&frame.described(), &films, &BlobOutputs(blobs))?)
}

/// Puts the files of a frame together from the pieces that nodes made, as [`resolve`] would make
/// them. Computes on no pixel.
pub fn join(frame: &Frame<'_>, blobs: &dyn Blobs) -> Result<Vec<FrameFile>, ResolveError> {
    let split = Split::Tiles(Grid::of(frame.spec));
    let mut pieces = (split.units()..split.all_units()).map(|unit| {
        let piece = frame.spool.bytes(UnitIndex(unit));
        piece.map_err(|error| FinishError::Results(Box::new(error)))
    });
    Ok(tessera_finishing::join(&frame.described(), &mut pieces, &BlobOutputs(blobs))?)
}

/// Returns the exposure of a frame in which it is metered, in stops.
pub fn metered_exposure(frame: &Frame<'_>) -> Result<f32, ResolveError> {
    Ok(tessera_finishing::metered_exposure(frame.spec, &SpoolFilms::new(frame))?)
}

#[cfg(test)]
#[path = "tests/alpha.rs"]
mod alpha_tests;
#[cfg(test)]
#[path = "tests/crops.rs"]
mod crop_tests;
#[cfg(test)]
#[path = "tests/rounds.rs"]
mod rounds_tests;
#[cfg(test)]
pub(crate) mod tests;
