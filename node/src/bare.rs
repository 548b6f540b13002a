//! Renders a frame on a device without a farm, as a comparison for benchmarks and tests. Scenes are
//! read in this process, because they are the user's own.

use crate::device::{self, Device, DeviceError, PreparedFrame, UnitOutput};
use crate::job;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tessera_kernels::CheckedScene;
use tessera_protocol::node::{Failure, SampleRange, TileRect};
use tessera_protocol::{FrameNumber, RenderSpec};
use tessera_scenes::LoadedScene;
use tessera_transport::error::chain;

/// Loads the scene of a job from the folder that its paths are relative to.
///
/// # Errors
/// [`Failure::Scene`] as a node would report it.
pub fn load(folder: &Path, spec: &RenderSpec) -> Result<LoadedScene, Failure> {
    let loaded = tessera_scenes::load(folder, &spec.scene, &job::load_options(spec));
    loaded.map_err(|error| Failure::Scene(chain(&error)))
}

/// One frame of a loaded scene, ready for a device.
///
/// # Errors
/// [`Failure::Scene`] as a node would report it.
pub fn prepare(
    scene: &LoadedScene,
    spec: &RenderSpec,
    number: FrameNumber,
) -> Result<Arc<PreparedFrame>, Failure> {
    let flat = scene.flatten(&job::flatten_options(spec, number));
    let flat = flat.map_err(|error| Failure::Scene(chain(&error)))?;
    let scene =
        CheckedScene::new(Arc::new(flat)).map_err(|error| Failure::Scene(error.to_string()))?;
    // Ids distinguish what a device keeps. Those of a node's own frames count from 0.
    static NEXT: AtomicU64 = AtomicU64::new(1 << 63);
    Ok(Arc::new(PreparedFrame::new(scene, NEXT.fetch_add(1, Ordering::Relaxed))))
}

/// Renders a whole frame, all samples of the job, in tiles of the job's size that the device has
/// all at once, so that it never waits: the least time that any farm of this one device could take.
/// Gives the tiles with their films, row by row.
///
/// # Errors
/// What the device reports of the first tile that fails.
pub fn render_frame(
    device: &dyn Device,
    frame: &Arc<PreparedFrame>,
    spec: &RenderSpec,
    number: FrameNumber,
) -> Result<Vec<(TileRect, UnitOutput)>, DeviceError> {
    let cells = spec.tiles();
    let rendering: Vec<_> = (0..cells.count())
        .filter_map(|tile| cells.rect(tile))
        .map(|tile| {
            let samples = SampleRange { first: 0, count: spec.spp };
            (tile, device::begin(device, frame, job::unit_params(spec, number, tile, samples)))
        })
        .collect();
    let end = |(tile, output): (TileRect, device::Begun)| Ok((tile, output.end()?));
    rendering.into_iter().map(end).collect()
}
