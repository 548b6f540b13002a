//! Makes triangles from glTF's primitive modes (glTF 2.0, §3.7.2.1). Points and lines have no
//! surface and give no triangles.

use gltf::json::mesh::Mode;

/// How corners form triangles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topology {
    List,
    Strip,
    Fan,
}

impl Topology {
    /// Returns the topology of a mode; None for points and lines.
    pub(crate) fn of(mode: Mode) -> Option<Self> {
        match mode {
            Mode::Triangles => Some(Self::List),
            Mode::TriangleStrip => Some(Self::Strip),
            Mode::TriangleFan => Some(Self::Fan),
            Mode::Points | Mode::Lines | Mode::LineLoop | Mode::LineStrip => None,
        }
    }
}

/// Returns whether so many corners are whole triangles, or none.
pub(crate) fn is_whole(topology: Topology, count: usize) -> bool {
    match topology {
        Topology::List => count.is_multiple_of(3),
        Topology::Strip | Topology::Fan => !matches!(count, 1 | 2),
    }
}

/// Returns the triangles of a row of corners. Corners that are left over at the end are ignored.
pub(crate) fn triangles(topology: Topology, corners: &[u32]) -> Vec<[u32; 3]> {
    match topology {
        Topology::List => corners.chunks_exact(3).map(|c| [c[0], c[1], c[2]]).collect(),
        // Every second triangle of a strip has the opposite orientation. It is turned, so that all
        // face the same side.
        Topology::Strip => corners
            .windows(3)
            .enumerate()
            .map(|(i, c)| if i % 2 == 0 { [c[0], c[1], c[2]] } else { [c[0], c[2], c[1]] })
            .collect(),
        Topology::Fan => match corners.split_first() {
            Some((hub, rim)) => rim.windows(2).map(|c| [c[0], c[1], *hub]).collect(),
            None => Vec::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_gives_triangles_that_face_the_same_side() {
        let corners = [10, 11, 12, 13, 14];
        assert_eq!(triangles(Topology::List, &corners), [[10, 11, 12]]);
        assert_eq!(
            triangles(Topology::Strip, &corners),
            [[10, 11, 12], [11, 13, 12], [12, 13, 14]]
        );
        assert_eq!(triangles(Topology::Fan, &corners), [[11, 12, 10], [12, 13, 10], [13, 14, 10]]);
        for topology in [Topology::List, Topology::Strip, Topology::Fan] {
            assert!(triangles(topology, &corners[..2]).is_empty());
            assert!(triangles(topology, &[]).is_empty());
        }
    }
}
