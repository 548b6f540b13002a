//! Specs with wrong values, whose errors name the field.

use crate::samples::hash;
use crate::spec_samples::{job, render};
use tessera_protocol::job::*;
use tessera_protocol::limits::*;
use tessera_protocol::{FrameSet, RawJobSpec};

fn check(spec: JobSpec) -> Result<JobSpec, SpecError> {
    RawJobSpec::from(spec).check()
}

/// Returns the field that the error names after `spoil` has changed a good spec.
fn named(spoil: impl FnOnce(&mut RenderSpec)) -> String {
    let mut spec = render();
    spoil(&mut spec);
    let error = check(job(spec)).expect_err("the spoilt spec was taken");
    assert!(!error.problem.is_empty());
    error.field.into_owned()
}

fn file(path: &str) -> AssetFile {
    AssetFile { path: path.into(), hash: hash(2), length: 1 }
}

#[test]
fn a_good_spec_is_taken_unchanged() {
    assert_eq!(check(job(render())), Ok(job(render())));
}

#[test]
fn names_and_priorities_have_bounds() {
    for name in ["", ".hidden", "a/b", "a\\b", "a\nb", &"x".repeat(NAME_MAX + 1)] {
        let spec = JobSpec { name: name.into(), ..job(render()) };
        assert_eq!(check(spec).unwrap_err().field, "name", "{name:?}");
    }
    assert_eq!(check(JobSpec { priority: 101, ..job(render()) }).unwrap_err().field, "priority");
}

#[test]
fn bounds_of_retries_are_checked_and_kept() {
    let with = |attempts, give_up_secs| JobSpec {
        retry: RetryPolicy { attempts, give_up_secs },
        ..job(render())
    };
    for good in [with(Some(1), Some(0)), with(Some(ATTEMPTS_MAX), Some(GIVE_UP_SECS_MAX))] {
        assert_eq!(check(good.clone()), Ok(good));
    }
    let field = |spec| check(spec).unwrap_err().field;
    assert_eq!(field(with(Some(0), None)), "attempts");
    assert_eq!(field(with(Some(ATTEMPTS_MAX + 1), None)), "attempts");
    assert_eq!(field(with(None, Some(GIVE_UP_SECS_MAX + 1))), "give-up");
}

#[test]
fn paths_stay_in_the_scenes_folder() {
    for path in
        ["/etc/passwd", "../a", "a/../../b", "a//b", "./a", "a\\b", "C:a", "http://a/b", "", "a\0"]
    {
        assert_eq!(named(|spec| spec.files.push(file(path))), "scene", "{path:?}");
    }
    assert_eq!(named(|spec| spec.files.push(file(&"x".repeat(ASSET_PATH_MAX + 1)))), "scene");
    assert_eq!(named(|spec| spec.files.push(file("a.glb"))), "scene");
    assert_eq!(named(|spec| spec.files[0].length = BLOB_BYTES_MAX + 1), "scene");
    assert_eq!(named(|spec| spec.scene = "b.glb".into()), "scene");
    let many = (0..=SCENE_FILES_MAX).map(|index| file(&format!("{index}")));
    assert_eq!(named(|spec| spec.files.extend(many)), "scene");
}

#[test]
fn pictures_have_bounds() {
    assert_eq!(named(|spec| spec.width = 0), "size");
    assert_eq!(named(|spec| spec.height = FRAME_EDGE_MAX + 1), "size");
    assert_eq!(named(|spec| (spec.width, spec.height) = (FRAME_EDGE_MAX, FRAME_EDGE_MAX)), "size");
    assert_eq!(named(|spec| spec.spp = 0), "spp");
    assert_eq!(named(|spec| spec.spp = SPP_MAX + 1), "spp");
    assert_eq!(named(|spec| spec.depth = DEPTH_MAX + 1), "depth");
    assert_eq!(named(|spec| spec.tile = TILE_EDGE_MIN - 1), "tile");
    assert_eq!(named(|spec| spec.tile = TILE_EDGE_MAX + 1), "tile");
    assert_eq!(named(|spec| spec.unit_samples = 65), "unit-samples");
    assert_eq!(named(|spec| spec.frames = FrameSet::default()), "frames");
    for fps in [0.0, -1.0, f64::NAN, f64::INFINITY, 10_001.0] {
        assert_eq!(named(|spec| spec.fps = fps), "fps");
    }
    let many_units = |spec: &mut RenderSpec| {
        (spec.width, spec.height, spec.tile, spec.spp, spec.unit_samples) =
            (16_384, 16_384, 8, 64, 1);
    };
    assert_eq!(named(many_units), "tile");
    let many_frames = |spec: &mut RenderSpec| {
        (spec.width, spec.height, spec.tile) = (4096, 4096, 8);
        spec.frames = "1-100000".parse().unwrap();
    };
    assert_eq!(named(many_frames), "frames");
}

/// Sets crop and overscan of a frame of 100 × 70 pixels.
fn part(crop: Option<[u32; 4]>, overscan: u32) -> impl Fn(&mut RenderSpec) {
    move |spec| {
        (spec.width, spec.height, spec.overscan) = (100, 70, overscan);
        spec.crop = crop.map(|[x, y, width, height]| CropSpec { x, y, width, height });
    }
}

#[test]
fn crops_lie_within_the_frame() {
    let checked = |change: &dyn Fn(&mut RenderSpec)| {
        let mut spec = render();
        change(&mut spec);
        check(job(spec)).map(|_| ()).map_err(|error| (error.field.into_owned(), error.problem))
    };
    for (crop, overscan) in [([0, 0, 100, 70], 0), ([99, 69, 1, 1], OVERSCAN_MAX)] {
        assert_eq!(checked(&part(Some(crop), overscan)), Ok(()));
    }
    assert_eq!(checked(&part(None, 7)), Ok(()));
    let outside = [[100, 0, 1, 1], [0, 70, 1, 1], [50, 0, 51, 9], [u32::MAX, 0, u32::MAX, 1]];
    for crop in outside.into_iter().chain([[3, 3, 0, 5], [3, 3, 5, 0]]) {
        let (field, problem) = checked(&part(Some(crop), 9)).unwrap_err();
        assert!(field == "crop" && problem.contains("100x70"), "{crop:?}: {problem}");
    }
    assert_eq!(named(part(None, OVERSCAN_MAX + 1)), "overscan");
    let large = |spec: &mut RenderSpec| {
        (spec.width, spec.height, spec.overscan) = (FRAME_EDGE_MAX, 8, 1);
    };
    assert_eq!(named(large), "overscan");
}

#[test]
fn crops_do_not_go_with_what_measures_frames() {
    for (crop, overscan, field) in [(Some([8, 8, 8, 8]), 0, "crop"), (None, 8, "overscan")] {
        let rounds = |noise, time_secs| {
            named(|spec: &mut RenderSpec| {
                part(crop, overscan)(spec);
                (spec.spp, spec.tile, spec.noise, spec.time_secs) = (64, 32, noise, time_secs);
            })
        };
        assert_eq!((rounds(Some(0.1), None), rounds(None, Some(9))), (field.into(), field.into()));
        let metered = named(|spec: &mut RenderSpec| {
            part(crop, overscan)(spec);
            spec.auto_exposure = true;
        });
        assert_eq!(metered, field);
    }
}

#[test]
fn crops_of_many_units_are_refused() {
    let many = |spec: &mut RenderSpec| {
        (spec.width, spec.height, spec.tile, spec.spp, spec.unit_samples) =
            (16_384, 16_384, 8, 64, 1);
    };
    assert_eq!(named(many), "tile");
    let few = |spec: &mut RenderSpec| {
        many(spec);
        spec.crop = Some(CropSpec { x: 16_000, y: 7, width: 100, height: 100 });
    };
    let mut spec = render();
    few(&mut spec);
    assert!(check(job(spec)).is_ok(), "only the tiles of the crop count");
}

#[test]
fn cameras_lenses_and_light_are_finite() {
    let look = |eye: [f32; 3], vfov_degrees| {
        let up = [0.0, 1.0, 0.0];
        CameraSpec::LookAt(Box::new(LookAtSpec { eye, up, vfov_degrees, ..LookAtSpec::default() }))
    };
    assert_eq!(named(|spec| spec.camera = look([f32::NAN, 0.0, 0.0], 45.0)), "eye, target, up");
    assert_eq!(named(|spec| spec.camera = look([0.0; 3], 45.0)), "eye, target");
    for vfov in [0.0, 180.0, f32::NAN] {
        assert_eq!(named(|spec| spec.camera = look([1.0; 3], vfov)), "vfov");
    }
    let far = |x| LookAtSpec { eye: [1.0; 3], eye_rest: [x, 0.0, 0.0], ..LookAtSpec::default() };
    let camera = |x| CameraSpec::LookAt(Box::new(far(x)));
    assert_eq!(named(|spec| spec.camera = camera(f32::NAN)), "eye, target, up");
    let space = |x, exponent| Some(Box::new(SpaceSpec { origin: [x, 0.0, 0.0], exponent }));
    assert_eq!(named(|spec| spec.space = space(f64::NAN, 0)), "space");
    assert_eq!(named(|spec| spec.space = space(0.0, 101)), "space");
    assert_eq!(named(|spec| spec.camera = CameraSpec::Named(String::new())), "camera");
    for variant in [String::new(), "x".repeat(NAME_MAX + 1)] {
        assert_eq!(named(|spec| spec.variant = Some(variant)), "variant");
    }
    let (open, near) = (ApertureSpec::Radius(1.0), FocusSpec::Distance(1.0));
    for (aperture, focus, field) in [
        (ApertureSpec::Radius(0.0), near, "lens-radius"),
        (ApertureSpec::Radius(f32::INFINITY), near, "lens-radius"),
        (ApertureSpec::FStop(-1.4), near, "f-stop"),
        (open, FocusSpec::Distance(-1.0), "focus-distance"),
        (open, FocusSpec::Distance(f32::NAN), "focus-distance"),
        (open, FocusSpec::Point([0.0, f32::NAN, 0.0]), "focus-point"),
    ] {
        assert_eq!(
            named(|spec| spec.lens =
                Some(LensSpec { aperture, focus, blades: None, sensor_width_mm: None })),
            field
        );
    }
    for (count, rotation_degrees, field) in
        [(2, 0.0, "blades"), (17, 0.0, "blades"), (5, f32::NAN, "blade-rotation")]
    {
        let blades = Some(BladesSpec { count, rotation_degrees });
        assert_eq!(
            named(|spec| spec.lens =
                Some(LensSpec { aperture: open, focus: near, blades, sensor_width_mm: None })),
            field
        );
    }
    assert_eq!(
        named(|spec| spec.environment = EnvironmentSpec::Map { path: "sky.hdr".into() }),
        "env"
    );
    assert_eq!(named(|spec| spec.environment = EnvironmentSpec::Constant([1.0, -1.0, 0.0])), "env");
    for intensity in [-1.0, f32::NAN] {
        assert_eq!(named(|spec| spec.environment_intensity = intensity), "env-intensity");
    }
    assert_eq!(named(|spec| spec.environment_rotation_degrees = f32::INFINITY), "env-rotate");
}

#[test]
fn a_denoised_frame_has_the_planes_that_guide_it() {
    let mut spec = render();
    (spec.aovs, spec.denoise) = (vec![AovSpec::Position], true);
    let layers = [AovSpec::Albedo, AovSpec::Normal, AovSpec::Depth, AovSpec::Position];
    assert_eq!((spec.film_layers(), spec.channels()), (layers.to_vec(), 16));
    let transparent = RenderSpec { transparent: true, ..spec.clone() };
    assert_eq!((transparent.channels(), transparent.coverage_channel()), (17, Some(13)));
    assert!(transparent.channels() <= tessera_protocol::CHANNELS_MAX);
    assert_eq!(layers.map(|layer| spec.channel_of(layer)), [3, 6, 9, 10].map(Some));
    spec.denoise = false;
    assert_eq!((spec.film_layers(), spec.channels()), (vec![AovSpec::Position], 6));
    assert_eq!(
        (spec.channel_of(AovSpec::Position), spec.channel_of(AovSpec::Depth)),
        (Some(3), None)
    );
    // One sample cannot be divided into two halves.
    assert_eq!(named(|spec| (spec.denoise, spec.spp) = (true, 1)), "denoise");
}

#[test]
fn a_bound_of_light_is_a_number_that_a_film_can_hold() {
    for clamp in [1e-6, 1.0, 262_144.0] {
        let bounded = RenderSpec { clamp: Some(clamp), ..render() };
        assert_eq!(check(job(bounded.clone())), Ok(job(bounded)));
    }
    for clamp in [0.0, 0.9e-6, -1.0, 262_144.1, f64::INFINITY, f64::NAN] {
        assert_eq!(named(|spec| spec.clamp = Some(clamp)), "clamp", "{clamp}");
    }
}

#[test]
fn time_has_bounds_and_goes_with_rounds_that_double() {
    let timed = |secs| RenderSpec { time_secs: Some(secs), tile: 32, spp: 65_536, ..render() };
    for secs in [1, 90, 7 * 24 * 3600] {
        assert_eq!(check(job(timed(secs))), Ok(job(timed(secs))));
        let noisy = RenderSpec { noise: Some(0.01), ..timed(secs) };
        assert_eq!(check(job(noisy.clone())), Ok(job(noisy)));
    }
    for secs in [0, 7 * 24 * 3600 + 1, u32::MAX] {
        assert_eq!(named(|spec| *spec = timed(secs)), "time", "{secs}");
    }
    for spp in [32, 64, 1024, SPP_MAX] {
        assert_eq!(
            check(job(RenderSpec { spp, ..timed(9) })),
            Ok(job(RenderSpec { spp, ..timed(9) }))
        );
    }
    for spp in [1, 16, 31, 33, 48, 96, 1000, 65_535] {
        assert_eq!(named(|spec| *spec = RenderSpec { spp, ..timed(9) }), "spp", "{spp}");
    }
    assert_eq!(named(|spec| *spec = RenderSpec { unit_samples: 16, ..timed(9) }), "unit-samples");
    assert_eq!(named(|spec| *spec = RenderSpec { tile: 64, ..timed(9) }), "tile");
    let denoised = RenderSpec { denoise: true, aovs: vec![], ..timed(9) };
    assert_eq!((denoised.has_half(), denoised.channels()), (true, 13));
}

#[test]
fn noise_has_bounds_and_says_what_does_not_go_with_it() {
    let noisy = |noise| RenderSpec { noise: Some(noise), tile: 32, spp: 4096, ..render() };
    assert_eq!(check(job(noisy(0.01))), Ok(job(noisy(0.01))));
    for noise in [0.0, -0.1, 1.1, 1e-5, f64::NAN, f64::INFINITY] {
        assert_eq!(named(|spec| *spec = noisy(noise)), "noise", "{noise}");
    }
    assert_eq!(named(|spec| *spec = RenderSpec { spp: 31, ..noisy(0.1) }), "spp");
    assert_eq!(named(|spec| *spec = RenderSpec { unit_samples: 16, ..noisy(0.1) }), "unit-samples");
    let error = check(job(RenderSpec { tile: 64, ..noisy(0.1) })).unwrap_err();
    assert_eq!(
        (error.field.as_ref(), error.problem.contains("leave --tile out")),
        ("tile", true),
        "{error}"
    );
    // A pass has at most 2048 samples: 519 passes of a tile are too many for a large frame.
    let large = RenderSpec { width: 16_384, height: 16_384, spp: SPP_MAX, ..noisy(0.1) };
    assert_eq!(named(|spec| *spec = large), "tile");
    let denoised = RenderSpec { denoise: true, aovs: vec![], ..noisy(0.1) };
    assert_eq!((denoised.channels(), denoised.has_half()), (13, true));
}

#[test]
fn outputs_are_in_order_and_distinct() {
    assert_eq!(named(|spec| spec.aovs = vec![AovSpec::Depth, AovSpec::Albedo]), "aov");
    assert_eq!(named(|spec| spec.aovs = vec![AovSpec::Depth, AovSpec::Depth]), "aov");
    assert_eq!(named(|spec| spec.formats = vec![]), "format");
    assert_eq!(named(|spec| spec.formats = vec![FormatSpec::Png, FormatSpec::Png16]), "format");
    for exposure in [65.0, f32::NAN] {
        assert_eq!(named(|spec| spec.exposure = exposure), "exposure");
    }
}

#[test]
fn a_scenes_hash_depends_only_on_its_files() {
    let mut other = render();
    (other.width, other.spp, other.seed) = (1, 1, 9);
    assert_eq!(other.scene_hash(), render().scene_hash());
    other.files[0].hash = hash(7);
    assert_ne!(other.scene_hash(), render().scene_hash());
}
