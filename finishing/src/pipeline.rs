//! From films to the rows of files: merges, divides, denoises and cuts, one row of tiles at a time.

use crate::band::{Band, Tiles};
use crate::overscan::{Cut, Denoising};
use crate::part::Part;
use crate::running::Running;
use crate::{Films, FinishError, alpha, file_space};
use tessera_protocol::job::RenderSpec;

/// Gives all rows of a part of a frame to `take`, from the top. Ends early if it is stopped.
pub(crate) fn finished_rows(
    spec: &RenderSpec,
    part: &Part,
    films: &dyn Films,
    running: &Running<'_>,
    mut take: impl FnMut(&Band) -> Result<(), FinishError>,
) -> Result<(), FinishError> {
    let tiles = Tiles::new(spec, part, films);
    let coverage = spec.coverage_channel().map(usize::from);
    let mut denoiser = spec.denoise.then(|| Denoising::new(spec, part, running.passes));
    let mut cut = Cut::new(part);
    for row in tiles.rows() {
        running.check()?;
        let mut band = tiles.band(row)?;
        if let Some(denoiser) = &mut denoiser {
            band = denoiser.push(band)?;
        }
        if let Some(channel) = coverage {
            alpha::settle(&mut band, channel, spec.denoise);
        }
        let mut band = cut.push(band);
        file_space::restore(&mut band, spec);
        take(&band)?;
    }
    Ok(())
}
