//! Makes the files of a compute job's frame from its chunks, in the order of their indices: of each
//! output an array, a picture or a reduced value.
//!
//! Memory: one chunk (at most 16 MiB; 64 MiB of a frame of several steps) and, for pictures, the
//! rows in which it ends, of each output. A reduction reads partial results in the order of chunks;
//! its result does not depend on that order (see `tessera_protocol::compute::Partial`).

use crate::FinishError;
use crate::Outputs;
use crate::alpha::Alpha;
use crate::band::Band;
use crate::exr_file::{self, ExrFile};
use crate::exr_rows::ExrRows;
use crate::out_file::OutFile;
use crate::png_file::PngRows;
use crate::tone::Display;
use sha2::{Digest, Sha256};
use std::io::Write;
use tessera_protocol::compute::{Chunks, ComputeFormat, Layout, OutputArray, Partial, npy};
use tessera_protocol::job::{ExrCompressionSpec, ExrDepthSpec, Window};
use tessera_protocol::status::FrameFile;
use tessera_protocol::{ChunkValues, ComputeSpec, Fingerprint, FrameNumber, JobId, UnitIndex};

/// Fewest rows of a picture that go to its encoders at once.
const ROWS: usize = 16;

/// A frame of a compute job.
#[derive(Clone, Copy)]
pub struct Values<'a> {
    /// Job of the frame.
    pub job: JobId,
    /// Number of the frame.
    pub frame: FrameNumber,
    /// Options of the job.
    pub spec: &'a ComputeSpec,
    /// Fingerprint of the results.
    pub fingerprint: Option<Fingerprint>,
    /// Results of the frame.
    pub results: &'a dyn ChunkResults,
}

/// The results of a compute job's frame.
pub trait ChunkResults {
    /// Returns the bytes of a unit's result.
    fn bytes(&self, unit: u32) -> Result<Vec<u8>, FinishError>;
}

/// Makes the files of a frame: for each output one for each format of the spec, in the order of
/// [`ComputeSpec::extensions`]. After an error no part of them is left.
pub fn assemble(values: &Values<'_>, outputs: &dyn Outputs) -> Result<Vec<FrameFile>, FinishError> {
    let written = values.spec.written();
    let begin = |(place, output)| Part::begin(values.spec, (place, output), outputs);
    let mut parts = written.iter().enumerate().map(begin).collect::<Result<Vec<_>, _>>()?;
    match values.spec.formats.contains(&ComputeFormat::Exr) {
        // One pass over the results for all outputs.
        false => values.read(|unit, bytes, layout, is_last| {
            parts.iter_mut().try_for_each(|part| part.add(unit, (bytes, layout), None, is_last))
        })?,
        true => parts.iter_mut().try_for_each(|part| part.fill_with_exr(values))?,
    }
    let files = parts.into_iter().map(|part| part.finish(values.spec));
    Ok(files.collect::<Result<Vec<_>, _>>()?.concat())
}

impl Values<'_> {
    /// Reads all units in order: the number of each, its bytes and their layout, and whether it is
    /// the last.
    fn read(
        &self,
        mut each: impl FnMut(u32, &[u8], &Layout, bool) -> Result<(), FinishError>,
    ) -> Result<(), FinishError> {
        let units = Chunks::of(self.spec).units();
        for unit in 0..units {
            let (bytes, layout) = self.checked(unit)?;
            each(unit, &bytes, &layout, unit + 1 == units)?;
        }
        Ok(())
    }

    /// Returns the values or partial results of a unit, and where those of each output are.
    fn checked(&self, unit: u32) -> Result<(Vec<u8>, Layout), FinishError> {
        let wrong = |problem: String| FinishError::Chunk { unit, problem };
        let bytes = self.results.bytes(unit)?;
        let chunk = ChunkValues::from_bytes(&bytes).map_err(|error| wrong(error.to_string()))?;
        let (_, count) = Chunks::of(self.spec)
            .range(UnitIndex(unit))
            .ok_or_else(|| wrong("there is no such unit".into()))?;
        match (chunk.shape(), self.spec.chunk_shape(count)) {
            (found, expected) if found == expected => {
                Ok((chunk.bytes, self.spec.result_layout(count)))
            }
            (found, expected) => {
                Err(wrong(format!("it has the shape {found:?}, not {expected:?}")))
            }
        }
    }

    fn exr(&self, channels: u8) -> ExrFile {
        let names: &[(&str, Option<usize>)] = match channels {
            1 => &[("Y", Some(0))],
            4 => &[("A", Some(3)), ("B", Some(2)), ("G", Some(1)), ("R", Some(0))],
            _ => &[("A", None), ("B", Some(2)), ("G", Some(1)), ("R", Some(0))],
        };
        let float = |(name, channel): &(&str, Option<usize>)| {
            ((*name).to_owned(), ExrDepthSpec::Float, *channel)
        };
        let about = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "fingerprint": self.fingerprint.map(|fingerprint| fingerprint.to_string()),
            "job": self.job.to_string(),
            "frame": self.frame.0,
            "kernel": self.spec.program.name(),
            "seed": self.spec.seed,
        });
        let (width, height) = (self.spec.domain.width, self.spec.domain.height);
        ExrFile {
            size: (width, height),
            data: Window { left: 0, top: 0, right: width as i32, bottom: height as i32 },
            channels: names.iter().map(float).collect(),
            compression: ExrCompressionSpec::Zip,
            about,
        }
    }
}

/// An output on its way into its files.
struct Part<'a> {
    output: &'a OutputArray,
    /// Its place among the outputs.
    place: usize,
    /// Indices in a row of a picture.
    width: usize,
    files: Files,
    /// What it is reduced to so far.
    total: Option<Partial>,
    hasher: Sha256,
    /// Values that are no whole rows yet.
    pending: Vec<u8>,
}

impl<'a> Part<'a> {
    fn begin(
        spec: &ComputeSpec,
        (place, output): (usize, &'a OutputArray),
        outputs: &dyn Outputs,
    ) -> Result<Self, FinishError> {
        Ok(Self {
            output,
            place,
            width: spec.domain.width as usize,
            files: Files::begin(spec, output, outputs)?,
            total: output.reducing().map(Partial::new),
            hasher: Sha256::new(),
            pending: Vec::new(),
        })
    }

    /// Adds a unit, of which `bytes` are all outputs.
    fn add(
        &mut self,
        unit: u32,
        (bytes, layout): (&[u8], &Layout),
        exr: Option<&mut ExrRows<'_>>,
        is_last: bool,
    ) -> Result<(), FinishError> {
        let (start, length) = layout.parts.get(self.place).copied().unwrap_or_default();
        let bytes = &bytes[start as usize..][..length as usize];
        if let Some(total) = &mut self.total {
            let merged = total.merge(bytes);
            merged.map_err(|error| FinishError::Chunk { unit, problem: error.to_string() })?;
            if is_last {
                let result = total.finish();
                self.hasher.update(&result);
                self.files.put(&result, None)?;
            }
            return Ok(());
        }
        self.hasher.update(bytes);
        self.files.put(bytes, None)?;
        if exr.is_none() && self.files.png.is_none() {
            return Ok(());
        }
        self.pending.extend_from_slice(bytes);
        let row_bytes = self.width * self.output.index_bytes() as usize;
        let whole = self.pending.len() / row_bytes;
        if whole >= ROWS || is_last {
            let rest = self.pending.split_off(whole * row_bytes);
            let channels = self.output.channels.into();
            let band = Band::of_pixels(self.width, channels, &self.pending);
            self.files.put(&[], Some((&band, exr)))?;
            self.pending = rest;
        }
        Ok(())
    }

    /// Adds all units. An EXR file is written within one call.
    fn fill_with_exr(&mut self, values: &Values<'_>) -> Result<(), FinishError> {
        let Some(mut out) = self.files.exr.take() else { return Ok(()) };
        exr_file::write(&mut out, &values.exr(self.output.channels), |rows| {
            values.read(|unit, bytes, layout, is_last| {
                self.add(unit, (bytes, layout), Some(&mut *rows), is_last)
            })?;
            rows.finish()
        })?;
        self.files.exr = Some(out);
        Ok(())
    }

    fn finish(self, spec: &ComputeSpec) -> Result<Vec<FrameFile>, FinishError> {
        self.files.finish(spec, self.output, self.hasher.finalize().into())
    }
}

/// Files of an output that are being written.
struct Files {
    npy: Option<OutFile>,
    exr: Option<OutFile>,
    png: Option<PngRows>,
}

impl Files {
    fn begin(
        spec: &ComputeSpec,
        output: &OutputArray,
        outputs: &dyn Outputs,
    ) -> Result<Self, FinishError> {
        let mut files = Self { npy: None, exr: None, png: None };
        for format in &spec.formats {
            let mut out = OutFile::new(outputs.begin()?);
            match format {
                ComputeFormat::Npy => {
                    let shape = output.result_shape(&spec.domain);
                    let header = npy::header_bytes(output.result_element(), &shape);
                    out.write_all(&header).map_err(FinishError::Write)?;
                    files.npy = Some(out);
                }
                ComputeFormat::Exr => files.exr = Some(out),
                ComputeFormat::Png => {
                    let size = (spec.domain.width, spec.domain.height);
                    let colors = if output.channels == 1 { 1 } else { 3 };
                    let alpha = Alpha { channel: 3, is_premultiplied: false };
                    let channels = (colors, (output.channels == 4).then_some(alpha));
                    let (display, depth) = (Display::plain(), png::BitDepth::Eight);
                    let rows = PngRows::begin(out, size, channels, display, depth, None)?;
                    files.png = Some(rows);
                }
            }
        }
        Ok(files)
    }

    /// Appends bytes to the array, and rows to the pictures.
    fn put(
        &mut self,
        bytes: &[u8],
        rows: Option<(&Band, Option<&mut ExrRows<'_>>)>,
    ) -> Result<(), FinishError> {
        if let Some(out) = &mut self.npy {
            out.write_all(bytes).map_err(FinishError::Write)?;
        }
        let Some((band, exr)) = rows else { return Ok(()) };
        if let Some(rows) = exr {
            rows.push(band)?;
        }
        self.png.as_mut().map_or(Ok(()), |rows| rows.push(band))
    }

    fn finish(
        self,
        spec: &ComputeSpec,
        output: &OutputArray,
        pixels_sha256: [u8; 32],
    ) -> Result<Vec<FrameFile>, FinishError> {
        let (mut npy, mut exr) = (self.npy, self.exr);
        let mut png = self.png.map(PngRows::finish).transpose()?;
        let mut files = Vec::new();
        for format in &spec.formats {
            let out = match format {
                ComputeFormat::Npy => npy.take(),
                ComputeFormat::Exr => exr.take(),
                ComputeFormat::Png => png.take(),
            };
            let format = format.extension();
            let out = out.ok_or_else(|| {
                FinishError::Encode(format!("format `{format}` is asked for twice"))
            })?;
            let (hash, length) = out.finish()?;
            let format = output.file_extension(format);
            files.push(FrameFile { format, hash, length, pixels_sha256 });
        }
        Ok(files)
    }
}
