//! Which pixels are read, and which of them are kept: of a whole frame, or of a band of its rows.

use std::ops::Range;
use tessera_protocol::job::{RenderSpec, Window};
use tessera_protocol::limits::DENOISE_REACH;

/// Bands begin at multiples of so many rows: EXR files compress at most so many together.
pub(crate) const BAND_ROWS: u32 = 32;

/// The part of a frame that is finished at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Pixels that are read.
    pub(crate) rendered: Window,
    /// Those among them that files have.
    pub(crate) kept: Window,
}

impl Part {
    /// The whole frame.
    pub(crate) fn whole(spec: &RenderSpec) -> Self {
        Self { rendered: spec.rendered_window(), kept: spec.data_window() }
    }

    /// Some rows of the files, and what the denoiser reads for them. Rows that files do not have
    /// are left out.
    pub(crate) fn of_rows(spec: &RenderSpec, rows: Range<u32>) -> Self {
        let Self { rendered, kept } = Self::whole(spec);
        let row = |row: u32| kept.top.saturating_add_unsigned(row.min(kept.height()));
        let kept = Window { top: row(rows.start), bottom: row(rows.end), ..kept };
        let reach = if spec.denoise { DENOISE_REACH } else { 0 };
        let (top, bottom) = (
            kept.top.saturating_sub_unsigned(reach).max(rendered.top),
            kept.bottom.saturating_add_unsigned(reach).min(rendered.bottom),
        );
        Self { rendered: Window { top, bottom, ..rendered }, kept }
    }
}
