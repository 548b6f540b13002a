//! What preparing a large scene costs, before any unit: time by its steps, memory at its peak
//! beside what is kept, and bytes a triangle on a host and on a device. Prints; fails on nothing.
//!
//!     cargo bench --bench prepare [-- --millions N --threads N]
//!
//! A sheet of N million triangles (1), flat and with normals, is loaded, flattened and checked in
//! this process, as a scene importer and its node do it together, and laid out for a device. The
//! ceilings are 1.2 µs a triangle on two cores, 1.5 times the memory that is kept, and 200 bytes a
//! triangle on a device without normals. The peer is Embree's build of the same triangles
//! (`docs/measurements/rays.md` says how it was measured).
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::SceneImage;
use tessera_scenes::{FlattenOptions, LoadOptions};
use tessera_support::sheet::write_sheet;

const MIB: f64 = (1 << 20) as f64;

fn main() {
    let (mut millions, mut threads) = (1.0, 2);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number");
        match argument.as_str() {
            "--millions" => millions = number(),
            "--threads" => threads = number() as usize,
            _ => {}
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global().expect("threads");
    let side = (millions * 5e5f64).sqrt() as u32;
    for normals in [false, true] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write_sheet(&folder.path().join("sheet.gltf"), side, normals);
        println!("{}:", if normals { "with normals" } else { "flat" });
        prepare(folder.path());
    }
}

fn prepare(folder: &Path) {
    let mut step = Step::begin();
    let loaded = tessera_scenes::load(folder, "sheet.gltf", &LoadOptions::default());
    let loaded = loaded.expect("a scene");
    step.end("load");
    let flat = loaded.flatten(&FlattenOptions::still(64, 64)).expect("a frame");
    step.end("flatten");
    let (kept, triangles) = (flat.bytes() as f64, flat.triangles.len() as f64);
    println!(
        "  {:.1} bytes a triangle; peak {:.2} of what is kept",
        kept / triangles,
        step.most / kept
    );
    drop(loaded);
    let checked = CheckedScene::new(Arc::new(flat)).expect("a scene of ours");
    step.end("check");
    let image = SceneImage::of(&checked);
    step.end("lay out for a device");
    println!("  {:.1} bytes a triangle on a device", image.bytes() as f64 / triangles);
}

/// A step that is measured.
struct Step {
    since: Instant,
    cpu_secs: f64,
    /// Memory at the beginning, and the most of all steps beyond it, in bytes.
    before: f64,
    most: f64,
}

impl Step {
    fn begin() -> Self {
        let before = memory("VmRSS");
        forget_peak();
        Self { since: Instant::now(), cpu_secs: cpu_secs(), before, most: 0.0 }
    }

    fn end(&mut self, name: &str) {
        let (wall, cpu) = (self.since.elapsed().as_secs_f64(), cpu_secs() - self.cpu_secs);
        let peak = memory("VmHWM") - self.before;
        println!("  {name}: {wall:.2} s, {cpu:.2} s of processors, at most {:.0} MiB", peak / MIB);
        forget_peak();
        *self = Self { before: self.before, most: self.most.max(peak), ..Self::begin() };
    }
}

fn memory(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
}

/// Makes the peak what is in memory now.
fn forget_peak() {
    // Where the system has no such file, peaks are those since the start.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn cpu_secs() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 * 1e-9
}
