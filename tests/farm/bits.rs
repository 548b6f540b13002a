//! Same bits: one hash of the pixels, whatever the farm looks like.

use std::path::PathBuf;
use tessera_support::farm::{Farm, library, rendered, shared_scenes};

/// A scene and the options that give it light and a view.
struct Case {
    name: &'static str,
    scene: PathBuf,
    options: Vec<String>,
}

fn cases() -> Vec<Case> {
    let picture = ["--size", "112x80", "--spp", "24", "--depth", "5"].map(str::to_owned).to_vec();
    let mut cases = vec![Case {
        name: "the Cornell box",
        scene: library("cornell-box.gltf"),
        options: picture.clone(),
    }];
    if let Some(folder) = shared_scenes() {
        let sky = folder.join("env/studio_small_05_1k.hdr").display().to_string();
        let lit = [picture.clone(), vec!["--env".into(), sky.clone()]].concat();
        cases.push(Case {
            name: "DamagedHelmet",
            scene: folder.join("DamagedHelmet.glb"),
            options: lit.clone(),
        });
        let inside =
            ["--eye", "-5,2,0", "--target", "5,2.5,0", "--vfov", "60"].map(str::to_owned).to_vec();
        cases.push(Case {
            name: "Sponza",
            scene: folder.join("Sponza.glb"),
            options: [lit, inside].concat(),
        });
    }
    cases
}

impl Case {
    fn options<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        self.options.iter().map(String::as_str).chain(more.iter().copied()).collect()
    }

    fn submitted(&self, farm: &Farm, more: &[&str]) -> String {
        let job = farm.submit(&self.scene, &self.options(more));
        farm.hashes(&job).remove(0)
    }

    fn rendered(&self, more: &[&str]) -> String {
        rendered(&self.scene, &self.options(more))
    }
}

#[test]
fn a_denoised_frame_has_one_hash_too() {
    let farm = Farm::start(2, 1);
    let options =
        ["--size", "112x80", "--spp", "6", "--depth", "4", "--denoise"].map(str::to_owned).to_vec();
    let case =
        Case { name: "the Cornell box, denoised", scene: library("cornell-box.gltf"), options };
    let want = case.rendered(&["--threads", "1"]);
    for more in [&["--threads", "2", "--tile", "16"][..], &["--tile", "100", "--unit-samples", "4"]]
    {
        assert_eq!(case.rendered(more), want, "render {more:?}");
    }
    for more in [&["--tile", "16", "--unit-samples", "5"][..], &["--tile", "33"]] {
        assert_eq!(case.submitted(&farm, more), want, "two nodes, submit {more:?}");
    }
}

/// What this processor can run.
fn instruction_sets() -> Vec<&'static str> {
    tessera_kernels::host::available_isas().iter().map(|isa| isa.name()).collect()
}

// promise: P5
#[test]
fn tiles_sample_ranges_threads_and_nodes_change_no_bit() {
    let one = Farm::start(1, 1);
    let two = Farm::start(2, 1);
    let three = Farm::start(3, 2);
    for case in cases() {
        let want = case.rendered(&["--threads", "1"]);
        println!("{}: {want}", case.name);
        let rendered: &[&[&str]] = &[
            &["--threads", "2"],
            &["--threads", "2", "--tile", "16"],
            &["--threads", "1", "--tile", "100", "--unit-samples", "7"],
            &["--threads", "2", "--tile", "256", "--nodes", "2"],
        ];
        for more in rendered {
            assert_eq!(case.rendered(more), want, "{}: render {more:?}", case.name);
        }
        for isa in instruction_sets() {
            let found = case.rendered(&["--threads", "2", "--isa", isa]);
            assert_eq!(found, want, "{}: {isa}", case.name);
        }
        let submitted: &[(&str, &Farm, &[&str])] = &[
            ("one node", &one, &["--tile", "64"]),
            ("two nodes", &two, &["--tile", "16", "--unit-samples", "24"]),
            ("two nodes", &two, &["--tile", "64", "--unit-samples", "1"]),
            ("three nodes", &three, &["--tile", "100", "--unit-samples", "7"]),
            ("three nodes", &three, &["--tile", "16", "--unit-samples", "7"]),
        ];
        for (what, farm, more) in submitted {
            assert_eq!(case.submitted(farm, more), want, "{}: {what}, submit {more:?}", case.name);
        }
    }
}
