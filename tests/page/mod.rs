//! The pages in a real browser, in front of a farm of real processes: one path through all of them,
//! by keyboard. Needs Node, Chromium, and a folder with playwright-core and axe-core.

mod oidc;

use crate::farm::bad_node::large_scene;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tessera_support::farm::{Farm, library, skipped, takes_minutes};

/// Where Debian has the browser.
const CHROMIUM: &str = "/usr/bin/chromium";

/// The folder with the browser's tools; None where something is missing, which is told by name.
fn tools() -> Option<PathBuf> {
    let folder = std::env::var_os("TESSERA_PAGE_TOOLS").map(PathBuf::from);
    let folder = folder.filter(|folder| folder.join("node_modules/oidc-provider").is_dir());
    let has_node = Command::new("node").arg("--version").stdout(Stdio::null()).status().is_ok();
    match folder {
        Some(folder) if has_node && Path::new(CHROMIUM).exists() => Some(folder),
        _ => {
            skipped("the pages in a browser: TESSERA_PAGE_TOOLS, node or chromium is not there");
            None
        }
    }
}

/// A farm with pages, one node and its link for a browser.
fn farm() -> Farm {
    let mut farm = Farm::prepare();
    let mut command = farm.coordinator_command();
    command.args(["--http", "127.0.0.1:0"]);
    farm.run_coordinator(command);
    farm.add_node("rig", 1);
    farm
}

#[test]
fn a_browser_sees_the_farm_and_works_on_it_by_keyboard() {
    let Some(tools) = tools() else { return };
    let farm = farm();
    let done = farm.submit(
        &library("cornell-box.gltf"),
        &["--size", "96x64", "--spp", "4", "--format", "exr,png", "--name", "finished"],
    );
    farm.text(&["wait", &done]);
    let toned: Vec<String> = ["pbr-neutral", "agx", "filmic"]
        .into_iter()
        .map(|tone| {
            let small = ["--size", "48x32", "--spp", "4", "--format", "exr,png"];
            let named = ["--tone-map", tone, "--name", tone];
            let job = farm.submit(&library("cornell-box.gltf"), &[&small[..], &named].concat());
            farm.text(&["wait", &job]);
            format!("{tone}={job}")
        })
        .collect();
    let long = ["--size", "256x256", "--spp", "4096", "--tile", "32"];
    for name in ["long-one", "long-two"] {
        farm.submit(&library("cornell-box.gltf"), &[&long[..], &["--name", name]].concat());
    }
    // Rendering begins when its page is open.
    let live = ["--size", "256x256", "--spp", "256", "--tile", "32", "--priority", "100"];
    let live =
        farm.submit(&library("cornell-box.gltf"), &[&live[..], &["--name", "shown-live"]].concat());
    farm.text(&["pause", &live]);
    let link: serde_json::Value = serde_json::from_str(&farm.text(&["web", "--json"])).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/path.mjs");
    let output = Command::new("node")
        .arg(script)
        .args([CHROMIUM, link["link"].as_str().unwrap(), &done, &live])
        .arg(library("spinning-cube.gltf"))
        .args(&toned)
        .env("NODE_PATH", tools.join("node_modules"))
        .env("TESSERA_PAGE_TOOLS", &tools)
        .output()
        .expect("node starts");
    assert!(
        output.status.success(),
        "{}{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        farm.logs()
    );
    print!("{}", String::from_utf8_lossy(&output.stdout));
    let jobs = farm.text(&["jobs", "--state", "cancelled"]);
    assert!(jobs.contains("long-one") && jobs.contains("long-two"), "{jobs}");
    assert!(farm.text(&["nodes"]).contains("drained"), "{}", farm.text(&["nodes"]));
}

/// Submits a scene of the library, and returns its job.
fn job(farm: &Farm, scene: &str, name: &str, options: &[&str]) -> String {
    farm.submit(&library(scene), &[&["--name", name], options].concat())
}

/// The path of a node's page.
fn node_page(farm: &Farm, name: &str) -> String {
    let rows = farm.text(&["nodes", "--json"]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&rows).expect("rows");
    let of = rows.iter().find(|row| row["name"] == name).expect("a node");
    format!("/nodes/{}", of["node"].as_str().expect("an id"))
}

/// Prices, a group, and budgets that are not used up, nearly, and used up.
const RULES: &str = "currency = '€'\n[[price]]\nper_hour = 3600\n[group]\nall = ['admin']\n\
    [[budget]]\nof = 'farm'\namount = 100000\n\
    [[budget]]\nof = { group = 'all' }\namount = 1\nat_limit = 'warn'\n\
    [[budget]]\nof = { owner = 'nobody' }\namount = 5\nperiod = 'total'\n";

/// Jobs in every state that a page shows; returns the views with their paths.
fn all_views(farm: &mut Farm) -> Vec<String> {
    let rules = farm.folder().join("rules.toml");
    std::fs::write(&rules, RULES).expect("a file");
    farm.text(&["cost", "rules", "--set", rules.to_str().expect("UTF-8")]);
    let both = ["--format", "exr,png", "--spp", "16", "--denoise"];
    let still = ["--size", "480x320", "--aov", "depth"];
    let done = job(farm, "cornell-box.gltf", "box", &[&both[..], &still].concat());
    let turns = ["--size", "240x160", "--frames", "0-7"];
    let film = job(farm, "spinning-cube.gltf", "cube", &[&both[..], &turns].concat());
    let small = vec![("TESSERA_SCENE_MEMORY".into(), "64".into())];
    farm.add_node_with("small", &["--device", "cpu", "--threads", "1", "--pool", "small"], small);
    let folder = tempfile::tempdir().expect("a folder");
    let failed = ["--name", "too-large", "--pool", "small", "--give-up", "0s", "--spp", "1"];
    let failed = farm.submit(&large_scene(folder.path()), &failed);
    for job in [&done, &film] {
        farm.text(&["wait", job]);
    }
    farm.run(&["wait", &failed]);
    farm.text(&["drain", "small"]);
    let waits = job(farm, "cornell-box.gltf", "waits", &["--pool", "gpu", "--spp", "4"]);
    let long = job(farm, "cornell-box.gltf", "long", &["--size", "480x320", "--spp", "100000"]);
    farm.wait_for("the long job's first units", |farm| {
        farm.text(&["jobs", "--state", "running"]).contains("long")
    });
    farm.text(&["cancel", &job(farm, "cornell-box.gltf", "given-up", &["--spp", "4"])]);
    let after = ["--spp", "4", "--after", &long, "--after-any", &done];
    let after = job(farm, "cornell-box.gltf", "after", &after);
    job(farm, "cornell-box.gltf", "last", &["--spp", "4", "--after", &after]);
    [
        "jobs=/jobs".to_owned(),
        "nothing=/jobs?name=no-such-job".to_owned(),
        format!("film=/jobs/{film}"),
        format!("film-later=/jobs/{film}?from=6"),
        format!("failed=/jobs/{failed}"),
        format!("waits=/jobs/{waits}"),
        format!("graph=/jobs/{after}"),
        format!("frame=/jobs/{done}/frames/0"),
        format!("live=/jobs/{long}/frames/0"),
        "nodes=/nodes".to_owned(),
        format!("node={}", node_page(farm, "rig")),
        format!("drained={}", node_page(farm, "small")),
        "costs=/costs".to_owned(),
        "no-costs=/costs?month=1999-12".to_owned(),
        "new=/submit".to_owned(),
        "template=/submit/template".to_owned(),
        "access=/access".to_owned(),
        "missing=/jobs/00000000-0000-0000-0000-000000000000".to_owned(),
    ]
    .into()
}

#[test]
fn every_view_is_whole_in_both_schemes_and_on_a_phone() {
    if !takes_minutes("every view of the pages") {
        return;
    }
    let Some(tools) = tools() else { return };
    let mut farm = farm();
    let views = all_views(&mut farm);
    let link: serde_json::Value = serde_json::from_str(&farm.text(&["web", "--json"])).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/views.mjs");
    let output = Command::new("node")
        .arg(script)
        .args([CHROMIUM, link["link"].as_str().unwrap()])
        .args(&views)
        .env("TESSERA_PAGE_TOOLS", &tools)
        .output()
        .expect("node starts");
    assert!(
        output.status.success(),
        "{}{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        farm.logs()
    );
    print!("{}", String::from_utf8_lossy(&output.stdout));
}

/// The bytes of the vectors: what comes between two multiples of 251 is never the same.
fn counting(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

#[test]
fn the_browsers_hash_is_blake3() {
    if tools().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("coordinator/http/assets/blake3.js");
    std::fs::copy(source, folder.path().join("blake3.mjs")).unwrap();
    // Around the ends of blocks, chunks and subtrees; each is given in pieces of another length.
    let lengths = [
        0, 1, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 2047, 2048, 2049, 3072, 3073, 4096,
        4097, 5120, 5121, 7168, 8192, 8193, 16384, 31744, 102_400, 1_000_003,
    ];
    let program = format!(
        "import {{ Blake3 }} from './blake3.mjs';
        for (const length of {lengths:?}) {{
            const bytes = Uint8Array.from({{ length }}, (_, at) => at % 251);
            const hasher = new Blake3();
            for (let at = 0; at < length; at += 777) hasher.update(bytes.subarray(at, at + 777));
            console.log(hasher.hex());
        }}"
    );
    std::fs::write(folder.path().join("vectors.mjs"), program).unwrap();
    let output = Command::new("node").arg("vectors.mjs").current_dir(&folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wanted = lengths.map(|length| blake3::hash(&counting(length)).to_hex().to_string());
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said, wanted, "{}", String::from_utf8_lossy(&output.stderr));
}
