//! Compute specs with wrong values, whose errors name the field; and results with a wrong length.

use crate::samples::hash;
use crate::spec_samples::{compute, compute_job, compute_steps};
use tessera_protocol::compute::*;
use tessera_protocol::job::described::{decode_job, encode_job};
use tessera_protocol::job::{After, AssetFile, JobSpec, SpecError, Until};
use tessera_protocol::limits::*;
use tessera_protocol::{FrameNumber, FrameSet, JobId, RawJobSpec};

fn check(spec: JobSpec) -> Result<JobSpec, SpecError> {
    RawJobSpec::from(spec).check()
}

/// Returns the field that the error names after `spoil` has changed a good spec.
fn named(spoil: impl FnOnce(&mut ComputeSpec)) -> String {
    let mut spec = compute();
    spoil(&mut spec);
    let error = check(compute_job(spec)).expect_err("the spoilt spec was taken");
    assert!(!error.problem.is_empty());
    error.field.into_owned()
}

#[test]
fn a_good_spec_is_taken_unchanged() {
    assert_eq!(check(compute_job(compute())), Ok(compute_job(compute())));
    assert_eq!(check(compute_job(compute_steps())), Ok(compute_job(compute_steps())));
}

#[test]
fn programs_have_a_name_and_a_bounded_length() {
    let file = |path: &str, length| AssetFile { path: path.into(), hash: hash(3), length };
    for path in ["", "/a.cu", "a/b.cu", "../a.cu", "a\n.cu"] {
        assert_eq!(named(|spec| spec.program = Program::Cuda(file(path, 1))), "kernel", "{path:?}");
    }
    assert_eq!(
        named(|spec| spec.program = Program::Ptx(file("a", PROGRAM_BYTES_MAX + 1))),
        "kernel"
    );
    for name in ["", "a b", &"x".repeat(IDENTIFIER_MAX + 1)] {
        assert_eq!(
            named(|spec| spec.program = Program::Builtin(name.into())),
            "kernel",
            "{name:?}"
        );
    }
}

#[test]
fn only_a_users_kernel_may_be_nondeterministic() {
    let own = ComputeSpec { nondeterministic: true, ..compute() };
    assert_eq!(check(compute_job(own.clone())), Ok(compute_job(own.clone())));
    let bytes = |spec| encode_job(&compute_job(spec)).len();
    assert!(bytes(own) > bytes(compute()), "the default is not written");
    let builtin = |spec: &mut ComputeSpec| {
        (spec.program, spec.nondeterministic) = (Program::Builtin("merge".into()), true);
    };
    assert_eq!(named(builtin), "nondeterministic");
}

#[test]
fn needs_of_ptx_go_with_ptx_alone() {
    let needs = PtxNeeds { version: (9, 2), capability: (10, 0), reach: PtxReach::Family };
    let needing = ComputeSpec { ptx: Some(needs), ..compute() };
    assert_eq!(check(compute_job(needing.clone())), Ok(compute_job(needing)));
    let named = named(|spec| {
        (spec.ptx, spec.program) = (Some(needs), Program::Builtin("merge".into()));
    });
    assert_eq!(named, "kernel");
}

#[test]
fn headers_are_confined_sorted_and_bounded() {
    let file = |path: &str| AssetFile { path: path.into(), hash: hash(3), length: 10 };
    let with = |headers: Vec<AssetFile>| {
        move |spec: &mut ComputeSpec| {
            (spec.program, spec.headers) = (Program::Cuda(file("a.cu")), headers);
        }
    };
    let mut good = compute();
    with(vec![file("a.h"), file("lib/b.h")])(&mut good);
    assert_eq!(good.files().count(), 1 + 2 + good.inputs.len());
    let other = ComputeSpec { headers: vec![file("b.h"), file("lib/b.h")], ..good.clone() };
    assert_ne!(good.data_hash(), other.data_hash(), "the names count too");
    assert_eq!(check(compute_job(good.clone())), Ok(compute_job(good)));
    for path in ["", "/etc/passwd", "../a.h", "a/../b.h", "a//b.h", "a\n.h"] {
        assert_eq!(named(with(vec![file(path)])), "include", "{path:?}");
    }
    assert_eq!(named(with(vec![file("b.h"), file("a.h")])), "include");
    assert_eq!(named(with(vec![file("a.h"), file("a.h")])), "include");
    let large = AssetFile { length: HEADERS_BYTES_MAX, ..file("b.h") };
    assert_eq!(named(with(vec![file("a.h"), large])), "include");
    let many = (0..=HEADERS_MAX).map(|index| file(&format!("{index:05}.h"))).collect();
    assert_eq!(named(with(many)), "include");
    assert_eq!(named(|spec| spec.headers = vec![file("a.h")]), "include", "PTX includes nothing");
}

#[test]
fn domains_chunks_and_results_have_bounds() {
    assert_eq!(named(|spec| spec.domain.height = 0), "domain");
    let huge = Domain { width: u32::MAX, height: u32::MAX, depth: u32::MAX };
    assert_eq!(named(|spec| spec.domain = huge), "domain");
    let large = Domain { width: 1 << 20, height: 1 << 12, depth: 1 };
    assert_eq!(named(|spec| spec.domain = large), "domain");
    assert_eq!(named(|spec| spec.channels = 0), "channels");
    assert_eq!(named(|spec| spec.channels = CHANNELS_MAX + 1), "channels");
    let complex = |spec: &mut ComputeSpec| {
        (spec.feed, spec.formats) = (None, vec![ComputeFormat::Npy]);
        (spec.element, spec.reduction) = (Element::Complex64, Some(Reduction::Sum));
    };
    assert_eq!(named(complex), "reduce");
    assert_eq!(named(|spec| spec.chunk = u32::MAX), "chunk");
    assert_eq!(named(|spec| spec.time_limit_secs = 0), "time-limit");
    assert_eq!(named(|spec| spec.time_limit_secs = COMPUTE_SECS_MAX + 1), "time-limit");
    let many = |spec: &mut ComputeSpec| {
        (spec.feed, spec.formats, spec.reduction) =
            (None, vec![ComputeFormat::Npy], Some(Reduction::Sum));
        (spec.domain, spec.chunk) = (large, 1);
    };
    assert_eq!(named(many), "chunk");
    assert_eq!(named(|spec| spec.frames = FrameSet::default()), "frames");
    let frames = |spec: &mut ComputeSpec| {
        (spec.chunk, spec.frames) = (1, "1-100000".parse().unwrap());
    };
    assert_eq!(named(frames), "frames");
}

#[test]
fn chunks_hold_whole_multiples() {
    let refused = |chunk, chunk_align| {
        let spec = ComputeSpec { chunk, chunk_align, ..compute() };
        check(compute_job(spec)).err().map(|error| (error.field.into_owned(), error.problem))
    };
    let aligned = ComputeSpec { chunk: 4608, chunk_align: 1536, ..compute() };
    assert_eq!(check(compute_job(aligned.clone())), Ok(compute_job(aligned)));
    assert_eq!(refused(0, 1536), None);
    assert_eq!(refused(4608, 1536), None);
    // Nothing said, and any chunk, are two things.
    assert_eq!((refused(1000, 0), refused(1000, 1)), (None, None));
    assert!(!compute().says_chunks());
    assert!(ComputeSpec { chunk_align: 1, ..compute() }.says_chunks());
    let block = |text: &str| ComputeSpec { block: Some(text.parse().unwrap()), ..compute() };
    assert!(block("16x16").says_chunks() && !block("512").says_chunks());
    let (field, told) = refused(1000, 1536).unwrap();
    assert!(field == "chunk" && told.ends_with("give 1536"), "{told}");
    let (_, told) = refused(4000, 1536).unwrap();
    assert!(told.contains("not a multiple of 1536") && told.ends_with("3072 or 4608"), "{told}");
    // 12 bytes an index: at most 1,398,101 indices.
    let (_, told) = refused(1_398_101, 699_050).unwrap();
    assert!(told.ends_with("give 1398100"), "{told}");
    assert_eq!(refused(0, 1_398_101), None);
    assert_eq!(refused(0, 1_398_102).unwrap().0, "chunk-align");
}

#[test]
fn inputs_are_what_their_length_allows() {
    for name in ["", "1a", "a b", "a.b", "é", &"x".repeat(IDENTIFIER_MAX + 1)] {
        assert_eq!(named(|spec| spec.inputs[1].name = name.into()), "input", "{name:?}");
    }
    assert_eq!(named(|spec| spec.inputs.swap(0, 1)), "input");
    assert_eq!(named(|spec| spec.inputs[1].name = "image".into()), "input");
    for shape in [vec![9, 9], vec![1, 1, 1, 1, 9], vec![u64::MAX, u64::MAX], vec![u64::MAX], vec![]]
    {
        let spoil = |spec: &mut ComputeSpec| {
            spec.inputs[1].shape = shape.clone();
            spec.inputs[1].length = 5000;
        };
        assert_eq!(named(spoil), "input", "{shape:?}");
    }
    assert_eq!(named(|spec| spec.inputs[1].length = BLOB_BYTES_MAX + 1), "input");
    let many = |spec: &mut ComputeSpec| spec.inputs = vec![spec.inputs[0].clone(); INPUTS_MAX + 1];
    assert_eq!(named(many), "input");
}

#[test]
fn arguments_are_named_once_and_are_numbers() {
    assert_eq!(named(|spec| spec.arguments[0].name = "".into()), "arg");
    assert_eq!(named(|spec| spec.arguments.swap(0, 1)), "arg");
    assert_eq!(named(|spec| spec.arguments[1].name = "image".into()), "arg");
    assert_eq!(named(|spec| spec.arguments[0].value.numbers.clear()), "arg");
    assert_eq!(named(|spec| spec.arguments[1].value.element = None), "arg");
    assert_eq!(named(|spec| spec.arguments[0].value.numbers[0] = Number::Real(f64::NAN)), "arg");
    let many = vec![Number::Integer(1); ARGUMENT_NUMBERS_MAX + 1];
    assert_eq!(named(|spec| spec.arguments[1].value.numbers = many), "arg");
}

#[test]
fn feed_needs_a_matching_input_format_and_reduction() {
    assert_eq!(named(|spec| spec.feed = Some("other".into())), "feed");
    assert_eq!(named(|spec| spec.feed = Some("weights".into())), "feed");
    assert_eq!(named(|spec| spec.formats = vec![ComputeFormat::Exr]), "feed");
    let reduced = |spec: &mut ComputeSpec| {
        (spec.reduction, spec.formats) = (Some(Reduction::Max), vec![ComputeFormat::Npy]);
    };
    assert_eq!(named(reduced), "feed");
}

#[test]
fn pictures_are_flat_floats() {
    let flat = |spoil: fn(&mut ComputeSpec)| {
        named(|spec| {
            spec.feed = None;
            spoil(spec);
        })
    };
    assert_eq!(flat(|spec| spec.formats = vec![]), "out");
    assert_eq!(flat(|spec| spec.formats = vec![ComputeFormat::Png, ComputeFormat::Npy]), "out");
    assert_eq!(flat(|spec| spec.channels = 2), "out");
    assert_eq!(flat(|spec| spec.channels = 9), "out");
    assert_eq!(flat(|spec| spec.element = Element::F64), "out");
    assert_eq!(flat(|spec| spec.domain.depth = 2), "out");
    assert_eq!(flat(|spec| spec.reduction = Some(Reduction::Sum)), "out");
    assert_eq!(
        flat(|spec| spec.domain = Domain { width: FRAME_EDGE_MAX + 1, height: 1, depth: 1 }),
        "out"
    );
}

#[test]
fn sizes_of_chunks_follow_from_the_spec() {
    let kept = compute();
    assert_eq!(kept.chunk_shape(100), ChunkShape { count: 100, bytes: 1200 });
    let result = |spec: &ComputeSpec| {
        let output = spec.written()[0].clone();
        (output.result_element(), output.result_shape(&spec.domain))
    };
    assert_eq!(result(&kept), (Element::F32, vec![480, 640, 3]));
    let sum = ComputeSpec { reduction: Some(Reduction::Sum), ..compute() };
    assert_eq!(sum.chunk_shape(100), ChunkShape { count: 100, bytes: 3 * ExactSum::BYTES as u32 });
    assert_eq!(result(&sum), (Element::F64, vec![3]));
    let least = ComputeSpec { reduction: Some(Reduction::Min), channels: 1, ..compute() };
    assert_eq!(result(&least), (Element::F32, vec![]));
    assert_ne!(kept.data_hash(), ComputeSpec { inputs: vec![], ..compute() }.data_hash());
    assert_eq!(kept.data_hash(), ComputeSpec { chunk: 1, seed: 2, ..compute() }.data_hash());
}

#[test]
fn steps_feed_one_chunk() {
    let stepped = |spoil: fn(&mut ComputeSpec)| {
        named(|spec| {
            *spec = compute_steps();
            spoil(spec);
        })
    };
    assert_eq!(stepped(|spec| spec.steps = 0), "steps");
    assert_eq!(stepped(|spec| spec.steps = STEPS_MAX + 1), "steps");
    assert_eq!(stepped(|spec| spec.feed = None), "steps");
    assert_eq!(stepped(|spec| spec.chunk = 640 * 240), "chunk");
    let large = |spec: &mut ComputeSpec| {
        spec.domain = Domain { width: 4096, height: 1366, depth: 1 };
    };
    assert_eq!(stepped(large), "domain");
    let whole = ComputeSpec { chunk: 640 * 480, ..compute_steps() };
    assert_eq!(check(compute_job(whole.clone())), Ok(compute_job(whole)));
}

#[test]
fn blocks_and_shared_memory_are_what_devices_have() {
    let block = |x, y, z| move |spec: &mut ComputeSpec| spec.block = Some(Block { x, y, z });
    for (x, y, z) in [(0, 1, 1), (1, 0, 1), (1025, 1, 1), (64, 32, 1), (1, 1, 65), (u32::MAX, 9, 9)]
    {
        assert_eq!(named(block(x, y, z)), "block", "{x} {y} {z}");
    }
    // Chunks are whole rows of blocks.
    let uneven = |spec: &mut ComputeSpec| {
        (spec.chunk, spec.block) = (640 * 15, Some(Block { x: 16, y: 16, z: 1 }));
    };
    assert_eq!(named(uneven), "chunk");
    let builtin = |spec: &mut ComputeSpec| {
        spec.program = Program::Builtin("merge".into());
        spec.block = Some(Block::line(64));
    };
    assert_eq!(named(builtin), "block");
    assert_eq!(named(|spec| spec.shared_bytes = SHARED_BYTES_MAX + 1), "shared");
    // A layer of blocks of this domain is more than a chunk has.
    let deep = |spec: &mut ComputeSpec| {
        (spec.feed, spec.formats) = (None, vec![ComputeFormat::Npy]);
        spec.domain = Domain { width: 1024, height: 512, depth: 64 };
        (spec.chunk, spec.block) = (0, Some(Block { x: 8, y: 8, z: 8 }));
    };
    assert_eq!(named(deep), "block");
}

#[test]
fn an_input_can_have_a_file_for_each_frame() {
    let frames = |spec: &mut ComputeSpec| {
        spec.frames = "3,5".parse().unwrap();
        spec.feed = None;
        let input = &spec.inputs[0];
        let first = InputFile { hash: input.hash, length: input.length };
        let second = InputFile { hash: hash(99), length: input.length };
        spec.frame_inputs =
            vec![FrameInput { name: input.name.clone(), files: vec![first, second] }];
    };
    let mut spec = compute();
    frames(&mut spec);
    assert_eq!(check(compute_job(spec.clone())), Ok(compute_job(spec.clone())));
    let of = |frame| spec.inputs_at(FrameNumber(frame));
    assert_eq!((of(3)[0].hash, of(5)[0].hash), (spec.inputs[0].hash, hash(99)));
    assert_eq!(of(5)[1..], spec.inputs[1..]);
    assert!(spec.files().any(|(_, of, _)| of == hash(99)));

    let spoilt = |spoil: fn(&mut ComputeSpec)| {
        named(|spec| {
            frames(spec);
            spoil(spec);
        })
    };
    assert_eq!(spoilt(|spec| spec.frames = "3,5,7".parse().unwrap()), "input");
    assert_eq!(spoilt(|spec| spec.frame_inputs[0].name = "nobody".into()), "input");
    assert_eq!(spoilt(|spec| spec.frame_inputs[0].files.swap(0, 1)), "input");
    assert_eq!(spoilt(|spec| spec.frame_inputs[0].files[1].length += 1 << 20), "input");
    assert_eq!(spoilt(|spec| spec.feed = Some(spec.inputs[0].name.clone())), "feed");
}

#[test]
fn inputs_from_jobs_are_found_and_forgotten() {
    let mut spec = compute();
    spec.feed = None;
    let job = JobId::default();
    let from = Some(FromJob { job, file: "flux.npy".into() });
    let input = &mut spec.inputs[1];
    (input.hash, input.length, input.from) = (Default::default(), 0, from);
    let submitted = spec.clone();
    let waiting = |spec: &ComputeSpec| JobSpec {
        after: vec![After { job, until: Until::Success }],
        ..compute_job(spec.clone())
    };
    assert_eq!(decode_job(&encode_job(&waiting(&spec))), Ok(waiting(&spec)));
    assert_eq!(check(compute_job(spec.clone())).unwrap_err().field, "input");
    assert_eq!(spec.files().count(), 2);
    let file = |of| InputFile { hash: hash(of), length: 900 };
    spec.set_found(&spec.inputs[1].name.clone(), vec![file(50), file(51), file(52), file(53)]);
    // Nodes get it without what was waited for.
    assert_eq!(check(compute_job(spec.clone())), Ok(compute_job(spec.clone())));
    assert_eq!((spec.files().count(), spec.inputs_at(FrameNumber(4))[1].hash), (6, hash(51)));
    assert_ne!(spec.data_hash(), submitted.data_hash());
    spec.forget_found();
    assert_eq!(spec, submitted);
    spec.inputs[1].shape = vec![1 << 40];
    assert_eq!(check(waiting(&spec)).unwrap_err().field, "input");
}

#[test]
fn reductions_by_key_are_bounded() {
    let keyed = |spec: &mut ComputeSpec| {
        (spec.reduction, spec.keys, spec.feed) = (Some(Reduction::Sum), 256, None);
        spec.formats = vec![ComputeFormat::Npy];
    };
    let mut spec = compute();
    keyed(&mut spec);
    assert_eq!(spec.written()[0].result_shape(&spec.domain), [256, 2]);
    assert_eq!(check(compute_job(spec.clone())), Ok(compute_job(spec)));
    let spoilt = |spoil: fn(&mut ComputeSpec)| {
        named(|spec| {
            keyed(spec);
            spoil(spec);
        })
    };
    assert_eq!(spoilt(|spec| spec.reduction = None), "keys");
    assert_eq!(spoilt(|spec| spec.keys = u32::MAX), "keys");
    assert_eq!(spoilt(|spec| spec.channels = 1), "channels");
    assert_eq!(spoilt(|spec| spec.reduction = Some(Reduction::Count)), "channels");
    assert_eq!(
        spoilt(|spec| {
            (spec.reduction, spec.keys, spec.channels) = (Some(Reduction::Count), 0, 1);
        }),
        "reduce"
    );
}

/// Returns a job with the outputs `id` (u32 x 3), `state` (f32 x 3, fed) and `total` (f64, sum).
fn several() -> ComputeSpec {
    let output = |name: &str, element, channels, reduction| OutputArray {
        name: name.into(),
        channels,
        element,
        reduction,
        keys: 0,
    };
    let mut spec = compute();
    spec.outputs = vec![
        output("id", Element::U32, 3, None),
        output("state", Element::F32, 3, None),
        output("total", Element::F64, 1, Some(Reduction::Sum)),
    ];
    (spec.channels, spec.formats) = (1, vec![ComputeFormat::Npy]);
    spec.feed_from = Some("state".into());
    spec
}

#[test]
fn several_outputs_lie_one_after_another() {
    let spec = several();
    assert_eq!(check(compute_job(spec.clone())), Ok(compute_job(spec.clone())));
    assert_eq!(spec.index_bytes(), 12 + 12 + 8);
    let values = Layout { parts: vec![(0, 120), (256, 120), (512, 80)], bytes: 768 };
    assert_eq!(spec.value_layout(10), values);
    let sum = ExactSum::BYTES as u64;
    let results = Layout { parts: vec![(0, 120), (256, 120), (512, sum)], bytes: 1024 };
    assert_eq!((spec.result_layout(10), sum), (results, 277));
    assert_eq!(spec.chunk_shape(10), ChunkShape { count: 10, bytes: 1024 });
    assert_eq!((spec.result_width(), spec.fed_output()), (4, Some(1)));
    assert_eq!(spec.extensions(), ["id.npy", "state.npy", "total.npy"]);
    // Without names nothing changes, to the byte.
    let plain = compute();
    assert_eq!(plain.value_layout(10), Layout { parts: vec![(0, 120)], bytes: 120 });
    assert_eq!((plain.result_width(), plain.fed_output()), (4, Some(0)));
    assert_eq!(plain.extensions(), ["npy", "exr", "png"]);
}

#[test]
fn wrong_outputs_are_refused_by_name() {
    let problem = |spoil: fn(&mut ComputeSpec)| {
        let mut spec = several();
        spoil(&mut spec);
        let error = check(compute_job(spec)).expect_err("the spoilt spec was taken");
        (error.field.into_owned(), error.problem)
    };
    let names = |spoil: fn(&mut ComputeSpec), field: &str, text: &str| {
        let (found, problem) = problem(spoil);
        assert!(found == field && problem.contains(text), "{found}: {problem}");
    };
    names(|spec| spec.outputs.swap(0, 1), "output", "in the order");
    names(|spec| spec.outputs[1].name = "id".into(), "output", "in the order");
    names(|spec| spec.outputs[0].name = "a b".into(), "output", "name of a variable");
    names(|spec| spec.outputs[0].name = String::new(), "output", "name of a variable");
    names(|spec| spec.outputs[0].name = "image".into(), "output", "an input or an argument");
    names(|spec| spec.outputs[0].name = "gain".into(), "output", "an input or an argument");
    names(|spec| spec.outputs[0].channels = 0, "output", "`id`: 0 channels");
    names(|spec| spec.outputs[0].channels = CHANNELS_MAX + 1, "output", "`id`: 65 channels");
    names(|spec| spec.outputs[0].keys = 9, "output", "`id`: keys");
    names(|spec| spec.outputs[2].keys = 9, "output", "`total`: with keys");
    let count = |spec: &mut ComputeSpec| spec.outputs[2].reduction = Some(Reduction::Count);
    names(count, "output", "`total`: count needs a number of keys");
    names(|spec| spec.outputs[2].element = Element::Complex64, "output", "`total`: complex64");
    names(|spec| spec.channels = 3, "output", "belong to each output");
    names(|spec| spec.reduction = Some(Reduction::Sum), "output", "belong to each output");
    names(|spec| spec.feed_from = None, "feed", "one of id, state, total");
    names(|spec| spec.feed_from = Some("flux".into()), "feed", "there are id, state, total");
    names(|spec| spec.feed_from = Some("total".into()), "feed", "a reduced result");
    names(|spec| spec.feed_from = Some("id".into()), "feed", "takes its place is u32");
    names(|spec| spec.feed = None, "feed", "without an input");
    names(|spec| spec.formats = vec![ComputeFormat::Exr], "feed", "npy must be");
    let pictures = |spec: &mut ComputeSpec| {
        (spec.feed, spec.feed_from, spec.formats) = (None, None, vec![ComputeFormat::Exr]);
    };
    names(pictures, "out", "`id` is another");
    let many = |spec: &mut ComputeSpec| {
        let output = spec.outputs[0].clone();
        let named = |at: usize| OutputArray { name: format!("a{at:02}"), ..output.clone() };
        (spec.outputs, spec.feed_from) = ((0..=OUTPUTS_MAX).map(named).collect(), None);
    };
    names(many, "output", "17 outputs");
    let builtin = |spec: &mut ComputeSpec| spec.program = Program::Builtin("merge".into());
    names(builtin, "output", "a built-in kernel");
    // 16 MiB of a chunk are all outputs together, and so are the 64 MiB of steps.
    names(|spec| spec.chunk = (16 << 20) / 32 + 1, "chunk", "write");
    let stepped = |spec: &mut ComputeSpec| {
        spec.domain = Domain { width: 1 << 10, height: (1 << 11) + 1, depth: 1 };
        (spec.steps, spec.chunk) = (2, 0);
    };
    names(stepped, "domain", "of a frame of several steps");
    let keyed = |spec: &mut ComputeSpec| {
        (spec.outputs[2].channels, spec.outputs[2].keys) = (2, 1 << 16);
    };
    names(keyed, "output", "bytes of partial results");
}
