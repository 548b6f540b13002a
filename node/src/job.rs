//! Converts a job's spec for importers and devices. Checks everything that comes from the
//! coordinator.

use std::sync::Arc;
use tessera_layout::{Aov, PixelFilter, UnitParams};
use tessera_protocol::job::{
    AovSpec, ApertureSpec, Bands, BladesSpec, CameraSpec, ChoiceSpec, EnvironmentSpec, FilterSpec,
    FocusSpec, LensSpec, LightUnitsSpec, SPACE_EXPONENT_MAX, SpaceSpec,
};
use tessera_protocol::limits::{BLADES_MAX, BLADES_MIN, TILE_EDGE_MAX};
use tessera_protocol::node::{Assignment, Failure, Finish, Piece, SampleRange, Task, TileRect};
use tessera_protocol::{ComputeSpec, FrameNumber, JobKind, RawJobSpec, RenderSpec};
use tessera_scenes::{
    Aperture, Blades, CameraChoice, Choice, EnvironmentSource, FlattenOptions, Focus, Lens,
    LightUnits, LoadOptions, SpaceChoice, WorkingSpace,
};

/// Exposures that a job can have, in stops. A metered one is within them too.
const EXPOSURES: std::ops::RangeInclusive<f32> = -64.0..=64.0;

/// Checks a spec from the coordinator, like anything from outside.
pub(crate) fn checked_spec(raw: RawJobSpec) -> Result<Arc<JobKind>, Failure> {
    match raw.check() {
        Ok(spec) => Ok(Arc::new(spec.kind)),
        Err(error) if error.unknown => Err(Failure::Unable(error.to_string())),
        Err(error) => Err(Failure::Scene(format!("the job is invalid: {error}"))),
    }
}

/// Checks that the unit lies in its frame: a tile with samples of the job, a range of its indices,
/// or one of its bands.
pub(crate) fn check_assignment(kind: &JobKind, assignment: &Assignment) -> Result<(), Failure> {
    match (kind, &assignment.task) {
        (JobKind::Render(spec), Task::Tile { tile, samples }) => check_tile(spec, tile, samples),
        (JobKind::Compute(spec), Task::Chunk { first, count, .. }) => {
            check_chunk(spec, *first, *count)
        }
        (JobKind::Render(spec), Task::Finish(finish)) => check_finish(spec, finish),
        (_, task) => Err(Failure::Device(format!("{task:?} is not a unit of such a job"))),
    }
}

fn check_chunk(spec: &ComputeSpec, first: u64, count: u32) -> Result<(), Failure> {
    let end = first.checked_add(count.into()).filter(|end| count >= 1 && *end <= spec.domain.len());
    let bytes = u64::from(count) * spec.index_bytes();
    let multiple = spec.chunk_multiple();
    let whole = spec.steps == 1 || u64::from(count) == spec.domain.len();
    // Blocks of several axes begin at a whole row or layer, and end at one or with the domain.
    let blocks = first.is_multiple_of(multiple)
        && (u64::from(count).is_multiple_of(multiple) || end == Some(spec.domain.len()))
        && u64::from(count) <= spec.chunk_indices_max();
    match end.is_some() && bytes <= spec.chunk_bytes_max() && whole && blocks {
        true => Ok(()),
        false => {
            Err(Failure::Device(format!("{count} indices from {first} are not a unit of this job")))
        }
    }
}

fn check_tile(spec: &RenderSpec, tile: &TileRect, samples: &SampleRange) -> Result<(), Failure> {
    let within = |start: u32, length: u32, end: u32| {
        length >= 1 && start.checked_add(length).is_some_and(|stop| stop <= end)
    };
    let good = spec.tiles().window_of(tile).is_some()
        && tile.width.max(tile.height) <= TILE_EDGE_MAX
        && within(samples.first, samples.count, spec.spp);
    if good {
        Ok(())
    } else {
        Err(Failure::Device(format!("{tile:?} with {samples:?} is not a unit of this job")))
    }
}

fn check_finish(spec: &RenderSpec, finish: &Finish) -> Result<(), Failure> {
    let bands = Bands::of(spec);
    let is_part = match finish.piece {
        Piece::Band { first, rows } => {
            let is_it = |band| bands.band(band) == Some((first, rows));
            bands.count() > 1 && (0..bands.count()).any(is_it)
        }
        Piece::Frame { rows } => bands.count() == 1 && rows == bands.height(),
        Piece::Assembly => bands.count() > 1,
    };
    let exposure = f32::from_bits(finish.exposure_bits);
    match is_part && EXPOSURES.contains(&exposure) {
        true => Ok(()),
        false => Err(Failure::Device(format!(
            "{:?} at {exposure} stops is not a unit of this job",
            finish.piece
        ))),
    }
}

/// Returns the parameters of a unit for a device.
pub(crate) fn unit_params(
    spec: &RenderSpec,
    frame: FrameNumber,
    tile: TileRect,
    samples: SampleRange,
) -> UnitParams {
    // A checked tile has a window.
    let (x, y) = spec.tiles().window_of(&tile).map_or((0, 0), |window| (window.left, window.top));
    UnitParams {
        frame_width: spec.width,
        frame_height: spec.height,
        x,
        y,
        width: tile.width,
        height: tile.height,
        first_sample: samples.first,
        sample_count: samples.count,
        seed: spec.seed,
        depth: spec.depth,
        aovs: aovs_of(spec),
        filter: match spec.filter {
            FilterSpec::Box => PixelFilter::Box,
            FilterSpec::Gaussian => PixelFilter::Gaussian,
            FilterSpec::BlackmanHarris => PixelFilter::BlackmanHarris,
        } as u32,
        frame: frame.0,
        clamp: spec.clamp.unwrap_or(0.0) as f32,
        ..UnitParams::default()
    }
}

/// Returns the planes of the film besides the beauty.
fn aovs_of(spec: &RenderSpec) -> u32 {
    let half = if spec.has_half() { Aov::Half as u32 } else { 0 };
    let coverage = if spec.has_coverage() { Aov::Coverage as u32 } else { 0 };
    spec.film_layers().into_iter().fold(half | coverage, |bits, layer| bits | aov_bit(layer) as u32)
}

fn aov_bit(aov: AovSpec) -> Aov {
    match aov {
        AovSpec::Albedo => Aov::Albedo,
        AovSpec::Normal => Aov::Normal,
        AovSpec::Depth => Aov::Depth,
        AovSpec::Position => Aov::Position,
    }
}

/// Returns the choice of a scene or an animation as importers take it.
pub fn choice(spec: &ChoiceSpec) -> Choice {
    match spec {
        ChoiceSpec::Named(name) => Choice::Named(name.clone()),
        ChoiceSpec::Index(index) => Choice::Index(*index),
    }
}

/// Returns the units of lights as importers take them.
pub fn light_units(spec: LightUnitsSpec) -> LightUnits {
    match spec {
        LightUnitsSpec::Radiometric => LightUnits::Radiometric,
        LightUnitsSpec::Photometric => LightUnits::Photometric,
    }
}

/// Returns the options for the importer to load the job's scene.
pub fn load_options(spec: &RenderSpec) -> LoadOptions {
    let environment = match &spec.environment {
        EnvironmentSpec::Auto => EnvironmentSource::Auto,
        EnvironmentSpec::None => EnvironmentSource::None,
        EnvironmentSpec::Constant(radiance) => EnvironmentSource::Constant(*radiance),
        EnvironmentSpec::Map { path } => EnvironmentSource::Map { path: path.clone() },
    };
    LoadOptions {
        environment,
        lights: light_units(spec.lights),
        variant: spec.variant.clone(),
        scene: spec.shown_scene.as_ref().map(choice),
        animations: spec.animations.iter().map(choice).collect(),
        space: space(spec),
        ..LoadOptions::default()
    }
}

/// Returns the space of the job's scene. Files that show places need one that the job says.
fn space(spec: &RenderSpec) -> SpaceChoice {
    match spec.space.as_deref() {
        Some(&SpaceSpec { origin, exponent }) => {
            SpaceChoice::Given(WorkingSpace { origin, exponent })
        }
        None if spec.shows_places() => SpaceChoice::Given(WorkingSpace::FILE),
        None => SpaceChoice::Measured,
    }
}

/// Returns the camera of the job.
pub(crate) fn camera_choice(spec: &RenderSpec) -> CameraChoice {
    match &spec.camera {
        CameraSpec::Default => CameraChoice::Default,
        CameraSpec::Named(name) => CameraChoice::Named(name.clone()),
        CameraSpec::Index(index) => CameraChoice::Index(*index),
        CameraSpec::LookAt(look) => CameraChoice::LookAt {
            eye: precise(&look.eye, &look.eye_rest),
            target: precise(&look.target, &look.target_rest),
            up: look.up,
            vfov_degrees: look.vfov_degrees,
        },
    }
}

/// Returns a point whose coordinates are in two parts.
fn precise(point: &[f32; 3], rest: &[f32; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| f64::from(point[axis]) + f64::from(rest[axis]))
}

fn lens(spec: LensSpec) -> Lens {
    Lens {
        aperture: match spec.aperture {
            ApertureSpec::Radius(radius) => Aperture::Radius(radius),
            ApertureSpec::FStop(number) => Aperture::FStop(number),
        },
        focus: match spec.focus {
            FocusSpec::Distance(distance) => Focus::Distance(distance),
            FocusSpec::Point(point) => Focus::Point(point.map(f64::from)),
        },
        blades: spec.blades.map(|BladesSpec { count, rotation_degrees }| Blades {
            count: count.into(),
            rotation_degrees,
        }),
        sensor_width: spec.sensor_width_mm.map(|width| width / 1000.0),
    }
}

/// Returns the options of one frame of the job.
pub fn flatten_options(spec: &RenderSpec, frame: tessera_protocol::FrameNumber) -> FlattenOptions {
    FlattenOptions {
        time_secs: f64::from(frame.0) / spec.fps,
        frame_secs: 1.0 / spec.fps,
        camera: camera_choice(spec),
        lens: spec.lens.map(lens),
        shift: spec.shift,
        environment_intensity: spec.environment_intensity,
        environment_rotation_degrees: spec.environment_rotation_degrees,
        ..FlattenOptions::still(spec.width, spec.height)
    }
}

const _: () = assert!(
    SPACE_EXPONENT_MAX == tessera_scenes::EXPONENT_MAX,
    "a space that a job may say is one that importers know"
);
const _: () = assert!(
    BLADES_MIN as u32 == tessera_layout::BLADES_MIN
        && BLADES_MAX as u32 == tessera_layout::BLADES_MAX,
    "a lens that a job may ask for is one that kernels know"
);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tessera_protocol::compute::{Domain, Program};
    use tessera_protocol::job::AssetFile;
    use tessera_protocol::job::options::{OPTIONS, away_from_default};
    use tessera_protocol::{BlobHash, Epoch, FrameSet, JobId, UnitIndex};

    /// Returns a job of 64 × 48 pixels in 16 px tiles with 4 samples, whose only file contains
    /// `scene`.
    pub(crate) fn spec(scene: &[u8]) -> RenderSpec {
        RenderSpec {
            scene: "scene.gltf".into(),
            files: vec![AssetFile {
                path: "scene.gltf".into(),
                hash: BlobHash::of(scene),
                length: scene.len() as u64,
            }],
            environment: EnvironmentSpec::Constant([1.0, 0.9, 0.8]),
            width: 64,
            height: 48,
            frames: FrameSet::one(FrameNumber(1)),
            spp: 4,
            depth: 4,
            seed: 9,
            filter: FilterSpec::Gaussian,
            tile: 16,
            aovs: vec![AovSpec::Normal, AovSpec::Depth],
            ..RenderSpec::default()
        }
    }

    pub(crate) fn assignment(job: u128, unit: u32) -> Assignment {
        Assignment {
            job: JobId(uuid::Uuid::from_u128(job)),
            frame: FrameNumber(1),
            unit: UnitIndex(unit),
            epoch: Epoch(100 + u64::from(unit)),
            task: Task::Tile {
                tile: TileRect { x: unit % 4 * 16, y: unit / 4 * 16, width: 16, height: 16 },
                samples: SampleRange { first: 0, count: 4 },
            },
        }
    }

    #[test]
    fn every_setting_reaches_the_device() {
        let tile = TileRect { x: 32, y: 16, width: 16, height: 16 };
        let params =
            unit_params(&spec(b""), FrameNumber(1), tile, SampleRange { first: 0, count: 4 });
        let frame = (params.frame_width, params.frame_height, params.frame);
        assert_eq!(frame, (64, 48, 1));
        assert_eq!((params.x, params.y, params.width, params.height), (32, 16, 16, 16));
        assert_eq!((params.seed, params.depth, params.aovs, params.filter), (9, 4, 2 | 4, 1));
        assert_eq!(params.channels(), u32::from(spec(b"").channels()));
        let denoised = RenderSpec { denoise: true, ..spec(b"") };
        let params =
            unit_params(&denoised, FrameNumber(1), tile, SampleRange { first: 0, count: 4 });
        assert_eq!(
            (params.aovs, params.channels()),
            (1 | 2 | 4 | 16, u32::from(denoised.channels()))
        );
    }

    #[test]
    fn units_outside_the_job_are_refused() {
        let spec = JobKind::Render(spec(b""));
        assert_eq!(check_assignment(&spec, &assignment(1, 11)), Ok(()));
        let with = |change: fn(&mut TileRect, &mut SampleRange)| {
            let mut tile = TileRect { x: 0, y: 0, width: 16, height: 16 };
            let mut samples = SampleRange { first: 0, count: 4 };
            change(&mut tile, &mut samples);
            let task = Task::Tile { tile, samples };
            check_assignment(&spec, &Assignment { task, ..assignment(1, 0) })
        };
        assert!(with(|tile, _| tile.x = u32::MAX).is_err());
        assert!(with(|tile, _| tile.width = 0).is_err());
        assert!(with(|tile, _| tile.height = 49).is_err());
        assert!(with(|_, samples| samples.count = 5).is_err());
        assert!(with(|_, samples| samples.count = 0).is_err());
        let chunk = Task::Chunk { first: 0, count: 4, feed: None };
        assert!(check_assignment(&spec, &Assignment { task: chunk, ..assignment(1, 0) }).is_err());
    }

    #[test]
    fn only_the_bands_of_a_job_are_finished() {
        let checked = |spec: &RenderSpec, piece, exposure: f32| {
            let task = Task::Finish(Finish { piece, exposure_bits: exposure.to_bits() });
            let kind = JobKind::Render(spec.clone());
            check_assignment(&kind, &Assignment { task, ..assignment(1, 99) })
        };
        let one = RenderSpec { width: 640, height: 48, ..spec(b"") };
        assert_eq!(checked(&one, Piece::Frame { rows: 48 }, -64.0), Ok(()));
        // 512 tiles of 256 pixels are 102 rows of 1280, and 96 in whole blocks of 32.
        let several = RenderSpec { width: 1280, height: 200, ..spec(b"") };
        for (first, rows) in [(0, 96), (96, 96), (192, 8)] {
            assert_eq!(checked(&several, Piece::Band { first, rows }, 1.5), Ok(()));
        }
        assert_eq!(checked(&several, Piece::Assembly, 64.0), Ok(()));
        let refused = [
            (&one, Piece::Frame { rows: 47 }, 0.0),
            (&one, Piece::Band { first: 0, rows: 48 }, 0.0),
            (&one, Piece::Assembly, 0.0),
            (&several, Piece::Frame { rows: 200 }, 0.0),
            (&several, Piece::Band { first: 32, rows: 96 }, 0.0),
            (&several, Piece::Band { first: 192, rows: 96 }, 0.0),
            (&several, Piece::Band { first: u32::MAX, rows: u32::MAX }, 0.0),
            (&several, Piece::Assembly, f32::NAN),
            (&several, Piece::Assembly, f32::INFINITY),
            (&several, Piece::Assembly, 64.5),
            // The coordinator finishes a frame as small as this by itself.
            (&spec(b""), Piece::Frame { rows: 48 }, 0.0),
        ];
        for (spec, piece, exposure) in refused {
            let refusal = checked(spec, piece, exposure);
            assert!(matches!(refusal, Err(Failure::Device(_))), "{piece:?} {exposure}");
        }
        let domain = Domain { width: 8, height: 8, depth: 1 };
        let chunks = ComputeSpec::new(Program::Builtin("merge".into()), domain);
        let task = Task::Finish(Finish { piece: Piece::Assembly, exposure_bits: 0 });
        let refusal =
            check_assignment(&JobKind::Compute(chunks), &Assignment { task, ..assignment(1, 0) });
        assert!(refusal.is_err());
    }

    #[test]
    fn tiles_of_overscan_are_counted_from_its_corner() {
        let spec = RenderSpec { overscan: 5, ..spec(b"") };
        let params = |x, y, width| {
            let tile = TileRect { x, y, width, height: 5 };
            unit_params(&spec, FrameNumber(1), tile, SampleRange { first: 0, count: 4 })
        };
        let corner = params(0, 0, 5);
        assert_eq!((corner.x, corner.y, corner.width, corner.height), (-5, -5, 5, 5));
        assert_eq!((corner.frame_width, corner.frame_height), (64, 48));
        assert_eq!((params(5, 37, 16).x, params(5, 37, 16).y), (0, 32));
        // Camera and scene are those of the frame.
        let plain = RenderSpec { overscan: 0, ..spec.clone() };
        assert_eq!(flatten_options(&spec, FrameNumber(1)), flatten_options(&plain, FrameNumber(1)));
        let kind = JobKind::Render(spec);
        let checked = |x, y| {
            let tile = TileRect { x, y, width: 5, height: 16 };
            let task = Task::Tile { tile, samples: SampleRange { first: 0, count: 4 } };
            check_assignment(&kind, &Assignment { task, ..assignment(1, 0) })
        };
        assert_eq!(checked(69, 42), Ok(()));
        assert!(checked(70, 42).is_err() && checked(69, 43).is_err());
    }

    /// Returns everything that nodes get for a frame: its parameters, its scene, its view, and the
    /// film's shape.
    fn film_of(spec: &RenderSpec) -> impl PartialEq + use<> {
        let tile = TileRect { x: 0, y: 0, width: 8, height: 8 };
        let samples = SampleRange { first: 0, count: 1 };
        let params = unit_params(spec, FrameNumber(1), tile, samples);
        let scene = (load_options(spec), flatten_options(spec, FrameNumber(1)), spec.scene_hash());
        // The units of a film are for all its samples, and each is for some of them alone.
        let samples = (spec.spp, spec.rounds(), spec.has_rounds());
        (params, scene, spec.film_layers(), spec.channels(), samples)
    }

    /// Another value for a field, as JSON. Numbers and switches need no entry here.
    const SAMPLES: &[(&str, &str)] = &[
        ("scene", "\"b.gltf\""),
        ("environment", "{\"Constant\": [1.0, 1.0, 1.0]}"),
        ("camera", "{\"Index\": 1}"),
        (
            "lens",
            "{\"aperture\": {\"f-stop\": 2.0}, \"focus\": {\"distance\": 1.0}, \"blades\": null}",
        ),
        ("filter", "\"box\""),
        ("aovs", "[\"depth\"]"),
        ("formats", "[\"png16\"]"),
        ("tone_map", "\"agx\""),
        ("variant", "\"night\""),
        ("noise", "0.1"),
        ("time_secs", "9"),
        ("clamp", "4.0"),
        ("exr_depth", "\"half\""),
        ("look", "\"punchy\""),
        ("exr_layers", "[{\"layer\": \"depth\", \"depth\": \"half\"}]"),
        ("exr_compression", "\"piz\""),
        ("lights", "\"photometric\""),
        ("shown_scene", "{\"Index\": 1}"),
        ("animations", "[{\"Named\": \"Run\"}]"),
        ("shift", "[0.5, -0.25]"),
        ("crop", "{\"x\": 1, \"y\": 2, \"width\": 3, \"height\": 4}"),
        ("space", "{\"origin\": [1.0, 2.0, 3.0], \"exponent\": 4}"),
    ];

    fn changed(field: &str) -> RenderSpec {
        let mut spec = RenderSpec::default();
        if field == "files" {
            spec.files = self::spec(b"").files;
        } else if field == "frames" {
            spec.frames = FrameSet::one(FrameNumber(7));
        } else {
            let mut json = serde_json::to_value(&spec).expect("JSON");
            let sample = SAMPLES.iter().find(|(name, _)| *name == field);
            let value = match (sample, &json[field]) {
                (Some((_, sample)), _) => serde_json::from_str(sample).expect("JSON"),
                (None, serde_json::Value::Bool(switch)) => (!switch).into(),
                (None, number) if number.is_u64() => (number.as_u64().unwrap_or(0) + 1).into(),
                (None, number) if number.is_f64() => (number.as_f64().unwrap_or(0.0) + 1.0).into(),
                (None, other) => panic!("{field} is {other}: give another value in SAMPLES"),
            };
            json[field] = value;
            spec = serde_json::from_value(json).expect("a spec");
        }
        let away = away_from_default(&spec);
        assert_eq!(away.len(), 1, "the sample of {field} is its default, or no value of it");
        spec
    }

    #[test]
    fn each_option_changes_what_its_row_says() {
        let plain = film_of(&RenderSpec::default());
        for option in &OPTIONS {
            let has_film = film_of(&changed(option.field)) != plain;
            assert_eq!(has_film, option.effect.has_film(), "the film and {}", option.field);
        }
    }

    #[test]
    fn an_invalid_job_fails_like_an_invalid_scene() {
        let mut spec = spec(b"");
        spec.files[0].path = "../scene.gltf".into();
        assert!(matches!(
            checked_spec(RawJobSpec::from(&JobKind::Render(spec))),
            Err(Failure::Scene(_))
        ));
    }
}
