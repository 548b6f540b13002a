//! `compute --local`: a job without a farm.

use crate::compute::fixture::example;
use std::path::Path;
use std::process::{Command, Output};
use tessera_fake_cuda::{Config, Device, Rack};

/// Runs a job in a folder; with a fake GPU where there is a rack.
pub(crate) fn compute(folder: &Path, rack: Option<&Rack>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TESSERA_")) {
        command.env_remove(name);
    }
    command.arg("compute").args(arguments).args(["--local", "--threads", "1"]).current_dir(folder);
    // Whoever asks a farm finds none.
    command.env("TESSERA_COORDINATOR", "127.0.0.1:1").env("XDG_CONFIG_HOME", folder.join("config"));
    command.env("XDG_CACHE_HOME", folder.join("cache"));
    if let Some(rack) = rack {
        rack.lend_to(&mut command);
    }
    command.output().unwrap()
}

/// The values of an array file of version 1.0.
pub(crate) fn values<const N: usize, T>(path: &Path, read: impl Fn([u8; N]) -> T) -> Vec<T> {
    let bytes = std::fs::read(path).unwrap();
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[10 + header..].as_chunks::<N>().0.iter().map(|value| read(*value)).collect()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_compute_job_runs_on_this_machine_without_a_farm() {
    let folder = tempfile::tempdir().unwrap();
    let rack = Rack::new(&Config::of(1, Device::default())).unwrap();
    let done = |rack, arguments: &[&str]| {
        let output = compute(folder.path(), rack, arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let image = format!("image={}", example("image.npy"));
    let resize = ["builtin:resize", "--domain", "20x9", "--channels", "3", "--input", &image];
    done(None, &[&resize[..], &["--device", "cpu", "--out", "cpu.npy"]].concat());
    done(Some(&rack), &[&resize[..], &["--device", "cuda", "--out", "gpu.npy"]].concat());
    assert!(read("cpu.npy") == read("gpu.npy"), "the CPU and the GPU differ");

    // The kernel says by itself that it counts in u32.
    let mandelbrot = example("mandelbrot.ptx");
    let own = [mandelbrot.as_str(), "--domain", "8x8", "--arg", "steps=9", "--out", "own.npy"];
    done(Some(&rack), &[&own[..], &["--device", "cuda"]].concat());
    assert!(text(&read("own.npy")).contains("<u4"));
    let wrong = compute(folder.path(), Some(&rack), &[&own[..], &["--element", "f32"]].concat());
    let told = text(&wrong.stderr);
    assert!(wrong.status.code() == Some(2) && told.contains("stores u32"), "{told}");

    let without = compute(folder.path(), None, &[&own[..], &["--device", "cpu"]].concat());
    let told = text(&without.stderr);
    assert!(without.status.code() == Some(1) && told.contains("needs a CUDA device"), "{told}");
    assert!(told.contains("hint: "), "{told}");
}

/// Writes an array of one axis as NumPy does.
fn write_array(folder: &std::path::Path, name: &str, descr: &str, bytes: &[u8], values: usize) {
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({values},), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend_from_slice(&(header.len() as u16).to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(bytes);
    std::fs::write(folder.join(name), file).unwrap();
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn each_frame_has_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let array = |name: &str, values: &[f32]| {
        write_array(folder.path(), name, "<f4", &floats(values), values.len());
    };
    array("b.npy", &[10.0, 20.0]);
    array("in.0003.npy", &[1.0, 2.0]);
    array("in.0004.npy", &[3.0, 5.0]);
    let run = |frames: &str, more: &[&str]| {
        let merge = ["builtin:merge", "--domain", "2", "--input", "a=in.####.npy"];
        let rest = ["--input", "b=b.npy", "--arg", "weight_a=1", "--arg", "weight_b=1"];
        let out = ["--frames", frames, "--out", "out.####.npy", "--device", "cpu"];
        compute(folder.path(), None, &[&merge[..], &rest, &out, more].concat())
    };
    let output = run("3-4", &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for (name, values) in [("out.0003.npy", [11.0, 22.0]), ("out.0004.npy", [13.0, 25.0])] {
        assert!(std::fs::read(folder.path().join(name)).unwrap().ends_with(&floats(&values)));
    }

    // Each refusal names the file.
    let refused = |frames: &str, more: &[&str], wanted: &str| {
        let output = run(frames, more);
        let told = text(&output.stderr);
        assert!(!output.status.success() && told.contains(wanted), "{told}");
    };
    refused("3-5", &[], "in.0005.npy");
    array("in.0005.npy", &[1.0]);
    refused("3-5", &[], "`in.0005.npy` is f32 [1], the first frame's f32 [2]");
    refused("3-4", &["--feed", "a"], "a file for each frame");
}

#[test]
fn indices_are_reduced_by_key() {
    let folder = tempfile::tempdir().unwrap();
    // Key and value of each index.
    let pairs = [2.0, 1.5, 0.0, -4.0, 2.0, 0.25, 7.0, 9.0, 0.5, 9.0];
    write_array(folder.path(), "pairs.npy", "<f4", &floats(&pairs), 10);
    write_array(folder.path(), "none.npy", "<f4", &floats(&[0.0; 10]), 10);
    let run = |more: &[&str]| {
        let merge = ["builtin:merge", "--domain", "5", "--channels", "2", "--device", "cpu"];
        let inputs = ["--input", "a=pairs.npy", "--input", "b=none.npy", "--chunk", "2"];
        let weights = ["--arg", "weight_a=1", "--arg", "weight_b=0", "--out", "out.npy"];
        compute(folder.path(), None, &[&merge[..], &inputs, &weights, more].concat())
    };
    let output = run(&["--reduce", "sum", "--keys", "3"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let sums: Vec<u8> = [-4.0f64, 0.0, 1.75].iter().flat_map(|sum| sum.to_le_bytes()).collect();
    let file = std::fs::read(folder.path().join("out.npy")).unwrap();
    assert!(file.ends_with(&sums) && text(&file).contains("(3,)"));

    // A histogram of what is 2, 0, 2, 7 and a half in all chunks together; keys beyond are left
    // out.
    write_array(folder.path(), "bins.npy", "<f4", &floats(&[2.0, 0.0, 2.0, 7.0, 0.5]), 5);
    let count =
        ["builtin:merge", "--domain", "5", "--input", "a=bins.npy", "--input", "b=bins.npy"];
    let count = [&count[..], &["--arg", "weight_b=0", "--arg", "weight_a=1", "--chunk", "2"]];
    let histogram = ["--reduce", "count", "--keys", "8", "--device", "cpu", "--out", "counts.npy"];
    let output = compute(folder.path(), None, &[&count.concat()[..], &histogram].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let counts: Vec<u64> = values(&folder.path().join("counts.npy"), u64::from_le_bytes);
    assert_eq!(counts, [1, 0, 2, 0, 0, 0, 0, 1]);

    let output = run(&["--reduce", "argmin"]);
    assert_eq!(text(&output.stdout).trim(), "1 1", "{}", text(&output.stderr));

    let refused = |more: &[&str], wanted: &str| {
        let output = run(more);
        let told = text(&output.stderr);
        assert!(output.status.code() == Some(2) && told.contains(wanted), "{told}");
    };
    refused(&["--keys", "3"], "--reduce");
    refused(&["--reduce", "count"], "count needs --keys N");
    refused(&["--reduce", "count", "--keys", "3"], "count takes one channel");
    refused(&["--reduce", "mean", "--keys", "1000000"], "more than 16777216");
}
