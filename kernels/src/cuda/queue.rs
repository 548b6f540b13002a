//! The operations of a device's stream, and the rendering of a unit on one. Knows no driver.

use super::Kernel;
use super::image::SceneImage;
use super::params::DeviceScene;
use super::plan::{Plan, Step};
use crate::host::RayCounts;

/// A stream of a device. It executes commands in order, and may do so after the call returns.
/// Addresses are the device's.
pub trait Queue {
    /// Error of the driver.
    type Error;

    /// Memory with undefined contents, at a multiple of 256.
    ///
    /// # Errors
    /// Out of memory; the queue goes on working.
    fn allocate(&mut self, bytes: u64) -> Result<u64, Self::Error>;

    /// Releases memory after all earlier commands have finished with it.
    fn release(&mut self, address: u64);

    /// Copies to the device. `bytes` are not needed after the return.
    ///
    /// # Errors
    /// The device has failed.
    fn upload(&mut self, address: u64, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Sets bytes to zero.
    ///
    /// # Errors
    /// The device has failed.
    fn zero(&mut self, address: u64, bytes: u64) -> Result<(), Self::Error>;

    /// Runs a kernel, of the [`KernelSet`](super::KernelSet) that the scene asks for, over `grid`
    /// blocks of `block` threads with its one parameter.
    ///
    /// # Errors
    /// The launch was refused, or something before it has failed.
    fn launch(
        &mut self,
        kernel: Kernel,
        grid: u32,
        block: u32,
        params: &[u8],
    ) -> Result<(), Self::Error>;

    /// Copies from the device, after everything told before. `bytes` are there on return.
    ///
    /// # Errors
    /// The device has failed, now or in something told before.
    fn download(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Self::Error>;
}

/// Uploads a scene; the address is to be released when it is no longer needed.
///
/// # Errors
/// Those of the queue. Nothing stays allocated.
pub fn upload<Q: Queue>(queue: &mut Q, image: &SceneImage) -> Result<(u64, DeviceScene), Q::Error> {
    let address = queue.allocate(image.bytes())?;
    for part in image.parts().filter(|part| !part.bytes.is_empty()) {
        if let Err(error) = queue.upload(address + part.offset, part.bytes) {
            queue.release(address);
            return Err(error);
        }
    }
    Ok((address, image.scene().at(address)))
}

/// Renders the only unit of a plan from start to end: workspace, launches, results. The film is
/// `i64` sums as in [`host::render_unit`](crate::host::render_unit), in the order of their planes.
///
/// # Errors
/// Those of the queue. The workspace is released either way.
pub fn render_unit<Q: Queue>(
    queue: &mut Q,
    scene: &DeviceScene,
    plan: &Plan,
) -> Result<(Vec<i64>, RayCounts), Q::Error> {
    Ok(render_units(queue, scene, plan)?.swap_remove(0))
}

/// The same of all units of a plan, in their order.
///
/// # Errors
/// Those of the queue. The workspace is released either way.
pub fn render_units<Q: Queue>(
    queue: &mut Q,
    scene: &DeviceScene,
    plan: &Plan,
) -> Result<Vec<(Vec<i64>, RayCounts)>, Q::Error> {
    let workspace = queue.allocate(plan.workspace_bytes())?;
    let result = render_in(queue, scene, plan, workspace);
    queue.release(workspace);
    result
}

fn render_in<Q: Queue>(
    queue: &mut Q,
    scene: &DeviceScene,
    plan: &Plan,
    workspace: u64,
) -> Result<Vec<(Vec<i64>, RayCounts)>, Q::Error> {
    for step in plan.steps(scene, workspace) {
        match step {
            Step::Write { address, bytes } => queue.upload(address, &bytes)?,
            Step::Zero { address, bytes } => queue.zero(address, bytes)?,
            Step::Launch { kernel, grid, block, params } => {
                queue.launch(kernel, grid, block, &params)?
            }
        }
    }
    let mut films = vec![0u8; plan.film_bytes() as usize];
    queue.download(workspace, &mut films)?;
    let mut counts = vec![0u8; plan.counts_bytes() as usize];
    queue.download(workspace + plan.counts_offset(), &mut counts)?;
    let film = |range: std::ops::Range<usize>| {
        films[range].chunks_exact(8).map(|sum| i64::from_le_bytes(eight(sum))).collect()
    };
    Ok(plan.films().map(film).zip(plan.counts(&counts)).collect())
}

fn eight(bytes: &[u8]) -> [u8; 8] {
    let mut result = [0; 8];
    result.copy_from_slice(bytes);
    result
}
