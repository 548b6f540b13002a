//! A mesh of as many triangles as wanted: a sheet with waves, with normals or without.

use std::path::Path;

/// Corners of the triangles of a grid of `side` squares along each side, two for each, row by row.
/// Points are numbered row by row too.
pub fn grid_corners(side: u32) -> impl Iterator<Item = u32> {
    let squares = (0..side).flat_map(move |y| (0..side).map(move |x| y * (side + 1) + x));
    squares.flat_map(move |at| {
        let (right, below) = (at + 1, at + side + 1);
        [at, below, right, right, below, below + 1]
    })
}

/// Writes a sheet of `side` squares along each side, of two triangles each, beside a file of its
/// numbers.
///
/// # Panics
/// Where the files cannot be written.
pub fn write_sheet(file: &Path, side: u32, normals: bool) {
    let points = u64::from(side + 1).pow(2);
    let corners = 6 * u64::from(side).pow(2);
    let mut bytes = Vec::new();
    for point in (0..=side).flat_map(|y| (0..=side).map(move |x| [x as f32, y as f32])) {
        let [x, y] = point.map(|along| along / side as f32);
        let place = [x, 0.1 * (30.0 * x).sin() * (20.0 * y).cos(), y];
        bytes.extend(place.iter().flat_map(|coordinate| coordinate.to_le_bytes()));
    }
    if normals {
        let up = [0.0f32, 1.0, 0.0].map(f32::to_le_bytes);
        (0..points).for_each(|_| bytes.extend(up.as_flattened()));
    }
    let places = 12 * points;
    let indices_at = bytes.len();
    bytes.extend(grid_corners(side).flat_map(u32::to_le_bytes));
    let mut attributes = r#""POSITION":0"#.to_owned();
    if normals {
        attributes += r#","NORMAL":2"#;
    }
    let json = format!(
        r#"{{"asset":{{"version":"2.0"}},"scene":0,"scenes":[{{"nodes":[0]}}],
        "nodes":[{{"mesh":0}}],"buffers":[{{"byteLength":{length},"uri":"sheet.bin"}}],
        "meshes":[{{"primitives":[{{"attributes":{{{attributes}}},"indices":1}}]}}],
        "bufferViews":[{{"buffer":0,"byteLength":{places}}},
            {{"buffer":0,"byteOffset":{indices_at},"byteLength":{indices}}},
            {{"buffer":0,"byteOffset":{normals_at},"byteLength":{places}}}],
        "accessors":[{{"bufferView":0,"componentType":5126,"count":{points},"type":"VEC3",
            "min":[0,-1,0],"max":[1,1,1]}},
            {{"bufferView":1,"componentType":5125,"count":{corners},"type":"SCALAR"}},
            {{"bufferView":2,"componentType":5126,"count":{points},"type":"VEC3"}}]}}"#,
        length = bytes.len(),
        indices = 4 * corners,
        normals_at = if normals { places } else { 0 },
    );
    std::fs::write(file.with_file_name("sheet.bin"), bytes).expect("a folder to write in");
    std::fs::write(file, json).expect("a folder to write in");
}
