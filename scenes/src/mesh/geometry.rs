//! One primitive's triangles and vertices. Does not pose them; see `pose`.

/// Joints and weights of each vertex, four of each.
pub(crate) type InfluenceSet = (Vec<[u32; 4]>, Vec<[f32; 4]>);

/// Changes of one morph target for each vertex. Empty if it changes nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct MorphTarget {
    pub(crate) positions: Vec<[f32; 3]>,
    pub(crate) normals: Vec<[f32; 3]>,
    pub(crate) tangents: Vec<[f32; 3]>,
    pub(crate) uvs: [Vec<[f32; 2]>; UV_SLOTS],
    pub(crate) colors: Vec<[f32; 4]>,
}

/// UV sets of a vertex.
pub(crate) const UV_SLOTS: usize = 2;

/// UV set of the file in each slot of a vertex.
pub(crate) type UvSets = [u32; UV_SLOTS];

/// Data of a primitive in its mesh's own space. Every list that is not empty has one entry per
/// position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Geometry {
    /// Counter-clockwise from the front.
    pub(crate) triangles: Vec<[u32; 3]>,
    pub(crate) positions: Vec<[f32; 3]>,
    /// Empty if shading is flat. Then the geometry [has facets](Geometry::has_facets), or no two
    /// triangles share a vertex.
    pub(crate) normals: Vec<[f32; 3]>,
    /// Direction of the tangent, and sign of the bitangent.
    pub(crate) tangents: Vec<[f32; 4]>,
    /// UVs of each slot; see [`UvSets`].
    pub(crate) uvs: [Vec<[f32; 2]>; UV_SLOTS],
    pub(crate) colors: Vec<[f32; 4]>,
    /// Joints and weights, for each set of four.
    pub(crate) influences: Vec<InfluenceSet>,
    pub(crate) targets: Vec<MorphTarget>,
}

/// Returns the largest joint that a vertex follows; None if there is none.
pub(crate) fn largest_joint((joints, weights): &InfluenceSet) -> Option<usize> {
    let pairs = joints.as_flattened().iter().zip(weights.as_flattened());
    pairs.filter(|(_, weight)| **weight > 0.0).map(|(joint, _)| *joint as usize).max()
}

impl Geometry {
    /// Returns whether all three corners of each triangle are shaded alike: shading is flat, and
    /// vertices have nothing but their places. A triangle then needs one vertex to shade it.
    pub(crate) fn has_facets(&self) -> bool {
        fn is_absent(uvs: &[Vec<[f32; 2]>], colors: &[[f32; 4]]) -> bool {
            colors.is_empty() && uvs.iter().all(Vec::is_empty)
        }
        self.normals.is_empty()
            && self.tangents.is_empty()
            && is_absent(&self.uvs, &self.colors)
            && self.targets.iter().all(|target| is_absent(&target.uvs, &target.colors))
    }

    /// Returns the number of vertices that its triangles are shaded with.
    pub(crate) fn shading_count(&self) -> usize {
        if self.has_facets() { self.triangles.len() } else { self.positions.len() }
    }

    /// Returns the number of vertices that have joints and no weight for any of them.
    pub(crate) fn loose_vertices(&self) -> usize {
        let is_loose = |vertex: &usize| {
            let mut weights = self.influences.iter().flat_map(|(_, weights)| weights[*vertex]);
            weights.all(|weight| weight <= 0.0)
        };
        if self.influences.is_empty() {
            return 0;
        }
        (0..self.positions.len()).filter(is_loose).count()
    }

    /// Returns the bytes of one vertex in all lists.
    pub(crate) fn vertex_bytes(&self) -> u64 {
        fn of<T>(list: &[T]) -> u64 {
            if list.is_empty() { 0 } else { size_of::<T>() as u64 }
        }
        let influences = self.influences.iter().map(|(joints, weights)| of(joints) + of(weights));
        let targets = self.targets.iter().map(|target| {
            let uvs: u64 = target.uvs.iter().map(|set| of(set)).sum();
            let directions = of(&target.normals) + of(&target.tangents);
            of(&target.positions) + directions + uvs + of(&target.colors)
        });
        let own = of(&self.positions) + of(&self.normals) + of(&self.tangents) + of(&self.colors);
        own + self.uvs.iter().map(|set| of(set)).sum::<u64>()
            + influences.sum::<u64>()
            + targets.sum::<u64>()
    }

    /// Rebuilds every list so that new vertex `i` is the old vertex `sources[i]`.
    pub(crate) fn gather(&mut self, sources: &[u32]) {
        fn pick<T: Copy>(list: &mut Vec<T>, sources: &[u32]) {
            if !list.is_empty() {
                *list = sources.iter().map(|source| list[*source as usize]).collect();
            }
        }
        pick(&mut self.positions, sources);
        pick(&mut self.normals, sources);
        pick(&mut self.tangents, sources);
        pick(&mut self.colors, sources);
        for set in &mut self.uvs {
            pick(set, sources);
        }
        for (joints, weights) in &mut self.influences {
            pick(joints, sources);
            pick(weights, sources);
        }
        for target in &mut self.targets {
            pick(&mut target.positions, sources);
            pick(&mut target.normals, sources);
            pick(&mut target.tangents, sources);
            pick(&mut target.colors, sources);
            for set in &mut target.uvs {
                pick(set, sources);
            }
        }
    }

    /// Removes the vertices that no triangle has, so that they count for nothing.
    pub(crate) fn remove_unused(&mut self) {
        const UNUSED: u32 = u32::MAX;
        let mut numbers = vec![UNUSED; self.positions.len()];
        self.triangles.iter().flatten().for_each(|vertex| numbers[*vertex as usize] = 0);
        if !numbers.contains(&UNUSED) {
            return;
        }
        let mut sources = Vec::new();
        for (vertex, number) in numbers.iter_mut().enumerate().filter(|(_, n)| **n != UNUSED) {
            *number = sources.len() as u32;
            sources.push(vertex as u32);
        }
        self.gather(&sources);
        let corners = self.triangles.iter_mut().flatten();
        corners.for_each(|vertex| *vertex = numbers[*vertex as usize]);
    }

    /// Gives every triangle its own three vertices, for flat shading.
    pub(crate) fn unshare(&mut self) {
        let sources: Vec<u32> = self.triangles.iter().flatten().copied().collect();
        self.gather(&sources);
        self.triangles =
            (0..self.triangles.len() as u32).map(|t| [3 * t, 3 * t + 1, 3 * t + 2]).collect();
    }
}
