//! The scenes of the known answers, prepared once in a process: a room with a lamp, and the same
//! room with what layered kernels and kernels for instances are for.

use std::sync::{Arc, OnceLock};
use tessera_kernels::CheckedScene;
use tessera_kernels::host::{Isa, RayCounts, RenderError, render_unit};
use tessera_layout::UnitParams;
use tessera_scenes::{Choice, EnvironmentSource, FlattenOptions, LoadOptions, load};

/// A room with a lamp, diffuse walls, a box of copper and a box of plastic; the same with copies of
/// the boxes.
const ROOM: &str = include_str!("room.gltf");
/// The room with coated copper, glass and a pane; the same with copies of them.
const GLASS: &str = include_str!("glass.gltf");
/// Edge of the pictures in pixels.
pub(super) const EDGE: u32 = 16;

/// What a scene has that kernels differ by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SceneKind {
    /// Meshes that are stored once and shown several times.
    pub(crate) instances: bool,
    /// Materials with layers; in the scenes here also glass with an inside, and panes.
    pub(crate) layers: bool,
}

impl SceneKind {
    /// Returns the kind of a scene.
    pub(crate) fn of(scene: &CheckedScene) -> Self {
        Self { instances: !scene.instances.is_empty(), layers: !scene.layers.is_empty() }
    }

    /// Returns the name of the scene that the answers of this kind have.
    pub(super) fn name(self) -> &'static str {
        match (self.layers, self.instances) {
            (false, false) => "room",
            (false, true) => "room with copies",
            (true, false) => "room with glass",
            (true, true) => "room with glass and copies",
        }
    }

    /// Returns the scene.
    ///
    /// # Errors
    /// There is no place for temporary files, or this program has a fault.
    pub(super) fn scene(self) -> Result<CheckedScene, String> {
        static SCENES: [OnceLock<Result<CheckedScene, String>>; 4] = [const { OnceLock::new() }; 4];
        SCENES[self.index()].get_or_init(|| self.load()).clone()
    }

    /// Returns the id of the scene on devices. Those of frames count up from 0, and those of frames
    /// without a farm from 2^63.
    pub(super) fn id(self) -> u64 {
        u64::MAX - self.index() as u64
    }

    fn index(self) -> usize {
        2 * usize::from(self.layers) + usize::from(self.instances)
    }

    fn load(self) -> Result<CheckedScene, String> {
        let folder = tempfile::tempdir().map_err(text)?;
        let scenes = if self.layers { GLASS } else { ROOM };
        std::fs::write(folder.path().join("scenes.gltf"), scenes).map_err(text)?;
        let options = LoadOptions {
            environment: EnvironmentSource::Constant([0.3, 0.4, 0.5]),
            scene: Some(Choice::Index(self.instances.into())),
            instanced_from: if self.instances { 1 } else { u64::MAX },
            ..LoadOptions::default()
        };
        let loaded = load(folder.path(), "scenes.gltf", &options).map_err(text)?;
        let still = FlattenOptions::still(EDGE, EDGE);
        let flat = loaded.flatten(&still).map_err(text)?;
        CheckedScene::new(Arc::new(flat)).map_err(text)
    }
}

/// Returns an error with all of its causes.
fn text(error: impl std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Renders a unit on this thread.
pub(super) fn sums_of(
    isa: Isa,
    scene: &CheckedScene,
    params: &UnitParams,
) -> Result<Vec<i64>, RenderError> {
    let mut film = vec![0i64; (params.width * params.height * params.channels()) as usize];
    render_unit(isa, scene, params, &mut film, &mut RayCounts::default())?;
    Ok(film)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scene_is_of_the_kind_that_it_stands_for() {
        for (instances, layers) in [(false, false), (false, true), (true, false), (true, true)] {
            let kind = SceneKind { instances, layers };
            let scene = &kind.scene().unwrap();
            assert_eq!(SceneKind::of(scene), kind);
            assert_eq!(scene.pane_count() > 0, layers, "{}", kind.name());
            assert_eq!(scene.media.len() > 1, layers, "{}", kind.name());
            assert!(scene.instances.is_empty() || scene.instances.len() >= 4, "{}", kind.name());
        }
    }
}
