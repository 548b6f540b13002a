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

fn text(bytes: &[u8]) -> String {
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
