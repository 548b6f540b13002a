//! What records and snapshots of version 6 held where it differs from now, so that a farm keeps its
//! jobs over the change. Written no more.
//!
//! A render job's light had no bound.

use crate::journal::Record;
use crate::journal::snapshot::SnapshotPart;
use crate::journal_v4::{JOB_VARIANT, accepted, job_part};
use serde::Deserialize;
use tessera_protocol::job::{
    AovSpec, AssetFile, CameraSpec, EnvironmentSpec, FilterSpec, FormatSpec, JobKind, JobSpec,
    LensSpec, RenderSpec, ToneMapSpec,
};
use tessera_protocol::{CodecError, ComputeSpec, FrameSet, decode};

/// What a job did, where render jobs were of the form `R`. Compute jobs are what they were.
#[derive(Deserialize)]
pub(crate) enum KindOf<R> {
    Render(Box<R>),
    Compute(Box<ComputeSpec>),
}

impl<R: Into<RenderSpec>> From<KindOf<R>> for JobKind {
    fn from(former: KindOf<R>) -> Self {
        match former {
            KindOf::Render(render) => Self::Render((*render).into()),
            KindOf::Compute(compute) => Self::Compute(*compute),
        }
    }
}

/// A render job of versions 1 to 6, whose lens was of the form `L`, and which ended with a `W`.
#[derive(Deserialize)]
pub(crate) struct FormerRender<L, W> {
    scene: String,
    files: Vec<AssetFile>,
    environment: EnvironmentSpec,
    environment_intensity: f32,
    environment_rotation_degrees: f32,
    camera: CameraSpec,
    lens: Option<L>,
    width: u32,
    height: u32,
    frames: FrameSet,
    fps: f64,
    spp: u32,
    depth: u32,
    seed: u32,
    filter: FilterSpec,
    tile: u32,
    unit_samples: u32,
    aovs: Vec<AovSpec>,
    formats: Vec<FormatSpec>,
    exposure: f32,
    tone_map: ToneMapSpec,
    wishes: W,
}

/// What versions 5 and 6 added to render jobs.
#[derive(Default, Deserialize)]
pub(crate) struct Wishes {
    pub(crate) variant: Option<String>,
    pub(crate) denoise: bool,
    pub(crate) noise: Option<f64>,
    pub(crate) time_secs: Option<u32>,
}

impl<L: Into<LensSpec>, W: Into<Wishes>> From<FormerRender<L, W>> for RenderSpec {
    fn from(former: FormerRender<L, W>) -> Self {
        let Wishes { variant, denoise, noise, time_secs } = former.wishes.into();
        Self {
            scene: former.scene,
            files: former.files,
            environment: former.environment,
            environment_intensity: former.environment_intensity,
            environment_rotation_degrees: former.environment_rotation_degrees,
            camera: former.camera,
            lens: former.lens.map(Into::into),
            width: former.width,
            height: former.height,
            frames: former.frames,
            fps: former.fps,
            spp: former.spp,
            depth: former.depth,
            seed: former.seed,
            filter: former.filter,
            tile: former.tile,
            unit_samples: former.unit_samples,
            aovs: former.aovs,
            formats: former.formats,
            exposure: former.exposure,
            tone_map: former.tone_map,
            variant,
            denoise,
            noise,
            time_secs,
            clamp: None,
        }
    }
}

/// The spec of a job of versions 4 to 6, whose render jobs were of the form `R`.
#[derive(Deserialize)]
pub(crate) struct FormerSpec<R> {
    name: String,
    priority: u8,
    kind: KindOf<R>,
    device_bytes: u64,
    pool: Option<String>,
}

impl<R: Into<RenderSpec>> From<FormerSpec<R>> for JobSpec {
    fn from(former: FormerSpec<R>) -> Self {
        let FormerSpec { name, priority, kind, device_bytes, pool } = former;
        Self { name, priority, kind: kind.into(), device_bytes, pool }
    }
}

type Spec = FormerSpec<FormerRender<LensSpec, Wishes>>;

/// What can be read from its bytes of version 6, without the version byte.
pub(crate) trait FromV6: Sized {
    fn from_v6(bytes: &[u8]) -> Result<Self, CodecError>;
}

impl FromV6 for Record {
    fn from_v6(bytes: &[u8]) -> Result<Self, CodecError> {
        let Some((&JOB_VARIANT, rest)) = bytes.split_first() else { return decode(bytes) };
        accepted::<Spec>(rest)
    }
}

impl FromV6 for SnapshotPart {
    fn from_v6(bytes: &[u8]) -> Result<Self, CodecError> {
        let Some((&JOB_VARIANT, rest)) = bytes.split_first() else { return decode(bytes) };
        job_part::<Spec>(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal_v4::tests::{accepted_of, assert_holds};

    /// The job of version 1 as version 6 wrote it: denoised, and sampled for 90 seconds; and what
    /// it asks for.
    fn accepted() -> (Record, Vec<u8>) {
        // No variant, denoised, no noise, a time; then the device's bytes and no pool.
        let (record, bytes) = accepted_of(6, &[0, 1, 0, 1, 90, 77, 0]);
        let Record::JobAccepted { job, mut spec, owner, at } = record else { panic!("a job") };
        let JobKind::Render(render) = &mut spec.kind else { panic!("a render job") };
        (render.denoise, render.time_secs) = (true, Some(90));
        spec.device_bytes = 77;
        (Record::JobAccepted { job, spec, owner, at }, bytes)
    }

    #[test]
    fn a_job_of_version_6_is_read_and_written_as_it_was() {
        let (record, bytes) = accepted();
        assert_holds(&bytes, &record);
    }

    #[test]
    fn what_version_7_adds_is_written_and_read() {
        let (record, _) = accepted();
        let Record::JobAccepted { job, mut spec, owner, at } = record else { panic!("a job") };
        let JobKind::Render(render) = &mut spec.kind else { panic!("a render job") };
        render.clamp = Some(2.5);
        let record = Record::JobAccepted { job, spec, owner, at };
        assert_eq!(Record::from_bytes(&record.to_bytes().unwrap()).unwrap(), record);
    }
}
