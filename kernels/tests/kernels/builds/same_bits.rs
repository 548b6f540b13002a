//! The same bits: from every instruction set and compiler, and from every way of cutting a frame.

use std::process::Command;
use tessera_kernels::host::{available_isas, best_isa};
use tessera_kernels::{CheckedScene, test_hooks};
use tessera_layout::*;
use tessera_support::builder::*;

const SIZE: u32 = 40;

/// Something of everything: textures, normal map, alpha, every kind of light, a map, a lens.
pub(crate) fn varied() -> CheckedScene {
    let mut builder = Builder::default();
    for texel in 0..256u32 {
        builder.texels.extend((texel.wrapping_mul(0x9e37_79b9) | 0x4000_0040).to_le_bytes());
    }
    for (format, wrap, bilinear) in
        [(0, Wrap::Repeat, 1), (1, Wrap::MirroredRepeat, 1), (0, Wrap::ClampToEdge, 0)]
    {
        builder.textures.push(Texture {
            offset: 0,
            width: 16,
            height: 16,
            format,
            wrap_u: wrap as u32,
            wrap_v: wrap as u32,
            bilinear,
            level_count: 1,
            reserved: [0; 3],
        });
    }
    let used = |texture| TextureRef {
        uv_from_mesh: [3.0, 0.5, 0.1, -0.5, 3.0, 0.2],
        texture,
        ..TextureRef::ABSENT
    };
    let mut floor = material([0.9, 0.8, 0.7], 0.3, 0.6);
    (floor.base_color_texture, floor.metallic_roughness_texture, floor.normal_texture) =
        (used(0), used(1), used(1));
    let mut veil = material([0.4, 0.6, 0.9], 0.0, 0.3);
    (veil.alpha_mode, veil.base_color_texture) = (AlphaMode::Blend as u32, used(2));
    let mut lamp = material([0.0; 3], 0.0, 1.0);
    (lamp.emission, lamp.flags) = ([4.0, 3.0, 2.0], material_flags::DOUBLE_SIDED);
    let [floor, veil, lamp] = [floor, veil, lamp].map(|m| builder.add_material(m));
    let ball = builder.add_material(material([0.95, 0.7, 0.3], 1.0, 0.25));
    builder.sphere(24, ball);
    builder
        .quad([[-3.0, -1.0, 3.0], [3.0, -1.0, 3.0], [3.0, -1.0, -3.0], [-3.0, -1.0, -3.0]], floor);
    builder.quad([[-1.5, -1.0, 1.5], [0.5, -1.0, 1.5], [0.5, 1.0, 1.5], [-1.5, 1.0, 1.5]], veil);
    let lit = builder
        .quad([[-0.5, 2.5, -0.5], [0.5, 2.5, -0.5], [0.5, 2.5, 0.5], [-0.5, 2.5, 0.5]], lamp);
    let mut glass = Layers { transmission: 0.9, clearcoat: 0.4, ..Layers::NONE };
    let inside = Medium {
        absorption: [0.5, 0.1, 0.9],
        half_spread: Medium::half_spread_of(1.5, 2.0),
        ..Medium::GLASS
    };
    glass.sheen_color = [0.3, 0.2, 0.1];
    (glass.anisotropy, glass.iridescence, glass.diffuse_transmission) = (0.5, 0.4, 0.3);
    glass.textures = [used(1); LAYERS_TEXTURES];
    let glass = builder.add_closed(material([0.9, 0.95, 1.0], 0.1, 0.3), glass, inside);
    builder.quad([[0.7, -1.0, 1.2], [2.2, -1.0, 0.9], [2.2, 1.0, 0.9], [0.7, 1.0, 1.2]], glass);
    builder.quad([[2.2, -1.0, 0.6], [0.7, -1.0, 0.9], [0.7, 1.0, 0.9], [2.2, 1.0, 0.6]], glass);
    let mut spot = light(LightKind::Spot, [9.0, 9.0, 12.0]);
    (spot.position, spot.range, spot.spot_scale, spot.spot_offset) =
        ([2.0, 3.0, 2.0], 9.0, 4.0, -3.0);
    let mut point = light(LightKind::Point, [3.0; 3]);
    point.position = [-2.0, 1.0, 2.0];
    let sun = light(LightKind::Directional, [0.5, 0.4, 0.3]);
    builder.lights.extend([(spot, 2.0), (point, 1.0), (sun, 1.0)]);
    builder.emit(lit, 1.0);
    builder.emit(lit + 1, 1.0);
    builder.map(32, 16, |x, y| {
        [0.1 + (x % 7) as f32 * 0.2, 0.3, if (x, y) == (20, 4) { 60.0 } else { 0.2 }]
    });
    builder.environment.map_from_world = [0.6, 0.0, 0.8, 0.0, 1.0, 0.0, -0.8, 0.0, 0.6];
    builder.camera = camera_at([0.0, 0.3, 5.0], CameraKind::Perspective, 0.5);
    (builder.camera.lens_radius, builder.camera.focus_distance) = (0.05, 4.0);
    builder.finish()
}

pub(crate) fn everything() -> UnitParams {
    UnitParams { aovs: 31, filter: PixelFilter::BlackmanHarris as u32, ..whole(SIZE, SIZE, 8, 6) }
}

#[test]
fn every_instruction_set_gives_the_same_film() {
    let (scene, unit) = (varied(), everything());
    let (want, counts) = sums(best_isa(), &scene, &unit);
    assert!(want.iter().filter(|sum| **sum != 0).count() > want.len() / 2, "the picture is empty");
    let clamped = UnitParams { clamp: 0.25, ..unit };
    let clamped_want = sums(best_isa(), &scene, &clamped);
    assert_ne!(clamped_want.0, want);
    for isa in available_isas() {
        assert_eq!(sums(isa, &scene, &unit), (want.clone(), counts), "{isa}");
        assert_eq!(sums(isa, &scene, &clamped), clamped_want, "{isa}, clamped");
    }
}

#[test]
fn every_compiler_gives_the_same_film() {
    let (scene, unit) = (varied(), everything());
    let (want, _) = sums(best_isa(), &scene, &unit);
    for compiler in ["g++", "clang++"] {
        let Some(build) = OtherBuild::new(compiler, "entry/host.cpp", c"tessera_render_unit_other")
        else {
            println!("skipped: {compiler} is not installed");
            continue;
        };
        let mut film = vec![0; want.len()];
        // SAFETY: the library was just built from entry/host.cpp for this machine.
        let counts =
            unsafe { test_hooks::render_with(build.entry, &scene, &unit, &mut film) }.unwrap();
        assert_eq!((film == want, counts.non_finite), (true, 0), "{compiler}");
    }
}

/// Flags that change results. An environment may have them (`CXXFLAGS`), and the kernels' own flags
/// behind them take them back.
const PLANTED_FLAGS: [&str; 8] = [
    "-ffast-math",
    "-funsafe-math-optimizations",
    "-fassociative-math",
    "-freciprocal-math",
    "-ffinite-math-only",
    "-march=native",
    "-ffp-contract=fast",
    "-Ofast",
];

/// The kernels as a shared library made by a certain compiler, whatever the environment says.
pub(crate) struct OtherBuild {
    pub(crate) entry: *mut std::ffi::c_void,
    _folder: tempfile::TempDir,
}

impl OtherBuild {
    /// `None` where there is no such compiler.
    pub(crate) fn new(compiler: &str, source: &str, symbol: &std::ffi::CStr) -> Option<Self> {
        Command::new(compiler).arg("--version").output().ok()?;
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("kernels.so");
        let status = Command::new(compiler)
            .args(PLANTED_FLAGS)
            .args(test_hooks::COMPILER_FLAGS.split(' '))
            .args(["-shared", "-fPIC", "-DTESSERA_ISA=other", "-o"])
            .arg(&library)
            .args(["-I", test_hooks::SOURCE_FOLDER])
            .arg(format!("{}/{source}", test_hooks::SOURCE_FOLDER))
            .args(if best_isa().name() == "x86-64-v3" { &["-march=x86-64-v3"][..] } else { &[] })
            .status()
            .unwrap();
        assert!(status.success(), "{compiler} does not build the kernels");
        // SAFETY: the library has no initialisers and is never closed; the symbol is a function,
        // whose address is taken.
        let entry = unsafe {
            let library = libloading::os::unix::Library::new(&library).unwrap();
            let entry = library.get::<*mut std::ffi::c_void>(symbol.to_bytes_with_nul()).unwrap();
            let entry = entry.into_raw();
            std::mem::forget(library);
            entry
        };
        Some(Self { entry, _folder: folder })
    }
}

#[test]
fn tiles_and_sample_ranges_add_up_to_the_whole() {
    let (scene, unit) = (varied(), everything());
    let (want, _) = sums(best_isa(), &scene, &unit);
    for (tile, samples) in [(7, 3), (16, 1), (33, 8)] {
        let mut film = vec![0i64; want.len()];
        for top in (0..SIZE).step_by(tile as usize) {
            for left in (0..SIZE).step_by(tile as usize) {
                for first in (0..unit.sample_count).step_by(samples as usize) {
                    let part = UnitParams {
                        x: left as i32,
                        y: top as i32,
                        width: tile.min(SIZE - left),
                        height: tile.min(SIZE - top),
                        first_sample: first,
                        sample_count: samples.min(unit.sample_count - first),
                        ..unit
                    };
                    paste(&mut film, &part, &sums(best_isa(), &scene, &part).0);
                }
            }
        }
        assert!(film == want, "tiles of {tile}, {samples} samples");
    }
}

fn paste(film: &mut [i64], part: &UnitParams, values: &[i64]) {
    for channel in 0..part.channels() {
        for y in 0..part.height {
            for x in 0..part.width {
                let to = (channel * SIZE + part.y as u32 + y) * SIZE + part.x as u32 + x;
                let from = (channel * part.height + y) * part.width + x;
                film[to as usize] += values[from as usize];
            }
        }
    }
}

#[test]
fn pixels_beyond_a_frame_do_not_change_those_within() {
    let (scene, unit) = (varied(), everything());
    let (inner, _) = sums(best_isa(), &scene, &unit);
    let edge = SIZE / 2;
    let (x, y, size) = (-(edge as i32), -(edge as i32), 2 * SIZE);
    let (all, _) =
        sums(best_isa(), &scene, &UnitParams { x, y, width: size, height: size, ..unit });
    for (index, row) in inner.chunks_exact(SIZE as usize).enumerate() {
        let (channel, y) = (index as u32 / SIZE, index as u32 % SIZE);
        let first = ((channel * size + y + edge) * size + edge) as usize;
        assert_eq!(&all[first..][..row.len()], row, "channel {channel}, row {y}");
    }
    // A tile across the frame's corner.
    let tile = UnitParams { x: -7, y: -5, width: 16, height: 9, ..unit };
    let (part, _) = sums(best_isa(), &scene, &tile);
    for (index, row) in part.chunks_exact(16).enumerate() {
        let (channel, y) = (index as u32 / 9, index as u32 % 9);
        let first = ((channel * size + y + edge - 5) * size + edge - 7) as usize;
        assert_eq!(&all[first..][..16], row, "channel {channel}, row {y}");
    }
}

#[test]
fn seed_and_frame_change_the_noise() {
    let (scene, unit) = (varied(), everything());
    let (first, _) = sums(best_isa(), &scene, &unit);
    assert!(first != sums(best_isa(), &scene, &UnitParams { seed: 2, ..unit }).0);
    assert!(first != sums(best_isa(), &scene, &UnitParams { frame: 1, ..unit }).0);
}
