//! Makes the files of a compute job's frame from its chunks, in the order of their indices: an
//! array, a picture or a reduced value.
//!
//! Memory: one chunk (at most 16 MiB; 64 MiB of a frame of several steps) and, for pictures, the
//! rows in which it ends. A reduction reads partial results in the order of chunks; its result does
//! not depend on that order (see `tessera_protocol::compute::Partial`).

use super::alpha::Alpha;
use super::band::Band;
use super::error::ResolveError;
use super::exr_file::{self, ExrFile, ExrRows};
use super::out_file::OutFile;
use super::png_file::PngRows;
use super::tone::Display;
use crate::blobs::Blobs;
use crate::spool::SpoolIndex;
use sha2::{Digest, Sha256};
use std::io::Write;
use tessera_core::Chunks;
use tessera_protocol::compute::{ComputeFormat, Partial, npy};
use tessera_protocol::job::{ExrCompressionSpec, ExrDepthSpec, Window};
use tessera_protocol::status::FrameFile;
use tessera_protocol::{ChunkValues, ComputeSpec, Fingerprint, FrameNumber, JobId, UnitIndex};

/// Fewest rows of a picture that go to its encoders at once.
const ROWS: usize = 16;

/// A frame of a compute job that has all its chunks in its spool.
#[derive(Debug)]
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
    pub spool: &'a SpoolIndex,
}

/// Makes the files of a frame as blobs, one for each format of the spec and in its order. After an
/// error no part of them is left.
pub fn assemble(values: &Values<'_>, blobs: &dyn Blobs) -> Result<Vec<FrameFile>, ResolveError> {
    values.spool.check_complete(Chunks::of(values.spec).units())?;
    let mut files = Files::begin(values, blobs)?;
    let hash = match values.spec.reduction {
        Some(_) => {
            let result = values.reduced()?;
            files.put(&result, None)?;
            Sha256::digest(&result).into()
        }
        None => files.fill(values)?,
    };
    files.finish(values.spec, hash)
}

impl Values<'_> {
    /// Returns the values or partial results of a unit.
    fn chunk(&self, unit: u32) -> Result<Vec<u8>, ResolveError> {
        let bytes = self.spool.bytes(UnitIndex(unit))?;
        let wrong = |problem: String| ResolveError::Chunk { unit, problem };
        let chunk = ChunkValues::from_bytes(&bytes).map_err(|error| wrong(error.to_string()))?;
        let (_, count) = Chunks::of(self.spec)
            .range(UnitIndex(unit))
            .ok_or_else(|| wrong("there is no such unit".into()))?;
        match (chunk.shape(), self.spec.chunk_shape(count)) {
            (found, expected) if found == expected => Ok(chunk.bytes),
            (found, expected) => {
                Err(wrong(format!("it has the shape {found:?}, not {expected:?}")))
            }
        }
    }

    fn reduced(&self) -> Result<Vec<u8>, ResolveError> {
        let Some(what) = self.spec.reducing() else { return Ok(Vec::new()) };
        let mut total = Partial::new(what);
        for unit in 0..Chunks::of(self.spec).units() {
            let merged = total.merge(&self.chunk(unit)?);
            merged.map_err(|error| ResolveError::Chunk { unit, problem: error.to_string() })?;
        }
        Ok(total.finish())
    }

    fn exr(&self) -> ExrFile {
        let names: &[(&str, Option<usize>)] = match self.spec.channels {
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

/// Files that are being written.
struct Files {
    npy: Option<OutFile>,
    exr: Option<OutFile>,
    png: Option<PngRows>,
}

impl Files {
    fn begin(values: &Values<'_>, blobs: &dyn Blobs) -> Result<Self, ResolveError> {
        let mut files = Self { npy: None, exr: None, png: None };
        let spec = values.spec;
        for format in &spec.formats {
            let mut out = OutFile::new(blobs.writer()?);
            match format {
                ComputeFormat::Npy => {
                    let header = npy::header_bytes(spec.result_element(), &spec.result_shape());
                    out.write_all(&header).map_err(ResolveError::Write)?;
                    files.npy = Some(out);
                }
                ComputeFormat::Exr => files.exr = Some(out),
                ComputeFormat::Png => {
                    let size = (spec.domain.width, spec.domain.height);
                    let colors = if spec.channels == 1 { 1 } else { 3 };
                    let alpha = Alpha { channel: 3, is_premultiplied: false };
                    let channels = (colors, (spec.channels == 4).then_some(alpha));
                    let (display, depth) = (Display::plain(), png::BitDepth::Eight);
                    let rows = PngRows::begin(out, size, channels, display, depth, None)?;
                    files.png = Some(rows);
                }
            }
        }
        Ok(files)
    }

    /// Writes all values in one pass over the spool. Returns their SHA-256.
    fn fill(&mut self, values: &Values<'_>) -> Result<[u8; 32], ResolveError> {
        let exr = self.exr.take();
        let Some(mut out) = exr else { return self.feed(values, None) };
        let mut hash = [0; 32];
        exr_file::write(&mut out, &values.exr(), |rows| {
            hash = self.feed(values, Some(&mut *rows))?;
            rows.finish()
        })?;
        self.exr = Some(out);
        Ok(hash)
    }

    fn feed(
        &mut self,
        values: &Values<'_>,
        mut exr: Option<&mut ExrRows<'_, '_>>,
    ) -> Result<[u8; 32], ResolveError> {
        let row_bytes = values.spec.domain.width as usize * values.spec.index_bytes() as usize;
        let pictures = exr.is_some() || self.png.is_some();
        let units = Chunks::of(values.spec).units();
        let (mut hasher, mut pending) = (Sha256::new(), Vec::new());
        for unit in 0..units {
            let bytes = values.chunk(unit)?;
            hasher.update(&bytes);
            self.put(&bytes, None)?;
            if !pictures {
                continue;
            }
            pending.extend_from_slice(&bytes);
            let whole = pending.len() / row_bytes;
            if whole >= ROWS || unit + 1 == units {
                let rest = pending.split_off(whole * row_bytes);
                let band = Band::of_pixels(
                    values.spec.domain.width as usize,
                    values.spec.channels.into(),
                    &pending,
                );
                self.put(&[], Some((&band, exr.as_deref_mut())))?;
                pending = rest;
            }
        }
        Ok(hasher.finalize().into())
    }

    /// Appends bytes to the array, and rows to the pictures.
    fn put(
        &mut self,
        bytes: &[u8],
        rows: Option<(&Band, Option<&mut ExrRows<'_, '_>>)>,
    ) -> Result<(), ResolveError> {
        if let Some(out) = &mut self.npy {
            out.write_all(bytes).map_err(ResolveError::Write)?;
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
        pixels_sha256: [u8; 32],
    ) -> Result<Vec<FrameFile>, ResolveError> {
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
                ResolveError::Encode(format!("format `{format}` is asked for twice"))
            })?;
            let (hash, length) = out.finish().map_err(ResolveError::Write)?.finish()?;
            files.push(FrameFile { format: format.to_owned(), hash, length, pixels_sha256 });
        }
        Ok(files)
    }
}

#[cfg(test)]
#[path = "tests/values.rs"]
mod tests;
