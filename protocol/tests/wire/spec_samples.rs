//! Specs that are right: a minimal one, and one for every other variant of their parts.

use crate::samples::{hash, uuid};
use tessera_protocol::JobId;
use tessera_protocol::compute::*;
use tessera_protocol::job::*;

/// Returns a minimal spec that is right.
pub(crate) fn render() -> RenderSpec {
    RenderSpec {
        scene: "a.glb".into(),
        files: vec![AssetFile { path: "a.glb".into(), hash: hash(1), length: 1000 }],
        width: 640,
        height: 480,
        frames: "1-10x3".parse().unwrap(),
        aovs: vec![AovSpec::Albedo, AovSpec::Depth],
        formats: vec![FormatSpec::Exr, FormatSpec::Png],
        ..RenderSpec::default()
    }
}

/// Returns specs with the other variants of the parts.
pub(crate) fn render_otherwise() -> RenderSpec {
    RenderSpec {
        environment: EnvironmentSpec::Map { path: "sky.hdr".into() },
        camera: CameraSpec::LookAt(Box::new(LookAtSpec {
            eye: [0.0, 1.0, 2.0],
            up: [0.0, 1.0, 0.0],
            vfov_degrees: 45.0,
            ..LookAtSpec::default()
        })),
        lens: Some(LensSpec {
            aperture: ApertureSpec::FStop(2.8),
            focus: FocusSpec::Point([0.5, 1.0, -2.0]),
            blades: Some(BladesSpec { count: 7, rotation_degrees: 12.5 }),
            sensor_width_mm: Some(36.0),
        }),
        filter: FilterSpec::Gaussian,
        aovs: vec![AovSpec::Normal, AovSpec::Position],
        formats: vec![FormatSpec::Png16],
        tone_map: ToneMapSpec::Agx,
        variant: Some("night".into()),
        denoise: true,
        ..render()
    }
}

pub(crate) fn render_thirdly() -> RenderSpec {
    RenderSpec {
        environment: EnvironmentSpec::Constant([0.25, 0.5, 1.0]),
        camera: CameraSpec::Named("main".into()),
        filter: FilterSpec::Box,
        tone_map: ToneMapSpec::PbrNeutral,
        tile: 32,
        noise: Some(0.02),
        time_secs: Some(90),
        clamp: Some(2.5),
        ..render()
    }
}

pub(crate) fn job(render: RenderSpec) -> JobSpec {
    JobSpec { device_bytes: 1 << 33, ..JobSpec::new("cornell", JobKind::Render(render)) }
}

/// Returns a compute spec that is right, with most fields away from their default.
pub(crate) fn compute() -> ComputeSpec {
    let input = |name: &str, shape: Vec<u64>| InputArray {
        name: name.into(),
        hash: hash(2),
        length: shape.iter().product::<u64>() * 4 + 128,
        element: Element::F32,
        shape,
        from: None,
    };
    let argument = |name: &str, element, numbers: &[Number]| Argument {
        name: name.into(),
        value: ArgumentValue { element, numbers: numbers.to_vec() },
    };
    ComputeSpec {
        program: Program::Ptx(AssetFile { path: "blur.ptx".into(), hash: hash(1), length: 1000 }),
        ptx: None,
        headers: vec![],
        inputs: vec![input("image", vec![480, 640, 3]), input("weights", vec![9])],
        frame_inputs: vec![],
        arguments: vec![
            argument("count", None, &[Number::Integer(-3)]),
            argument("gain", Some(Element::F32), &[Number::Real(0.5), Number::Unsigned(u64::MAX)]),
        ],
        domain: Domain { width: 640, height: 480, depth: 1 },
        outputs: vec![],
        channels: 3,
        element: Element::F32,
        reduction: None,
        keys: 0,
        formats: vec![ComputeFormat::Npy, ComputeFormat::Exr, ComputeFormat::Png],
        chunk: 4096,
        chunk_align: 0,
        frames: "1-10x3".parse().unwrap(),
        feed: Some("image".into()),
        feed_from: None,
        steps: 1,
        block: None,
        shared_bytes: 0,
        seed: 7,
        time_limit_secs: 60,
        nondeterministic: false,
    }
}

pub(crate) fn compute_otherwise(reduction: Reduction, element: Element) -> ComputeSpec {
    ComputeSpec {
        program: Program::Builtin("merge".into()),
        inputs: vec![],
        frame_inputs: vec![],
        arguments: vec![],
        element,
        reduction: Some(reduction),
        formats: vec![ComputeFormat::Npy],
        feed: None,
        ..compute()
    }
}

/// Returns compute specs with the other variants of the parts.
pub(crate) fn compute_others() -> Vec<ComputeSpec> {
    let cuda = Program::Cuda(AssetFile { path: "a.cu".into(), hash: hash(1), length: 10 });
    let mut others = vec![
        ComputeSpec { program: cuda, ..compute_otherwise(Reduction::Sum, Element::F64) },
        compute_otherwise(Reduction::Min, Element::I32),
        compute_otherwise(Reduction::Max, Element::U32),
    ];
    others.extend(
        [Element::I64, Element::U64].map(|element| compute_otherwise(Reduction::Sum, element)),
    );
    others.push(compute_steps());
    others.push(compute_outputs());
    others
}

/// Returns a compute spec with named outputs, one of which is fed.
pub(crate) fn compute_outputs() -> ComputeSpec {
    let output = |name: &str, element, reduction, keys| OutputArray {
        name: name.into(),
        channels: 3,
        element,
        reduction,
        keys,
    };
    let outputs = vec![
        output("bins", Element::U8, Some(Reduction::Mean), 7),
        output("state", Element::F32, None, 0),
    ];
    ComputeSpec { outputs, channels: 1, feed_from: Some("state".into()), ..compute() }
}

/// Returns a compute spec of several steps, with a shape of its launches.
pub(crate) fn compute_steps() -> ComputeSpec {
    ComputeSpec {
        chunk: 0,
        steps: 100,
        block: Some(Block { x: 16, y: 8, z: 2 }),
        shared_bytes: 4096,
        ..compute()
    }
}

pub(crate) fn compute_job(compute: ComputeSpec) -> JobSpec {
    JobSpec {
        device_bytes: 1 << 20,
        pool: Some("gpu".into()),
        after: vec![
            After { job: JobId(uuid(5)), until: Until::Frames },
            After { job: JobId(uuid(6)), until: Until::End },
        ],
        batch: Some("film-7c01".into()),
        notify: vec!["studio".into()],
        ..JobSpec::new("blur", JobKind::Compute(compute))
    }
}
