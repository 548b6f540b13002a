//! The loader with a real NVRTC where there is one; says by name what it did not run where there is
//! none.
#![cfg(test)]

use std::path::Path;
use tessera_nvrtc::{Nvrtc, NvrtcError, Program, STRICT_OPTIONS, Target};

const SOURCE: &str = "#include \"twice.h\"\n\
    extern \"C\" __global__ void scale(float* x, float y) { *x = twice(*x) * y + 1.0f; }\n";
const HEADERS: &[(&str, &str)] =
    &[("twice.h", "__device__ static inline float twice(float x) { return x + x; }\n")];

fn program(source: &str, target: Target) -> Program<'_> {
    Program { name: "scale.cu", source, headers: HEADERS, target, options: STRICT_OPTIONS }
}

/// `None`, and a line about it, where there is no compiler.
fn compiler(test: &str) -> Option<Nvrtc> {
    match Nvrtc::find() {
        Ok(found) => Some(found),
        Err(error) => {
            eprintln!("NOT RUN: {test}: {error}");
            None
        }
    }
}

#[test]
fn ptx_and_machine_code_come_from_texts_in_memory() {
    let Some(compiler) = compiler("ptx_and_machine_code_come_from_texts_in_memory") else { return };
    let ptx =
        compiler.compile(&program(SOURCE, Target::Ptx { compute: 75 })).unwrap().text().unwrap();
    assert!(ptx.contains(".visible .entry scale("), "{ptx}");
    assert!(ptx.contains("mul.rn.f32") && !ptx.contains("fma"), "contracted: {ptx}");
    let verbose = [STRICT_OPTIONS, &["--ptxas-options=-v"]].concat();
    let cubin = Program { options: &verbose, ..program(SOURCE, Target::Cubin { sm: 86 }) };
    let made = compiler.compile(&cubin).unwrap();
    assert!(made.code.starts_with(b"\x7fELF"));
    assert!(made.log.contains("registers"), "{}", made.log);
    assert_eq!(made.text(), Err(NvrtcError::NotText));
}

#[test]
fn errors_come_with_line_numbers() {
    let Some(compiler) = compiler("errors_come_with_line_numbers") else { return };
    let wrong = program("\n\nint x = nothing;\n", Target::Ptx { compute: 75 });
    match compiler.compile(&wrong) {
        Err(NvrtcError::Compile { log }) => assert!(log.contains("scale.cu(3)"), "{log}"),
        other => panic!("{other:?}"),
    }
    let nul = program("a\0b", Target::Ptx { compute: 75 });
    assert_eq!(compiler.compile(&nul), Err(NvrtcError::Nul("the program")));
    let target = program(SOURCE, Target::Ptx { compute: 1 });
    assert!(compiler.compile(&target).is_err());
}

#[test]
fn a_file_that_is_no_compiler_is_refused() {
    assert!(matches!(Nvrtc::open(Path::new("/nowhere/libnvrtc.so")), Err(NvrtcError::Load(_))));
    let text = tempfile();
    assert!(matches!(Nvrtc::open(&text), Err(NvrtcError::Load(_))));
}

/// This test's own source: a file that exists and is no library.
fn tempfile() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile.rs")
}
