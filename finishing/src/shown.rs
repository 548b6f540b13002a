//! Files of display formats: those that are made of the colours alone.

use crate::FinishError;
use crate::alpha::Alpha;
use crate::band::Band;
use crate::jpeg::JpegRows;
use crate::out_file::OutFile;
use crate::png_file::PngRows;
use crate::tone::Display;
use tessera_protocol::job::options::{Chosen, away_from_default};
use tessera_protocol::job::{FormatSpec, RenderSpec};

/// A file of a display format whose rows are being written.
pub(crate) enum ShownRows {
    Png(Box<PngRows>),
    Jpeg(Box<JpegRows>),
}

impl ShownRows {
    /// Begins a file. The alpha of its rows is in the channel `coverage`.
    pub(crate) fn begin(
        out: OutFile,
        spec: &RenderSpec,
        format: FormatSpec,
        coverage: Option<usize>,
    ) -> Result<Self, FinishError> {
        let chosen = away_from_default(spec);
        let mut notes: Vec<String> = chosen.iter().filter_map(Chosen::file_note).collect();
        if spec.auto_exposure {
            notes.push(format!("exposure metered: {} stops", spec.exposure));
        }
        let comment = (!notes.is_empty()).then(|| notes.join("; "));
        let window = spec.data_window();
        let (size, display) = ((window.width(), window.height()), Display::new(spec));
        if format == FormatSpec::Jpeg {
            let rows = JpegRows::begin(out, size, display, spec.jpeg_quality, comment.as_deref())?;
            return Ok(Self::Jpeg(Box::new(rows)));
        }
        let depth =
            if format == FormatSpec::Png16 { png::BitDepth::Sixteen } else { png::BitDepth::Eight };
        let alpha = coverage.map(|channel| Alpha { channel, is_premultiplied: true });
        let rows = PngRows::begin(out, size, (3, alpha), display, depth, comment)?;
        Ok(Self::Png(Box::new(rows)))
    }

    pub(crate) fn push(&mut self, band: &Band) -> Result<(), FinishError> {
        match self {
            Self::Png(rows) => rows.push(band),
            Self::Jpeg(rows) => rows.push(band),
        }
    }

    pub(crate) fn finish(self) -> Result<OutFile, FinishError> {
        match self {
            Self::Png(rows) => rows.finish(),
            Self::Jpeg(rows) => rows.finish(),
        }
    }
}
