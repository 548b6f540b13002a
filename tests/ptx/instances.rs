//! Scenes with instances, which have kernels of their own: the device's walk through meshes that
//! are held once gives the host's bits.

use crate::ptx::device::shipped_for_instances;
use crate::ptx::{clang, pictures};
use std::sync::Arc;
use tessera_kernels::CheckedScene;
use tessera_support::instanced::{instanced, places};
use tessera_support::scenes::{self, Case};

/// With veils, with layers, and with neither.
const INSTANCED: [&str; 3] = ["veils", "vitrine", "parlour"];

/// Pixels across and down: fewer than of scenes without instances, since four places of everything
/// are four times the work.
const SIZE: u32 = 16;

/// The case with every surface that does not shine in four places.
fn twin(case: Case) -> Case {
    let scene = CheckedScene::new(Arc::new(instanced(&case.scene, &places()[1..5])));
    Case { scene: scene.expect("scenes of tests are right"), ..case }
}

fn sized(size: u32) -> Vec<Case> {
    let cases = scenes::sized(size).into_iter().filter(|case| INSTANCED.contains(&case.name));
    let made: Vec<Case> = cases.map(twin).collect();
    assert_eq!(made.len(), INSTANCED.len());
    made
}

#[test]
fn launches_and_films_of_instances_match_the_host() {
    pictures::compare(shipped_for_instances(), &sized(SIZE));
}

#[test]
fn instances_by_clang_match_the_host() {
    let test = "instances_by_clang_match_the_host";
    if !clang::is_whole() {
        return eprintln!("NOT RUN: {test}: TESSERA_IMAGES=all asks for it");
    }
    let Some(compiler) = clang::compiler(test) else { return };
    pictures::compare(&clang::compile(&compiler, "entry/cuda_instances.cu"), &sized(SIZE));
}
