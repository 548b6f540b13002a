//! How much memory a scene takes while it is prepared, by counting what is allocated: never more
//! than one and a half times what is kept. One test, because it counts for the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use tessera_layout::FlatScene;
use tessera_scenes::{FlattenOptions, LoadOptions};

/// Squares along each side of a sheet; each has two triangles.
const SIDE: u32 = 400;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static HEAP: Counting = Counting;

fn add(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: everything is the system's; what is counted allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may be there while one is copied.
        add(size);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Writes a sheet with waves, with or without normals.
fn write_sheet(file: &Path, normals: bool) {
    let points = u64::from(SIDE + 1).pow(2);
    let corners = 6 * u64::from(SIDE).pow(2);
    let mut bytes = Vec::new();
    for point in (0..=SIDE).flat_map(|y| (0..=SIDE).map(move |x| [x as f32, y as f32])) {
        let [x, y] = point.map(|along| along / SIDE as f32);
        let place = [x, 0.1 * (30.0 * x).sin() * (20.0 * y).cos(), y];
        bytes.extend(place.iter().flat_map(|coordinate| coordinate.to_le_bytes()));
    }
    if normals {
        let up = [0.0f32, 1.0, 0.0].map(f32::to_le_bytes);
        (0..points).for_each(|_| bytes.extend(up.as_flattened()));
    }
    let places = 12 * points;
    let indices_at = bytes.len();
    for at in (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| y * (SIDE + 1) + x)) {
        let (right, below) = (at + 1, at + SIDE + 1);
        let corners = [at, below, right, right, below, below + 1];
        bytes.extend(corners.iter().flat_map(|corner| corner.to_le_bytes()));
    }
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
    std::fs::write(file.with_file_name("sheet.bin"), bytes).unwrap();
    std::fs::write(file, json).unwrap();
}

/// Returns a sheet as one frame shows it, and the most bytes that were held on the way.
fn prepared(normals: bool) -> (FlatScene, usize) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sheet.gltf");
    write_sheet(&file, normals);
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let loaded = tessera_scenes::load(folder.path(), "sheet.gltf", &LoadOptions::default());
    let flat = loaded.unwrap().flatten(&FlattenOptions::still(64, 64)).unwrap();
    (flat, PEAK.load(Ordering::Relaxed) - before)
}

#[test]
fn preparing_takes_half_as_much_again_as_is_kept() {
    for normals in [false, true] {
        let (flat, peak) = prepared(normals);
        let (kept, triangles) = (flat.bytes() as usize, flat.triangles.len());
        assert_eq!(triangles, 2 * (SIDE as usize).pow(2));
        assert!(2 * peak <= 3 * kept, "normals {normals}: {peak} bytes for {kept}");
        // A flat triangle has one vertex, and a smooth one half of one.
        let most = if normals { 155 } else { 190 };
        assert!(kept <= most * triangles, "normals {normals}: {kept} bytes of {triangles}");
    }
}
