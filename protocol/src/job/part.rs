//! Which pixels a render job renders, and which of them its files have.

use super::error::{SpecError, wrong};
use super::window::length;
use super::{CropSpec, RenderSpec, TileGrid, Window};
use crate::limits::*;

impl RenderSpec {
    /// Returns the whole frame: what the camera shows, and the display window of files.
    pub fn frame_window(&self) -> Window {
        let (right, bottom) = (length(self.width.max(1)), length(self.height.max(1)));
        Window { left: 0, top: 0, right, bottom }
    }

    /// Returns the pixels that files have: the crop or the frame, and its overscan, which may
    /// reach beyond the frame.
    pub fn data_window(&self) -> Window {
        let window = match self.crop {
            None => self.frame_window(),
            Some(CropSpec { x, y, width, height }) => Window {
                left: length(x),
                top: length(y),
                right: length(x.saturating_add(width)),
                bottom: length(y.saturating_add(height)),
            },
        };
        window.grown(self.overscan)
    }

    /// Returns the pixels that have to be rendered for those of the files: the denoiser also reads
    /// their surroundings. Pixels of the frame are denoised as if the frame were all there is;
    /// pixels beyond it, as parts of a frame without end.
    pub fn rendered_window(&self) -> Window {
        let (frame, data) = (self.frame_window(), self.data_window());
        match (self.denoise, frame.contains(&data)) {
            (false, _) => data,
            (true, false) => data.grown(DENOISE_REACH),
            (true, true) => data.grown(DENOISE_REACH).cut(&frame),
        }
    }

    /// Returns the grid of the job's tiles.
    pub fn tiles(&self) -> TileGrid {
        TileGrid::new(&self.frame_window(), &self.rendered_window(), self.tile)
    }

    /// Checks crop and overscan. The frame's own size is right.
    pub(super) fn check_part(&self) -> Result<(), SpecError> {
        let option = match (self.crop, self.overscan) {
            (None, 0) => return Ok(()),
            (Some(_), _) => "crop",
            (None, _) => "overscan",
        };
        if let Some((measure, reason, instead)) = measure_of(self) {
            let problem = format!(
                "does not go with --{measure}, which {reason}: its pixels would not be those of \
                    the whole frame. Say --{instead} in its place"
            );
            return wrong(option, problem);
        }
        if let Some(crop) = &self.crop {
            self.check_crop(crop)?;
        }
        if self.overscan > OVERSCAN_MAX {
            return wrong("overscan", format!("{} is above {OVERSCAN_MAX} pixels", self.overscan));
        }
        let data = self.data_window();
        let (width, height) = (data.width(), data.height());
        if width.max(height) > FRAME_EDGE_MAX || data.pixels() > FRAME_PIXELS_MAX {
            let problem = format!(
                "with {} pixels on every side the picture has {width}x{height}, and a picture has \
                    at most {FRAME_EDGE_MAX} along an edge and {FRAME_PIXELS_MAX} in all",
                self.overscan
            );
            return wrong("overscan", problem);
        }
        Ok(())
    }

    fn check_crop(&self, crop: &CropSpec) -> Result<(), SpecError> {
        let (width, height) = (self.width, self.height);
        if crop.width == 0 || crop.height == 0 {
            return wrong("crop", format!("{crop} has no pixel of the {width}x{height} frame"));
        }
        let within = |start: u32, length: u32, edge: u32| {
            start.checked_add(length).is_some_and(|end| end <= edge)
        };
        if within(crop.x, crop.width, width) && within(crop.y, crop.height, height) {
            return Ok(());
        }
        let problem = format!(
            "{crop} is not within the frame, which has {width}x{height} pixels; --overscan adds \
                pixels beyond it"
        );
        wrong("crop", problem)
    }
}

/// Returns an option that measures the whole frame, so that a part of it would have other pixels,
/// what it does, and the option that takes its place; None if the job has no such option. Every
/// such option has its place here.
fn measure_of(render: &RenderSpec) -> Option<(&'static str, &'static str, &'static str)> {
    if render.noise.is_some() {
        let reason = "decides by a tile and its neighbours how many samples it gets";
        return Some(("noise", reason, "spp"));
    }
    if render.time_secs.is_some() {
        let reason = "decides by the time of the whole frame how many samples it gets";
        return Some(("time", reason, "spp"));
    }
    if render.auto_exposure {
        return Some(("exposure auto", "meters the whole frame", "exposure EV"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::TileRect;

    fn spec(crop: Option<[u32; 4]>, overscan: u32) -> RenderSpec {
        let crop = crop.map(|[x, y, width, height]| CropSpec { x, y, width, height });
        RenderSpec { width: 100, height: 70, tile: 32, crop, overscan, ..RenderSpec::default() }
    }

    fn window(left: i32, top: i32, right: i32, bottom: i32) -> Window {
        Window { left, top, right, bottom }
    }

    #[test]
    fn a_crop_has_the_tiles_of_the_frame_that_it_touches() {
        let whole = spec(None, 0).tiles();
        assert_eq!((whole.columns(), whole.rows(), whole.pixels()), (4, 3, 7000));
        let crop = spec(Some([40, 31, 60, 2]), 0).tiles();
        assert_eq!((crop.columns(), crop.rows()), (3, 2));
        let rects: Vec<_> = (0..6).map(|tile| crop.rect(tile).unwrap()).collect();
        let same: Vec<_> = [1, 2, 3, 5, 6, 7].map(|tile| whole.rect(tile).unwrap()).to_vec();
        assert_eq!(rects, same);
        assert_eq!((crop.rect(6), crop.pixels()), (None, 68 * 64));
        let one = spec(Some([64, 32, 32, 32]), 0).tiles();
        assert_eq!((one.count(), one.window(0)), (1, Some(window(64, 32, 96, 64))));
    }

    #[test]
    fn the_denoiser_reads_beyond_the_crop_but_not_the_frame() {
        let mut spec = spec(Some([50, 10, 10, 10]), 0);
        assert_eq!(spec.rendered_window(), window(50, 10, 60, 20));
        spec.denoise = true;
        assert_eq!(spec.rendered_window(), window(4, 0, 100, 66));
        assert_eq!(spec.data_window(), window(50, 10, 60, 20));
        // Overscan within the frame is a larger crop.
        spec.overscan = 10;
        assert_eq!(spec.data_window(), window(40, 0, 70, 30));
        assert_eq!(spec.rendered_window(), window(0, 0, 100, 70));
        spec.overscan = 11;
        assert_eq!(spec.rendered_window(), window(39 - 46, -1 - 46, 71 + 46, 31 + 46));
    }

    #[test]
    fn overscan_continues_the_grid_beyond_the_frame() {
        let grid = spec(None, 5).tiles();
        assert_eq!((grid.columns(), grid.rows(), grid.pixels()), (5, 4, 110 * 80));
        assert_eq!(grid.window(0), Some(window(-5, -5, 0, 0)));
        assert_eq!(grid.window(6), Some(window(0, 0, 32, 32)));
        assert_eq!(grid.window(19), Some(window(96, 64, 105, 75)));
        let rect = grid.rect(6).unwrap();
        assert_eq!((rect.x, rect.y, rect.width, rect.height), (5, 5, 32, 32));
        assert_eq!(grid.window_of(&rect), Some(window(0, 0, 32, 32)));
        let beyond = TileRect { x: 79, ..rect };
        assert_eq!(grid.window_of(&beyond), None);
        assert_eq!(grid.window_of(&TileRect { x: u32::MAX, ..rect }), None);
        assert_eq!(grid.window_of(&TileRect { width: 0, ..rect }), None);
    }
}
