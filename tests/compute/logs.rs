//! What a compiler says of a user's kernel, and what its device says, in the log of its job.

use crate::compute::fixture::{Farm, kernel, not_run};
use serde_json::Value;

fn lines(farm: &Farm, arguments: &[&str]) -> Vec<Value> {
    let text = farm.text(&[&["logs"], arguments, &["--json"]].concat());
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn a_kernel_that_does_not_compile_has_its_compilers_lines() {
    if std::env::var_os("TESSERA_NVRTC").is_none() && tessera_nvrtc::Nvrtc::find().is_err() {
        return not_run("the lines of a compiler: no NVRTC is found");
    }
    let farm = Farm::start(2);
    let source = farm.path("wrong.cu");
    std::fs::write(&source, "extern \"C\" __global__ void wrong() {\n  nothing_like_it();\n}\n")
        .unwrap();
    let size = ["--domain", "8", "--element", "u32", "--compile-on-node", "--detach"];
    let job = farm.text(&[&["compute", &source], &size[..]].concat());
    assert_eq!(farm.run(&["wait", &job]).status.code(), Some(3));
    farm.wait_for("the compiler's words", |farm| {
        !lines(farm, &[&job, "--source", "compiler"]).is_empty()
    });
    let said = lines(&farm, &[&job, "--source", "compiler"]);
    let names_it =
        |line: &Value| line["text"].as_str().is_some_and(|text| text.contains("nothing_like_it"));
    assert!(said.iter().any(names_it), "{said:?}\n{}", farm.logs());
    assert!(said.iter().all(|line| line["frame"].is_number()), "{said:?}");
    let shown = farm.text(&["job", &job]);
    assert!(shown.contains("said        ") && shown.contains("compiler"), "{shown}");
}

#[test]
fn what_a_device_says_is_about_the_unit_it_works_on() {
    let farm = Farm::start(1);
    let prints = kernel("prints.ptx");
    let job = farm.text(&["compute", &prints, "--domain", "8", "--chunk", "4", "--detach"]);
    farm.text(&["wait", &job]);
    let all = lines(&farm, &["gpu-0", "--lines", "1000"]);
    let of_others = |line: &Value| !line["job"].is_null() && line["job"] != job.as_str();
    assert!(!all.iter().any(of_others), "{all:?}");
}
