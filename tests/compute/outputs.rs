//! Several outputs of different types and shapes: each in a file of its own, and what does not fit
//! the kernel refused before it is sent.

use crate::compute::arrays::values;
use crate::compute::fixture::{Farm, example, kernel, not_run};
use crate::compute::local;
use tessera_fake_cuda::{Config, Device, Rack};
use tessera_protocol::compute::npy;
use tessera_support::seaweed::{KEY, SECRET, Seaweed};

const SEVERAL: &str = "--domain 13x9 --output parity=u8 --output total=f64:sum \
    --output place=u32x2 --output wave=complex64";

fn run(farm: &Farm, kernel: &str, options: &str) -> String {
    let words = ["compute", kernel].into_iter().chain(options.split_whitespace());
    farm.text(&words.collect::<Vec<_>>())
}

fn refused(farm: &Farm, kernel: &str, options: &str, expected: &[&str]) {
    let words = ["compute", kernel].into_iter().chain(options.split_whitespace());
    let (status, told) = farm.failure(&words.collect::<Vec<_>>());
    assert_eq!(status, 2, "{options}: {told}");
    for expected in expected {
        assert!(told.contains(expected), "{options}: {expected}: {told}");
    }
}

/// Compares the files with what the kernel writes at 13 × 9 indices.
fn check(farm: &Farm, name: impl Fn(&str) -> String) {
    let places = (0..9u32).flat_map(|y| (0..13u32).map(move |x| (x, y)));
    let place: Vec<u32> = places.clone().flat_map(|(x, y)| [x, y]).collect();
    assert_eq!(values::<u32>(&farm.read(&name("place")), &[9, 13, 2]), place);
    let total = (0..117).map(|at| 0.5 * f64::from(at)).sum::<f64>();
    assert_eq!(values::<f64>(&farm.read(&name("total")), &[]), [total]);
    let data = |name: &str, header: (&str, &[u64])| {
        let bytes = farm.read(name);
        let found = npy::Header::read(&bytes, bytes.len() as u64).unwrap();
        assert_eq!((found.element.name(), found.shape.as_slice()), header);
        bytes[found.data_offset..].to_vec()
    };
    let parity: Vec<u8> = (0..117).map(|at| at % 3).collect();
    assert_eq!(data(&name("parity"), ("u8", &[9, 13])), parity);
    let wave = places.flat_map(|(x, y)| [x as f32, -(y as f32)]).flat_map(f32::to_le_bytes);
    assert_eq!(data(&name("wave"), ("complex64", &[9, 13])), wave.collect::<Vec<u8>>());
}

#[test]
fn every_output_is_a_file_of_its_own() {
    let farm = Farm::start(2);
    let ptx = kernel("outputs.ptx");
    let told = run(&farm, &ptx, &format!("{SEVERAL} --chunk 20 --out run.{{output}}.npy"));
    assert_eq!(told, "total 3393");
    check(&farm, |name| format!("run.{name}.npy"));
    // The same bytes whatever the chunks, and where the kernel shows the types.
    let shown = "--domain 13x9 --output parity --output wave --output total=:sum \
        --output place=x2 --block 4x4 --frames 3-4 --detach";
    let job = run(&farm, &ptx, shown);
    farm.text(&["watch", &job]);
    farm.text(&["fetch", &job, "-o", "folder"]);
    for frame in 3..=4 {
        check(&farm, |name| format!("folder/outputs.{frame:04}.{name}.npy"));
    }
    farm.text(&["fetch", &job, "-o", "run-{output}/##.npy", "--frames", "4"]);
    check(&farm, |name| format!("run-{name}/04.npy"));
    let (status, told) = farm.failure(&["fetch", &job, "-o", "run.##.npy"]);
    assert!(status == 2 && told.contains("write `run.{output}.##.npy`"), "{status}: {told}");
    let detail: serde_json::Value =
        serde_json::from_str(&farm.text(&["job", &job, "--frames", "--json"])).unwrap();
    let text = detail.to_string();
    assert!(text.contains(r#""name":"place""#) && text.contains(r#""place.npy""#), "{text}");
    let listed = farm.text(&["job", &job]);
    assert!(listed.contains("parity: 1 × u8, place: 2 × u32, total: 1 × f64 sum"), "{listed}");
}

#[test]
fn outputs_are_reduced_each_in_its_way() {
    let farm = Farm::start(1);
    let ptx = kernel("outputs.ptx");
    let options = "--domain 40 --output parity=u8:count:3 --output total=f64:mean \
        --output place=u32x2:max --output wave=complex64 --chunk 7 --out of.{output}.npy";
    assert_eq!(run(&farm, &ptx, options), "place 39 0\ntotal 9.75");
    let counts = farm.read("of.parity.npy");
    let header = npy::Header::read(&counts, counts.len() as u64).unwrap();
    assert_eq!((header.element.name(), header.shape.as_slice()), ("i64", &[3][..]));
    let expected = [14i64, 13, 13].map(i64::to_le_bytes);
    assert_eq!(counts[header.data_offset..], *expected.as_flattened());
    // One that is chosen at run time, and alone: the template needs no place for its name.
    let any = kernel("outputs_any.ptx");
    run(&farm, &any, "--domain 3 --output either=f32 --chunk 1 --out a.npy");
    assert_eq!(values::<f32>(&farm.read("a.npy"), &[3]), [0.0, 0.5, 1.0]);
    run(&farm, &any, "--domain 3 --output either=u32 --out b.npy");
    assert_eq!(values::<u32>(&farm.read("b.npy"), &[3]), [0, 1, 2]);
}

#[test]
fn a_node_that_compiles_checks_the_outputs() {
    if tessera_nvrtc::Nvrtc::find().is_err() {
        return not_run("named outputs of a kernel that a node compiles: no NVRTC is found");
    }
    let farm = Farm::start(1);
    let source = kernel("outputs.cu");
    let options = format!("{SEVERAL} --compile-on-node --out sent.{{output}}.npy");
    assert_eq!(run(&farm, &source, &options), "total 3393");
    check(&farm, |name| format!("sent.{name}.npy"));
    refused(&farm, &source, &options.replace("=u8", ""), &["its type is needed, since a node"]);
    let wrong = options.replace("total=f64", "total=f32");
    let words = ["compute", source.as_str()].into_iter().chain(wrong.split_whitespace());
    let (status, told) = farm.failure(&words.collect::<Vec<_>>());
    assert!(status == 3 && told.contains("stores f64 into the output `total`"), "{status} {told}");
    farm.assert_in_service();
}

#[test]
fn a_local_job_has_several_outputs_too() {
    let folder = tempfile::tempdir().unwrap();
    let rack = Rack::new(&Config::of(1, Device::default())).unwrap();
    let ptx = kernel("outputs.ptx");
    let options = format!("{SEVERAL} --device cuda --out run.{{output}}.npy");
    let words = [ptx.as_str()].into_iter().chain(options.split_whitespace());
    let output = local::compute(folder.path(), Some(&rack), &words.collect::<Vec<_>>());
    assert_eq!(local::text(&output.stdout), "total 3393\n", "{}", local::text(&output.stderr));
    let place = std::fs::read(folder.path().join("run.place.npy")).unwrap();
    assert_eq!(values::<u32>(&place, &[9, 13, 2])[2..4], [1, 0]);
}

#[test]
fn outputs_that_do_not_fit_the_kernel_are_refused() {
    let farm = Farm::start(0);
    let ptx = kernel("outputs.ptx");
    let with =
        |change: &dyn Fn(String) -> String| change(format!("{SEVERAL} --out run.{{output}}.npy"));
    let known = "parity (an output), total (an output), place (an output), wave (an output)";
    let unknown = with(&|text| format!("{text} --output flux=f32"));
    refused(&farm, &ptx, &unknown, &["no variable `flux`", known]);
    let missing = with(&|text| text.replace("--output wave=complex64", ""));
    refused(&farm, &ptx, &missing, &["give --output wave=complex64", known]);
    let mistyped = with(&|text| text.replace("total=f64", "total=f32"));
    refused(&farm, &ptx, &mistyped, &["stores f64 into the output `total`", "says f32"]);
    refused(&farm, &ptx, "--domain 9 --out a.npy", &["give --output parity=u8", known]);
    let nameless = kernel("places.ptx");
    let named = "--domain 9 --output flux=f32 --out a.npy";
    refused(&farm, &nameless, named, &["no variable `flux`"]);
    let array = "--domain 9 --output cells=f64 --out a.npy";
    refused(
        &farm,
        &example("heat.ptx"),
        "--domain 9 --output plate=f64 --out a.npy",
        &["`plate` is an array in the kernel", "TesseraOutput"],
    );
    refused(&farm, &example("lattice.ptx"), array, &["`cells` is an array in the kernel"]);
    refused(&farm, &ptx, &with(&|text| format!("{text} --arg wave=1")), &["give it with --output"]);
    let any = kernel("outputs_any.ptx");
    let untold = "--domain 3 --output either --out a.npy";
    refused(&farm, &any, untold, &["stores f32 and u32 into it", "hint: say it: --output either="]);
    // The form of the options.
    let template = with(&|text| text.replace("run.{output}.npy", "a/run.npy"));
    refused(&farm, &ptx, &template, &["4 outputs the same name", "write `a/run.{output}.npy`"]);
    let channels = with(&|text| format!("{text} --channels 3"));
    refused(&farm, &ptx, &channels, &["--channels", "cannot be used with"]);
    let picture = with(&|text| text.replace(".npy", ".exr"));
    refused(&farm, &ptx, &picture, &["exr takes two axes of f32", "`parity` is another"]);
    let count = with(&|text| text.replace("parity=u8", "parity=u8:count"));
    refused(&farm, &ptx, &count, &["`parity`: count needs a number of keys, parity=TYPE:count:N"]);
}

/// With the farm's files in a bucket, nodes make the files of compute jobs too.
#[test]
fn outputs_are_put_into_a_bucket_by_nodes() {
    let what = "outputs_are_put_into_a_bucket_by_nodes";
    let Some(server) = Seaweed::start(what) else { return };
    let farm = Farm::start_with(2, |command| {
        command.args(["--blobs", &server.address("farm")]);
        command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
        command.env("TESSERA_LOG", "info,tessera_coordinator=debug");
    });
    // One alone has nobody who looks.
    farm.wait_for("two nodes", |farm| {
        let nodes: serde_json::Value =
            serde_json::from_str(&farm.text(&["nodes", "--json"])).unwrap();
        nodes.as_array().is_some_and(|nodes| nodes.len() == 2)
    });
    let ptx = kernel("outputs.ptx");
    let told = run(&farm, &ptx, &format!("{SEVERAL} --chunk 20 --out run.{{output}}.npy"));
    assert_eq!(told, "total 3393");
    check(&farm, |name| format!("run.{name}.npy"));
    let log = String::from_utf8(farm.read("coordinator.log")).unwrap();
    assert!(log.contains("files of a frame were put by nodes"), "{log}");
}
