//! Makes the files of a frame in one process.

use crate::exr_file::{self, ExrFile};
use crate::exr_rows::ExrRows;
use crate::out_file::OutFile;
use crate::part::Part;
use crate::pipeline::finished_rows;
use crate::running::Running;
use crate::shown::ShownRows;
use crate::{Films, FinishError, Frame, Outputs, pixels};
use sha2::{Digest, Sha256};
use tessera_protocol::job::FormatSpec;
use tessera_protocol::status::FrameFile;

/// Makes all files of a frame in one process, one for each format of the spec and in its order.
/// After an error no part of them is left.
pub fn finish(
    frame: &Frame<'_>,
    films: &dyn Films,
    outputs: &dyn Outputs,
) -> Result<Vec<FrameFile>, FinishError> {
    let coverage = frame.spec.coverage_channel().map(usize::from);
    let mut exr = None;
    let mut shown = Vec::new();
    for format in &frame.spec.formats {
        let out = OutFile::new(outputs.begin()?);
        match format {
            FormatSpec::Exr => exr = Some(out),
            _ => shown.push(ShownRows::begin(out, frame.spec, *format, coverage)?),
        }
    }
    let pixels_sha256 = write_rows(frame, films, exr.as_mut(), &mut shown)?;
    let shown = shown.into_iter().map(ShownRows::finish).collect::<Result<Vec<_>, _>>()?;
    files(&frame.spec.formats, exr, shown, pixels_sha256)
}

/// Makes the written files durable, and names them in the order of the formats.
pub(crate) fn files(
    formats: &[FormatSpec],
    mut exr: Option<OutFile>,
    shown: Vec<OutFile>,
    pixels_sha256: [u8; 32],
) -> Result<Vec<FrameFile>, FinishError> {
    let mut shown = shown.into_iter();
    let file = |format: &FormatSpec| {
        let out = if *format == FormatSpec::Exr { exr.take() } else { shown.next() };
        let format = format.extension().to_owned();
        let out = out
            .ok_or_else(|| FinishError::Encode(format!("format `{format}` is asked for twice")))?;
        let (hash, length) = out.finish()?;
        Ok(FrameFile { format, hash, length, pixels_sha256 })
    };
    formats.iter().map(file).collect()
}

/// Writes the rows of every file in one pass over the films. Returns the SHA-256 of the pixels.
fn write_rows(
    frame: &Frame<'_>,
    films: &dyn Films,
    exr: Option<&mut OutFile>,
    shown: &mut [ShownRows],
) -> Result<[u8; 32], FinishError> {
    let mut hasher = Sha256::new();
    let mut feed = |mut exr: Option<&mut ExrRows<'_>>| -> Result<(), FinishError> {
        let part = Part::whole(frame.spec);
        finished_rows(frame.spec, &part, films, &Running::default(), |band| {
            pixels::hash(&mut hasher, band);
            if let Some(rows) = exr.as_deref_mut() {
                rows.push(band)?;
            }
            shown.iter_mut().try_for_each(|rows| rows.push(band))
        })?;
        exr.map_or(Ok(()), ExrRows::finish)
    };
    match exr {
        Some(out) => exr_file::write(out, &ExrFile::of_frame(frame), |rows| feed(Some(rows)))?,
        None => feed(None)?,
    }
    Ok(hasher.finalize().into())
}
