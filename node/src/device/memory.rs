//! Memory that a frame's scene needs on devices, predicted before any device has it.

use serde::Serialize;
use std::sync::Arc;
use tessera_kernels::cuda::SceneImage;
use tessera_kernels::{CheckedScene, SceneError};
use tessera_layout::FlatScene;

/// Bytes of a frame's scene with its hierarchy. The workspace of units does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SceneMemory {
    /// Main memory, for the CPU.
    pub processor_bytes: u64,
    /// GPU memory, with a compressed hierarchy.
    pub gpu_bytes: u64,
}

impl SceneMemory {
    /// Lays the scene out for both kinds of devices.
    ///
    /// # Errors
    ///
    /// If the scene is not one that kernels accept.
    pub fn of(scene: FlatScene) -> Result<Self, SceneError> {
        let processor_bytes = scene.bytes();
        let scene = CheckedScene::new(Arc::new(scene))?;
        Ok(Self { processor_bytes, gpu_bytes: SceneImage::of(&scene).bytes() })
    }
}
