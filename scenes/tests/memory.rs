//! How much memory a scene takes while it is prepared, by counting what is allocated: never more
//! than one and a half times what is kept. One test, because it counts for the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use tessera_layout::FlatScene;
use tessera_scenes::{FlattenOptions, LoadOptions};
use tessera_support::sheet::write_sheet;

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

/// Returns a sheet as one frame shows it, and the most bytes that were held on the way.
fn prepared(normals: bool) -> (FlatScene, usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_sheet(&folder.path().join("sheet.gltf"), SIDE, normals);
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let loaded = tessera_scenes::load(folder.path(), "sheet.gltf", &LoadOptions::default());
    let flat = loaded.expect("a scene").flatten(&FlattenOptions::still(64, 64)).expect("a frame");
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
