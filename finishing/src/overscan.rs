//! Denoises rendered windows: which rows and columns are of use, and what stands beyond the frame.
//!
//! Within the frame, a pixel is denoised as if the frame were all there is, so that it does not
//! depend on crop and overscan. Beyond the frame, it is denoised as part of a frame without end.
//! Where a window has pixels of both kinds, each kind has its own denoiser.

use crate::FinishError;
use crate::band::Band;
use crate::denoise::{Denoiser, Needed, Passes, noisy_channel};
use crate::part::Part;
use tessera_protocol::job::{RenderSpec, Window};

/// A rendered window that is being denoised.
pub(crate) struct Denoising<'a> {
    /// Denoises the rendered window as if it were the frame.
    all: Denoiser<'a>,
    frame: Option<FramePart<'a>>,
}

/// The frame's part of a window that reaches beyond the frame.
struct FramePart<'a> {
    denoiser: Denoiser<'a>,
    /// The part, counted from the window's top left.
    place: Window,
    /// Next row of the window to take.
    next_row: i32,
    /// Rows that are denoised, from `first_row` of the window on: of the whole window.
    around: Rows,
    /// The same of the frame's part.
    within: Rows,
    first_row: i32,
}

impl<'a> Denoising<'a> {
    /// Creates the denoising of a part of a job's frames.
    pub(crate) fn new(spec: &RenderSpec, part: &Part, elsewhere: Option<&'a dyn Passes>) -> Self {
        let (rendered, frame) = (part.rendered, spec.frame_window());
        let inside = rendered.cut(&frame);
        let denoiser = |window: &Window, without: Option<Window>| {
            let kept = part.kept.cut(window).from(window);
            let without = without.map(|part| part.from(window));
            let size = (window.width() as usize, window.height() as usize);
            Denoiser::new(spec, &Needed { size, kept, without }, elsewhere)
        };
        if frame.contains(&rendered) || inside.pixels() == 0 {
            return Self { all: denoiser(&rendered, None), frame: None };
        }
        let channels = noisy_channel(spec) + 3;
        let frame = FramePart {
            denoiser: denoiser(&inside, None),
            place: inside.from(&rendered),
            next_row: 0,
            around: Rows::new(rendered.width() as usize, channels),
            within: Rows::new(inside.width() as usize, channels),
            first_row: 0,
        };
        Self { all: denoiser(&rendered, Some(inside)), frame: Some(frame) }
    }

    /// Takes the next rows, with the film's channels. Returns the rows that can be denoised now, as
    /// [`Denoiser::push`] does.
    pub(crate) fn push(&mut self, band: Band) -> Result<Band, FinishError> {
        let Some(frame) = &mut self.frame else { return self.all.push(band) };
        frame.push_within(&band)?;
        frame.around.push(&self.all.push(band)?);
        Ok(frame.pop())
    }
}

impl FramePart<'_> {
    fn push_within(&mut self, band: &Band) -> Result<(), FinishError> {
        let Window { left, top, right, bottom } = self.place;
        let end = self.next_row + band.height as i32;
        let rows = (self.next_row.max(top), end.min(bottom));
        if rows.0 < rows.1 {
            let rows = (rows.0 - self.next_row) as usize..(rows.1 - self.next_row) as usize;
            let part = band.part(left as usize..right as usize, rows);
            self.within.push(&self.denoiser.push(part)?);
        }
        self.next_row = end;
        Ok(())
    }

    /// Removes the rows that are complete, and lays the frame's part over them.
    fn pop(&mut self) -> Band {
        let Window { left, top, right, bottom } = self.place;
        let there = self.first_row + self.around.height() as i32;
        let first_within = self.first_row.clamp(top, bottom);
        let within = first_within + self.within.height() as i32;
        let end = if within < bottom { there.min(within.max(self.first_row)) } else { there };
        let mut band = self.around.pop((end - self.first_row) as usize);
        let end_within = end.clamp(first_within, bottom);
        let part = self.within.pop((end_within - first_within) as usize);
        let down = (first_within - self.first_row) as usize;
        let width = (right - left) as usize;
        for channel in 0..self.within.channels() {
            for y in 0..part.height {
                band.part_of_line(channel, down + y, left as usize, width)
                    .copy_from_slice(part.line(channel, y));
            }
        }
        self.first_row = end;
        band
    }
}

/// Rows that wait for others.
struct Rows {
    width: usize,
    channels: Vec<Vec<f32>>,
}

impl Rows {
    fn new(width: usize, channels: usize) -> Self {
        Self { width, channels: vec![Vec::new(); channels] }
    }

    fn channels(&self) -> usize {
        self.channels.len()
    }

    fn height(&self) -> usize {
        self.channels[0].len() / self.width
    }

    fn push(&mut self, band: &Band) {
        let plane = (band.width * band.height).max(1);
        for (rows, new) in self.channels.iter_mut().zip(band.values.chunks_exact(plane)) {
            rows.extend_from_slice(new);
        }
    }

    /// Removes the first rows.
    fn pop(&mut self, height: usize) -> Band {
        let (width, count) = (self.width, height * self.width);
        let values = self.channels.iter_mut().flat_map(|rows| rows.drain(..count)).collect();
        Band { width, height, values }
    }
}

/// Cuts the rendered window to the pixels that files have.
pub(crate) struct Cut {
    /// These pixels, counted from the rendered window's top left.
    kept: Window,
    whole: bool,
    next_row: i32,
}

impl Cut {
    pub(crate) fn new(part: &Part) -> Self {
        let Part { rendered, kept } = part;
        Self { kept: kept.from(rendered), whole: kept == rendered, next_row: 0 }
    }

    /// Takes the next rows. Returns their part that files have, which may have no rows.
    pub(crate) fn push(&mut self, band: Band) -> Band {
        if self.whole {
            return band;
        }
        let Window { left, top, right, bottom } = self.kept;
        let first = self.next_row;
        self.next_row += band.height as i32;
        let rows = (first.max(top), self.next_row.min(bottom));
        let rows = ((rows.0 - first) as usize, (rows.1.max(rows.0) - first) as usize);
        band.part(left as usize..right as usize, rows.0.min(band.height)..rows.1.min(band.height))
    }
}
