//! The self-describing form of a job: which fields are written, that every bit comes back, and that
//! unknown or malformed fields are refused by name.

use crate::spec_samples::{compute, compute_job, job, render, render_otherwise, render_thirdly};
use serde_json::Value;
use std::collections::BTreeSet;
use tessera_protocol::compute::{Argument, ArgumentValue, ComputeSpec, Number};
use tessera_protocol::job::described::{decode_job, encode_job};
use tessera_protocol::job::{
    ApertureSpec, BladesSpec, CameraSpec, EnvironmentSpec, FocusSpec, LensSpec, LookAtSpec,
};
use tessera_protocol::{JobKind, JobSpec, RawJobSpec, RenderSpec, encode};

/// Returns random bits, the same in every run.
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    fn float(&mut self) -> f32 {
        f32::from_bits(self.next() as u32)
    }
}

/// Encodes a text of fewer than 24 bytes as CBOR.
fn text(text: &str) -> Vec<u8> {
    [&[0x60 + text.len() as u8], text.as_bytes()].concat()
}

/// Encodes a CBOR map of fewer than 24 encoded values.
fn map(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0xa0 + fields.len() as u8];
    fields.iter().for_each(|(name, value)| bytes.extend([&text(name)[..], value].concat()));
    bytes
}

/// Encodes a job of these render options, together with the fields that have no default.
fn with_options(options: &[(&str, &[u8])]) -> Vec<u8> {
    map(&[("name", &text("a")), ("render", &map(options))])
}

fn refusal(bytes: &[u8]) -> (String, bool) {
    let error = decode_job(bytes).unwrap_err();
    (error.to_string(), error.unknown)
}

#[test]
fn jobs_come_back_and_fields_at_their_default_are_not_written() {
    for spec in [render(), render_otherwise(), render_thirdly()].map(job) {
        assert_eq!(decode_job(&encode_job(&spec)).unwrap(), spec);
    }
    assert_eq!(RawJobSpec::from(job(render())).check().unwrap(), job(render()));
    let spec = compute_job(compute());
    assert_eq!(decode_job(&encode_job(&spec)).unwrap(), spec);
    let plain = ComputeSpec { seed: 7, ..ComputeSpec::default() };
    let spec = JobSpec::new("a", JobKind::Compute(plain));
    let bytes = map(&[("name", &text("a")), ("compute", &map(&[("seed", &[7])]))]);
    assert_eq!(encode_job(&spec), bytes);
    assert_eq!(decode_job(&bytes).unwrap(), spec);

    // Only the name and the frame's width are not at their default. The width 7 is 0x07.
    let render = RenderSpec { width: 7, ..RenderSpec::default() };
    let spec = JobSpec::new("a", JobKind::Render(render));
    assert_eq!(encode_job(&spec), with_options(&[("width", &[7])]));
}

/// Returns specs that together give every option a value.
fn every_option() -> [RenderSpec; 4] {
    let constant = RenderSpec { shift: [0.5, -0.5], ..render_thirdly() };
    [render(), render_otherwise(), constant, RenderSpec::default()]
}

/// Returns the names of the options in which a float occurs.
fn options_with_floats(specs: &[RenderSpec]) -> BTreeSet<String> {
    fn has_float(value: &Value) -> bool {
        match value {
            Value::Number(number) => number.is_f64(),
            Value::Array(values) => values.iter().any(has_float),
            Value::Object(fields) => fields.values().any(has_float),
            _ => false,
        }
    }
    let fields = specs.iter().map(|spec| serde_json::to_value(spec).unwrap());
    let fields = fields.flat_map(|spec| spec.as_object().unwrap().clone());
    fields.filter(|(_, value)| has_float(value)).map(|(name, _)| name).collect()
}

#[test]
fn every_float_keeps_its_bits() {
    let mut bits = Bits(1);
    for round in 0..2000 {
        let mut next = || match round {
            0 => f32::from_bits(0x7fc1_2345),
            1 => f32::from_bits(0xff80_0001),
            2 => -0.0,
            _ => bits.float(),
        };
        let lens = LensSpec {
            aperture: ApertureSpec::FStop(next()),
            focus: FocusSpec::Point([next(), next(), next()]),
            blades: Some(BladesSpec { count: 5, rotation_degrees: next() }),
            sensor_width_mm: Some(next()),
        };
        let camera = CameraSpec::LookAt(Box::new(LookAtSpec {
            eye: [next(), next(), next()],
            target: [next(), next(), next()],
            up: [next(), next(), next()],
            vfov_degrees: next(),
            eye_rest: [next(), 1.0, 0.0],
            target_rest: [0.0; 3],
        }));
        let mut render = RenderSpec {
            environment: EnvironmentSpec::Constant([next(), next(), next()]),
            environment_intensity: next(),
            environment_rotation_degrees: next(),
            exposure: next(),
            camera,
            lens: Some(lens),
            shift: [next(), next()],
            ..RenderSpec::default()
        };
        let mut wide = || match round {
            0 => f64::from_bits(0x7ff8_0000_dead_beef),
            1 => -0.0,
            _ => f64::from_bits(bits.next()),
        };
        (render.fps, render.noise, render.clamp) = (wide(), Some(wide()), Some(wide()));
        if round == 2 {
            assert_eq!(
                options_with_floats(&[render.clone()]),
                options_with_floats(&every_option()),
                "a float option that this test does not fill"
            );
        }
        let gain = ArgumentValue { element: None, numbers: vec![Number::Real(wide())] };
        let gain = Argument { name: "gain".into(), value: gain };
        let compute = ComputeSpec { arguments: vec![gain], ..compute() };
        let bytes = encode_job(&compute_job(compute));
        assert_eq!(encode_job(&decode_job(&bytes).unwrap()), bytes, "round {round}");
        let spec = JobSpec::new("a", JobKind::Render(render));
        let bytes = encode_job(&spec);
        let back = decode_job(&bytes).unwrap();
        // The codec writes floats bit by bit, so equal bytes mean equal bits. NaN is not equal to
        // itself.
        assert_eq!(encode(&back.kind).unwrap(), encode(&spec.kind).unwrap(), "round {round}");
        assert_eq!(encode_job(&back), bytes);
        let not_a_number = back.kind.render().unwrap().exposure.is_nan();
        assert!(!not_a_number || RawJobSpec::from(back).check().is_err(), "NaN is refused");
    }
}

#[test]
fn an_unknown_field_or_value_is_refused_by_its_name() {
    let unknown = "this build does not know this option";
    for (field, bytes) in [
        ("stamp", with_options(&[("width", &[7]), ("stamp", &text("hello"))])),
        ("filter", with_options(&[("filter", &text("mitchell"))])),
        ("lens", with_options(&[("lens", &map(&[("squeeze", &[2])]))])),
        ("later", map(&[("name", &text("a")), ("later", &[1]), ("render", &map(&[]))])),
        ("dream", map(&[("name", &text("a")), ("dream", &map(&[]))])),
    ] {
        let (text, is_unknown) = refusal(&bytes);
        assert!(text.starts_with(&format!("{field}: {unknown}")), "{text}");
        assert!(is_unknown, "{field}");
    }
}

#[test]
fn wrong_types_duplicates_and_nonsense_are_refused() {
    let huge = [0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    for (expected, bytes) in [
        ("width: malformed", with_options(&[("width", &text("7"))])),
        ("width: malformed", with_options(&[("width", &[0x39, 1, 0])])),
        ("fps: malformed", with_options(&[("fps", &[0xfa, 0x41, 0xc0, 0, 0])])),
        ("seed: malformed: it is there twice", with_options(&[("seed", &[1]), ("seed", &[2])])),
        ("job: malformed: it is of no kind", map(&[("name", &text("a"))])),
        ("job: malformed", map(&[("files", &huge)])),
        ("job: malformed", with_options(&[("files", &huge)])),
        ("job: malformed", vec![0xa1, 0x7b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        ("job: malformed", vec![0xbb, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        ("job: malformed", vec![0xbf, 0xff]),
        ("job: malformed", Vec::new()),
    ] {
        let (text, unknown) = refusal(&bytes);
        assert!(text.starts_with(expected) && !unknown, "{expected}: {text}");
    }
    // Nested lists, as deep as a message can hold.
    let mut deep = with_options(&[("deep", &[])]);
    deep.extend(vec![0x81; 8 << 20]);
    assert!(decode_job(&deep[..8 << 20]).is_err());
    let whole = encode_job(&job(render()));
    for length in 0..whole.len() {
        assert!(decode_job(&whole[..length]).is_err(), "{length} bytes");
    }
    assert!(refusal(&[&whole[..], &[0]].concat()).0.contains("bytes behind its end"));
}

#[test]
fn a_job_for_people_is_written_with_all_its_fields() {
    let value: Value = serde_json::to_value(job(render())).unwrap();
    assert_eq!(value["kind"]["Render"]["tone_map"], "standard", "{value}");
}
