//! Counts the needs of a scene against its limits, before anything is made.

use crate::error::SceneError;
use crate::mesh::Mesh;
use crate::options::Limits;
use tessera_layout::SHOWN_TRIANGLES_MAX;

/// Approximate bytes of a flattened triangle with its indices and its share of the hierarchy, of a
/// vertex with its working copy, of a primitive in its place, and of an instance with its box and
/// its share of the hierarchy.
const TRIANGLE_BYTES: u64 = 48 + 12 + 120;
const VERTEX_BYTES: u64 = 64 + 12;
const DRAW_BYTES: u64 = 96;
const INSTANCE_BYTES: u64 = 144 + 24 + 32 + 100;

/// Counts of everything. They cannot overflow, because they are checked against the limits after
/// every node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Triangles with all their places.
    shown: u64,
    /// Triangles and vertices in memory.
    triangles: u64,
    vertices: u64,
    /// Primitives with their places.
    draws: u64,
    instances: u64,
}

impl Tally {
    /// Counts a stored mesh without any place.
    pub(crate) fn hold(&mut self, mesh: &Mesh) {
        self.triangles += triangles(mesh);
        self.vertices += vertices(mesh);
    }

    /// Counts `places` places of a stored mesh.
    pub(crate) fn show(&mut self, mesh: &Mesh, places: u64) {
        self.shown += places * triangles(mesh);
        self.instances += places;
    }

    /// Counts `places` copies of a mesh.
    pub(crate) fn copy(&mut self, mesh: &Mesh, places: u64) {
        self.shown += places * triangles(mesh);
        self.triangles += places * triangles(mesh);
        self.vertices += places * vertices(mesh);
        self.draws += places * mesh.surfaces.len() as u64;
    }

    /// Fails if a count exceeds a limit.
    pub(crate) fn check(&self, file: &str, limits: &Limits) -> Result<(), SceneError> {
        let most = [
            ("triangles", self.triangles, limits.triangles),
            // Triangles name vertices by 32 bits, whatever the caller's limit is.
            ("vertices", self.vertices, limits.vertices.min(u64::from(u32::MAX))),
            ("primitives in place", self.draws, limits.draws),
            ("triangles in place", self.shown, SHOWN_TRIANGLES_MAX),
        ];
        if let Some(&(what, count, limit)) = most.iter().find(|(_, count, limit)| count > limit) {
            return Err(SceneError::TooLarge { file: file.into(), what, count, limit });
        }
        let needed = self.triangles * TRIANGLE_BYTES
            + self.vertices * VERTEX_BYTES
            + self.draws * DRAW_BYTES
            + self.instances * INSTANCE_BYTES;
        if needed > limits.memory_bytes {
            let path = format!("{} triangles, {} vertices", self.triangles, self.vertices);
            return Err(SceneError::Memory {
                file: file.into(),
                path,
                needed,
                limit: limits.memory_bytes,
            });
        }
        Ok(())
    }
}

fn triangles(mesh: &Mesh) -> u64 {
    mesh.surfaces.iter().map(|surface| surface.geometry.triangles.len() as u64).sum()
}

fn vertices(mesh: &Mesh) -> u64 {
    mesh.surfaces.iter().map(|surface| surface.geometry.shading_count() as u64).sum()
}
