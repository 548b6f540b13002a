//! The standard scenes, which are inside the program. Devices are tested and measured with them.

use crate::error::{CliError, Status};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tessera_node::bare;
use tessera_node::device::{Device, DeviceError, PreparedFrame, UnitOutput};
use tessera_protocol::job::FilterSpec;
use tessera_protocol::node::TileRect;
use tessera_protocol::{FrameNumber, FrameSet, RenderSpec};

/// Name and glTF text of each scene of `scenes/library`.
const LIBRARY: [(&str, &str); 4] = [
    ("cornell-box", include_str!("../scenes/library/cornell-box.gltf")),
    ("material-row", include_str!("../scenes/library/material-row.gltf")),
    ("many-lights", include_str!("../scenes/library/many-lights.gltf")),
    ("spinning-cube", include_str!("../scenes/library/spinning-cube.gltf")),
];
/// SHA-256 of the film of each scene at [`Look::ANSWER`], as the tests of the kernels keep them.
const ANSWERS: &str = include_str!("../scenes/library/hashes.json");
/// The frame whose film is known: it differs from the still of a scene that moves.
const FRAME: FrameNumber = FrameNumber(1);

/// How a standard frame is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Width in pixels.
    pub(crate) width: u32,
    /// Height in pixels.
    pub(crate) height: u32,
    /// Samples per pixel.
    pub(crate) spp: u32,
    /// Tile edge in pixels.
    pub(crate) tile: u32,
    /// Pixel filter.
    pub(crate) filter: FilterSpec,
}

impl Look {
    /// The look whose answers are known: one unit.
    pub(crate) const ANSWER: Self =
        Self { width: 64, height: 48, spp: 8, tile: 64, filter: FilterSpec::Box };
    /// The look of measurements: 16 units a frame, samples as many as the device is worth.
    pub(crate) const BENCH: Self =
        Self { width: 512, height: 512, spp: 16, tile: 128, filter: FilterSpec::BlackmanHarris };
    /// The look of burning: one unit; samples as many as the device is worth.
    pub(crate) const BURN: Self =
        Self { width: 256, height: 256, spp: 4, tile: 256, ..Self::BENCH };

    /// Camera samples of a frame.
    pub(crate) fn samples(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height) * u64::from(self.spp)
    }
}

/// One frame of one scene, ready for any device.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Name of the scene.
    pub(crate) name: String,
    spec: RenderSpec,
    prepared: Arc<PreparedFrame>,
}

/// Result of rendering a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Film {
    /// The tiles' sums by the tiles' order.
    tiles: Vec<(TileRect, UnitOutput)>,
}

impl Frame {
    /// The library's scenes.
    pub(crate) fn library(look: Look) -> Result<Vec<Self>, CliError> {
        let folder = tempfile::Builder::new().prefix("tessera-standard-").tempdir()?;
        let mut frames = Vec::new();
        for (name, text) in LIBRARY {
            let file = folder.path().join(format!("{name}.gltf"));
            std::fs::write(&file, text)?;
            frames.push(Self::of(&file, look)?);
        }
        Ok(frames)
    }

    /// The scene of a file.
    pub(crate) fn of(file: &Path, look: Look) -> Result<Self, CliError> {
        let about = |reason: String| {
            CliError::new(Status::Failure, reason).context(format!("scene `{}`", file.display()))
        };
        // What is wrong with the file itself is told with its place in it.
        tessera_scenes::files_of(file)?;
        let folder =
            file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let spec = spec(&name, look);
        let failed = |failure: tessera_protocol::node::Failure| about(failure.reason().to_owned());
        let scene = bare::load(folder, &spec).map_err(failed)?;
        let prepared = bare::prepare(&scene, &spec, FRAME).map_err(failed)?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, spec, prepared })
    }

    /// The same frame with other samples per pixel.
    pub(crate) fn with_spp(&self, spp: u32) -> Self {
        let mut frame = self.clone();
        frame.spec.spp = spp;
        frame
    }

    /// Renders it: all tiles are given to the device at once, so that it never waits.
    ///
    /// # Errors
    /// What the device reports of the first tile that fails.
    pub(crate) fn render(&self, device: &dyn Device) -> Result<Film, DeviceError> {
        let tiles = bare::render_frame(device, &self.prepared, &self.spec, FRAME)?;
        Ok(Film { tiles })
    }

    /// Returns whether a film at [`Look::ANSWER`] is right; None if the right film is not known.
    pub(crate) fn is_right(&self, film: &Film) -> Option<bool> {
        let answers: BTreeMap<String, String> = serde_json::from_str(ANSWERS).ok()?;
        // The stored film of a scene that moves is of another moment.
        let known = answers.get(&self.spec.scene).filter(|_| self.name != "spinning-cube")?;
        Some(film.sha256() == *known)
    }
}

impl Film {
    /// Rays cast.
    pub(crate) fn rays(&self) -> u64 {
        self.tiles.iter().map(|(_, output)| output.rays).sum()
    }

    /// The same sums: times do not count, rays do.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let same = |(a, b): (&(TileRect, UnitOutput), &(TileRect, UnitOutput))| {
            a.0 == b.0 && a.1.sums == b.1.sums && a.1.rays == b.1.rays
        };
        self.tiles.len() == other.tiles.len() && self.tiles.iter().zip(&other.tiles).all(same)
    }

    /// SHA-256 of the sums of a film of one tile: R, G, B of each pixel, row by row, little endian.
    fn sha256(&self) -> String {
        let mut hasher = Sha256::new();
        for (_, output) in &self.tiles {
            let values = &output.sums.values;
            let pixels = values.len() / 3;
            for pixel in 0..pixels {
                for channel in 0..3 {
                    hasher.update(values[channel * pixels + pixel].to_le_bytes());
                }
            }
        }
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn spec(scene: &str, look: Look) -> RenderSpec {
    RenderSpec {
        scene: scene.to_owned(),
        // Only a farm has files to name.
        files: Vec::new(),
        width: look.width,
        height: look.height,
        frames: FrameSet::one(FRAME),
        spp: look.spp,
        filter: look.filter,
        tile: look.tile,
        ..RenderSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_node::device::CpuDevice;

    #[test]
    fn the_cpu_renders_the_known_films_to_the_bit() {
        let device = CpuDevice::open(Some(1), None).unwrap();
        let mut known = 0;
        for frame in Frame::library(Look::ANSWER).unwrap() {
            let mut film = frame.render(&device).unwrap();
            let Some(right) = frame.is_right(&film) else { continue };
            assert!(right, "{}", frame.name);
            let twin = film.clone();
            film.tiles[0].1.sums.values[4711] ^= 1;
            assert_eq!((frame.is_right(&film), film.is_same(&twin)), (Some(false), false));
            known += 1;
        }
        assert_eq!(known, 3);
    }
}
