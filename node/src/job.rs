//! From what a job asks for to what importers and devices are told. Checks what comes from the coordinator.

use std::sync::Arc;
use tessera_layout::{Aov, PixelFilter, UnitParams};
use tessera_protocol::job::{AovSpec, CameraSpec, EnvironmentSpec, FilterSpec};
use tessera_protocol::limits::TILE_EDGE_MAX;
use tessera_protocol::node::{Assignment, Failure};
use tessera_protocol::{JobKind, JobSpec, RawJobSpec, RenderSpec};
use tessera_scenes::{CameraChoice, EnvironmentSource, FlattenOptions, Lens, LoadOptions};

/// A spec that makes sense; what a coordinator sends is checked like anything from outside.
pub(crate) fn checked_spec(render: RenderSpec) -> Result<Arc<RenderSpec>, Failure> {
    let raw = JobSpec { name: "job".into(), priority: 0, kind: JobKind::Render(render), device_bytes: 0 };
    match RawJobSpec::from(raw).check() {
        Ok(JobSpec { kind: JobKind::Render(render), .. }) => Ok(Arc::new(render)),
        Err(error) => Err(Failure::Scene(format!("the job makes no sense: {error}"))),
    }
}

/// The unit lies in its frame and its samples in the job's.
pub(crate) fn check_assignment(spec: &RenderSpec, assignment: &Assignment) -> Result<(), Failure> {
    let (tile, samples) = (&assignment.tile, &assignment.samples);
    let within = |start: u32, length: u32, end: u32| {
        length >= 1 && start.checked_add(length).is_some_and(|stop| stop <= end)
    };
    let good = within(tile.x, tile.width, spec.width)
        && within(tile.y, tile.height, spec.height)
        && tile.width.max(tile.height) <= TILE_EDGE_MAX
        && within(samples.first, samples.count, spec.spp);
    if good {
        Ok(())
    } else {
        Err(Failure::Device(format!("{tile:?} with {samples:?} is not a unit of this job")))
    }
}

/// What a device is told about a unit.
pub(crate) fn unit_params(spec: &RenderSpec, assignment: &Assignment) -> UnitParams {
    UnitParams {
        frame_width: spec.width,
        frame_height: spec.height,
        x: assignment.tile.x,
        y: assignment.tile.y,
        width: assignment.tile.width,
        height: assignment.tile.height,
        first_sample: assignment.samples.first,
        sample_count: assignment.samples.count,
        seed: spec.seed,
        depth: spec.depth,
        aovs: spec.aovs.iter().fold(0, |bits, aov| bits | aov_bit(*aov) as u32),
        filter: match spec.filter {
            FilterSpec::Box => PixelFilter::Box,
            FilterSpec::Gaussian => PixelFilter::Gaussian,
            FilterSpec::BlackmanHarris => PixelFilter::BlackmanHarris,
        } as u32,
        frame: assignment.frame.0,
        job_samples: spec.spp,
        reserved: [0; 2],
    }
}

fn aov_bit(aov: AovSpec) -> Aov {
    match aov {
        AovSpec::Albedo => Aov::Albedo,
        AovSpec::Normal => Aov::Normal,
        AovSpec::Depth => Aov::Depth,
        AovSpec::Position => Aov::Position,
    }
}

/// What the importer needs to load the job's scene.
pub(crate) fn load_options(spec: &RenderSpec) -> LoadOptions {
    let environment = match &spec.environment {
        EnvironmentSpec::None => EnvironmentSource::None,
        EnvironmentSpec::Constant(radiance) => EnvironmentSource::Constant(*radiance),
        EnvironmentSpec::Map { path } => EnvironmentSource::Map { path: path.clone() },
    };
    LoadOptions { environment, ..LoadOptions::default() }
}

/// Which camera the job looks through.
pub(crate) fn camera_choice(spec: &RenderSpec) -> CameraChoice {
    match &spec.camera {
        CameraSpec::Default => CameraChoice::Default,
        CameraSpec::Named(name) => CameraChoice::Named(name.clone()),
        CameraSpec::Index(index) => CameraChoice::Index(*index),
        CameraSpec::LookAt { eye, target, up, vfov_degrees } => {
            CameraChoice::LookAt { eye: *eye, target: *target, up: *up, vfov_degrees: *vfov_degrees }
        }
    }
}

/// What one frame of the job shows.
pub(crate) fn flatten_options(spec: &RenderSpec, frame: tessera_protocol::FrameNumber) -> FlattenOptions {
    FlattenOptions {
        time_secs: f64::from(frame.0) / spec.fps,
        camera: camera_choice(spec),
        lens: spec.lens.map(|lens| Lens { radius: lens.radius, focus_distance: lens.focus_distance }),
        environment_intensity: spec.environment_intensity,
        environment_rotation_degrees: spec.environment_rotation_degrees,
        ..FlattenOptions::still(spec.width, spec.height)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tessera_protocol::job::{AssetFile, FormatSpec, ToneMapSpec};
    use tessera_protocol::node::{SampleRange, TileRect};
    use tessera_protocol::{BlobHash, Epoch, FrameNumber, FrameSet, JobId, UnitIndex};

    /// A job of 64 × 48 pixels in 16 px tiles with 4 samples, whose one file holds `scene`.
    pub(crate) fn spec(scene: &[u8]) -> RenderSpec {
        RenderSpec {
            scene: "scene.gltf".into(),
            files: vec![AssetFile {
                path: "scene.gltf".into(),
                hash: BlobHash::of(scene),
                length: scene.len() as u64,
            }],
            environment: EnvironmentSpec::Constant([1.0, 0.9, 0.8]),
            environment_intensity: 1.0,
            environment_rotation_degrees: 0.0,
            camera: CameraSpec::Default,
            lens: None,
            width: 64,
            height: 48,
            frames: FrameSet::one(FrameNumber(1)),
            fps: 24.0,
            spp: 4,
            depth: 4,
            seed: 9,
            filter: FilterSpec::Gaussian,
            tile: 16,
            unit_samples: 0,
            aovs: vec![AovSpec::Normal, AovSpec::Depth],
            formats: vec![FormatSpec::Exr],
            exposure: 0.0,
            tone_map: ToneMapSpec::Standard,
        }
    }

    pub(crate) fn assignment(job: u128, unit: u32) -> Assignment {
        Assignment {
            job: JobId(uuid::Uuid::from_u128(job)),
            frame: FrameNumber(1),
            unit: UnitIndex(unit),
            epoch: Epoch(100 + u64::from(unit)),
            tile: TileRect { x: unit % 4 * 16, y: unit / 4 * 16, width: 16, height: 16 },
            samples: SampleRange { first: 0, count: 4 },
        }
    }

    #[test]
    fn every_setting_reaches_the_device() {
        let params = unit_params(&spec(b""), &assignment(1, 6));
        let frame = (params.frame_width, params.frame_height, params.frame, params.job_samples);
        assert_eq!(frame, (64, 48, 1, 4));
        assert_eq!((params.x, params.y, params.width, params.height), (32, 16, 16, 16));
        assert_eq!((params.seed, params.depth, params.aovs, params.filter), (9, 4, 2 | 4, 1));
        assert_eq!(params.channels(), u32::from(spec(b"").channels()));
    }

    #[test]
    fn units_outside_the_job_are_refused() {
        let spec = spec(b"");
        assert_eq!(check_assignment(&spec, &assignment(1, 11)), Ok(()));
        let with = |change: fn(&mut Assignment)| {
            let mut assignment = assignment(1, 0);
            change(&mut assignment);
            check_assignment(&spec, &assignment)
        };
        assert!(with(|a| a.tile.x = u32::MAX).is_err());
        assert!(with(|a| a.tile.width = 0).is_err());
        assert!(with(|a| a.tile.height = 49).is_err());
        assert!(with(|a| a.samples.count = 5).is_err());
        assert!(with(|a| a.samples.count = 0).is_err());
    }

    #[test]
    fn a_job_that_makes_no_sense_fails_as_a_scene() {
        let mut spec = spec(b"");
        spec.files[0].path = "../scene.gltf".into();
        assert!(matches!(checked_spec(spec), Err(Failure::Scene(_))));
    }
}
