//! Every instruction of the shipped PTX is one that cannot differ from the host; four wrong builds
//! are refused.

use tessera_kernels::cuda::KernelSet;
use tessera_kernels::{SOURCES, unit_tests};
use tessera_nvrtc::{Nvrtc, Program, STRICT_OPTIONS, Target};
use tessera_ptx::whitelist::{Violation, check, opcodes};

/// Builds of `planted/kernel.cu` and `planted/float_atomics.cu`: name, text, what the first
/// violation is about.
const PLANTED: [(&str, &str, &str); 4] = [
    ("default fmad", include_str!("planted/contracted.ptx"), "fuse"),
    ("fast-math", include_str!("planted/fast-math.ptx"), "approximation"),
    ("prec-div=false", include_str!("planted/approximate-division.ptx"), "approximation"),
    ("float atomics", include_str!("planted/float-atomics.ptx"), "atomic on floats"),
];

/// A build of the shipped source: name, options, and what is replaced in its headers by what.
type WrongBuild = (&'static str, &'static [&'static str], (&'static str, &'static str));

/// The same builds of the shipped source.
const WRONG_BUILDS: [WrongBuild; 4] = [
    ("default fmad", &["--std=c++17"], ("", "")),
    ("fast-math", &["--std=c++17", "--use_fast_math"], ("", "")),
    ("prec-div=false", &["--std=c++17", "--fmad=false", "--prec-div=false"], ("", "")),
    (
        "float atomics",
        STRICT_OPTIONS,
        ("atomicAdd((u64*)sum, (u64)value)", "atomicAdd((float*)sum, (float)value)"),
    ),
];

fn listed(violations: &[Violation]) -> String {
    let first: Vec<String> = violations.iter().take(5).map(Violation::to_string).collect();
    format!("{} violations: {}", violations.len(), first.join("; "))
}

#[test]
fn the_shipped_images_have_no_violation() {
    for (name, text) in [
        ("tessera.ptx", KernelSet::Plain.ptx()),
        ("tessera-instances.ptx", KernelSet::Instances.ptx()),
        ("unit-tests.ptx", unit_tests::ptx()),
    ] {
        let violations = check(text);
        assert!(violations.is_empty(), "{name}: {}", listed(&violations));
        let opcodes = opcodes(text);
        eprintln!(
            "{name}: {} instructions of {} kinds",
            opcodes.values().sum::<u32>(),
            opcodes.len()
        );
        assert!(opcodes.values().sum::<u32>() > 5000, "{name}: the instructions were not found");
    }
}

#[test]
fn planted_builds_are_refused() {
    let sound = check(include_str!("planted/strict.ptx"));
    assert!(sound.is_empty(), "{}", listed(&sound));
    for (name, text, about) in PLANTED {
        let violations = check(text);
        eprintln!("{name}: {}", listed(&violations));
        assert!(violations.iter().any(|violation| violation.why.contains(about)), "{name}");
    }
}

#[test]
fn the_sign_of_zero_is_watched() {
    let text = |line: &str| format!(".version 7.0\n.visible .entry k()\n{{\n{line}\nret;\n}}\n");
    for line in [
        "min.f32 %f1, %f2, 0f00000000;",
        "@!%p1 min.f32 %f1, 0f00000000, %f2;",
        "max.f32 %f1, %f2, 0f80000000;",
    ] {
        let violations = check(&text(line));
        assert!(violations.len() == 1 && violations[0].line == 4, "{line}: {violations:?}");
    }
    for line in ["max.f32 %f1, %f2, 0f00000000;", "min.f32 %f1, %f2, 0f3F800000;"] {
        assert!(check(&text(line)).is_empty(), "{line}");
    }
}

#[test]
fn wrong_builds_of_the_shipped_source_are_refused() {
    let compiler = match Nvrtc::find() {
        Ok(found) => found,
        Err(error) => {
            return eprintln!("NOT RUN: wrong_builds_of_the_shipped_source_are_refused: {error}");
        }
    };
    // Each takes a quarter of a minute of one processor, so that not all are made for every push.
    let is_all = std::env::var("TESSERA_IMAGES").is_ok_and(|value| value == "all");
    let builds = if is_all { &WRONG_BUILDS[..] } else { &WRONG_BUILDS[..1] };
    std::thread::scope(|scope| {
        let building: Vec<_> =
            builds.iter().map(|wrong| scope.spawn(|| wrong_build(&compiler, wrong))).collect();
        for ((name, ..), built) in builds.iter().zip(building) {
            let violations = check(&built.join().expect("the sources compile"));
            eprintln!("{name}: {}", listed(&violations));
            assert!(!violations.is_empty(), "{name} is not refused");
        }
    });
}

/// PTX of the shipped source by one of [`WRONG_BUILDS`].
fn wrong_build(compiler: &Nvrtc, (_, options, (from, to)): &WrongBuild) -> String {
    let replaced =
        |text: &str| if from.is_empty() { text.to_owned() } else { text.replace(from, to) };
    let headers = SOURCES.iter().filter(|(name, _)| name.ends_with(".h"));
    let headers: Vec<(&str, String)> =
        headers.map(|(name, text)| (*name, replaced(text))).collect();
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let (name, source) =
        SOURCES.iter().find(|(name, _)| *name == "entry/cuda.cu").expect("it is a source");
    let target = Target::Ptx { compute: 75 };
    let program = Program { name, source, headers: &headers, target, options };
    compiler.compile(&program).and_then(|made| made.text()).expect("the sources compile")
}
