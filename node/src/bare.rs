//! A frame straight on a device, without a farm: what benchmarks and tests compare the farm with.

use crate::device::{self, Device, DeviceError, PreparedFrame, UnitOutput};
use crate::job;
use std::path::Path;
use std::sync::Arc;
use tessera_protocol::node::{Assignment, Failure, SampleRange, TileRect};
use tessera_protocol::{Epoch, FrameNumber, JobId, RenderSpec, UnitIndex};
use tessera_scenes::LoadedScene;

/// Loads the scene of a job from the folder that its paths are relative to.
///
/// # Errors
/// [`Failure::Scene`] as a node would report it.
pub fn load(folder: &Path, spec: &RenderSpec) -> Result<LoadedScene, Failure> {
    crate::scene::load(folder, &spec.scene, &job::load_options(spec))
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
    let scene = crate::scene::flatten(scene, &job::flatten_options(spec, number))?;
    // Ids tell apart what a device keeps; frames prepared here are never kept beside each other under one id.
    Ok(Arc::new(PreparedFrame { scene, id: u64::from(number.0) }))
}

/// Renders a whole frame, all samples of the job: one film of the frame's size, planar as in [`tessera_protocol::TileSums`].
///
/// # Errors
/// What the device reports.
pub fn render_frame(
    device: &dyn Device,
    frame: &Arc<PreparedFrame>,
    spec: &RenderSpec,
    number: FrameNumber,
) -> Result<UnitOutput, DeviceError> {
    let whole = Assignment {
        job: JobId(uuid::Uuid::nil()),
        frame: number,
        unit: UnitIndex(0),
        epoch: Epoch(0),
        tile: TileRect { x: 0, y: 0, width: spec.width, height: spec.height },
        samples: SampleRange { first: 0, count: spec.spp },
    };
    device::render(device, frame, job::unit_params(spec, &whole))
}
