//! What a kernel prints, what the compiler warns of and which assertion failed reach the job's
//! owner. They are bounded, and harm nobody.

use crate::compute::fixture::{Farm, kernel, not_run};
use crate::compute::local;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use tessera_fake_cuda::{Config, Device, Rack};

#[test]
fn what_a_kernel_prints_reaches_its_owner() {
    let farm = Farm::start(1);
    let prints = kernel("prints.ptx");
    let job = ["compute", &prints, "--domain", "8", "--chunk", "4", "--out", "one.npy"];
    let output = farm.run(&job);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}\n{}", farm.logs());
    let lines: Vec<&str> = told.lines().filter(|line| line.starts_with("i ")).collect();
    let right: Vec<String> = (0..8).map(|index| format!("i {index}")).collect();
    assert_eq!(lines, right, "{told}");
    assert!(told.contains(r"\u{1b}[2Jend") && !told.contains('\u{1b}'), "{told:?}");

    let id = farm.text(&["compute", &prints, "--domain", "8", "--detach"]);
    farm.text(&["wait", &id]);
    let listed = farm.text(&["job", &id]);
    assert!(listed.contains("printed     i 0") && listed.contains("printed     i 7"), "{listed}");
    let watched = farm.run(&["watch", &id]);
    assert!(String::from_utf8_lossy(&watched.stderr).contains("i 3\n"));
    let json: serde_json::Value =
        serde_json::from_str(&farm.text(&["job", &id, "--json"])).unwrap();
    assert!(json["kernel_text"].as_str().unwrap().starts_with("i 0\ni 1\n"), "{json}");
}

#[test]
fn a_watcher_hears_a_kernel_while_it_runs() {
    let farm = Farm::start(1);
    let prints = kernel("prints.ptx");
    let job = ["compute", &prints, "--domain", "400", "--chunk", "1", "--detach"];
    let id = farm.text(&job);
    let mut watching = farm.command(&["watch", &id]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.find(|line| line.starts_with("i ")).expect("a line of the kernel");
    let detail: serde_json::Value =
        serde_json::from_str(&farm.text(&["job", &id, "--json"])).unwrap();
    let state = detail["summary"]["state"].as_str().unwrap();
    assert_eq!(state, "running", "{first}");
    let rest: Vec<String> = lines.collect();
    assert!(watching.wait().unwrap().success(), "{rest:?}");
    let printed = [first].into_iter().chain(rest.into_iter().filter(|line| line.starts_with("i ")));
    let mut printed: Vec<u32> = printed.map(|line| line[2..].parse().unwrap()).collect();
    printed.sort_unstable();
    assert_eq!(printed, (0..400).collect::<Vec<_>>(), "each line once");
}

#[test]
fn a_local_job_prints_and_warns_too() {
    let folder = tempfile::tempdir().unwrap();
    let rack = Rack::new(&Config::of(1, Device::default())).unwrap();
    let prints = kernel("prints.ptx");
    let size = ["--domain", "3", "--device", "cuda", "--out", "one.npy"];
    let output = local::compute(folder.path(), Some(&rack), &[&[&*prints], &size[..]].concat());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && told.contains("i 0\ni 1\ni 2\n"), "{told}");
}

#[test]
fn an_endless_text_harms_nobody() {
    let farm = Farm::start_for_endless_kernels();
    let talks = kernel("talks.ptx");
    let job = ["compute", &talks, "--domain", "2048", "--chunk", "256", "--detach"];
    let id = farm.text(&job);
    farm.text(&["wait", &id]);
    let json: serde_json::Value =
        serde_json::from_str(&farm.text(&["job", &id, "--json"])).unwrap();
    let text = json["kernel_text"].as_str().unwrap();
    assert!(text.len() > 60 << 10 && text.len() < 65 << 10, "{}", text.len());
    assert!(text.ends_with("[further text is not kept]\n"), "{}", &text[text.len() - 80..]);

    let limit = ["--arg", "always=1", "--time-limit", "1", "--out", "never.npy"];
    let endless = [&["compute", &*talks, "--domain", "64"][..], &limit].concat();
    let (status, error) = farm.failure(&endless);
    assert!(status == 3 && error.contains("did not end within 1 s"), "{error}");
    farm.wait_until_ready();
    farm.assert_in_service();
}

#[test]
fn a_failed_assertion_names_its_file_and_line() {
    let farm = Farm::start(1);
    let asserts = kernel("asserts.ptx");
    let (status, error) =
        farm.failure(&["compute", &asserts, "--domain", "8", "--out", "never.npy"]);
    let told = "asserts.cu:7: void compute(TesseraChunk): block: [0,0,0], thread: [5,0,0] \
                Assertion `at.index != 5` failed.";
    assert!(status == 3 && error.contains(told), "{error}\n{}", farm.logs());
    farm.wait_until_ready();
    farm.assert_in_service();
}

#[test]
fn a_warning_names_the_users_line_here_and_on_a_node() {
    if std::env::var_os("TESSERA_NVRTC").is_none() && tessera_nvrtc::Nvrtc::find().is_err() {
        return not_run("compiler warnings: no NVRTC is found");
    }
    let farm = Farm::start(1);
    let warns = kernel("warns.cu");
    for more in [&[][..], &["--compile-on-node"]] {
        let size = ["compute", &*warns, "--domain", "8", "--out", "one.npy"];
        let output = farm.run(&[&size[..], more].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}\n{}", farm.logs());
        let warned = told.contains("warns.cu(8): warning") && told.contains("pointless comparison");
        assert!(warned, "{more:?}: {told}\n{}", farm.logs());
    }
}
